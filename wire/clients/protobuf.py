"""The fields of a protobuf message, in the order they were sent. The values of nested messages are read by the caller.

Nothing is copied and nothing is allocated by a length that the data announces. Groups, which proto3 does not have, and
everything that does not fit are ProtobufError. Source: the encoding page of protobuf's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

_WIDTHS: Final = {FIXED64: 8, FIXED32: 4}
_MAX_VARINT_BYTES = 10


class ProtobufError(ValueError):
    """The bytes are no protobuf message."""


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """(number, wire type, first, last) of each field of the message in `data[start:end]`.

    `data[first:last]` has the value; for a varint `first` is the value itself. ProtobufError for invalid bytes.
    """
    pos = start
    while pos < end:
        tag, pos = _varint(data, pos, end)
        wire_type = tag & 7
        if wire_type == VARINT:
            value, pos = _varint(data, pos, end)
            yield tag >> 3, VARINT, value, pos
            continue
        if wire_type == BYTES:
            size, pos = _varint(data, pos, end)
        elif wire_type in _WIDTHS:
            size = _WIDTHS[wire_type]
        else:
            raise ProtobufError(f"Unknown wire type {wire_type}")
        if size > end - pos:
            raise ProtobufError(f"A field of {size} bytes with {end - pos} bytes remaining")
        yield tag >> 3, wire_type, pos, pos + size
        pos += size


def _varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    value = shift = 0
    for at in range(pos, min(end, pos + _MAX_VARINT_BYTES)):
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + 1
        shift += 7
    raise ProtobufError("A varint that does not end")
