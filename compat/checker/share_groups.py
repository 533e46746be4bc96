"""The ledger of share groups (KIP-932): each record is held by one member at a time and comes to an end.

`share-redelivered`: delivered after its accept or reject was answered. `share-ended-twice`: accepts or rejects of two
deliveries were both answered without an error. `share-held-by-two`: delivered to a second
member while the first one's lock still held. `share-delivery-count`: a count that is not above the one before, or above
the limit. `share-unfinished`: a drained group left a record that was neither accepted, rejected nor out of deliveries.

A broker that starts again knows no locks and may have forgotten deliveries (not acknowledgements), while clients may
still hand out what they had fetched before: until the time of a lock after `killed` or `restarted` a delivery proves
nothing, and only a second end counts. What a member holds is free again when it was killed or has closed, and a record
that it releases is from the moment when it asks. An accept or reject that was asked for and not answered may have
happened.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from compat.checker.finding import Finding, place_name
from compat.checker.history import Event, Place
from compat.checker.logs import Logs

FINAL = {"accept", "reject"}


@dataclass(slots=True)
class Entry:
    """What the ledger knows of one record in one group."""

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
        self.entries: dict[Place, Entry] = defaultdict(Entry)
        self.certain_from = 0.0

    def acquired(self, event: Event) -> Iterator[Finding]:
        """A delivery."""
        for topic, partition, offset, _, count in event["records"]:
            place = (topic, partition, offset)
            entry = self.entries[place]
            if event.at >= self.certain_from:
                yield from self._delivery(event, place, entry, count)
            entry.count, entry.held_by, entry.renewed_at = count, event, event.at
            entry.may_be_final |= count >= self.limit

    def _delivery(self, event: Event, place: Place, entry: Entry, count: int) -> Iterator[Finding]:
        told = f"{place_name(place)} in group {self.group} was delivered to {event}"
        if entry.final is not None:
            yield Finding("share-redelivered", f"{told} after it had come to its end ({entry.final})")
        is_anothers = entry.held_by is not None and entry.held_by.process != event.process
        if is_anothers and event.at - entry.renewed_at < self.lock_s:
            yield Finding("share-held-by-two", f"{told} while {entry.held_by} held it")
        if not entry.count < count <= self.limit:
            yield Finding(
                "share-delivery-count", f"{told} with count {count} after {entry.count}, the limit is {self.limit}"
            )

    def acknowledging(self, event: Event) -> None:
        """An acknowledgement is asked for."""
        for topic, partition, offset, kind in event["records"]:
            entry = self.entries[topic, partition, offset]
            if kind == "release":
                entry.held_by = None
            entry.may_be_final |= kind in FINAL

    def acknowledged(self, event: Event) -> Iterator[Finding]:
        """An acknowledgement that was answered without an error."""
        for topic, partition, offset, kind in event["records"]:
            entry = self.entries[topic, partition, offset]
            if kind == "renew":
                entry.renewed_at = event.at
                continue
            if kind in FINAL:
                if entry.final is not None:
                    place = place_name((topic, partition, offset))
                    yield Finding(
                        "share-ended-twice", f"{place} in group {self.group}, by {entry.final} and by {event}"
                    )
                entry.held_by, entry.final = None, event

    def forget_locks(self, at: float) -> None:
        """The broker was killed, or has started again."""
        self.certain_from = at + self.lock_s
        for entry in self.entries.values():
            entry.held_by, entry.count = None, 0

    def release_all(self, process: str) -> None:
        """A member has left, and the broker has given back what it held."""
        for entry in self.entries.values():
            if entry.held_by is not None and entry.held_by.process == process:
                entry.held_by = None

    def unfinished(self, logs: Logs, at_end: Event) -> Iterator[Finding]:
        """Records of the topic that did not come to an end."""
        places = {place for place in logs.values_at if place[0] == self.topic}
        for place in sorted(places | {place for place in self.entries if place[0] == self.topic}):
            entry = self.entries[place]
            if not entry.may_be_final:
                told = f"delivered {entry.count} times" if entry.count else "never delivered"
                yield Finding("share-unfinished", f"{place_name(place)} in group {self.group} was {told} ({at_end})")


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Everything that the ledgers do not allow."""
    ledgers = {event["group"]: Ledger(event) for event in events if event.type == "share_group"}
    for event in events:
        if event.type == "restarted" or event.values.get("victim") == "broker":
            for ledger in ledgers.values():
                ledger.forget_locks(event.at)
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
