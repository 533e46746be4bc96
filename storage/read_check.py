"""Checks the CRCs of the batches in a slice before it is handed out: what is sent are the bytes that were checked."""

from __future__ import annotations

from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.damage import DamagedLog
from barnabas.storage.files import BytesFile, FileSlice
from barnabas.wire.crc import crc32c
from barnabas.wire.records import CRC_START, HEADER_SIZE


def checked(found: FileSlice) -> FileSlice:
    """The slice, read into memory, up to the first batch whose CRC is wrong. DamagedLog if it begins there; OSError.

    The last batch is not checked if it is incomplete: a reader ignores it and reads it again.
    """
    data = found.read()
    view = memoryview(data)
    at, length = 0, found.length
    while at + HEADER_SIZE <= len(data):
        header = BatchHeader(view, at, found.offset + at)
        end = at + header.size
        if header.size < HEADER_SIZE or end > len(data):
            break
        if crc32c(view[at + CRC_START : end]) != header.crc:
            if at:
                data, length = data[:at], at
                break
            raise DamagedLog(
                f"{found.file.path} is damaged at byte {header.position}: the CRC of the record batch at offset "
                f"{header.base_offset} does not match its bytes"
            )
        at = end
    return FileSlice(BytesFile(found.file.path, data, found.offset), found.offset, length)
