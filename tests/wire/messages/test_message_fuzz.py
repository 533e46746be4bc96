"""Truncated, mutated and random bytes give a message or ProtocolError, and do not allocate excessive memory.

`BARNABAS_EXAMPLES=100000` truncates every vector at every byte and sets the number of examples of Hypothesis.
"""

from __future__ import annotations

import io
import tracemalloc

import pytest
from construct import ConstructError
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.frame import message_for, parse_request_header, parse_response_header
from barnabas.wire.messages.configs import DescribeConfigsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.records.metadata_records import RegisterBrokerRecord
from barnabas.wire.messages.topics import DeleteTopicsRequest, ElectLeadersRequest
from barnabas.wire.registry import all_messages
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from barnabas.wire.varint import encode_unsigned_varint
from tests.support.cases import for_each
from tests.support.requests.recorded import Vector, exchanges, vectors
from tests.support.volume import how_many

EXAMPLES = how_many("BARNABAS_EXAMPLES", 300)
IS_LONG = EXAMPLES >= 1000
FUZZ = settings(max_examples=EXAMPLES)
EVERY_VERSION = [(one, version) for one in all_messages().values() for version in one.versions]


def read(message_class: type[Message], version: int, data: bytes) -> Message | None:
    """The message, or None for ProtocolError. Other exceptions fail the test."""
    try:
        message, end = message_class.codec(version).parse(data)
    except ProtocolError:
        return None
    assert end <= len(data)
    return message if end == len(data) else None


def read_interpreted(message_class: type[Message], version: int, data: bytes) -> Message | None:
    try:
        return parse_measured(message_class, version, data)[0]
    except ConstructError:
        return None


def cuts(length: int) -> range:
    """Where to truncate: every position in a long run or a short message, otherwise about 25 positions."""
    return range(0, length, 1 if IS_LONG or length < 30 else length // 25)


def test_message_truncated_at_any_byte_is_a_protocol_error() -> None:
    for vector in vectors():
        for cut in cuts(len(vector.data)):
            try:
                vector.message_class.codec(vector.version).parse(vector.data[:cut])
            except ProtocolError:
                continue
            pytest.fail(f"{vector.message_class.__name__} v{vector.version} truncated at {cut} is still a message")


def test_interpreted_construct_rejects_a_truncated_message() -> None:
    for vector in vectors()[:: 1 if IS_LONG else 18]:
        for cut in cuts(len(vector.data)):
            assert read_interpreted(vector.message_class, vector.version, vector.data[:cut]) is None


def test_trailing_byte_is_a_protocol_error() -> None:
    for vector in vectors()[::5]:
        assert read(vector.message_class, vector.version, vector.data + b"\0") is None


def read_request(frame: bytes) -> Message:
    """The request in a frame."""
    header, pos = parse_request_header(memoryview(frame))
    return message_for(header.request_api_key)[0].decode(memoryview(frame)[pos:], header.request_api_version)


def test_client_frame_truncated_at_any_byte_is_a_protocol_error() -> None:
    for exchange in exchanges()[:: 1 if IS_LONG else 8]:
        for cut in cuts(len(exchange.request)):
            with pytest.raises(ProtocolError):
                read_request(exchange.request[:cut])
        for cut in range(4 + (exchange.version % 2)):
            with pytest.raises(ProtocolError):
                parse_response_header(exchange.response[: min(cut, 3)], exchange.api_key, exchange.version)


def mutate(data: bytes, edits: list[tuple[int, int, int]]) -> bytes:
    """Apply edits (kind, position, byte): insert, delete or replace a byte."""
    changed = bytearray(data)
    for kind, where, byte in edits:
        at = where % (len(changed) + 1)
        if kind == 0 or at == len(changed):
            changed.insert(at, byte)
        elif kind == 1:
            del changed[at]
        else:
            changed[at] = byte
    return bytes(changed)


LENGTH_BYTES = st.sampled_from([0, 1, 2, 0x7F, 0x80, 0xFF])
EDITS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 1 << 16), st.one_of(LENGTH_BYTES, st.integers(0, 255))),
    min_size=1,
    max_size=6,
)


