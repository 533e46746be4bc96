"""Recover a disk after a crash and compare it with the promises (L1, L3, L4, I5, R2, R22).

The expected content, epochs, producers, transactions and timestamps are computed from the ledger's batches, not with
code of the storage.
"""

from __future__ import annotations

from random import Random

from barnabas.storage.log import Log
from barnabas.storage.producers.producer_entry import ProducerEntry
from barnabas.wire.steps import result_of
from tests.crash.host import Host, is_compacted
from tests.crash.ledger import Batch, Ledger, PartitionLedger
from tests.crash.replay import Replayed, ReplayedProducer, replay
from tests.crash.verify_compacted import check_compacted
from tests.support.disks.broken import require


def check_host(host: Host, ledger: Ledger, random: Random, *, killed: bool) -> None:
    """Check every partition of a host that has just started; `killed`: the page cache survived."""
    if ledger.cluster_id:
        require(host.log_dirs.dirs[0].cluster_id == ledger.cluster_id, "the cluster id has changed")
    for key, promised in ledger.partitions.items():
        log = host.log_dirs.logs[key]
        try:
            check_log(log, promised, random, killed=killed)
        except Exception as error:
            error.add_note(f"in {log.directory}: start {log.log_start_offset}, end {log.log_end_offset}; {promised!r}")
            raise


def check_log(log: Log, promised: PartitionLedger, random: Random, *, killed: bool) -> None:
    """Check one log against its ledger."""
    start, end = log.log_start_offset, log.log_end_offset
    # Unsynced data may be lost with its segments: then the log starts after it, or is empty.
    lost = promised.durable_end <= promised.start_asked < start or start == end == promised.durable_end == 0
    require(
        promised.start <= start <= promised.start_asked or lost,
        f"the log starts at {start}, promised {promised.start}..{promised.start_asked}",
    )
    least = max(promised.durable_end, promised.written_end if killed else 0)
    require(end >= least, f"the log ends at {end}, promised {least}")
    require(start <= log.high_watermark <= end, f"high watermark {log.high_watermark} outside of {start}..{end}")
    batches = [batch for batch in promised.batches if batch.last < end]
    seen = [batch for batch in batches if batch.last >= start]
    known_end = seen[-1].last + 1 if seen else start
    require(end == known_end, f"the log ends at {end}, inside a batch or beyond what was written ({known_end})")
    expected = replay(batches)
    if is_compacted(log.topic):
        stamps = check_compacted(log, seen, expected, random)
    else:
        _check_content(log, seen, random)
        _check_transactions(log, expected)
        stamps = [(batch.first + n, timestamp) for batch in seen for n, timestamp in enumerate(batch.timestamps)]
    _check_stable_offset(log, expected)
    _check_epochs(log, seen)
    _check_producers(log, expected)
    _check_timestamps(log, stamps, random)


def _check_content(log: Log, seen: list[Batch], random: Random) -> None:
    offset, end = log.log_start_offset, log.log_end_offset
    at = 0
    max_bytes = random.choice((150, 700, 5000))
    while offset < end:
        read = log.read(offset, max_bytes, limit_offset=end, min_one_batch=True)
        require(read.slice is not None, f"nothing can be read at {offset}")
        assert read.slice is not None
        data = read.slice.read()
        position = 0
        while at < len(seen) and position + len(seen[at].data) <= len(data):
            batch = seen[at]
            require(
                data[position : position + len(batch.data)] == batch.data,
                f"the batch read at {offset} is not the one written",
            )
            position += len(batch.data)
            offset = batch.last + 1
            at += 1
        require(position > 0, f"the read at {offset} gives no whole batch of those written")
    require(at == len(seen), "not all batches were read")


def _check_epochs(log: Log, seen: list[Batch]) -> None:
    """R2: exactly the epochs of the batches, the first starting with the log."""
    expected: list[tuple[int, int]] = []
    for batch in seen:
        if not expected or batch.leader_epoch > expected[-1][0]:
            expected.append((batch.leader_epoch, max(batch.first, log.log_start_offset)))
    entries = log.leader_epochs.entries()
    if not seen:
        require(all(start >= log.log_start_offset for _, start in entries[1:]), f"epochs of an empty log: {entries}")
        return
    require(entries == expected, f"leader epochs {entries} instead of {expected}")


