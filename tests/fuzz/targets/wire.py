"""Messages of every API and version, request and response, record and header; headers of frames; a stream of frames.

What decodes is encoded and decoded again to the same bytes, at once and in steps. Only ProtocolError and KafkaError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from functools import cache
from typing import Any, TypeVar

from barnabas.wire.clients.connection import NEED_DATA, Connection, Event
from barnabas.wire.codec.json_form import from_json, to_json
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.frame import parse_request_header
from barnabas.wire.registry import all_messages
from barnabas.wire.schema import Message
from tests.fuzz.targets import Input
from tests.support.requests.recorded import exchanges, vectors

T = TypeVar("T")
MAX_BYTES = 2048
ELEMENTS = 10_000
STREAM, HEADER = 65_534, 65_535
"""What an input is in place of the number of a message."""


@cache
def cases() -> list[tuple[type[Message], int]]:
    """Every version of every message."""
    messages = all_messages()
    return [(messages[name], version) for name in sorted(messages) for version in messages[name].versions]


@cache
def _numbers() -> dict[tuple[type[Message], int], int]:
    return {case: number for number, case in enumerate(cases())}


def check(data: bytes) -> None:
    """A message, the header of a request, or what a client sends."""
    source = Input(data)
    number = source.number(65_536)
    if number >= STREAM:
        with contextlib.suppress(ProtocolError, KafkaError):
            if number == HEADER:
                parse_request_header(source.rest)
            else:
                _stream(source.rest)
        return
    message_class, version = cases()[number % len(cases())]
    codec = message_class.codec(version)
    parsed, refused = _outcome(lambda: codec.parse_within(source.rest, 0, ELEMENTS))
    assert _outcome(lambda: _all_steps(codec.parse_in_steps(source.rest, 0, ELEMENTS))) == (parsed, refused), (
        f"{codec} parses in steps in another way"
    )
    if parsed is None:
        return
    _check_message(codec, parsed[0])


def _outcome(parse: Callable[[], tuple[Message, int]]) -> tuple[tuple[Message, int] | None, str]:
    """What was parsed, or why nothing was."""
    try:
        return parse(), ""
    except (ProtocolError, KafkaError) as error:
        return None, str(error)


def _stream(data: bytes) -> None:
    """The same events come whether bytes arrive at once or one by one."""
    whole, single = Connection.server(max_frame_bytes=MAX_BYTES), Connection.server(max_frame_bytes=MAX_BYTES)
    whole.receive_data(data)
    events = list(_events(whole))
    for at in range(len(data)):
        single.receive_data(data[at : at + 1])
        for event in _events(single):
            assert repr(event) == repr(events.pop(0))
    assert not events


def _events(connection: Connection) -> Iterator[Event]:
    while (event := connection.next_event()) is not NEED_DATA:
        yield event


def _check_message(codec: Any, message: Message) -> None:
    encoded = b"".join(codec.build(message))
    again, end = codec.parse(encoded)
    assert end == len(encoded), f"{end} of {len(encoded)} bytes of {codec} are read"
    assert b"".join(codec.build(again)) == encoded, f"{codec} encodes what it has decoded in another way"
    assert b"".join(_all_steps(codec.build_in_steps(message))) == encoded, f"{codec} encodes in steps in another way"
    repr(message)
    read = from_json(codec.message_class, to_json(message, codec.version), codec.version)
    assert b"".join(codec.build(read)) == encoded, f"{codec} is not the same after JSON"


def _all_steps(steps: Generator[None, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def prepare(instrument: Callable[..., object]) -> None:
    """Compile the codecs of all versions, and instrument them."""
    for message_class, version in cases():
        codec = message_class.codec(version)
        with contextlib.suppress(ProtocolError):
            codec.parse_within(b"", 0, ELEMENTS)
        instrument(codec.parse_within)


def seeds() -> Iterator[bytes]:
    """Kafka's vectors, and headers of real clients."""
    for vector in vectors():
        number = _numbers().get((vector.message_class, vector.version))
        if number is not None and len(vector.data) <= MAX_BYTES:
            yield number.to_bytes(2, "big") + vector.data
    for exchange in exchanges():
        yield b"\xff\xff" + exchange.request[:40]
        if len(exchange.request) < MAX_BYTES // 2:
            yield b"\xff\xfe" + (len(exchange.request).to_bytes(4, "big") + exchange.request) * 2
