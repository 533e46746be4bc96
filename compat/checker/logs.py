"""What a history says of the logs: who wrote which value, what became of it, and who read it where.

A transaction is aborted for certain when its end was never asked for, since an event is written before what it tells
of is done. One whose commit was asked for and not answered has committed when a reader of committed records has seen
any of its values; then it must be there whole.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from compat.checker.history import Event, Place

Key = tuple[str, str]
"""Topic and value: workloads write each value once to a topic."""


class Outcome(Enum):
    """What became of a write or a transaction."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Write:
    """One value that a process sent, in the order of `number` within the history."""

    event: Event
    number: int
    offset: int | None = None
    sent: Event | None = None
    failed: Event | None = None

    @property
    def key(self) -> Key:
        return self.event["topic"], self.event["value"]

    @property
    def partition(self) -> tuple[str, int]:
        return self.event["topic"], self.event["partition"]


@dataclass(slots=True)
class Transaction:
    """The events of one transaction, and what it wrote."""

    name: str
    committing: Event | None = None
    ended: Event | None = None
    writes: list[Write] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """As its own process knew it."""
        if self.ended is not None:
            return Outcome.DONE if self.ended.type == "committed" else Outcome.NOT_DONE
        return Outcome.UNKNOWN if self.committing else Outcome.NOT_DONE


class Logs:
    """The writes, transactions and reads of a history."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.writes: dict[Key, Write] = {}
        self.transactions: dict[str, Transaction] = {}
        self.values_at: dict[Place, dict[str, Event]] = defaultdict(dict)
        self.places_of: dict[Key, dict[Place, Event]] = defaultdict(dict)
        self.read: dict[Key, Event] = {}
        self.read_committed: dict[Key, Event] = {}
        self.highest: dict[tuple[str, int, bool], int] = {}
        self.ends: dict[tuple[str, int], Event] = {}
        self.committed_topics: set[str] = set()
        for event in events:
            getattr(self, f"_{event.type}", self._other)(event)

    def transaction(self, name: str) -> Transaction:
        """The transaction of that name, new when it was not heard of."""
        return self.transactions.setdefault(name, Transaction(name))

    def outcome(self, write: Write) -> Outcome:
        """Whether a write must be there, must not, or may be."""
        if write.failed is not None:
            return Outcome.NOT_DONE
        if write.event.txn is not None:
            return self.outcome_of(self.transaction(write.event.txn))
        return Outcome.DONE if write.sent else Outcome.UNKNOWN

    def outcome_of(self, transaction: Transaction) -> Outcome:
        """What became of a transaction, as its process or else its readers know."""
        known = transaction.outcome
        if known is Outcome.UNKNOWN and any(write.key in self.read_committed for write in transaction.writes):
            return Outcome.DONE
        return known

    def values_of(self, topic: str) -> list[str]:
        """The value of each place of a topic that was read, by readers of committed records where there are such."""
        is_committed = topic in self.committed_topics
        return [
            value
            for place, values in self.values_at.items()
            if place[0] == topic
            for value, event in values.items()
            if event.type == "poll" and (event.is_committed_read or not is_committed)
        ]

    def _other(self, event: Event) -> None:
        """Nothing that concerns the logs."""

    def _send(self, event: Event) -> None:
        write = self.writes[event["topic"], event["value"]] = Write(event, len(self.writes))
        if event.txn is not None:
            self.transaction(event.txn).writes.append(write)

    def _sent(self, event: Event) -> None:
        write = self.writes.get((event["topic"], event["value"]))
        if write is not None:
            write.offset, write.sent = event["offset"], event
        self._found((event["topic"], event["partition"], event["offset"]), event["value"], event)

    def _failed(self, event: Event) -> None:
        write = self.writes.get((event["topic"], event["value"]))
        if write is not None:
            write.failed = event

    def _begin(self, event: Event) -> None:
        self.transaction(event["txn"])

    def _committing(self, event: Event) -> None:
        self.transaction(event["txn"]).committing = event

    def _committed(self, event: Event) -> None:
        self.transaction(event["txn"]).ended = event

    _aborted = _committed

    def _poll(self, event: Event) -> None:
        is_committed = event.is_committed_read
        for topic, partition, offset, value in event["records"]:
            key = (topic, value)
            self._found((topic, partition, offset), value, event)
            self.read.setdefault(key, event)
            if is_committed:
                self.read_committed.setdefault(key, event)
                self.committed_topics.add(topic)
            for isolation in {False, is_committed}:
                where = (topic, partition, isolation)
                self.highest[where] = max(self.highest.get(where, -1), offset)

    def _found(self, place: Place, value: str, event: Event) -> None:
        known = self.values_at[place].get(value)
        if known is None or known.type != "poll" or (event.is_committed_read and not known.is_committed_read):
            self.values_at[place][value] = event
        self.places_of[place[0], value].setdefault(place, event)

    def _end(self, event: Event) -> None:
        self.ends[event["topic"], event["partition"]] = event
        if event.is_committed_read:
            self.committed_topics.add(event["topic"])