def _check_producers(log: Log, expected: Replayed) -> None:
    """I5: the result of a replay of the log; a producer whose batches are all deleted may be missing."""
    entries = log.producers.producers
    for producer_id, entry in entries.items():
        require(producer_id in expected.producers, f"producer {producer_id} never wrote")
        replayed = expected.producers[producer_id]
        _check_memory(log, entry, replayed)
        first = replayed.open_since
        is_open = entry.current_txn_first_offset >= 0
        require(
            entry.current_txn_first_offset == first
            or (0 <= first < log.log_start_offset and (is_open or replayed.last_offset < log.log_start_offset)),
            f"producer {producer_id} has a transaction since {entry.current_txn_first_offset} instead of {first}",
        )
    for producer_id, replayed in expected.producers.items():
        require(
            producer_id in entries or replayed.last_offset < log.log_start_offset, f"producer {producer_id} is missing"
        )


def _check_memory(log: Log, entry: ProducerEntry, replayed: ReplayedProducer) -> None:
    """A producer's epochs and batches; compaction may have taken markers, and all batches but the last."""
    start, compacted = log.log_start_offset, is_compacted(log.topic)
    was = (entry.producer_epoch, entry.coordinator_epoch)
    require(
        was == (replayed.epoch, replayed.coordinator_epoch)
        or replayed.marker_offset < start
        or (compacted and was == (replayed.epoch, -1)),
        f"producer {entry.producer_id} has epochs {was}, not {(replayed.epoch, replayed.coordinator_epoch)}",
    )
    batches = [tuple(batch[:4]) for batch in entry.batches]
    if not batches:  # only markers of it are left, behind the start of the log
        fits = not [batch for batch in replayed.batches if batch[3] >= start]
    elif compacted:
        fits = batches[-1:] == replayed.batches[-1:] and set(batches) <= set(replayed.known)
    else:
        fits = batches == replayed.batches[len(replayed.batches) - len(batches) :]
    require(fits, f"producer {entry.producer_id} is remembered with {batches} instead of {replayed.batches}")


def _check_transactions(log: Log, expected: Replayed) -> None:
    """T6: every aborted transaction that has records in the log, and no other; its start may be deleted."""
    start, end = log.log_start_offset, log.log_end_offset
    known = {(entry.producer_id, entry.marker): entry.first for entry in expected.aborted}
    returned = log.aborted_transactions(start, end) if end > start else []
    for entry in returned:
        first = known.get((entry.producer_id, entry.last_offset), -1)
        require(
            first == entry.first_offset or 0 <= first < min(start, entry.first_offset),
            f"{entry} is reported, but the aborted transactions are {expected.aborted}",
        )
    reported = {(entry.producer_id, entry.last_offset) for entry in returned}
    for aborted in expected.aborted:
        require(
            not (start <= aborted.last_data < aborted.marker < end)
            or (aborted.producer_id, aborted.marker) in reported,
            f"{aborted} is not reported, only {returned}",
        )


def _check_stable_offset(log: Log, expected: Replayed) -> None:
    start, end = log.log_start_offset, log.log_end_offset
    open_since = [producer.open_since for producer in expected.producers.values() if producer.open_since >= 0]
    if all(first >= start for first in open_since):
        log.high_watermark = end
        require(
            log.last_stable_offset == min([*open_since, end]),
            f"last stable offset {log.last_stable_offset}, transactions open since {open_since}",
        )


def _check_timestamps(log: Log, stamps: list[tuple[int, int]], random: Random) -> None:
    """L4: lookups by timestamp are right, whatever the indexes contain; `stamps` are offsets and timestamps."""
    records = [(offset, timestamp) for offset, timestamp in stamps if offset >= log.log_start_offset]
    if not records:
        return
    greatest = max(timestamp for _, timestamp in records)
    for stamp in (random.choice(records)[1], random.choice(records)[1] + 1, greatest):
        expected = next(((offset, at) for offset, at in records if at >= stamp), None)
        result = result_of(log.offset_for_timestamp(stamp))
        require(
            (result and (result.offset, result.timestamp)) == expected,
            f"the first record at or past {stamp} is {expected}, not {result}",
        )
