"""Helpers for tests of share partitions."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.share_partitions.acknowledgement import Acknowledgement
from barnabas.coord.share_partitions.acquisition import AcquireRequest
from barnabas.coord.share_partitions.partition import SharePartition
from barnabas.coord.share_partitions.states import AcknowledgeType

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
GAP, RENEW = AcknowledgeType.GAP, AcknowledgeType.RENEW
LOCK_S = 30.0


class LogBatch(NamedTuple):
    base_offset: int
    last_offset: int


class Shared:
    """A share partition over a log of record batches, given by their offsets."""

    def __init__(self, *batches, start=0, kept=(), **settings):
        self.log = [LogBatch(*batch) for batch in batches]
        self.settings = GroupSettings(**{f"share_{name}": value for name, value in settings.items()})
        self.partition = SharePartition(lambda: self.settings, start, 0, kept)
        self.now = 0.0

    def acquire(self, member="m", most=500, *, batch_size=500, strict=False, aborted=(), read=100):
        """Acquire records for the member; (first, last, delivery count)."""
        offset = self.partition.next_fetch_offset()
        batches = [batch for batch in self.log if batch.last_offset >= offset][:read]
        request = AcquireRequest(member, most, batch_size, strict, offset, batches, aborted)
        return [tuple(acquired) for acquired in self.partition.acquire(request, self.now)]

    def change(self, *acknowledgements, member="m"):
        """Acknowledge (first, last, type); the change, not written yet."""
        changes = [Acknowledgement(*acknowledgement) for acknowledgement in acknowledgements]
        return self.partition.acknowledge(member, changes, self.now)

    def acknowledge(self, *acknowledgements, member="m"):
        """Acknowledge and write the change; (first, last, state, delivery count) as written."""
        change = self.change(*acknowledgements, member=member)
        self.partition.committed(change)
        return [(first, last, str(state), count) for first, last, state, count in change.batches]

    def release(self, member="m"):
        change = self.partition.release(member)
        self.partition.committed(change)
        return [(first, last, str(state), count) for first, last, state, count in change.batches]

    def wait(self, seconds=LOCK_S):
        """Advance time; the changes by expired locks, as written."""
        self.now += seconds
        change = self.partition.tick(self.now)
        self.partition.committed(change)
        return [(first, last, str(state), count) for first, last, state, count in change.batches]

    @property
    def window(self):
        return (self.partition.start_offset, self.partition.end_offset)

    def states(self):
        """(first, last, state, delivery count) of the window."""
        return [(run.first, run.last, str(run.state), run.delivery_count) for run in self.partition.runs()]
