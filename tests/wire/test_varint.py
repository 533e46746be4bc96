"""Varints: round trips, limits of each reader, and truncated input."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.errors import CorruptRecord, ProtocolError
from barnabas.wire.varint import (
    encode_unsigned_varint,
    encode_varint,
    record_varint,
    record_varlong,
    unsigned_varint,
)
from tests.support.cases import for_each

Reader = Callable[[bytes, int], tuple[int, int]]
BOUNDARIES = [0, 1, *[2 ** (7 * n) + step for n in range(1, 5) for step in (-1, 0)], 2**32 - 1]


@for_each("read", [unsigned_varint, record_varint, record_varlong])
@for_each("value", BOUNDARIES)
def test_unsigned_round_trip(read: Reader, value: int) -> None:
    data = encode_unsigned_varint(value)
    assert len(data) == max(1, -(-value.bit_length() // 7))
    assert read(b"ab" + data + b"\xff", 2) == (value, 2 + len(data))
    assert read(memoryview(data), 0) == (value, len(data))  # type: ignore[arg-type]
    for end in range(len(data)):
        with pytest.raises(IndexError):
            read(data[:end], 0)


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_round_trip(value: int) -> None:
    data = encode_varint(value)
    raw, end = record_varlong(data, 0)
    assert (raw >> 1 ^ -(raw & 1), end) == (value, len(data))
    if -(2**31) <= value < 2**31:
        assert record_varint(data, 0) == (raw, end)


def test_zigzag_form() -> None:
    assert [encode_varint(value) for value in (0, -1, 1, -2, 2, -64, 64)] == [
        b"\x00", b"\x01", b"\x02", b"\x03", b"\x04", b"\x7f", b"\x80\x01",
    ]  # fmt: skip


@pytest.mark.parametrize("data", [b"\xff" * 5 + b"\x01", b"\x80" * 5 + b"\x00", b"\xff\xff\xff\xff\x10"])
def test_unsigned_varint_of_more_than_32_bits_is_rejected(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="varint of more than"):
        unsigned_varint(data, 0)


def test_records_drop_bits_above_their_size() -> None:
    """As Kafka's ByteUtils.readVarint and readVarlong."""
    assert record_varint(b"\xff" * 4 + b"\x7f", 0) == (2**32 - 1, 5)
    assert record_varlong(b"\xff" * 9 + b"\x7f", 0) == (2**64 - 1, 10)


@pytest.mark.parametrize(("read", "limit"), [(record_varint, 5), (record_varlong, 10)])
def test_records_with_a_longer_varint_are_corrupt(read: Reader, limit: int) -> None:
    assert read(b"\x80" * (limit - 1) + b"\x01", 0)[1] == limit
    with pytest.raises(CorruptRecord, match=f"varint of more than {limit} bytes"):
        read(b"\x80" * limit + b"\x01", 0)
