"""Messages of every API and version, request and response, record and header; headers of frames.

What decodes is encoded and decoded again to the same bytes, at once and in steps. Only ProtocolError and KafkaError.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from functools import cache
from typing import Any

from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.frame import parse_request_header
from barnabas.wire.json_form import from_json, to_json
from barnabas.wire.registry import all_messages
from barnabas.wire.schema import Message
from barnabas.wire.types import Chunk
from tests.fuzz.targets import Input
from tests.wire.recorded import exchanges, vectors

MAX_BYTES = 2048
ELEMENTS = 10_000


@cache
def cases() -> list[tuple[type[Message], int]]:
    """Every version of every message."""
    messages = all_messages()
    return [(messages[name], version) for name in sorted(messages) for version in messages[name].versions]


@cache
def _numbers() -> dict[tuple[type[Message], int], int]:
    return {case: number for number, case in enumerate(cases())}


def check(data: bytes) -> None:
    """A message, or the header of a request."""
    given = Input(data)
    number = given.number(65_536)
    if number == 65_535:
        with contextlib.suppress(ProtocolError, KafkaError):
            parse_request_header(given.rest)
        return
    message_class, version = cases()[number % len(cases())]
    codec = message_class.codec(version)
    try:
        message, _ = codec.parse_within(given.rest, 0, ELEMENTS)
    except (ProtocolError, KafkaError):
        return
    _check_message(codec, message)


def _check_message(codec: Any, message: Message) -> None:
    encoded = b"".join(codec.build(message))
    again, end = codec.parse(encoded)
    assert end == len(encoded), f"{end} of {len(encoded)} bytes of {codec} are read"
    assert b"".join(codec.build(again)) == encoded, f"{codec} encodes what it has decoded in another way"
    assert b"".join(_all_steps(codec.build_in_steps(message))) == encoded, f"{codec} encodes in steps in another way"
    repr(message)
    read = from_json(codec.message_class, to_json(message, codec.version), codec.version)
    assert b"".join(codec.build(read)) == encoded, f"{codec} is not the same after JSON"


def _all_steps(steps: Generator[None, None, list[Chunk]]) -> list[Chunk]:
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