def both_agree(message_class: type[Message], version: int, data: bytes) -> None:
    """Compiled and interpreted codec must both reject the bytes, or parse them to a message that they build equally."""
    compiled = read(message_class, version, data)
    try:
        interpreted, size = parse_measured(message_class, version, data)
    except ConstructError:
        assert compiled is None
        return
    if size != len(data):
        assert compiled is None
        return
    assert compiled is not None
    again = b"".join(map(chunk_bytes, compiled.encode_chunks(version)))
    assert message_class.at(version).build(interpreted) == again
    reread = read(message_class, version, again)
    assert reread is not None
    assert reread.encode(version) == again


def parse_measured(message_class: type[Message], version: int, data: bytes) -> tuple[Message, int]:
    stream = io.BytesIO(data)
    return message_class.at(version).parse_stream(stream), stream.tell()


@FUZZ
@given(one=st.sampled_from(vectors()), edits=EDITS)
def test_codecs_agree_on_mutated_messages(one: Vector, edits: list[tuple[int, int, int]]) -> None:
    both_agree(one.message_class, one.version, mutate(one.data, edits))


@FUZZ
@given(which=st.sampled_from(EVERY_VERSION), data=st.binary(max_size=200))
def test_codecs_agree_on_random_bytes(which: tuple[type[Message], int], data: bytes) -> None:
    both_agree(*which, data)


@FUZZ
@given(one=st.sampled_from(exchanges()), edits=EDITS)
def test_mutated_client_frame_is_a_request_or_an_error(one: object, edits: list[tuple[int, int, int]]) -> None:
    frame = mutate(one.request, edits)  # type: ignore[attr-defined]
    try:
        read_request(frame)
    except (ProtocolError, KafkaError):
        pass


def peak_bytes(vector: Vector, data: bytes) -> int:
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    read(vector.message_class, vector.version, data)
    return tracemalloc.get_traced_memory()[1] - before


def test_huge_count_does_not_allocate_memory() -> None:
    """A count is checked against the remaining bytes before anything is allocated."""
    chosen = vectors()[:: 7 if IS_LONG else 46]  # tracing of memory is slow
    for vector in chosen:
        read(vector.message_class, vector.version, vector.data)  # compiles
    tracemalloc.start()
    try:
        for vector in chosen:
            limit = 100_000 + 200 * len(vector.data)
            for at in cuts(len(vector.data)):
                for bomb in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff"):
                    data = vector.data[:at] + bomb + vector.data[at + len(bomb) :]
                    assert peak_bytes(vector, data) < limit, (vector.message_class, vector.version, at)
    finally:
        tracemalloc.stop()


@for_each(
    ("message_class", "version", "before", "element"),
    [
        (MetadataRequest, 12, b"", bytes(16) + b"\x01\x00"),
        (DeleteTopicsRequest, 4, b"", b"\x02t"),
        (DescribeConfigsRequest, 4, b"", b"\x02\x02t\x01\x00"),
        (ElectLeadersRequest, 2, b"\x00\x02\x02t", bytes(4)),
        (RegisterBrokerRecord, 3, None, bytes(16)),
    ],
    ids=["structs", "strings", "nested", "numbers", "uuids"],
)
def test_array_count_is_checked_against_the_remaining_bytes(
    message_class: type[Message], version: int, before: bytes | None, element: bytes
) -> None:
    """In both codecs."""
    if before is None:  # the array is in a tagged field
        before = RegisterBrokerRecord(log_dirs=[]).encode(version)[:-1] + b"\x01\x00\x7f"
    for count in (40, 2**20, 2**31 - 2):
        data = before + encode_unsigned_varint(count + 1) + element * 2 + bytes(20)
        data += bytes(0x7F) if message_class is RegisterBrokerRecord else b""
        with pytest.raises(ProtocolError, match=f"{count} elements, more than the remaining bytes can hold"):
            message_class.decode(data, version)
        with pytest.raises(ConstructError, match=f"{count} elements, more than the remaining bytes can hold"):
            message_class.at(version).parse(data)
