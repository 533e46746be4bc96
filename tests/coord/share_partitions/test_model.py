"""Random members, failures and restarts: a share partition equals a model of single records.

Rules G5 and G6: accepted records are never delivered again, no record is acquired by two members, and in the end every
record is acknowledged or archived.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.share_partitions.acknowledgement import Acknowledgement
from barnabas.coord.share_partitions.acquisition import AcquireRequest
from barnabas.coord.share_partitions.partition import SharePartition
from barnabas.coord.share_partitions.states import AcknowledgeType, RecordState
from barnabas.coord.share_state.batches import combine
from barnabas.wire.errors import KafkaError
from tests.coord.share_partitions.record_model import FINISHED, ModelRecord, RecordModel, RefusedError
from tests.support.volume import how_many

EXAMPLES = how_many("BARNABAS_EXAMPLES", 25)
MEMBERS = ["one", "two", "three"]
LOCK_S = 30.0


class LogBatch(NamedTuple):
    base_offset: int
    last_offset: int


class SharedLog(RuleBasedStateMachine):
    """One partition, three members."""

    @initialize(
        limit=st.integers(2, 6), locks=st.integers(5, 40), queue=st.sampled_from(["", "dlq.q"]), start=st.integers(0, 3)
    )
    def begin(self, limit, locks, queue, start):
        self.settings = GroupSettings(
            share_delivery_count_limit=limit,
            share_partition_max_record_locks=locks,
            errors_deadletterqueue_topic_name=queue,
        )
        self.now = 100.0
        self.log = []
        self.log_start = 0
        self.log_end = 0
        self.hidden = set()  # batches of aborted transactions
        self.partition = SharePartition(lambda: self.settings, start, 0)
        self.model = RecordModel(start, self.settings)
        self.stored_state = []
        self.stored_start = start
        self.pending = []
        self.letters = []
        self.accepted = set()

    # ---- the log

    @rule(size=st.integers(1, 9), gap=st.integers(0, 3), is_hidden=st.booleans())
    def append(self, size, gap, is_hidden):
        base = self.log_end + gap
        batch = LogBatch(base, base + size - 1)
        self.log.append(batch)
        self.log_end = base + size
        if is_hidden and size % 3 == 0:
            self.hidden.add(batch)

    @rule(data=st.data())
    def compact(self, data):
        if self.log:
            removed = data.draw(st.sampled_from(self.log))
            if removed is not self.log[-1]:
                self.log.remove(removed)

    @rule(share=st.floats(0, 1))
    def delete_records(self, share):
        self.log_start += int((self.log_end - self.log_start) * share * 0.5)
        self.log = [batch for batch in self.log if batch.last_offset >= self.log_start]

    # ---- members

    @rule(
        member=st.sampled_from(MEMBERS),
        max_records=st.integers(0, 25),
        batch_size=st.integers(1, 12),
        is_strict=st.booleans(),
        batch_count=st.integers(1, 6),
    )
    def acquire(self, member, max_records, batch_size, is_strict, batch_count):
        partition, model = self.partition, self.model
        partition.move_log_start(self.log_start)
        model.move_log_start(self.log_start)
        offset = partition.next_fetch_offset()
        assert offset == model.next_fetch_offset()
        batches = [batch for batch in self.log if batch.last_offset >= offset][:batch_count]
        aborted = [batch for batch in batches if batch in self.hidden]
        had_room = len(model.records) < self.settings.share_partition_max_record_locks
        end = model.end
        request = AcquireRequest(member, max_records, batch_size, is_strict, offset, batches, aborted)
        acquired = partition.acquire(request, self.now)
        if not batches or not max_records:
            assert not acquired
            return
        total = sum(last - first + 1 for first, last, _ in acquired)
        slack = 0 if is_strict else max(batch.last_offset - batch.base_offset for batch in batches)
        assert total <= max_records + slack
        if batches[0].base_offset <= offset and (had_room or offset < end) and not aborted:
            assert acquired, "there was something to be had"
        model.missing(offset, batches[0].base_offset - 1)
        self.apply_acquired(member, acquired, aborted, is_strict=is_strict)

    def apply_acquired(self, member, acquired, aborted, *, is_strict):
        """Check what was acquired and what was skipped, and apply it to the model."""
        model, acquired_counts = self.model, {}
        for first, last, count in acquired:
            acquired_counts.update(dict.fromkeys(range(first, last + 1), count))
        hidden = {offset for first, last in aborted for offset in range(first, last + 1)}
        stored = {offset for first, last in self.log for offset in range(first, last + 1)}
        assert not acquired_counts.keys() & (self.accepted | hidden)
        records = {}
        for run in self.partition.runs():
            for offset in range(run.first, run.last + 1):
                old = model.records.get(offset)
                assert old is not None or offset >= model.end
                if offset in acquired_counts:
                    assert acquired_counts[offset] == (1 if old is None else old.count + 1)
                    assert old is None or old.is_available(), f"{offset} was not available"
                    deadline = self.now + LOCK_S
                    records[offset] = ModelRecord(RecordState.ACQUIRED, acquired_counts[offset], member, deadline)
                elif old is None:
                    is_rest = is_strict and run.is_available and not run.delivery_count
                    assert is_rest or (run.state is RecordState.ARCHIVED and (offset in hidden or offset not in stored))
                    records[offset] = ModelRecord(run.state, run.delivery_count)
                else:
                    if old.is_available() and offset in hidden and run.state is RecordState.ARCHIVED:
                        old.state, old.count = run.state, run.delivery_count
                    records[offset] = old
        for offset, old in model.records.items():
            assert (
                offset in records
                or (old.state in FINISHED and not old.pending)
                or (old.is_available() and offset in hidden)
            )
        assert acquired_counts.keys() <= records.keys()
        model.records, model.start, model.end = records, self.partition.start_offset, self.partition.end_offset

    @rule(data=st.data(), member=st.sampled_from(MEMBERS), is_own=st.booleans(), outcome=st.integers(0, 3))
    def acknowledge(self, data, member, is_own, outcome):
        held = [run for run in self.partition.runs() if run.member_id == member]
        if is_own and held:
            run = data.draw(st.sampled_from(held))
            first = data.draw(st.integers(run.first, run.last))
            last = data.draw(st.integers(first, run.last))
        else:
            first = data.draw(st.integers(0, self.model.end + 2))
            last = first + data.draw(st.integers(0, 6))
        middle = data.draw(st.integers(first, last))
        kinds = data.draw(st.tuples(st.sampled_from(AcknowledgeType), st.sampled_from(AcknowledgeType)))
        acknowledgements = [Acknowledgement(first, middle, kinds[0])]
        if middle < last:
            acknowledgements.append(Acknowledgement(middle + 1, last, kinds[1]))
        try:
            change = self.partition.acknowledge(member, acknowledgements, self.now)
        except KafkaError:
            change = None
        marker = object() if change is None else change
        before = {offset: (r.state, r.member, r.deadline) for offset, r in self.model.records.items()}
        try:
            for acknowledgement in acknowledgements:
                self.model.acknowledge(member, *acknowledgement, marker, self.now + LOCK_S)
            assert change is not None, "the model accepts it"
        except RefusedError:
            assert change is None, "the model refuses it"
            for offset, values in before.items():
                record = self.model.records[offset]
                record.state, record.member, record.deadline = values
                if record.pending and record.pending[0] is marker:
                    record.pending = None
            return
        self.decide(change, outcome)

    @rule(member=st.sampled_from(MEMBERS), outcome=st.integers(0, 3))
    def leave(self, member, outcome):
        change = self.partition.release(member)
        self.model.release(member, change)
        self.decide(change, outcome)

    def decide(self, change, outcome):
        """Write a change, fail it, or store it pending."""
        if not change:
            return
        if outcome <= 1:
            self.write(change)
        elif outcome == 2:
            self.partition.failed(change, self.now)
            self.model.failed(change, self.now)
        else:
            self.pending.append(change)

    def write(self, change):
        self.store(change)
        self.partition.committed(change)
        self.model.committed(change)

    def store(self, change):
        self.stored_start = max(self.stored_start, self.partition.start_offset)
        self.stored_state = combine(self.stored_state, change.batches, self.stored_start)
        for first, last, state, _ in change.batches:
            if state == RecordState.ACKNOWLEDGED:
                self.accepted.update(range(first, last + 1))
        self.letters += change.dead_letters

    @rule(data=st.data(), succeeds=st.booleans())
    def settle(self, data, succeeds):
        if self.pending:
            change = self.pending.pop(data.draw(st.integers(0, len(self.pending) - 1)))
            if succeeds:
                self.write(change)
            else:
                self.partition.failed(change, self.now)
                self.model.failed(change, self.now)

    @rule()
    def finish_dead_letters(self):
        while self.letters:
            letters = self.letters.pop()
            change = self.partition.archived(letters.first_offset, letters.last_offset)
            self.model.archived(letters.first_offset, letters.last_offset)
            self.store(change)
            self.partition.committed(change)

    @rule(seconds=st.floats(0, 40))
    def pass_time(self, seconds):
        self.now += seconds
        deadlines = [r.deadline for r in self.model.records.values() if r.state is RecordState.ACQUIRED]
        due = self.partition.next_deadline()
        if deadlines:
            assert due is not None
            assert due <= min(deadlines)
        change = self.partition.tick(self.now)
        self.model.tick(self.now)
        self.store(change)
        self.partition.committed(change)

    @rule()
    def restart(self):
        """Only written state is left, and no record is acquired."""
        self.partition = SharePartition(lambda: self.settings, self.stored_start, 0, self.stored_state)
        self.model = RecordModel(self.stored_start, self.settings, self.stored_state)
        self.pending.clear()
        self.letters = self.partition.dead_letters()

    # ---- invariants

    @invariant()
    def equals_the_model(self):
        if not hasattr(self, "partition"):
            return
        partition, model = self.partition, self.model
        assert (partition.start_offset, partition.end_offset) == (model.start, model.end)
        offset = partition.start_offset
        for run in partition.runs():
            assert run.first == offset
            offset = run.last + 1
            for position in range(run.first, run.last + 1):
                as_tuple = (run.state, run.delivery_count, run.member_id, run.undo is not None)
                assert as_tuple == model.records[position].as_tuple(), position
        assert offset == partition.end_offset
        assert partition.delivery_complete_count == model.finished()

    def teardown(self):
        """In the end every record is acknowledged or archived."""
        if not hasattr(self, "partition"):
            return
        while self.pending:
            self.write(self.pending.pop())
        for _ in range(1000):
            self.finish_dead_letters()
            self.pass_time(LOCK_S)
            self.acquire("one", 25, 5, False, 6)
            change = self.partition.release("nobody")
            held = [run for run in self.partition.runs() if run.member_id == "one"]
            acknowledgements = [Acknowledgement(run.first, run.last, AcknowledgeType.ACCEPT) for run in held]
            change = self.partition.acknowledge("one", acknowledgements, self.now)
            for acknowledgement in acknowledgements:
                self.model.acknowledge("one", *acknowledgement, change, self.now + LOCK_S)
            if change:
                self.write(change)
            self.equals_the_model()
            if not self.partition.runs() and not [b for b in self.log if b.last_offset >= self.partition.end_offset]:
                return
            if (
                not change
                and not held
                and not [b for b in self.log if b.last_offset >= self.partition.next_fetch_offset()]
            ):
                free = [run for run in self.partition.runs() if not run.is_available]
                assert not free or all(run.state.value > 1 for run in free)
                return  # the rest is available, and was removed by compaction at the end of the log
        raise AssertionError("some records are never finished")


TestSharedLog = SharedLog.TestCase
TestSharedLog.settings = hypothesis_settings(max_examples=EXAMPLES, stateful_step_count=40)
