"""A compacted log after a crash: a consumer gets the same result as from all records written (L7-L9).

The cleaner may remove any records except the last of each key, and must not change others; a tombstone may be removed,
but never before the records that it deletes.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from barnabas.storage.log import Log
from barnabas.wire.batches.records import BatchView, iter_batches, iter_records
from tests.crash.ledger import Batch, Record
from tests.crash.replay import Replayed
from tests.support.disks.broken import require

Kept = dict[int, Record]
"""Records by offset."""


def check_compacted(log: Log, seen: list[Batch], expected: Replayed, random: Random) -> list[tuple[int, int]]:
    """Read the log and compare; the offsets and timestamps of its records."""
    written = {batch.first + n: record for batch in seen for n, record in enumerate(batch.records)}
    remaining: Kept = {}
    stamps: list[tuple[int, int]] = []
    for batch in _read(log, random):
        require(batch.crc_is_valid(), f"the CRC of the batch at {batch.base_offset} does not fit")
        for record in iter_records(batch):
            stamps.append((record.offset, record.timestamp))
            if not batch.is_control:
                require(
                    written.get(record.offset) == (record.key, record.value),
                    f"the record at {record.offset} is not the one written",
                )
                remaining[record.offset] = (record.key, record.value)
    dead, undecided = _offsets(expected.dead), _offsets(batch for data in expected.undecided.values() for batch in data)
    undecided = {offset for offset in undecided if offset >= log.log_start_offset}  # the others may be lost, unsynced
    require(
        undecided <= remaining.keys(),
        f"records of an open transaction are gone: {sorted(undecided - remaining.keys())}",
    )
    _check_aborted(log, expected, dead & remaining.keys())
    last = _last_of_each_key(written, dead | undecided)
    last_of_key = _last_of_each_key(remaining, dead | undecided)
    for key, (offset, value) in last.items():
        may_be_gone = value is None and key not in last_of_key
        require(
            last_of_key.get(key) == (offset, value) or may_be_gone,
            f"the last record of key {key!r} is {(offset, value)}, not {last_of_key.get(key)}",
        )
    return stamps


def _read(log: Log, random: Random) -> Iterable[BatchView]:
    offset, end = log.log_start_offset, log.log_end_offset
    max_bytes = random.choice((150, 700, 5000))
    while offset < end:
        read = log.read(offset, max_bytes, limit_offset=end, min_one_batch=True)
        if read.slice is None:
            return  # nothing is left up to the end
        before = offset
        for batch in iter_batches(read.slice.read(), partial_ok=True):
            require(batch.next_offset > offset, f"the batch at {batch.base_offset} was read at {offset}")
            offset = batch.next_offset
            yield batch
        require(offset > before, f"the read at {offset} gives no whole batch")


def _offsets(batches: Iterable[Batch]) -> set[int]:
    return {offset for batch in batches for offset in range(batch.first, batch.last + 1)}


def _last_of_each_key(records: Kept, passed_over: set[int]) -> dict[bytes | None, tuple[int, bytes | None]]:
    return {key: (offset, value) for offset, (key, value) in records.items() if offset not in passed_over}


def _check_aborted(log: Log, expected: Replayed, dead_and_kept: set[int]) -> None:
    """T6: every aborted transaction that has records left is reported to consumers, and no other."""
    start, end = log.log_start_offset, log.log_end_offset
    if start == end:
        return
    returned = [tuple(entry[:3]) for entry in log.aborted_transactions(start, end)]
    first_of = {(entry.producer_id, entry.marker): entry.first for entry in expected.aborted}
    require(
        all(first_of.get((producer_id, last), first + 1) <= first for producer_id, first, last in returned),
        f"aborted transactions {returned} instead of {expected.aborted}, whose first batches may be gone",
    )
    reported = {offset for _, first, last in returned for offset in range(first, last)}
    require(dead_and_kept <= reported, f"aborted records are not reported: {sorted(dead_and_kept - reported)}")
