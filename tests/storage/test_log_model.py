"""The log compared with a plain list: any order of appends, reads, truncations, stops and kills (L1, L3, L4)."""

from __future__ import annotations

import os
import shutil
import tempfile
from bisect import bisect_left

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.storage.cleaning import retention
from barnabas.storage.log import Log
from barnabas.wire.steps import result_of
from tests.support.logs.log_driver import (
    EXAMPLES,
    append,
    batch_of,
    kill,
    open_log,
    restart,
    small_config,
    truncate,
    values_from,
)


class LogMachine(RuleBasedStateMachine):
    """One log, and the list of (offset, value, timestamp, index of its batch) that it must equal."""

    log: Log

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.mkdtemp(prefix="log-model-")
        self.model: list[tuple[int, bytes, int]] = []
        self.batches: list[tuple[int, int]] = []
        self.end = 0
        self.epoch = 0
        self.count = 0

    @initialize(segment_bytes=st.sampled_from([400, 1_500, 1 << 20]), interval=st.sampled_from([0, 150, 4096]))
    def start(self, segment_bytes: int, interval: int) -> None:
        config = small_config(segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log = open_log(self.directory, config)

    @rule(
        count=st.integers(1, 4),
        size=st.integers(0, 60),
        codec=st.sampled_from([0, 1, 3]),
        timestamp=st.integers(0, 50),
        new_epoch=st.booleans(),
    )
    def append(self, count: int, size: int, codec: int, timestamp: int, new_epoch: bool) -> None:
        self.epoch += new_epoch
        values = []
        for _ in range(count):
            self.count += 1
            values.append(b"%d" % self.count + b"x" * size)
        stamps = [timestamp + at for at in range(count)]
        info = append(self.log, batch_of(values, codec=codec, timestamps=stamps), leader_epoch=self.epoch)
        assert (info.first_offset, info.last_offset) == (self.end, self.end + count - 1)
        self.batches.append((self.end, self.end + count))
        for value, stamp in zip(values, stamps, strict=True):
            self.model.append((self.end, value, stamp))
            self.end += 1

    @rule(part=st.floats(0, 1), max_bytes=st.integers(1, 1_000), limit_part=st.floats(0, 1))
    def read_somewhere(self, part: float, max_bytes: int, limit_part: float) -> None:
        start = self.log.log_start_offset
        offset = start + int(part * (self.end - start))
        bounds = [first for first, _ in self.batches if first >= offset] + [self.end]
        limit = bounds[int(limit_part * (len(bounds) - 1))]
        expected = [(at, value) for at, value, _ in self.model if offset <= at < limit]
        assert values_from(self.log, offset, max_bytes=max_bytes, limit=limit) == expected

    @rule(timestamp=st.integers(0, 60))
    def find_timestamp(self, timestamp: int) -> None:
        record = result_of(self.log.offset_for_timestamp(timestamp))
        expected = next(
            ((at, stamp) for at, _, stamp in self.model if stamp >= timestamp and at >= self.log.log_start_offset), None
        )
        assert (record and (record.offset, record.timestamp)) == expected

    @rule(part=st.floats(0, 1))
    def truncate(self, part: float) -> None:
        """Truncations are between batches, as a follower's are."""
        start = bisect_left(self.batches, (self.log.log_start_offset, 0))
        if self.batches[start:]:
            self._cut(self.batches[start:][int(part * (len(self.batches) - start - 1))][0])
            truncate(self.log, self.end)

    def _cut(self, end: int) -> None:
        self.end = end
        self.model = [entry for entry in self.model if entry[0] < end]
        self.batches = [batch for batch in self.batches if batch[1] <= end]

    @rule(part=st.floats(0, 1))
    def delete_records(self, part: float) -> None:
        self.log.high_watermark = self.end
        start = self.log.log_start_offset
        offset = start + int(part * (self.end - start))
        self.log.advance_log_start_offset(offset)
        for path in self.log.delete_segments_below(offset):
            self.log.files.unlink(path)

    @rule(keep_bytes=st.integers(0, 4_000))
    def retain(self, keep_bytes: int) -> None:
        """Whole segments are removed, oldest first, while at least retention.bytes remain (L5)."""
        self.log.high_watermark = self.end
        sizes = [segment.size for segment in self.log.segments.from_offset(self.log.log_start_offset)]
        bases = [segment.base_offset for segment in self.log.segments.from_offset(self.log.log_start_offset)]
        before = self.log.log_start_offset
        self.log.config.retention_bytes, self.log.config.retention_ms = keep_bytes, -1
        retention.expire(self.log, 10_000, 10.0)
        surplus, gone = sum(sizes) - keep_bytes, 0
        while gone < len(sizes) and sizes[gone] and surplus >= sizes[gone]:
            surplus -= sizes[gone]
            gone += 1
        expected = before if not gone else bases[gone] if gone < len(bases) else self.end
        assert self.log.log_start_offset == expected
        for path in self.log.delete_segments_below(expected):
            self.log.files.unlink(path)

    @rule()
    def roll(self) -> None:
        """The age of a segment exceeds the limit."""
        assert self.log.roll(0.0).base_offset == self.end

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.unflushed == 0

    @rule()
    def stop_and_start(self) -> None:
        self.log = restart(self.log)

    @rule()
    def kill_and_start(self) -> None:
        self.log = kill(self.log)

    @rule(lost=st.integers(1, 300))
    def lose_tail_and_start(self, lost: int) -> None:
        """Power failure: bytes of the last segment that were never synced are lost."""
        active = self.log.segments.active
        if active.base_offset < self.log.recovery_point:
            return
        size = max(0, active.size - lost)
        whole = [header.last_offset + 1 for header in active.scan(0) if header.position + header.size <= size]
        os.truncate(active.stem + ".log", size)
        self.log = kill(self.log)
        # A log that has lost more than what was deleted continues at its start offset.
        end = whole[-1] if whole else active.base_offset
        self._cut(max(end, self.log.log_start_offset))
        assert self.log.log_end_offset == self.end
        if end < self.log.log_start_offset:
            self.model, self.batches = [], []

    @invariant()
    def end_is_known(self) -> None:
        if hasattr(self, "log"):
            assert self.log.log_end_offset == self.end
            assert self.log.leader_epochs.latest_epoch <= self.epoch
            assert self.log.recovery_point <= self.end

    def teardown(self) -> None:
        if hasattr(self, "log"):
            start = self.log.log_start_offset
            expected = [(at, value) for at, value, _ in self.model if at >= start]
            assert values_from(self.log, start) == expected
        shutil.rmtree(self.directory)


LogMachine.TestCase.settings = settings(max_examples=EXAMPLES, stateful_step_count=30)
test_log_equals_a_list = LogMachine.TestCase
