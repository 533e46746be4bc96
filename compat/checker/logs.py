"""What a history says of the logs: who wrote which value, what became of it, and who read it where.

A transaction is aborted for certain when its end was never asked for, since an event is written before what it tells
of is done. One whose commit was asked for and not answered has committed when a reader of committed records has seen
any of its values where it was said to be; then it must be there whole.

A value may be sent again after a transaction that did not commit, so that one value may have several writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from compat.checker.history import Event, Place

Key = tuple[str, str]
"""Topic and value."""


class Outcome(Enum):
    """What became of a write or a transaction."""

    DONE = "done"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Write:
    """One value that a process sent."""

    event: Event
    offset: int | None = None
    sent: Event | None = None
    failed: Event | None = None

    @property
    def key(self) -> Key:
        return self.event["topic"], self.event["value"]

    @property
    def partition(self) -> tuple[str, int]:
        return self.event["topic"], self.event["partition"]

    @property
    def place(self) -> Place | None:
        """Where it was said to be."""
        return None if self.offset is None else (*self.partition, self.offset)


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
        self.writes: list[Write] = []
        self.writes_of: dict[Key, list[Write]] = defaultdict(list)
        self.transactions: dict[str, Transaction] = {}
        self.values_at: dict[Place, dict[str, Event]] = defaultdict(dict)
        self.read: dict[bool, dict[Key, set[Place]]] = {False: defaultdict(set), True: defaultdict(set)}
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
        if known is Outcome.UNKNOWN and any(write.place in self.read[True][write.key] for write in transaction.writes):
            return Outcome.DONE
        return known

    def was_read(self, write: Write) -> bool:
        """Whether anybody has read it who may: of a transaction, a reader of committed records where there are such."""
        is_committed = write.event.txn is not None and write.event["topic"] in self.committed_topics
        places = self.read[is_committed].get(write.key, set())
        is_only_one = len(self.writes_of[write.key]) == 1
        return bool(places) if is_only_one or write.place is None else write.place in places

    def write_at(self, place: Place, value: str) -> Write | None:
        """The write that is at a place: the one that was said to be there, or the only one there can be."""
        writes = self.writes_of.get((place[0], value), [])
        said = [write for write in writes if write.place == place]
        return said[0] if said else writes[0] if len(writes) == 1 else None

    def places_of(self, topic: str) -> dict[str, dict[Place, Event]]:
        """Where each value of a topic was read, by readers of committed records where there are such."""
        is_committed = topic in self.committed_topics
        places: dict[str, dict[Place, Event]] = defaultdict(dict)
        for (read_topic, value), read in self.read[is_committed].items():
            if read_topic == topic:
                places[value] = {place: self.values_at[place][value] for place in read}
        return places

    def _other(self, event: Event) -> None:
        """Nothing that concerns the logs."""

    def _send(self, event: Event) -> None:
        write = Write(event)
        self.writes.append(write)
        self.writes_of[write.key].append(write)
        if event.txn is not None:
            self.transaction(event.txn).writes.append(write)

    def _sent_by(self, event: Event) -> Write | None:
        """The write that an event answers: the last of that value by that process."""
        writes = self.writes_of.get((event["topic"], event["value"]), [])
        return next((write for write in reversed(writes) if write.event.process == event.process), None)

    def _sent(self, event: Event) -> None:
        write = self._sent_by(event)
        if write is not None:
            write.offset, write.sent = event["offset"], event
        self._found((event["topic"], event["partition"], event["offset"]), event["value"], event)

    def _failed(self, event: Event) -> None:
        write = self._sent_by(event)
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
            place = (topic, partition, offset)
            self._found(place, value, event)
            if is_committed:
                self.committed_topics.add(topic)
            for isolation in {False, is_committed}:
                self.read[isolation][topic, value].add(place)
                where = (topic, partition, isolation)
                self.highest[where] = max(self.highest.get(where, -1), offset)

    def _found(self, place: Place, value: str, event: Event) -> None:
        known = self.values_at[place].get(value)
        if known is None or known.type != "poll" or (event.is_committed_read and not known.is_committed_read):
            self.values_at[place][value] = event

    def _end(self, event: Event) -> None:
        self.ends[event["topic"], event["partition"]] = event
        if event.is_committed_read:
            self.committed_topics.add(event["topic"])
