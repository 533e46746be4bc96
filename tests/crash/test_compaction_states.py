"""Crashes at every operation of a compaction, with any of the unsynced changes lost (L3, L7).

The log is durable before. Whatever the crash leaves, a reader gets the same map as before; every record was written,
none of the compacted log is missing; and the log can be compacted again.
BARNABAS_EXAMPLES sets the number of histories, BARNABAS_CRASH_STATES the number of states of each, BARNABAS_SEED
chooses others.
"""

from __future__ import annotations

import marshal
from random import Random

import pytest

from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.replacement import Replacement
from barnabas.storage.cleaning.selection import cleanable, cleaning_task
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from barnabas.wire.batches.records import BatchBuilder, iter_batches, iter_records
from tests.support.disks.disk import Image, Note, RecordingDisk
from tests.support.disks.survivors import Kind, Survivors
from tests.support.logs.cleaning_driver import AMPLE, DELETE_RETENTION_MS, NOW_MS, compacted
from tests.support.logs.log_driver import append, append_marker
from tests.support.volume import first_seed, how_many, limited

HISTORIES = max(1, how_many("BARNABAS_EXAMPLES", 1) // 40)
STATES = how_many("BARNABAS_CRASH_STATES", 150)
CHOICES = 2
"""Of each kind of remains that is chosen at random, at each operation."""

Rows = set[tuple[int, bytes | None, bytes | None]]


def config() -> LogConfig:
    return compacted(segment_bytes=500, index_interval_bytes=100)


def opened(disk: RecordingDisk, **known: object) -> Log:
    log = Log.open(disk, "/data/t-0", "t", 0, config(), topic_id=bytes(16), now_ms=NOW_MS, **known)  # type: ignore[arg-type]
    log.high_watermark = log.log_end_offset
    return log


def fill(log: Log, random: Random) -> None:
    """Repeated keys, tombstones, committed and aborted transactions; rolled and synced."""
    sequence = sum(entry.last_sequence + 1 for entry in log.active_producers())
    for _ in range(25):
        transactional = random.random() < 0.3
        builder = BatchBuilder(
            codec=random.choice((0, 0, 3)),
            producer_id=9 if transactional else -1,
            producer_epoch=0 if transactional else -1,
            base_sequence=sequence if transactional else -1,
            transactional=transactional,
        )
        for _ in range(random.randint(1, 3)):
            value = None if random.random() < 0.25 else random.randbytes(random.randint(1, 60))
            builder.append(1_000, b"k%d" % random.randrange(8), value)
        append(log, bytearray(builder.build()), now_ms=NOW_MS)
        if transactional:
            sequence += builder.count
            append_marker(log, commit=random.random() < 0.5, producer_id=9)
    log.roll(0.0)
    log.high_watermark = log.log_end_offset
    log.flush()


def compact(log: Log, now_ms: int) -> None:
    task = cleaning_task(log, cleanable(log, None, now_ms), AMPLE, now_ms)
    for group in Cleaner(task, log.files).run():
        for path in Replacement(log, group).run():
            log.files.unlink(path)


def rows(log: Log) -> Rows:
    """Every data record; the batches must be valid and in order."""
    contents: Rows = set()
    end = 0
    for segment in log.segments:
        for batch in iter_batches(log.files.read_at(segment.file, segment.size, 0)):
            assert batch.crc_is_valid()
            assert batch.base_offset >= end
            end = batch.next_offset
            if not batch.is_control:
                contents |= {(record.offset, record.key, record.value) for record in iter_records(batch)}
    return contents


def reader(log: Log) -> dict[bytes | None, bytes | None]:
    """The map of a read_committed reader."""
    aborted = log.aborted_transactions(0, log.log_end_offset)
    gone = {offset for entry in aborted for offset in range(entry.first_offset, entry.last_offset)}
    latest = {key: value for offset, key, value in sorted(rows(log)) if offset not in gone}
    return {key: value for key, value in latest.items() if value is not None}


def images(disk: RecordingDisk, random: Random) -> list[tuple[int, Kind, Image]]:
    """The possible crash states after the note: operation, kind, and content."""
    survivors = Survivors(disk)
    states: list[tuple[int, Kind, Image]] = []
    seen: set[bytes] = set()
    has_begun = False
    for at, operation in enumerate(disk.operations):
        survivors.take(operation)
        has_begun = has_begun or isinstance(operation, Note)
        if has_begun:
            for kind in Kind:
                for _ in range(1 if kind in (Kind.KEPT, Kind.LOST) else CHOICES):
                    image = survivors.image(kind, random)
                    if (form := marshal.dumps(image)) not in seen:
                        seen.add(form)
                        states.append((at, kind, image))
    return states


@limited(600)
@pytest.mark.parametrize("again", [False, True], ids=["the first compaction", "a later one"])
def test_crash_anywhere_in_a_compaction_loses_nothing(again: bool) -> None:
    """L7: tombstones first get their horizons, then they are removed: their older values must not reappear."""
    for seed in range(first_seed(), first_seed() + HISTORIES):
        crash_in_a_compaction(seed, again=again)


def crash_in_a_compaction(seed: int, *, again: bool) -> None:
    """A history, with the states that a crash in its last compaction may leave."""
    random = Random(f"{seed}:{again}")
    disk = RecordingDisk()
    disk.mkdirs("/data")
    log = opened(disk)
    fill(log, random)
    now_ms = NOW_MS
    if again:
        compact(log, now_ms)
        fill(log, random)
        now_ms += 2 * DELETE_RETENTION_MS
    disk.sync_dir("/data/t-0")
    disk.sync_dir("/data")
    disk.sync_dir("/")
    known = {"clean_shutdown": False, "recovery_point": log.recovery_point}
    before, map_before = rows(log), reader(log)
    disk.note("the compaction begins")
    compact(log, now_ms)
    compacted_rows = rows(log)
    assert compacted_rows < before
    assert reader(log) == map_before
    del log
    states = images(disk, random)
    for at, kind, image in random.sample(states, min(STATES, len(states))):
        where = f"after operation {at} ({disk.operations[at]}), {kind.name}"
        name = f"BARNABAS_SEED={seed} BARNABAS_CRASH_STATES={STATES}: {where}"
        recovered = opened(RecordingDisk(image), **known)
        remaining = rows(recovered)
        assert compacted_rows <= remaining <= before, name
        assert reader(recovered) == map_before, name
        assert not [file for file, _ in recovered.files.list_files("/data/t-0") if file.endswith((".swap", ".cleaned"))]
        if kind in (Kind.KEPT, Kind.MIXED):
            compact(recovered, now_ms)
            assert reader(recovered) == map_before, name
