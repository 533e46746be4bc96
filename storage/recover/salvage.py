"""Distinguishes valid record batches from damaged bytes, and finds the valid batches behind damaged ones (rule L1).

A batch is valid when its magic and CRC are, and when its offsets continue those before it. The offsets have to be
checked separately: the CRC does not cover the base offset, the length and the leader epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.storage import layout
from barnabas.storage.files import Files
from barnabas.storage.segments.segment import Segment
from barnabas.storage.segments.sparse_indexes import MAX_RELATIVE_OFFSET
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import CRC_START, HEADER_SIZE, MAGIC, MAGIC_OFFSET

_CHUNK = 4 << 20


class DamagedBytes(NamedTuple):
    """Bytes of a segment that are no valid batch, and the offset that was expected at their position."""

    position: int
    size: int
    offset: int


def free_damaged_path(files: Files, path: str) -> str:
    """An unused path beside `path` for data that is moved out of it: `.damaged`, `.2.damaged` ..."""
    name, count = path + layout.DAMAGED_SUFFIX, 1
    while files.exists(name):
        count += 1
        name = f"{path}.{count}{layout.DAMAGED_SUFFIX}"
    return name


def is_valid(header: BatchHeader, batch: memoryview, expected: int, limit: int) -> bool:
    """Whether a whole batch is intact, with offsets from `expected` up to below `limit`."""
    return has_valid_offsets(header, expected, limit) and header.crc == crc32c(batch[CRC_START:])


def has_valid_offsets(header: BatchHeader, expected: int, limit: int) -> bool:
    """Whether this can be the header of a batch with offsets from `expected` up to below `limit`."""
    return header.magic == MAGIC and expected <= header.base_offset <= header.last_offset < limit


def offset_limit(segment: Segment, next_base: int | None) -> int:
    """The exclusive upper bound of a segment's offsets; `next_base` is the base offset of the next segment."""
    limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1
    return limit if next_base is None else min(limit, next_base)


def walk(
    segment: Segment, limit: int, dense_from: int | None = None
) -> Iterator[tuple[BatchHeader, memoryview] | DamagedBytes]:
    """A whole segment in order: every valid batch, and the damaged bytes between them.

    A batch whose base offset cannot be right is not valid: no CRC covers it. From offset `dense_from` on no offset may
    be missing: a batch after a gap there is misplaced.
    """
    position, expected = 0, segment.base_offset
    is_behind_damage = False
    while position < segment.size:
        for header, batch in segment.batches(position):
            highest = limit if dense_from is None else max(expected, dense_from)
            if header.base_offset > highest or not is_valid(header, batch, expected, limit):
                break
            if _is_misplaced(segment, header, expected, is_behind_damage=is_behind_damage):
                break
            yield header, batch
            position, expected = header.position + header.size, header.last_offset + 1
            is_behind_damage = False
        if position < segment.size:
            following = _next_valid(segment, position, expected, limit)
            yield DamagedBytes(position, following - position, expected)
            position, is_behind_damage = following, True


def _is_misplaced(segment: Segment, header: BatchHeader, expected: int, *, is_behind_damage: bool) -> bool:
    """Whether the batch after this one shows that the base offset of this one is wrong.

    Either the offsets of the batch after it lie in the gap before it; or it directly follows damaged bytes, leaves no
    offsets for them, but a gap after itself.
    """
    has_gap_before = header.base_offset > expected
    if not has_gap_before and not is_behind_damage:
        return False
    following = _batch_at(segment, header.position + header.size)
    if following is None:
        return False
    if has_gap_before:
        return is_valid(*following, expected, header.last_offset + 1)
    return is_valid(*following, header.last_offset + 2, offset_limit(segment, None))


def has_valid_batch_behind(segment: Segment, position: int, expected: int) -> bool:
    """Whether there is a valid batch behind the invalid one at `position`."""
    return _next_valid(segment, position, expected, offset_limit(segment, None)) < segment.size


def _next_valid(segment: Segment, position: int, expected: int, limit: int) -> int:
    """The position of the next valid batch after the invalid one at `position`; the segment's size if there is none.

    First the end of the invalid batch is tried, as given by its length, then every position that looks like a header.
    """
    invalid = _batch_at(segment, position)
    guess = _batch_at(segment, position + invalid[0].size) if invalid is not None else None
    if guess is not None and is_valid(*guess, expected, limit):
        return guess[0].position
    for header in _candidates(segment, position + 1):
        if expected <= header.base_offset <= header.last_offset < limit:
            batch = memoryview(segment.read(header))
            if is_valid(header, batch, expected, limit):
                return header.position
    return segment.size


def _batch_at(segment: Segment, position: int) -> tuple[BatchHeader, memoryview] | None:
    """The bytes at a position as a batch; None when its length does not fit into the segment."""
    if position + HEADER_SIZE > segment.size:
        return None
    header = BatchHeader(segment.read_bytes(position, HEADER_SIZE), 0, position)
    if not HEADER_SIZE <= header.size <= segment.size - position:
        return None
    return header, memoryview(segment.read(header))


def _candidates(segment: Segment, position: int) -> Iterator[BatchHeader]:
    """The positions whose bytes look like the header of a batch that ends inside the segment."""
    while position + HEADER_SIZE <= segment.size:
        piece = segment.read_bytes(position, min(_CHUNK, segment.size - position))
        last = len(piece) - HEADER_SIZE
        at = piece.find(MAGIC, MAGIC_OFFSET) - MAGIC_OFFSET
        while 0 <= at <= last:
            header = BatchHeader(piece, at, position + at)
            if HEADER_SIZE <= header.size <= segment.size - header.position:
                yield header
            at = piece.find(MAGIC, at + MAGIC_OFFSET + 1) - MAGIC_OFFSET
        position += last + 1
