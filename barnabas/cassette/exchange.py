"""A cassette: the requests of a session and their responses, a line of JSON each.

The first line says what the file is. Bodies are as they were on the wire, in base64, without headers: correlation ids
and sizes belong to connections. What a client sends to log in is not kept, so a cassette has no passwords.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.registry import message_for

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

FORMAT: Final = {"cassette": 1}
"""The first line."""
SECRET: Final = frozenset({ApiKey.SASL_AUTHENTICATE})


class CassetteError(ValueError):
    """A file that is no cassette; the text says where it is wrong."""


def decoded_request(api: ApiKey, version: int, body: bytes) -> Message:
    """A request as a broker reads it: librdkafka sends some with bytes after their end, which Kafka takes.

    ProtocolError and KafkaError if it cannot be read.
    """
    kind = message_for(api)[0]
    if api == ApiKey.API_VERSIONS and version not in kind.versions:
        return kind()  # of a later version: it is answered with the versions that there are (KIP-511)
    return kind.codec(version).parse(body)[0]


@dataclass(slots=True)
class Exchange:
    """A request and its response. Times are in seconds since the session began."""

    connection: int
    """The connections of a session are numbered, in the order in which they were opened."""
    at: float
    api: ApiKey
    version: int
    client_id: str | None
    request: bytes | None
    """The body; None if it is a secret."""
    response: bytes | None = None
    """None if there was none: Produce with acks=0, or a connection that was closed before."""
    response_version: int = 0
    """Another one than that of the request only for ApiVersions (KIP-511)."""
    answered_at: float | None = None

    def request_message(self) -> Message | None:
        """The request, decoded. ProtocolError and KafkaError if it cannot be."""
        return None if self.request is None else decoded_request(self.api, self.version, self.request)

    def response_message(self) -> Message | None:
        """The response, decoded anew. Errors as `request_message`."""
        return None if self.response is None else message_for(self.api)[1].decode(self.response, self.response_version)

    def line(self) -> str:
        """Its line in the file."""
        is_secret = self.api in SECRET
        return json.dumps(
            {
                "connection": self.connection,
                "at": round(self.at, 6),
                "api": self.api.name,
                "version": self.version,
                "client_id": self.client_id,
                "request": None if is_secret else _text(self.request),
                "response": None if is_secret else _text(self.response),
                "response_version": self.response_version,
                "answered_at": None if self.answered_at is None else round(self.answered_at, 6),
            }
        )


def header() -> str:
    """The first line of a cassette."""
    return json.dumps(FORMAT)


def text_of(exchanges: Iterable[Exchange]) -> str:
    """A whole cassette."""
    return "".join(f"{line}\n" for line in [header(), *[one.line() for one in exchanges]])


def read(text: str) -> list[Exchange]:
    """The exchanges of a cassette. CassetteError if it is none.

    A last line without its end is left out: whoever recorded was killed as it was written.
    """
    lines = text.split("\n")[:-1]
    if not lines or _json(lines[0], 1) != FORMAT:
        raise CassetteError('it is no cassette: its first line must be {"cassette": 1}')
    return [_exchange(_json(line, number), number) for number, line in enumerate(lines[1:], 2)]


def _json(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise CassetteError(f"line {number} is not JSON") from None


def _exchange(values: Any, number: int) -> Exchange:
    try:
        exchange = Exchange(
            connection=int(values["connection"]),
            at=float(values["at"]),
            api=ApiKey[values["api"]],
            version=int(values["version"]),
            client_id=values["client_id"],
            request=_data(values["request"]),
            response=_data(values["response"]),
            response_version=int(values["response_version"]),
            answered_at=None if values["answered_at"] is None else float(values["answered_at"]),
        )
        exchange.request_message()
        exchange.response_message()
    except Exception as error:
        raise CassetteError(f"line {number} is no request of a session: {type(error).__name__}: {error}") from None
    return exchange


def _text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


def _data(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text, validate=True)
