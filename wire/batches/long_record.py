"""Checks a record in steps that is larger than the output of one decompression step, or has very many headers.

Its key, its value and its headers' values are skipped piece by piece: a record of any size needs no more memory than a
piece.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final, Protocol

from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from barnabas.wire.varint import record_varint, record_varlong

BYTES_PER_UNIT: Final = 512
"""How many decompressed bytes count as a unit of work."""
MAX_HEADERS_OF_A_STEP: Final = 500

_STEP_BYTES = 128 * 1024  # more than one piece: snappy's are small, and each begins with a search for runs
_STEP_PIECES = 32
_UNITS_OF_A_PIECE = 8  # also of an empty one: a member of gzip needs a decompressor of its own, which takes 4 µs
_LONGEST_VARINT = 5
_LONGEST_START = 32  # length, attributes, timestamp delta, offset delta and the key's length


class Work(Protocol):
    """Counts work in units."""

    units: int


class FieldCheck(Work, Protocol):
    """What the fields of a record are checked against: `RecordCheck`."""

    index: int

    def check_size(self, length: int) -> None: ...

    def check_timestamp(self, index: int, delta: int) -> None: ...

    def check_key(self, index: int, length: int) -> None: ...


def invalid(message: str) -> KafkaError:
    """The error of a batch whose records are not what its header says."""
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def wrong_delta(index: int, delta: int) -> KafkaError:
    """The error of a record whose offset delta, in zig-zag form, is not its index."""
    return invalid(f"Record {index} of the batch has the offset delta {delta >> 1 ^ -(delta & 1)}")


def wrong_size(index: int, excess: int) -> KafkaError:
    """The error of a record whose fields end `excess` bytes after the end given by its length."""
    return invalid(f"The fields of record {index} of the batch end {excess} bytes after the record's length")


def size_at(data: bytes, pos: int) -> int | None:
    """The size of the record at `pos`, length included; None if its length is not there. CorruptRecord if invalid."""
    try:
        length, after = record_varint(data, pos)
    except IndexError:
        return None
    return after - pos + (length >> 1)


def header_count(data: bytes, pos: int, stop: int) -> tuple[int, int]:
    """The header count at `pos` of a record that ends at `stop`, and the position after it."""
    number, pos = record_varint(data, pos)
    if number & 1 or number >> 1 > stop - pos:
        raise invalid(f"A record of the batch has {number >> 1 ^ -(number & 1)} headers in {stop - pos} bytes")
    return number >> 1, pos


def after_headers(data: bytes, pos: int, count: int) -> int:
    """The position after `count` headers that start at `pos`. IndexError past the end of the data."""
    for _ in range(count):
        length = data[pos]
        pos += 1
        if length > 0x7F:
            length, pos = record_varint(data, pos - 1)
        if length & 1:
            raise invalid("A header of a record of the batch has no key")
        pos += length >> 1
        length = data[pos]
        pos += 1
        if length > 0x7F:
            length, pos = record_varint(data, pos - 1)
        if not length & 1:
            pos += length >> 1
    return pos


class PieceReader:
    """Decompressed pieces, of which `data` from `pos` on has not been checked."""

    __slots__ = ("_pieces", "_work", "data", "pos")

    def __init__(self, pieces: Iterator[bytes], work: Work) -> None:
        self._pieces = pieces
        self._work = work
        self.data = b""
        self.pos = 0

    def more(self) -> bool:
        """Add about `_STEP_BYTES` to what has not been checked; False at the end."""
        added: list[bytes] = [self.data[self.pos :]]
        size = 0
        for piece in self._pieces:
            added.append(piece)
            size += len(piece)
            if size >= _STEP_BYTES or len(added) > _STEP_PIECES:
                break
        if len(added) == 1:
            return False
        self.data = b"".join(added) if added[0] or len(added) > 2 else added[1]
        self.pos = 0
        self._work.units += _UNITS_OF_A_PIECE * len(added) + size // BYTES_PER_UNIT
        return True

    def fill(self, size: int) -> Generator[None, None, None]:
        """Have `size` bytes from `pos` on, or all that there are."""
        while len(self.data) - self.pos < size and self.more():
            yield

    def skip(self, size: int) -> Generator[None, None, None]:
        """Go `size` bytes on, a piece at a time."""
        while size > len(self.data) - self.pos:
            size -= len(self.data) - self.pos
            self.pos = len(self.data)
            if not self.more():
                raise invalid("The record batch ends inside a record")
            yield
        self.pos += size

    def number(self) -> int:
        """The varint at `pos`, in zig-zag form."""
        value, self.pos = record_varint(self.data, self.pos)
        return value


def long_record_steps(check: FieldCheck, reader: PieceReader) -> Generator[None, None, None]:
    """Check the record at the reader's position, in steps, and go behind it. KafkaError when it is invalid."""
    try:
        yield from _steps(check, reader)
    except IndexError:
        raise invalid(f"The record batch ends inside record {check.index}") from None
    except CorruptRecord as error:
        raise invalid(f"Record {check.index} of the batch: {error.message}") from None
    check.index += 1
    check.units += 1


def _steps(check: FieldCheck, reader: PieceReader) -> Generator[None, None, None]:
    yield from reader.fill(_LONGEST_START)
    length = reader.number()
    check.check_size(length)
    remaining = length >> 1
    start = reader.pos
    delta, reader.pos = record_varlong(reader.data, start + 1)
    check.check_timestamp(check.index, delta)
    delta = reader.number()
    if delta != check.index << 1:
        raise wrong_delta(check.index, delta)
    key = reader.number()
    check.check_key(check.index, key)
    remaining -= reader.pos - start
    remaining = yield from _skip(check, reader, key, remaining)
    remaining = yield from _skip_field(check, reader, remaining)
    yield from reader.fill(_LONGEST_VARINT)
    start = reader.pos
    count, reader.pos = header_count(reader.data, start, start + remaining)
    remaining -= reader.pos - start
    for number in range(count):
        remaining = yield from _skip_field(check, reader, remaining, is_key=True)
        remaining = yield from _skip_field(check, reader, remaining)
        check.units += 1
        if number % MAX_HEADERS_OF_A_STEP == 0:
            yield
    if remaining:
        raise wrong_size(check.index, -remaining)


def _skip_field(
    check: FieldCheck, reader: PieceReader, remaining: int, *, is_key: bool = False
) -> Generator[None, None, int]:
    """Skip a field with its length; `remaining` bytes of the record are left before it. How many are left after it."""
    if len(reader.data) - reader.pos < _LONGEST_VARINT:
        yield from reader.fill(_LONGEST_VARINT)
    start = reader.pos
    length = reader.number()
    if is_key and length & 1:
        raise invalid(f"A header of record {check.index} of the batch has no key")
    return (yield from _skip(check, reader, length, remaining - (reader.pos - start)))


def _skip(check: FieldCheck, reader: PieceReader, length: int, remaining: int) -> Generator[None, None, int]:
    size = 0 if length & 1 else length >> 1
    if size > remaining:
        raise wrong_size(check.index, size - remaining)
    if size:
        yield from reader.skip(size)
    return remaining - size
