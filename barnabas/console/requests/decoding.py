"""Requests and responses from their bytes: JSON in Kafka's form, the names and the errors in them, a hex dump.

Records are shown by the headers of their batches. A frame of which the broker kept only a part is not decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.batches.batch_header import BatchHeader, walk_batches
from barnabas.wire.codec.json_form import api_name, to_json
from barnabas.wire.errors import CorruptRecord, KafkaError, ProtocolError
from barnabas.wire.frame import api_versions_response_version, parse_request_header, parse_response_header
from barnabas.wire.names import errors_in, named_by
from barnabas.wire.registry import message_for
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.wire.codec.fields import StructBase
    from barnabas.wire.names import NamedTopic
    from barnabas.wire.schema import Message

MAX_FILLED: Final = 4 * 1024 * 1024
"""Bytes of log files in a response that are filled with zeros, so that the rest of it can be decoded."""
MAX_DUMPED: Final = 4 * 1024
MAX_BATCHES: Final = 50
_UNREADABLE: Final = (ProtocolError, KafkaError, CorruptRecord, ValueError, IndexError, KeyError)


@dataclass(frozen=True)
class Name:
    """A topic of an id."""

    name: str


class Topics:
    """The topics of a cluster by their ids."""

    def __init__(self, names: Mapping[bytes, str], renewed: Callable[[], Mapping[bytes, str]]) -> None:
        """`renewed` gives the names once more, for an id that is not among them."""
        self._names = names
        self._renewed = renewed

    def topic_by_id(self, topic_id: bytes, /) -> NamedTopic | None:
        """As `wire.names.TopicNames`."""
        if topic_id not in self._names:
            self._names = self._renewed()
        name = self._names.get(topic_id)
        return None if name is None else Name(name)


@dataclass
class Decoded:
    """What one exchange says. `json` is None if it was not decoded; `why` says the reason."""

    request: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    why_request: str = ""
    why_response: str = ""
    topics: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    transactional_ids: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """`orders-0: NOT_LEADER_OR_FOLLOWER`, or the error alone if it is of the whole response."""


def name_of_api(key: int) -> str:
    """The name of an API; its number if there is none."""
    if key < 0:
        return "SASL token"
    try:
        return api_name(ApiKey(key))
    except ValueError:
        return f"API {key}"


def decode(
    api: int, version: int, request: bytes, request_size: int, response: Sequence[bytes | int], response_size: int,
    topics: Topics, *, with_json: bool
) -> Decoded:  # fmt: skip
    """What an exchange says; never raises for bytes that are not Kafka's. `with_json`: the messages too."""
    decoded = Decoded()
    asked = None
    if len(request) < request_size:
        decoded.why_request = (
            f"The broker kept the first {len(request):,} of {request_size:,} bytes: too few to decode."
        )
    else:
        try:
            asked = _request(api, version, request)
        except _UNREADABLE as error:
            decoded.why_request = f"It cannot be decoded: {error}"
    if asked is not None:
        named = named_by(asked, topics)
        decoded.topics, decoded.groups = list(named.topics), list(named.groups)
        decoded.transactional_ids = list(named.transactional_ids)
        if with_json:
            decoded.request = _json(asked, version)
    if not response_size:
        return decoded
    whole, decoded.why_response = _whole(response, response_size)
    if whole is not None:
        try:
            answer, answered_in = _response(api, version, whole)
        except _UNREADABLE as error:
            decoded.why_response = f"It cannot be decoded: {error}"
        else:
            decoded.errors = [f"{where}: {name}" if where else name for where, name in errors_in(answer, topics)]
            if with_json:
                decoded.response = _json(answer, answered_in)
    return decoded


def _request(api: int, version: int, frame: bytes) -> Message:
    _, position = parse_request_header(frame)
    return message_for(ApiKey(api))[0].decode(frame[position:], version)


def _response(api: int, version: int, frame: bytes) -> tuple[Message, int]:
    _, position = parse_response_header(frame, api, version)
    body = frame[position:]
    if api == ApiKey.API_VERSIONS:
        version = api_versions_response_version(body, version)
    return message_for(ApiKey(api))[1].decode(body, version), version


def _whole(parts: Sequence[bytes | int], size: int) -> tuple[bytes | None, str]:
    """A response with zeros for the bytes of log files; None and why if too little was kept."""
    filled = sum(part for part in parts if isinstance(part, int))
    kept = sum(len(part) for part in parts if isinstance(part, bytes))
    if filled + kept < size:
        return None, f"The broker kept the first {kept:,} of {size:,} bytes: too few to decode."
    if filled > MAX_FILLED:
        return None, f"It has {filled:,} bytes of log files, which are not copied: too many to decode."
    return b"".join(bytes(part) for part in parts), ""


def _json(message: StructBase, version: int) -> dict[str, Any]:
    """A message in JSON; records are the headers of their batches."""
    try:
        value = to_json(message, version)
    except KafkaError as error:
        return {"error": str(error)}
    _summarize(message, value)
    return value


def _summarize(message: Any, value: Any) -> None:
    for declared, name in zip(message.declared, _json_names(message), strict=True):
        if name not in value or value[name] is None:
            continue
        held = getattr(message, declared.name)
        if declared.kind == "records":
            value[name] = _batches(held)
        elif declared.kind == "struct":
            _summarize(held, value[name])
        elif declared.kind == "array" and declared.element_kind == "struct":
            for item, shown in zip(held, value[name], strict=True):
                _summarize(item, shown)


def _json_names(message: Any) -> list[str]:
    from barnabas.wire.codec.json_form import json_name

    return [json_name(declared.name) for declared in message.declared]


def _batches(records: Any) -> dict[str, Any]:
    parts = records if isinstance(records, list | tuple) else [records]
    data = b"".join(bytes(chunk_bytes(part)) for part in parts)
    if not any(data[:64]):
        return {"bytes": len(data), "batches": "sent from a log file, not copied"} if data else {"bytes": 0}
    try:
        headers = list(walk_batches(BatchHeader, memoryview(data), len(data)))
    except _UNREADABLE as error:
        return {"bytes": len(data), "batches": f"cannot be read: {error}"}
    shown: dict[str, Any] = {
        "bytes": len(data),
        "batches": [
            {
                "baseOffset": header.base_offset,
                "records": header.record_count,
                "bytes": header.size,
                "codec": header.attributes & 7,
                "producerId": header.producer_id,
                "producerEpoch": header.producer_epoch,
                "baseSequence": header.base_sequence,
                "isTransactional": bool(header.attributes & 16),
                "isControl": bool(header.attributes & 32),
            }
            for header in headers[:MAX_BATCHES]
        ],
    }
    if len(headers) > MAX_BATCHES:
        shown["moreBatches"] = len(headers) - MAX_BATCHES
    return shown


def dump(parts: Sequence[bytes | int]) -> str:
    """The first bytes as lines of 16: position, hex, and the characters that ASCII has."""
    lines = []
    position = shown = 0
    for part in parts:
        if isinstance(part, int):
            lines.append(f"{position:08x}  … {part:,} bytes of a log file")
            position += part
            continue
        for start in range(0, len(part), 16):
            if shown >= MAX_DUMPED:
                return "\n".join([*lines, "…"])
            row = part[start : start + 16]
            text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
            lines.append(f"{position + start:08x}  {row[:8].hex(' '):23}  {row[8:].hex(' '):23}  {text}")
            shown += 16
        position += len(part)
    return "\n".join(lines)
