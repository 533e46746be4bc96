"""Random logs, compacted repeatedly, compared with a list of batches and a simple implementation of the rules L7-L9.

The model has no segments, maps of keys or bytes. After each pass the log must hold exactly the model's records, and a
read_committed reader must get the same map as before, also from a log that was recovered after a crash.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.storage.cleaning.key_map import KEY_BYTES
from barnabas.storage.cleaning.selection import CleanerLimits, cleanable
from barnabas.storage.log import Log
from barnabas.wire.batches.records import BatchBuilder, ControlRecordType, Record, control_record_type, iter_records
from tests.support.logs.cleaning_driver import DELETE_RETENTION_MS, NOW_MS, batches_of, clean, compacted, data_of
from tests.support.logs.log_driver import PROPERTY, append, append_marker, kill, open_log, records_from, restart

PLAIN, IDEMPOTENT, TRANSACTIONAL = -1, 7, 8
AMPLE_MEMORY = 1 << 20


@dataclass
class ModelBatch:
    """A data batch with its remaining records."""

    records: list[Record]
    last_offset: int
    horizon_ms: int | None = None
    is_aborted: bool | None = False  # None: its transaction is open


@dataclass
class Model:
    """The expected content of the log."""

    batches: list[ModelBatch] = field(default_factory=list)
    open: list[ModelBatch] = field(default_factory=list)

    def records(self) -> list[Record]:
        return [record for batch in self.batches for record in batch.records]

    def reader(self) -> dict[bytes | None, bytes | None]:
        """The map of a read_committed reader, which reads up to the first open transaction.

        A tombstone and a missing key are equal for it.
        """
        latest: dict[bytes | None, bytes | None] = {}
        for batch in self.batches:
            if batch.is_aborted is None:
                break
            if not batch.is_aborted:
                latest |= {record.key: record.value for record in batch.records}
        return {key: value for key, value in latest.items() if value is not None}

    def clean(self, first_dirty: int, mapped_to: int, now_ms: int) -> None:
        """One pass: `mapped_to` is the end of the records in the map of keys."""
        dirty = [batch for batch in self.batches if first_dirty <= batch.last_offset < mapped_to]
        last = {record.key: record.offset for batch in dirty if not batch.is_aborted for record in batch.records}
        for batch in self.batches:
            if batch.is_aborted:
                if batch.last_offset < mapped_to:
                    batch.records = []
            elif batch.last_offset < mapped_to:
                is_over = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
                batch.records = [
                    record
                    for record in batch.records
                    if last.get(record.key, -1) <= record.offset and not (record.value is None and is_over)
                ]
                if batch.horizon_ms is None and any(record.value is None for record in batch.records):
                    batch.horizon_ms = now_ms + DELETE_RETENTION_MS


class CompactionModel:
    """A log, its model, and how far each of them is clean."""

    def __init__(self, directory: Path) -> None:
        self.log = open_log(directory, compacted(segment_bytes=900))
        self.model = Model()
        self.now_ms = NOW_MS
        self.clean_to: int | None = None
        self.sequence = {IDEMPOTENT: 0, TRANSACTIONAL: 0}
        self.epoch = 0

    def put(self, pairs: list[tuple[int, bytes | None]], producer: int, codec: int) -> None:
        builder = BatchBuilder(
            codec=codec,
            producer_id=producer,
            producer_epoch=-1 if producer == PLAIN else self.epoch if producer == TRANSACTIONAL else 0,
            base_sequence=-1 if producer == PLAIN else self.sequence[producer],
            transactional=producer == TRANSACTIONAL,
        )
        for at, (key, value) in enumerate(pairs):
            builder.append(1_000 + (at * 7919) % 100, b"key-%d" % key, value, [("h", b"1")] if key % 2 else ())
        info = append(self.log, bytearray(builder.build()), now_ms=NOW_MS)
        if producer != PLAIN:
            self.sequence[producer] += len(pairs)
        batch = ModelBatch(records_from(self.log, info.first_offset), info.last_offset)
        self.model.batches.append(batch)
        if producer == TRANSACTIONAL:
            batch.is_aborted = None
            self.model.open.append(batch)
        self.log.high_watermark = self.log.log_end_offset

    def end_transaction(self, commit: bool, bump: bool) -> None:
        if bump:
            self.epoch += 1
            self.sequence[TRANSACTIONAL] = 0
        append_marker(self.log, commit=commit, producer_id=TRANSACTIONAL, producer_epoch=self.epoch)
        for batch in self.model.open:
            batch.is_aborted = not commit
        self.model.open = []
        self.log.high_watermark = self.log.log_end_offset

    def clean(self, keys: int, wait_ms: int, again: bool) -> None:
        self.now_ms += wait_ms
        self.log.flush()
        part = cleanable(self.log, None if again else self.clean_to, self.now_ms)
        if not part.dirty_bytes:
            return
        memory = keys * (KEY_BYTES + 1) if keys else AMPLE_MEMORY
        limits = CleanerLimits(memory, io_buffer=300, io_per_second=0.0)
        reader = self.model.reader()
        assert committed_map(self.log) == reader
        done = clean(self.log, checkpoint=part.first_dirty_offset, now_ms=self.now_ms, limits=limits).done
        assert part.first_dirty_offset < done.end_offset <= part.end_offset
        assert keys or done.end_offset == part.end_offset
        self.clean_to = done.end_offset
        self.model.clean(part.first_dirty_offset, done.end_offset, self.now_ms)
        assert self.model.reader() == reader, "compaction does not change what a reader gets"

    def check(self) -> None:
        log = self.log
        expected = self.model.records()
        records = data_of(log)
        # An aborted batch in a segment that is only partly mapped is removed by this pass or the next.
        undecided = {r.offset for batch in self.model.batches if batch.is_aborted for r in batch.records}
        assert [r for r in records if r.offset not in undecided] == [r for r in expected if r.offset not in undecided]
        assert {r.offset for r in records} <= {r.offset for r in expected}
        assert committed_map(log) == self.model.reader()
        horizons = {batch.base_offset: batch.delete_horizon_ms for batch in batches_of(log) if not batch.is_control}
        for batch in self.model.batches:
            if batch.records and not batch.is_aborted:
                (horizon,) = [horizons[base] for base in horizons if base == _base_of(log, batch)]
                assert horizon == batch.horizon_ms
        everything = records_from(log, 0)
        for offset in range(0, log.log_end_offset, 3):
            assert records_from(log, offset) == [record for record in everything if record.offset >= offset]


def _base_of(log: Log, batch: ModelBatch) -> int:
    (base,) = [stored.base_offset for stored in batches_of(log) if stored.last_offset == batch.last_offset]
    return base


def committed_map(log: Log) -> dict[bytes | None, bytes | None]:
    """The map of a read_committed consumer: it skips the transactions reported as aborted, up to their markers."""
    aborted = sorted(log.aborted_transactions(0, log.log_end_offset), key=lambda entry: entry.first_offset)
    open_aborts: set[int] = set()
    latest: dict[bytes | None, bytes | None] = {}
    for batch in batches_of(log):
        if batch.base_offset >= log.last_stable_offset:
            break
        while aborted and aborted[0].first_offset <= batch.last_offset:
            open_aborts.add(aborted.pop(0).producer_id)
        if batch.is_control:
            for record in iter_records(batch):
                if control_record_type(record) == ControlRecordType.ABORT:
                    open_aborts.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in open_aborts):
            latest |= {record.key: record.value for record in iter_records(batch)}
    return {key: value for key, value in latest.items() if value is not None}


values = st.none() | st.binary(min_size=1, max_size=40)
pairs = st.lists(st.tuples(st.integers(0, 7), values), min_size=1, max_size=6)
actions = st.one_of(
    st.tuples(st.just("put"), pairs, st.sampled_from([PLAIN, IDEMPOTENT, TRANSACTIONAL]), st.integers(0, 4)),
    st.tuples(st.just("put"), pairs, st.just(TRANSACTIONAL), st.just(0)),
    st.tuples(st.just("end"), st.booleans(), st.booleans()),
    st.tuples(st.just("roll")),
    st.tuples(
        st.just("clean"),
        st.sampled_from([0, 0, 0, 1, 3, 8]),
        st.sampled_from([0, 1, DELETE_RETENTION_MS // 2, DELETE_RETENTION_MS]),
        st.booleans(),
    ),
    st.tuples(st.just("restart"), st.booleans()),
)


@PROPERTY
@given(st.lists(actions, min_size=5, max_size=40))
def test_log_holds_what_the_rules_leave(
    tmp_path_factory: pytest.TempPathFactory, todo: list[tuple[object, ...]]
) -> None:
    """L7, L8, L9, over several segments, codecs, producers, partial maps, restarts and kills."""
    directory = tmp_path_factory.mktemp("compaction")
    world = CompactionModel(directory)
    for action, *arguments in todo:
        match action:
            case "put":
                world.put(*arguments)  # type: ignore[arg-type]
            case "end":
                world.end_transaction(*arguments)  # type: ignore[arg-type]
            case "roll":
                world.log.roll(0.0)
            case "clean":
                world.clean(*arguments)  # type: ignore[arg-type]
                world.check()
            case "restart":
                world.log = kill(world.log) if arguments[0] else restart(world.log)
                world.log.high_watermark = world.log.log_end_offset
    world.check()
    known = {entry.producer_id: (entry.producer_epoch, entry.last_sequence) for entry in world.log.active_producers()}
    for path in Path(world.log.directory).glob("*.snapshot"):
        path.unlink()
    reread = kill(world.log)
    reread.high_watermark = reread.log_end_offset
    remembered = {entry.producer_id: (entry.producer_epoch, entry.last_sequence) for entry in reread.active_producers()}
    assert remembered == known, "L9: no active producer is lost"
    assert data_of(reread) == data_of(world.log)
    assert committed_map(reread) == world.model.reader()
    shutil.rmtree(directory)
