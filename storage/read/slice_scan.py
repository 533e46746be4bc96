"""The batch headers in a slice of a log: which offsets it holds, and where it can be cut."""

from __future__ import annotations

from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.files import FileSlice
from barnabas.wire.batches.records import HEADER_SIZE

_CHUNK = 8192


def batches_of(found: FileSlice, until_offset: int) -> list[BatchHeader]:
    """The headers of the whole batches in a slice, up to the one that holds `until_offset`; positions in the file.

    OSError when the disk fails.
    """
    headers: list[BatchHeader] = []
    position, end = found.offset, found.offset + found.length
    buffer, start = b"", position
    while position + HEADER_SIZE <= end:
        at = position - start
        if at + HEADER_SIZE > len(buffer):
            start, at = position, 0
            buffer = found.file.read(min(_CHUNK, end - position), position)
            if len(buffer) < HEADER_SIZE:
                break
        header = BatchHeader(buffer, at, position)
        position += header.size
        if position > end:
            break
        headers.append(header)
        if header.last_offset >= until_offset:
            break
    return headers
