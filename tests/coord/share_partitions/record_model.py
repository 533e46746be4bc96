"""A simple model of a share partition with one state for each record (rule G6)."""

from __future__ import annotations

from barnabas.coord.share_partitions.states import AcknowledgeType, RecordState

FINISHED = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class ModelRecord:
    def __init__(self, state, count, member="", deadline=None):
        self.state = state
        self.count = count
        self.member = member
        self.deadline = deadline
        self.pending = None  # (change, state before, member before) of a transition that is not written

    def is_available(self):
        return self.state is RecordState.AVAILABLE and self.pending is None

    def as_tuple(self):
        return (self.state, self.count, self.member, self.pending is not None)


class RefusedError(Exception):
    """The acknowledgement is refused as a whole."""


class RecordModel:
    """The events of `SharePartition`, applied to each record separately."""

    def __init__(self, start, settings, kept=()):
        self.settings = settings
        self.start = self.end = start
        self.records = {}
        for first, last, state, count in kept:
            for offset in range(self.end, last + 1):
                known = (RecordState(state), count) if offset >= first else (RecordState.AVAILABLE, 0)
                self.records[offset] = ModelRecord(*known)
            self.end = last + 1
        self.advance()

    def advance(self):
        while self.start < self.end:
            record = self.records[self.start]
            if record.state not in FINISHED or record.pending:
                break
            del self.records[self.start]
            self.start += 1

    def next_fetch_offset(self):
        return next((offset for offset in sorted(self.records) if self.records[offset].is_available()), self.end)

    def finished(self):
        return sum(record.state in FINISHED for record in self.records.values())

    # ---- acquiring: the test checks what was acquired; the model does not predict it

    def missing(self, first, last):
        for offset in range(first, last + 1):
            if offset in self.records and self.records[offset].is_available():
                self.records[offset].state = RecordState.ARCHIVED

    # ---- acknowledging

    def acknowledge(self, member, first, last, kind, change, deadline):
        if last < self.start:
            return
        if not self.records or last >= self.end:
            raise RefusedError
        offsets = range(max(first, self.start), last + 1)
        if any(self.records[o].state is not RecordState.ACQUIRED or self.records[o].member != member for o in offsets):
            raise RefusedError
        for offset in offsets:
            record = self.records[offset]
            if kind is AcknowledgeType.RENEW:
                record.deadline = deadline
            elif kind is AcknowledgeType.RELEASE:
                self.step(record, self.state_after_release(record), change)
            elif kind is AcknowledgeType.REJECT and self.settings.errors_deadletterqueue_topic_name:
                self.step(record, RecordState.ARCHIVING, change)
            else:
                is_accepted = kind is AcknowledgeType.ACCEPT
                self.step(record, RecordState.ACKNOWLEDGED if is_accepted else RecordState.ARCHIVED, change)

    def state_after_release(self, record):
        if record.count < self.settings.share_delivery_count_limit:
            return RecordState.AVAILABLE
        return RecordState.ARCHIVING if self.settings.errors_deadletterqueue_topic_name else RecordState.ARCHIVED

    def step(self, record, state, change):
        record.pending = (change, record.state, record.member)
        record.state, record.member = state, ""

    def release(self, member, change):
        for record in self.records.values():
            if record.state is RecordState.ACQUIRED and record.member == member:
                self.step(record, self.state_after_release(record), change)

    def committed(self, change):
        for record in self.records.values():
            if record.pending and record.pending[0] is change:
                record.pending = None
        self.advance()

    def failed(self, change, now):
        for record in self.records.values():
            if record.pending and record.pending[0] is change:
                _, record.state, record.member = record.pending
                record.pending = None
                if record.deadline <= now:
                    is_at_limit = record.count >= self.settings.share_delivery_count_limit
                    record.state = RecordState.ARCHIVED if is_at_limit else RecordState.AVAILABLE
                    record.member = ""
        self.advance()

    def archived(self, first, last):
        for offset in range(first, last + 1):
            if offset in self.records and self.records[offset].state is RecordState.ARCHIVING:
                self.records[offset].state = RecordState.ARCHIVED
        self.advance()

    def tick(self, now):
        for record in self.records.values():
            if record.state is RecordState.ACQUIRED and record.deadline <= now:
                record.state, record.member = self.state_after_release(record), ""
        self.advance()

    def move_log_start(self, offset):
        for removed in [known for known in self.records if known < offset]:
            del self.records[removed]
        if offset > self.start:
            self.start = offset
            self.end = max(self.end, offset)
        self.advance()
