"""Telling good record batches from bad bytes, and finding the good ones behind bad ones. Rule L1.

A batch is good when its magic and its CRC are, and when its offsets follow what was before it: the CRC covers all but
the base offset, the length and the leader epoch.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from storage import layout
from storage.batch_header import BatchHeader
from storage.files import Files
from storage.offset_index import MAX_RELATIVE_OFFSET
from storage.segment import Segment
from wire.crc import crc32c
from wire.records import CRC_START, HEADER_SIZE, MAGIC

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
    return (
        header.magic == MAGIC
        and expected <= header.base_offset <= header.last_offset < limit
        and header.crc == crc32c(batch[CRC_START:])
    )


def offset_limit(segment: Segment, next_base: int | None) -> int:
    """The offset that all of a segment's must lie below; `next_base` is where the next segment begins."""
    limit = segment.base_offset + MAX_RELATIVE_OFFSET + 1
    return limit if next_base is None else min(limit, next_base)


def walk(segment: Segment, limit: int) -> Iterator[tuple[BatchHeader, memoryview] | BadBytes]:
    """A whole segment in order: every good batch, and the bytes between them."""
    position, expected = 0, segment.base_offset
    while position < segment.size:
        for header, batch in segment.batches(position):
            if not is_good(header, batch, expected, limit):
                break
            yield header, batch
            position, expected = header.position + header.size, header.last_offset + 1
        if position < segment.size:
            following = _next_intact(segment, position, expected, limit)
            yield BadBytes(position, following - position, expected)
            position = following


def has_intact_batch(segment: Segment, position: int, expected: int) -> bool:
    """Whether there is a good batch behind the bad one at `position`."""
    return _next_intact(segment, position, expected, offset_limit(segment, None)) < segment.size


def _next_intact(segment: Segment, position: int, expected: int, limit: int) -> int:
    """Where the next good batch begins behind a bad one; the segment's size when there is none.

    It is looked for where the bad batch's length leads to, else wherever bytes look like a batch.
    """
    bad = next(segment.batches(position), None)
    guess = segment.batches(position + bad[0].size) if bad is not None else iter(())
    for header in chain((header for header, _ in islice(guess, 1)), _candidates(segment, position + 1)):
        if expected <= header.base_offset <= header.last_offset < limit:
            batch = memoryview(segment.read(header))
            if is_good(header, batch, expected, limit):
                return header.position
    return segment.size


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
