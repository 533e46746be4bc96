"""A cassette: the requests of a session and their responses, in JSON that people can read, compare and edit.

The first line names the format. Each request is an object of its own, from a line `{` to a line `}`: the client, the
time, the request and the response, in the JSON of Kafka's own tools. Record batches are opened
(`batches.py`), secrets are left out (`secrets.py`), and so are headers: correlation ids and sizes belong to a
connection.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from barnabas.kit.cassette.batches import closed, opened
from barnabas.kit.cassette.exchange import Exchange, request_version
from barnabas.kit.cassette.secrets import without_secrets
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.codec.json_form import api_name, from_json, to_json
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

FORMAT: Final = 1
HEADER: Final = json.dumps({"cassette": FORMAT})
"""The first line."""
WIDTH: Final = 120
"""A value that fits into a line is written in one."""


class CassetteError(ValueError):
    """A file that is no cassette, or not a whole one; the text says where it is wrong."""


_NAMED: Final = {api_name(api): api for api in ApiKey}


def text_of(exchange: Exchange) -> str:
    """Its lines in the file. ProtocolError and KafkaError for a message that cannot be read."""
    request, response = exchange.request_message(), exchange.response_message()
    value: dict[str, Any] = {
        "connection": exchange.connection,
        "at_ms": _ms(exchange.at),
        "took_ms": None if exchange.took is None else _ms(exchange.took),
        "client_id": exchange.client_id,
        "api": api_name(exchange.api),
        "version": exchange.version,
        "response_version": exchange.response_version,
        "request": _body(request, request_version(exchange.api, exchange.version)),
        "response": None if response is None else _body(response, exchange.response_version),
    }
    if exchange.response_version == exchange.version:
        del value["response_version"]
    members = [f"  {json.dumps(name)}: {_pretty(part, '  ')}" for name, part in value.items()]
    return "{\n" + ",\n".join(members) + "\n}\n"


def read(lines: Iterable[str]) -> Iterator[Exchange]:
    """The exchanges of a file, one after another. CassetteError where it is wrong."""
    numbered = enumerate(lines, 1)
    _check_header(next(numbered, (1, ""))[1])
    first = 0
    parts: list[str] = []
    for number, line in numbered:
        if not parts:
            first = number
        parts.append(line)
        if line.rstrip() == "}":
            yield _exchange("".join(parts), first)
            parts = []
    if "".join(parts).strip():
        raise CassetteError(f"it is cut: the request that begins on line {first} has no end")


def _check_header(line: str) -> None:
    try:
        value = json.loads(line)
    except ValueError:
        value = None
    version = value.get("cassette") if isinstance(value, dict) else None
    if version is None:
        raise CassetteError(f"it is no cassette: its first line must be {HEADER}")
    if version != FORMAT:
        raise CassetteError(f"it is a cassette of version {version}, and this Barnabas reads version {FORMAT}")


def _exchange(text: str, line: int) -> Exchange:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CassetteError(f"the request that begins on line {line} is not JSON: {error}") from None
    try:
        return _of_json(value)
    except (AttributeError, KeyError, TypeError, ValueError, KafkaError, ProtocolError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise CassetteError(f"the request that begins on line {line} cannot be used: {reason}") from None


def _of_json(value: Any) -> Exchange:
    api = _NAMED.get(value["api"])
    if api is None:
        raise ValueError(f"Kafka has no API {value['api']!r}")
    version, took = int(value["version"]), value["took_ms"]
    response_version = int(value.get("response_version", version))
    request_class, response_class = message_for(api)
    request = _encoded(request_class, value["request"], request_version(api, version))
    response = value["response"]
    return Exchange(
        connection=int(value["connection"]),
        at=value["at_ms"] / 1000,
        api=api,
        version=version,
        client_id=value["client_id"],
        request=request,
        response=None if response is None else _encoded(response_class, response, response_version),
        response_version=response_version,
        took=None if took is None else max(0.0, took / 1000),
    )


def _encoded(kind: type[Message], body: Any, version: int) -> bytes:
    return from_json(kind, closed(body), version).encode(version)


def _body(message: Message, version: int) -> Any:
    return opened(without_secrets(to_json(message, version)))


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def _pretty(value: Any, indent: str) -> str:
    """JSON in which a value that does not fit into one line has a line for each part."""
    if not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if _may_fit(value) and len(indent) + len(flat := json.dumps(value, ensure_ascii=False)) <= WIDTH:
        return flat
    inner = indent + "  "
    if isinstance(value, list):
        return "[\n" + ",\n".join([inner + _pretty(part, inner) for part in value]) + f"\n{indent}]"
    parts = [f"{inner}{json.dumps(name)}: {_pretty(part, inner)}" for name, part in value.items()]
    return "{\n" + ",\n".join(parts) + f"\n{indent}}}"


def _may_fit(value: Any) -> bool:
    """Whether a value may be short enough for one line, found without writing all of it."""
    room = WIDTH
    parts = [value]
    while parts and room > 0:
        part = parts.pop()
        room -= len(part) if isinstance(part, dict | list | str) else 1
        if isinstance(part, dict | list) and room > 0:
            parts += part.values() if isinstance(part, dict) else part
    return room > 0
