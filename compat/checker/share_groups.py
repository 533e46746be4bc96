"""Share groups (KIP-932): each record is locked for one member at a time and is finished in the end.

`share-redelivered`: delivered after its accept or reject was answered. `share-ended-twice`: accepts or rejects of two
deliveries were both answered without an error. `share-held-by-two`: delivered to a second member during the lock of the
first. `share-delivery-count`: a count that is not above the previous one, or above the limit. `share-unfinished`: after
the group was drained, a record is neither accepted nor rejected nor at the delivery limit.

A restarted broker has no locks and may have lost deliveries (not acknowledgements), while clients may still process
records fetched before. Therefore deliveries are not checked from `killed` to `restarted` and for the duration of a lock
after that, only second accepts or rejects are. Records of a member are available when it is killed or closed, and
released ones from the request on. An accept or reject without a response may have succeeded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from compat.checker.finding import Finding, position_name
from compat.checker.history import Event, Position
from compat.checker.logs import Logs

FINAL = {"accept", "reject"}


@dataclass(slots=True)
class Entry:
    """The state of one record in one group."""

    count: int = 0
    held_by: Event | None = None
    renewed_at: float = 0.0
    final: Event | None = None
    may_be_final: bool = False


class Ledger:
    """The records of one share group."""

    def __init__(self, settings: Event) -> None:
        self.group: str = settings["group"]
        self.topic: str = settings["topic"]
        self.limit: int = settings["delivery_limit"]
        self.lock_s: float = settings["lock_s"]
        self.entries: dict[Position, Entry] = defaultdict(Entry)
        self.certain_from = 0.0

    def acquired(self, event: Event) -> Iterator[Finding]:
        """Check a delivery."""
        for topic, partition, offset, _, count in event["records"]:
            position = (topic, partition, offset)
            entry = self.entries[position]
            if event.at >= self.certain_from:
                yield from self._delivery(event, position, entry, count)
            entry.count, entry.held_by, entry.renewed_at = count, event, event.at
            entry.may_be_final |= count >= self.limit

    def _delivery(self, event: Event, position: Position, entry: Entry, count: int) -> Iterator[Finding]:
        text = f"{position_name(position)} in group {self.group} was delivered to {event}"
        if entry.final is not None:
            yield Finding("share-redelivered", f"{text} after it was finished ({entry.final})")
        is_locked_by_another = entry.held_by is not None and entry.held_by.process != event.process
        if is_locked_by_another and event.at - entry.renewed_at < self.lock_s:
            yield Finding("share-held-by-two", f"{text} while {entry.held_by} held it")
        if not entry.count < count <= self.limit:
            yield Finding(
                "share-delivery-count", f"{text} with count {count} after {entry.count}, the limit is {self.limit}"
            )

    def acknowledging(self, event: Event) -> None:
        """An acknowledgement is requested."""
        for topic, partition, offset, kind in event["records"]:
            entry = self.entries[topic, partition, offset]
            if kind == "release":
                entry.held_by = None
            entry.may_be_final |= kind in FINAL

    def acknowledged(self, event: Event) -> Iterator[Finding]:
        """An acknowledgement was answered without an error."""
        for topic, partition, offset, kind in event["records"]:
            entry = self.entries[topic, partition, offset]
            if kind == "renew":
                entry.renewed_at = event.at
                continue
            if kind in FINAL:
                if entry.final is not None:
                    position = position_name((topic, partition, offset))
                    yield Finding(
                        "share-ended-twice", f"{position} in group {self.group}, by {entry.final} and by {event}"
                    )
                entry.held_by, entry.final = None, event

    def forget_locks(self, event: Event) -> None:
        """The broker was killed or restarted."""
        self.certain_from = event.at + self.lock_s if event.type == "restarted" else inf
        for entry in self.entries.values():
            entry.held_by, entry.count = None, 0

    def release_all(self, process: str) -> None:
        """A member has left: its records are available."""
        for entry in self.entries.values():
            if entry.held_by is not None and entry.held_by.process == process:
                entry.held_by = None

    def unfinished(self, logs: Logs, at_end: Event) -> Iterator[Finding]:
        """Records of the topic that are not finished."""
        positions = {position for position in logs.values_at if position[0] == self.topic}
        for position in sorted(positions | {position for position in self.entries if position[0] == self.topic}):
            entry = self.entries[position]
            if not entry.may_be_final:
                text = f"delivered {entry.count} times" if entry.count else "never delivered"
                yield Finding(
                    "share-unfinished", f"{position_name(position)} in group {self.group} was {text} ({at_end})"
                )


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """All anomalies of share groups."""
    ledgers = {event["group"]: Ledger(event) for event in events if event.type == "share_group"}
    for event in events:
        if event.type == "restarted" or event.values.get("victim") == "broker":
            for ledger in ledgers.values():
                ledger.forget_locks(event)
        elif event.type in ("killed", "closed"):
            for ledger in ledgers.values():
                ledger.release_all(event["victim"] if event.type == "killed" else event.process)
        elif event.values.get("group") in ledgers:
            yield from _of_group(event, ledgers[event["group"]], logs)


def _of_group(event: Event, ledger: Ledger, logs: Logs) -> Iterator[Finding]:
    if event.type == "acquired":
        yield from ledger.acquired(event)
    elif event.type == "acknowledging":
        ledger.acknowledging(event)
    elif event.type == "acknowledged":
        yield from ledger.acknowledged(event)
    elif event.type == "drained":
        yield from ledger.unfinished(logs, event)
