"""Telling good record batches from bad bytes, and finding the good ones behind bad ones. Rule L1.

A batch is good when its magic and its CRC are, and when its offsets follow what was before it: the CRC covers all but
the base offset, the length and the leader epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.storage import layout
from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.files import Files
from barnabas.storage.offset_index import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import Segment
from barnabas.wire.crc import crc32c
from barnabas.wire.records import CRC_START, HEADER_SIZE, MAGIC

_CHUNK = 4 << 20
_MAGIC_AT = 16


class BadBytes(NamedTuple):
    """Bytes of a segment that are no good batch, and the offset that was expected there."""

    position: int
    size: int
    offset: int


def set_aside_name(files: Files, path: str) -> str:
    """A free name beside `path` for what is taken out of it: `.damaged`, `.2.damaged` ..."""
    name, count = path + layout.DAMAGED_SUFFIX, 1
    while files.exists(name):
        count += 1
        name = f"{path}.{count}{layout.DAMAGED_SUFFIX}"
    return name


def is_good(header: BatchHeader, batch: memoryview, expected: int, limit: int) -> bool:
    """Whether a whole batch is as it was written, with offsets from `expected` up to below `limit`."""
    return is_placed(header, expected, limit) and header.crc == crc32c(batch[CRC_START:])


def is_placed(header: BatchHeader, expected: int, limit: int) -> bool:
    """Whether this can be the header of a batch with offsets from `expected` up to below `limit`."""
    return header.magic == MAGIC and expected <= header.base_offset <= header.last_offset < limit


def offset_limit(segment: Segment, next_base: int | None) -> int:
    """The offset that all of a segment's must lie below; `next_base` is where the next segment begins."""
    limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1
    return limit if next_base is None else min(limit, next_base)


def walk(
    segment: Segment, limit: int, dense_from: int | None = None
) -> Iterator[tuple[BatchHeader, memoryview] | BadBytes]:
    """A whole segment in order: every good batch, and the bytes between them.

    A batch whose base offset cannot be right is no good one: no CRC covers it. From `dense_from` on no offset is
    missing: what is behind a hole there is misplaced.
    """
    position, expected = 0, segment.base_offset
    is_behind_bad = False
    while position < segment.size:
        for header, batch in segment.batches(position):
            highest = limit if dense_from is None else max(expected, dense_from)
            if header.base_offset > highest or not is_good(header, batch, expected, limit):
                break
            if _is_misplaced(segment, header, expected, is_behind_bad=is_behind_bad):
                break
            yield header, batch
            position, expected = header.position + header.size, header.last_offset + 1
            is_behind_bad = False
        if position < segment.size:
            following = _next_intact(segment, position, expected, limit)
            yield BadBytes(position, following - position, expected)
            position, is_behind_bad = following, True


def _is_misplaced(segment: Segment, header: BatchHeader, expected: int, *, is_behind_bad: bool) -> bool:
    """Whether the next batch shows that the base offset of this one is wrong.

    The next one belongs into the hole before this one; or this one stands behind bad bytes that it gives no offsets
    to, but leaves a hole behind it.
    """
    has_hole_before = header.base_offset > expected
    if not has_hole_before and not is_behind_bad:
        return False
    following = _batch_at(segment, header.position + header.size)
    if following is None:
        return False
    if has_hole_before:
        return is_good(*following, expected, header.last_offset + 1)
    return is_good(*following, header.last_offset + 2, offset_limit(segment, None))


def has_intact_batch(segment: Segment, position: int, expected: int) -> bool:
    """Whether there is a good batch behind the bad one at `position`."""
    return _next_intact(segment, position, expected, offset_limit(segment, None)) < segment.size


def _next_intact(segment: Segment, position: int, expected: int, limit: int) -> int:
    """Where the next good batch begins behind a bad one; the segment's size when there is none.

    It is looked for where the bad batch's length leads to, else wherever bytes look like a batch.
    """
    bad = _batch_at(segment, position)
    guess = _batch_at(segment, position + bad[0].size) if bad is not None else None
    if guess is not None and is_good(*guess, expected, limit):
        return guess[0].position
    for header in _candidates(segment, position + 1):
        if expected <= header.base_offset <= header.last_offset < limit:
            batch = memoryview(segment.read(header))
            if is_good(header, batch, expected, limit):
                return header.position
    return segment.size


def _batch_at(segment: Segment, position: int) -> tuple[BatchHeader, memoryview] | None:
    """What stands at a position, if it may be a batch by its length."""
    if position + HEADER_SIZE > segment.size:
        return None
    header = BatchHeader(segment.read_bytes(position, HEADER_SIZE), 0, position)
    if not HEADER_SIZE <= header.size <= segment.size - position:
        return None
    return header, memoryview(segment.read(header))


def _candidates(segment: Segment, position: int) -> Iterator[BatchHeader]:
    """The bytes that look like the header of a batch that ends inside the segment."""
    while position + HEADER_SIZE <= segment.size:
        piece = segment.read_bytes(position, min(_CHUNK, segment.size - position))
        last = len(piece) - HEADER_SIZE
        at = piece.find(MAGIC, _MAGIC_AT) - _MAGIC_AT
        while 0 <= at <= last:
            header = BatchHeader(piece, at, position + at)
            if HEADER_SIZE <= header.size <= segment.size - header.position:
                yield header
            at = piece.find(MAGIC, at + _MAGIC_AT + 1) - _MAGIC_AT
        position += last + 1
