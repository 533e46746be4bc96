"""The promises to clients and the records they may see: a recovered disk is checked against them.

A ledger is built from the notes in a disk's history. A partition's ledger has the batches that were written, byte for
byte, and the bounds within which a crash may leave the log. The notes of what may happen come before the operations
that cause it, the notes of what must be kept after the operations that make it durable.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

Key = tuple[str, int]
Record = tuple[bytes | None, bytes | None]
"""Key and value."""


class Batch(NamedTuple):
    """A batch in the log."""

    first: int
    last: int
    data: bytes
    timestamps: tuple[int, ...]
    leader_epoch: int
    producer: tuple[int, int, int]  # id, epoch, first sequence; -1s for none
    transactional: bool = False
    marker: bool | None = None  # a transaction marker: whether it commits
    coordinator_epoch: int = -1
    records: tuple[Record, ...] = ()

    def __repr__(self) -> str:
        of = f" of {self.producer}" if self.producer[0] >= 0 else ""
        kind = "" if self.marker is None else " commit" if self.marker else " abort"
        return f"<{self.first}-{self.last}{of}{kind}{' txn' * self.transactional}, {len(self.data)} bytes>"


class Created(NamedTuple):
    """A topic is in the metadata from here on."""

    topic: str
    partitions: int
    topic_id: bytes


class Deleted(NamedTuple):
    """A topic is removed from the metadata."""

    topic: str


class Appended(NamedTuple):
    """A batch is being written."""

    key: Key
    batch: Batch


class Written(NamedTuple):
    """Everything below `end` is acknowledged to the client as written: a kill -9 must not lose it (L3)."""

    key: Key
    end: int


class Durable(NamedTuple):
    """Everything below `end` was reported as durable: it is acknowledged under `always`."""

    key: Key
    end: int


class StartMoving(NamedTuple):
    """The log start is being advanced: after a crash it may be the old or the new one."""

    key: Key
    start: int


class StartMoved(NamedTuple):
    """The log start was reported as advanced (DeleteRecords was answered)."""

    key: Key


class Cutting(NamedTuple):
    """The log is being truncated."""

    key: Key
    end: int


class Cut(NamedTuple):
    """The truncation is done: truncated data must not reappear."""

    key: Key


class Recovered(NamedTuple):
    """After a start the log has the offsets from `start` to `end`."""

    key: Key
    start: int
    end: int


class Identified(NamedTuple):
    """The cluster id was reported to clients."""

    cluster_id: str


PartitionPromise = Appended | Written | Durable | StartMoving | StartMoved | Cutting | Cut | Recovered
Promise = PartitionPromise | Created | Deleted | Identified


@dataclass
class PartitionLedger:
    """The promises for one partition."""

    topic_id: bytes
    batches: list[Batch] = field(default_factory=list)
    durable_end: int = 0
    written_end: int = 0
    start: int = 0
    start_asked: int = 0
    cut_to: int | None = None

    def copy(self) -> PartitionLedger:
        """A copy, independent of later changes."""
        return replace(self, batches=list(self.batches))

    def take(self, promise: PartitionPromise) -> None:
        """Apply the next note of the history."""
        match promise:
            case Appended(_, batch):
                self.batches.append(batch)
            case Written(_, end):
                self.written_end = end
            case Durable(_, end):
                self.durable_end = max(self.durable_end, end)
            case StartMoving(_, start):
                self.start_asked = start
            case StartMoved():
                self.start = self.start_asked
            case Cutting(_, end):
                self.cut_to = end
                self.durable_end = min(self.durable_end, end)
                self.written_end = min(self.written_end, end)
            case Cut():
                self.end_cut()
            case Recovered(_, start, end):
                self.cut_to = end
                self.end_cut()
                self.start = self.start_asked = start
                self.durable_end = min(self.durable_end, end)
                self.written_end = end

    def end_cut(self) -> None:
        """Remove the truncated batches: they must not be visible again."""
        assert self.cut_to is not None
        while self.batches and self.batches[-1].last >= self.cut_to:
            self.batches.pop()
        self.cut_to = None


class Ledger:
    """The promises of all partitions."""

    def __init__(self) -> None:
        self.cluster_id = ""
        self.partitions: dict[Key, PartitionLedger] = {}
        self.deleted_topics: set[bytes] = set()

    def copy(self) -> Ledger:
        """A copy, independent of later changes."""
        ledger = Ledger()
        ledger.cluster_id = self.cluster_id
        ledger.partitions = {key: partition.copy() for key, partition in self.partitions.items()}
        ledger.deleted_topics = set(self.deleted_topics)
        return ledger

    def take(self, promise: Promise) -> None:
        """Apply the next note of the history."""
        match promise:
            case Created(topic, partitions, topic_id):
                for index in range(partitions):
                    self.partitions[topic, index] = PartitionLedger(topic_id)
            case Deleted(topic):
                for key in [key for key in self.partitions if key[0] == topic]:
                    self.deleted_topics.add(self.partitions.pop(key).topic_id)
            case Identified(cluster_id):
                self.cluster_id = cluster_id
            case _:
                self.partitions[promise.key].take(promise)
