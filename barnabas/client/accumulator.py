"""What a producer has not had acknowledged yet: for each partition an open batch, sealed ones, and those in flight.

Batches of a partition keep the order in which they were opened, also when one comes back to be sent again. With an
idempotent producer each carries its sequence (rules I1-I3), so that sending it twice appends it once.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable

from barnabas.wire.records import BatchBuilder, Header, increment_sequence


class Batch:
    """Records of one partition on their way. `deadline` (monotonic seconds) is set when it is sealed."""

    __slots__ = ("builder", "deadline", "order", "payload")

    def __init__(self, order: int, builder: BatchBuilder) -> None:
        self.order = order
        self.builder = builder
        self.payload = b""
        self.deadline = 0.0

    @property
    def size(self) -> int:
        """Bytes: of what is sent once it is sealed, of the records before."""
        return len(self.payload) or self.builder.size_estimate

    @property
    def count(self) -> int:
        """Records in it."""
        return self.builder.count


class Identity:
    """What makes a producer idempotent (KIP-98); (-1, -1) is nobody."""

    __slots__ = ("producer_epoch", "producer_id")

    def __init__(self, producer_id: int = -1, producer_epoch: int = -1) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


class PartitionQueue:
    """The batches of one partition."""

    __slots__ = (
        "codec",
        "identity",
        "in_flight",
        "index",
        "level",
        "next_sequence",
        "open",
        "retry_at",
        "sealed",
        "topic",
    )

    def __init__(self, topic: str, index: int, identity: Identity, codec: int, level: int | None) -> None:
        self.topic = topic
        self.index = index
        self.identity = identity
        self.codec = codec
        self.level = level
        self.open: Batch | None = None
        self.sealed: list[Batch] = []
        self.in_flight: list[Batch] = []
        self.next_sequence = 0 if identity.producer_id >= 0 else -1
        self.retry_at = 0.0

    @property
    def bytes_waiting(self) -> int:
        """Bytes that the broker has not acknowledged: the length of the queue that KIP-794 looks at."""
        opened = self.open.size if self.open is not None else 0
        return opened + sum(batch.size for batch in self.sealed) + sum(batch.size for batch in self.in_flight)

    @property
    def is_empty(self) -> bool:
        """True when everything has been acknowledged."""
        return self.open is None and not self.sealed and not self.in_flight

    def append(
        self, order: int, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Iterable[Header]
    ) -> int:
        """Add a record to the open batch (a new one, numbered `order`, when there is none); return its bytes so far."""
        if self.open is None:
            builder = BatchBuilder(
                codec=self.codec,
                level=self.level,
                producer_id=self.identity.producer_id,
                producer_epoch=self.identity.producer_epoch,
                base_sequence=self.next_sequence,
            )
            self.open = Batch(order, builder)
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
        """The next batch, from now on in flight."""
        batch = self.sealed.pop(0)
        self.in_flight.append(batch)
        return batch

    def acknowledge(self, batch: Batch) -> None:
        """The broker has it: forget it."""
        self.in_flight.remove(batch)

    def put_back(self, batch: Batch, retry_at: float) -> None:
        """It has to be sent again, in its old place, not before `retry_at`."""
        self.in_flight.remove(batch)
        insort(self.sealed, batch, key=lambda other: other.order)
        self.retry_at = max(self.retry_at, retry_at)

    def has_earlier(self, batch: Batch) -> bool:
        """True when an earlier batch is still on its way: then an out-of-order answer is only its echo."""
        return any(other.order < batch.order for other in (*self.sealed, *self.in_flight))

    def is_ready(self, now: float, limit: int) -> bool:
        """True when its next batch may be sent: at most `limit` in flight, none while one is being sent again."""
        if not self.sealed or now < self.retry_at or len(self.in_flight) >= limit:
            return False
        return not self.in_flight or self.sealed[0].order > self.in_flight[-1].order
