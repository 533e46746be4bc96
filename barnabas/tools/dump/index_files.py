"""The indexes of a segment, each entry compared with the segment's batches: `.index`, `.timeindex`, `.txnindex`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO

from barnabas.storage.layout import LOG_SUFFIX
from barnabas.tools.dump.item import Item, Options, Problems, UnreadableError
from barnabas.tools.dump.log_file import READ_AHEAD, base_offset
from barnabas.wire.batches.records import HEADER_SIZE, BatchHeader, BatchView, walk_batches

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
TXN_ENTRY = Struct(">hqqqq")


def dump_offset_index(path: Path, options: Options, problems: Problems) -> Iterator[Item]:
    """Entries (offset, position): a batch starts at the position, and the offset is its last."""
    base = base_offset(path)
    entries = _entries(path, OFFSET_ENTRY, problems)
    if not entries:
        yield Item("empty", {}, f"{path} is empty.")
        return
    if options.index_sanity_check:
        yield from _sanity(path, entries[-1][0] >= 0 and not path.stat().st_size % OFFSET_ENTRY.size, problems)
        return
    with _log_of(path).open("rb") as log:
        for at, (relative, position) in enumerate(entries):
            if relative == 0 and at > 0:
                return  # Kafka preallocates its indexes: zeros after the last entry
            offset = base + relative
            batch = _batch_at(log, position)
            if batch is None or batch.last_offset != offset:
                actual = "no batch" if batch is None else str(batch.last_offset)
                problems.add(f"Mismatches in :{path}", f"  Index offset: {offset}, log offset: {actual}")
            if not options.verify_index_only:
                yield Item("offset_index_entry", {"offset": offset, "position": position})


def dump_time_index(path: Path, options: Options, problems: Problems) -> Iterator[Item]:
    """Entries (timestamp, offset): the offset is the last of a batch, and the timestamp is that batch's greatest."""
    base = base_offset(path)
    entries = _entries(path, TIME_ENTRY, problems)
    if options.index_sanity_check:
        sane = not entries or (entries[-1][0] >= entries[0][0] and entries[-1][1] >= 0)
        yield from _sanity(path, sane and not path.stat().st_size % TIME_ENTRY.size, problems)
        return
    last_offsets, timestamps = _scan(_log_of(path))
    previous = -1
    for at, (timestamp, relative) in enumerate(entries):
        if relative == 0 and at > 0:
            return
        offset = base + relative
        position = bisect_left(last_offsets, offset)
        if position == len(last_offsets) or last_offsets[position] != offset:
            log_offset = last_offsets[position] if position < len(last_offsets) else -1
            detail = f"Indexed offset: {offset}, found log offset: {log_offset}"
            problems.add(f"The following offsets indexed in {path} are not found in the log.", detail)
        elif timestamps[position] != timestamp:
            detail = f"  Index timestamp: {timestamp}, log timestamp: {timestamps[position]}"
            problems.add(f"Found timestamp mismatch in :{path}", detail)
        elif previous >= timestamp:
            detail = f"  Index timestamp: {timestamp}, Previously indexed timestamp: {previous}"
            problems.add(f"Found out of order timestamp in :{path}", detail)
        previous = timestamp
        if not options.verify_index_only:
            yield Item("time_index_entry", {"timestamp": timestamp, "offset": offset})


def dump_txn_index(path: Path, options: Options, problems: Problems) -> Iterator[Item]:  # noqa: ARG001
    """The aborted transactions that end in the segment."""
    base_offset(path)
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    previous = -1
    for entry in _entries(path, TXN_ENTRY, problems):
        if entry[0] != 0 or entry[3] <= previous:
            problems.add(f"Broken transaction index {path}", f"  version {entry[0]}, last offset {entry[3]}")
        previous = entry[3]
        yield Item("aborted_transaction", dict(zip(names, entry, strict=True)))


def _entries(path: Path, entry: Struct, problems: Problems) -> list[tuple[int, ...]]:
    data = path.read_bytes()
    remainder = len(data) % entry.size
    if remainder:
        problems.add(f"Index {path} is damaged", f"  {len(data)} bytes are not a multiple of {entry.size}")
    return list(entry.iter_unpack(data[: len(data) - remainder]))


def _sanity(path: Path, passed: bool, problems: Problems) -> Iterator[Item]:
    if passed:
        yield Item("sanity_check", {"passed": True}, f"{path} passed sanity check.")
        return
    problems.add(f"{path} failed the sanity check:", "  the last entry is before the first, or the file is truncated")
    yield Item("sanity_check", {"passed": False}, f"{path} failed sanity check.")


def _log_of(path: Path) -> Path:
    log = path.with_suffix(LOG_SUFFIX)
    if not log.is_file():
        raise UnreadableError(f"{path} cannot be checked without its segment {log.name} in the same directory")
    return log


def _batch_at(log: BinaryIO, position: int) -> BatchView | None:
    if position < 0:
        return None
    log.seek(position)
    header = log.read(HEADER_SIZE)
    return BatchView(header) if len(header) == HEADER_SIZE else None


def _scan(log: Path) -> tuple[list[int], list[int]]:
    """Last offset and greatest timestamp of each batch, from the headers."""
    last_offsets: list[int] = []
    timestamps: list[int] = []
    with log.open("rb") as file:

        def read(_: int, position: int) -> bytes:
            file.seek(position)
            return file.read(READ_AHEAD)

        for header in walk_batches(BatchHeader, b"", log.stat().st_size, 0, read):
            last_offsets.append(header.last_offset)
            timestamps.append(header.max_timestamp)
    return last_offsets, timestamps
