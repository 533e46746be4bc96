"""The unacknowledged records of a producer: for each partition an open batch, sealed ones, and those in flight.

Batches of a partition keep their order, also when one is sent again. With an idempotent producer each has a sequence
(I1-I3), so that sending it twice appends it once.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic

from barnabas.wire.batches.records import BatchBuilder, Header, increment_sequence


@dataclass(eq=False, slots=True)
class Batch:
    """A batch of records of one partition. `deadline` (monotonic seconds) is set when it is sealed.

    `order` is the number of its first record in the producer. `is_refused`: the broker has not appended
    it. `may_be_appended`: it was sent once without an answer that says whether it was. `opened_at` is the time of its
    first record (monotonic seconds). `base_offset` is set when it is acknowledged; -1 if the broker did not say it.
    """

    order: int
    builder: BatchBuilder
    partition: int = -1
    payload: bytes = field(default=b"", init=False)
    deadline: float = field(default=0.0, init=False)
    opened_at: float = field(default_factory=monotonic, init=False)
    is_refused: bool = field(default=False, init=False)
    may_be_appended: bool = field(default=False, init=False)
    base_offset: int = field(default=-1, init=False)

    @property
    def size(self) -> int:
        """Size in bytes: of the encoded batch once it is sealed, of the records before."""
        return len(self.payload) or self.builder.size_estimate

    @property
    def count(self) -> int:
        """Records in it."""
        return self.builder.count


@dataclass(slots=True)
class Identity:
    """Producer id and epoch of an idempotent or transactional producer (KIP-98); (-1, -1) is none."""

    producer_id: int = -1
    producer_epoch: int = -1
    is_transactional: bool = False


@dataclass(eq=False, slots=True)
class PartitionQueue:
    """The batches of one partition."""

    topic: str
    index: int
    identity: Identity
    codec: int
    level: int | None
    open: Batch | None = field(default=None, init=False)
    sealed: list[Batch] = field(default_factory=list, init=False)
    in_flight: list[Batch] = field(default_factory=list, init=False)
    retry_at: float = field(default=0.0, init=False)
    next_sequence: int = field(init=False)

    def __post_init__(self) -> None:
        self.next_sequence = 0 if self.identity.producer_id >= 0 else -1

    @property
    def bytes_waiting(self) -> int:
        """Bytes that are not acknowledged: the queue length of KIP-794."""
        opened = self.open.size if self.open is not None else 0
        return opened + sum(batch.size for batch in self.sealed) + sum(batch.size for batch in self.in_flight)

    @property
    def unacknowledged(self) -> list[Batch]:
        """All its batches: open, queued and in flight."""
        opened = [self.open] if self.open is not None else []
        return [*opened, *self.sealed, *self.in_flight]

    @property
    def is_empty(self) -> bool:
        """True when everything has been acknowledged."""
        return self.open is None and not self.sealed and not self.in_flight

    def append(
        self, order: int, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Iterable[Header]
    ) -> int:
        """Add a record to the open batch (or to a new one, numbered `order`); return its size in bytes."""
        if self.open is None:
            builder = BatchBuilder(
                codec=self.codec,
                level=self.level,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
                base_sequence=self.next_sequence,
                transactional=self.identity.is_transactional,
            )
            self.open = Batch(order, builder, self.index)
        builder = self.open.builder
        builder.append(timestamp_ms, key, value, headers)
        return builder.size_estimate

    def seal(self, deadline: float) -> None:
        """Close the open batch and queue it for sending, by `deadline`."""
        batch = self.open
        if batch is None:
            return
        self.open = None
        batch.payload = batch.builder.build()
        batch.deadline = deadline
        if self.next_sequence >= 0:
            self.next_sequence = increment_sequence(self.next_sequence, batch.count)
        self.sealed.append(batch)

    def take(self) -> Batch:
        """Take the next batch; it is then in flight."""
        batch = self.sealed.pop(0)
        self.in_flight.append(batch)
        return batch

    def acknowledge(self, batch: Batch) -> None:
        """Remove an acknowledged batch."""
        self.in_flight.remove(batch)

    def put_back(self, batch: Batch, retry_at: float) -> None:
        """Queue a batch again at its old position, to be sent at `retry_at` or later."""
        self.in_flight.remove(batch)
        insort(self.sealed, batch, key=lambda other: other.order)
        self.retry_at = max(self.retry_at, retry_at)

    def has_earlier(self, batch: Batch) -> bool:
        """True if an earlier batch is unacknowledged: it may be the cause of an out-of-order error."""
        return any(other.order < batch.order for other in (*self.sealed, *self.in_flight))

    def is_ready(self, now: float, limit: int) -> bool:
        """True if the next batch may be sent: at most `limit` in flight, none while one is retried."""
        if not self.sealed or now < self.retry_at or len(self.in_flight) >= limit:
            return False
        return not self.in_flight or self.sealed[0].order > self.in_flight[-1].order
