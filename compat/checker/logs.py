"""The logs according to a history: the writes of each value, their outcome, and the positions at which they were read.

A transaction without a commit request is certainly aborted, since an event is written before its request is sent. A
transaction whose commit was not answered has committed if a read_committed reader has read any of its values at the
acknowledged position; then all of them must be readable.

A value may be sent again after a transaction that did not commit, so one value may have several writes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from compat.checker.history import Event, Position

Key = tuple[str, str]
"""Topic and value."""


class Outcome(Enum):
    """The outcome of a write or a transaction."""

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
    def position(self) -> Position | None:
        """The acknowledged position, or None."""
        return None if self.offset is None else (*self.partition, self.offset)


@dataclass(slots=True)
class Transaction:
    """The events and writes of one transaction."""

    name: str
    committing: Event | None = None
    ended: Event | None = None
    writes: list[Write] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """The outcome known to its own process."""
        if self.ended is not None:
            return Outcome.DONE if self.ended.type == "committed" else Outcome.NOT_DONE
        return Outcome.UNKNOWN if self.committing else Outcome.NOT_DONE


class Logs:
    """The writes, transactions and reads of a history."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.writes: list[Write] = []
        self.writes_of: dict[Key, list[Write]] = defaultdict(list)
        self.transactions: dict[str, Transaction] = {}
        self.values_at: dict[Position, dict[str, Event]] = defaultdict(dict)
        self.read: dict[bool, dict[Key, set[Position]]] = {False: defaultdict(set), True: defaultdict(set)}
        self.highest: dict[tuple[str, int, bool], int] = {}
        self.ends: dict[tuple[str, int], Event] = {}
        self.committed_topics: set[str] = set()
        for event in events:
            getattr(self, f"_{event.type}", self._other)(event)

    def transaction(self, name: str) -> Transaction:
        """The transaction with this name, created if it is unknown."""
        return self.transactions.setdefault(name, Transaction(name))

    def outcome(self, write: Write) -> Outcome:
        """Whether a write is certainly in the log, certainly not, or unknown."""
        if write.failed is not None:
            return Outcome.NOT_DONE
        if write.event.txn is not None:
            return self.outcome_of(self.transaction(write.event.txn))
        return Outcome.DONE if write.sent else Outcome.UNKNOWN

    def outcome_of(self, transaction: Transaction) -> Outcome:
        """The outcome of a transaction, known to its process or else to readers."""
        known = transaction.outcome
        if known is Outcome.UNKNOWN and any(
            write.position in self.read[True][write.key] for write in transaction.writes
        ):
            return Outcome.DONE
        return known

    def was_read(self, write: Write) -> bool:
        """Whether a reader has read it; for a transaction a read_committed reader, if the topic has any."""
        is_committed = write.event.txn is not None and write.event["topic"] in self.committed_topics
        positions = self.read[is_committed].get(write.key, set())
        is_only_one = len(self.writes_of[write.key]) == 1
        return bool(positions) if is_only_one or write.position is None else write.position in positions

    def write_at(self, position: Position, value: str) -> Write | None:
        """The write at a position: the one acknowledged there, or the only one of the value."""
        writes = self.writes_of.get((position[0], value), [])
        acknowledged = [write for write in writes if write.position == position]
        return acknowledged[0] if acknowledged else writes[0] if len(writes) == 1 else None

    def positions_of(self, topic: str) -> dict[str, dict[Position, Event]]:
        """The positions at which each value of a topic was read; by read_committed readers, if the topic has any."""
        is_committed = topic in self.committed_topics
        positions: dict[str, dict[Position, Event]] = defaultdict(dict)
        for (read_topic, value), read in self.read[is_committed].items():
            if read_topic == topic:
                positions[value] = {position: self.values_at[position][value] for position in read}
        return positions

    def _other(self, event: Event) -> None:
        """Ignore an event that does not concern the logs."""

    def _send(self, event: Event) -> None:
        write = Write(event)
        self.writes.append(write)
        self.writes_of[write.key].append(write)
        if event.txn is not None:
            self.transaction(event.txn).writes.append(write)

    def _sent_by(self, event: Event) -> Write | None:
        """The write that a response belongs to: the last one of that value by that process."""
        writes = self.writes_of.get((event["topic"], event["value"]), [])
        return next((write for write in reversed(writes) if write.event.process == event.process), None)

    def _sent(self, event: Event) -> None:
        write = self._sent_by(event)
        if write is not None:
            write.sent = event
            write.offset = event["offset"] if event["offset"] >= 0 else None
        if event["offset"] >= 0:
            self._add_value((event["topic"], event["partition"], event["offset"]), event["value"], event)

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
            position = (topic, partition, offset)
            self._add_value(position, value, event)
            if is_committed:
                self.committed_topics.add(topic)
            for isolation in {False, is_committed}:
                self.read[isolation][topic, value].add(position)
                where = (topic, partition, isolation)
                self.highest[where] = max(self.highest.get(where, -1), offset)

    def _add_value(self, position: Position, value: str, event: Event) -> None:
        known = self.values_at[position].get(value)
        if known is None or known.type != "poll" or (event.is_committed_read and not known.is_committed_read):
            self.values_at[position][value] = event

    def _end(self, event: Event) -> None:
        self.ends[event["topic"], event["partition"]] = event
        if event.is_committed_read:
            self.committed_topics.add(event["topic"])
