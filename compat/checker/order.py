"""Order: a reader goes forward without leaving out, and a sender's records stand in the order they were sent.

`int-nonmonotonic-poll` and `int-poll-skip` within one poll, `nonmonotonic-poll` and `poll-skip` from one poll to the
next of a process; where a partition was assigned or sought in between, its position begins anew.
`int-nonmonotonic-send` within one transaction, `nonmonotonic-send` from one to the next of a process. Compacted topics
are not for this checker: what was cleaned away looks skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from compat.checker.finding import Finding, partition_name
from compat.checker.history import Event
from compat.checker.logs import Logs, Outcome, Write


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Everything that is out of order."""
    yield from polls(events, logs)
    yield from sends(logs)


class Visible:
    """The offsets of each partition that a reader of some isolation has to come by."""

    def __init__(self, logs: Logs) -> None:
        self._offsets: dict[tuple[str, int, bool], list[int]] = {}
        found: dict[tuple[str, int, bool], set[int]] = defaultdict(set)
        for (topic, partition, offset), values in logs.values_at.items():
            for value, event in values.items():
                write = logs.write_at((topic, partition, offset), value)
                is_there = write is not None and logs.outcome(write) is Outcome.DONE
                if event.is_committed_read or is_there:
                    found[topic, partition, True].add(offset)
                found[topic, partition, False].add(offset)
        self._offsets = {where: sorted(offsets) for where, offsets in found.items()}

    def between(self, partition: tuple[str, int], is_committed: bool, low: int, high: int) -> list[int]:
        """Those after `low` and before `high`."""
        offsets = self._offsets.get((*partition, is_committed), [])
        return offsets[bisect_right(offsets, low) : bisect_left(offsets, high)]


def polls(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Steps of readers that go back, stay, or leave out."""
    visible = Visible(logs)
    positions: dict[tuple[str, tuple[str, int]], tuple[int, Event]] = {}
    for event in events:
        if event.type in ("assigned", "revoked"):
            for topic, partition in event["partitions"]:
                positions.pop((event.process, (topic, partition)), None)
        elif event.type == "seek":
            positions.pop((event.process, (event["topic"], event["partition"])), None)
        elif event.type == "poll":
            for topic, partition, offset, _ in event["records"]:
                reader = (event.process, (topic, partition))
                if reader in positions:
                    yield from _step(positions[reader], offset, event, (topic, partition), visible)
                positions[reader] = (offset, event)


def _step(
    before: tuple[int, Event], offset: int, event: Event, partition: tuple[str, int], visible: Visible
) -> Iterator[Finding]:
    last, earlier = before
    within = "int-" if earlier is event else ""
    told = f"{event} went from {last} to {offset} in {partition_name(*partition)}"
    if offset <= last:
        yield Finding(f"{within}nonmonotonic-poll", told)
    elif skipped := visible.between(partition, event.is_committed_read, last, offset):
        yield Finding(f"{within}poll-skip", f"{told} and left out {', '.join(map(str, skipped[:5]))}")


def sends(logs: Logs) -> Iterator[Finding]:
    """Sends of one process to one partition whose offsets are not in the order of sending."""
    last: dict[tuple[str, tuple[str, int]], Write] = {}
    for write in logs.writes:
        if write.offset is None or write.offset < 0:
            continue
        sender = (write.event.process, write.partition)
        before = last.get(sender)
        if before is not None and before.offset is not None and write.offset <= before.offset:
            within = "int-" if write.event.txn is not None and write.event.txn == before.event.txn else ""
            where = f"{write.event['value']!r} at {write.offset} of {partition_name(*write.partition)}"
            earlier = f"{before.event['value']!r} at {before.offset}, sent earlier ({before.event})"
            yield Finding(f"{within}nonmonotonic-send", f"{where}, sent by {write.event}, stands before {earlier}")
        last[sender] = write
