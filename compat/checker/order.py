"""Order: readers advance without skipping records, and records are in the log in the order in which they were sent.

`int-nonmonotonic-poll` and `int-poll-skip` are within one poll, `nonmonotonic-poll` and `poll-skip` between two polls
of a process; an assignment or seek of the partition in between resets its position. `int-nonmonotonic-send` is within
one transaction, `nonmonotonic-send` between two of a process. Compacted topics cannot be checked: removed records would
count as skipped.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator

from compat.checker.finding import Finding, partition_name
from compat.checker.history import Event
from compat.checker.logs import Logs, Outcome, Write


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """All records that were read or written out of order."""
    yield from polls(events, logs)
    yield from sends(logs)


class Visible:
    """The offsets of each partition that a reader must not skip, by isolation level."""

    def __init__(self, logs: Logs) -> None:
        self._offsets: dict[tuple[str, int, bool], list[int]] = {}
        positions: dict[tuple[str, int, bool], set[int]] = defaultdict(set)
        for (topic, partition, offset), values in logs.values_at.items():
            for value, event in values.items():
                write = logs.write_at((topic, partition, offset), value)
                is_there = write is not None and logs.outcome(write) is Outcome.DONE
                if event.is_committed_read or is_there:
                    positions[topic, partition, True].add(offset)
                positions[topic, partition, False].add(offset)
        self._offsets = {where: sorted(offsets) for where, offsets in positions.items()}

    def between(self, partition: tuple[str, int], is_committed: bool, low: int, high: int) -> list[int]:
        """The offsets after `low` and before `high`."""
        offsets = self._offsets.get((*partition, is_committed), [])
        return offsets[bisect_right(offsets, low) : bisect_left(offsets, high)]


def polls(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Readers that go back, repeat or skip an offset."""
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
    text = f"{event} went from {last} to {offset} in {partition_name(*partition)}"
    if offset <= last:
        yield Finding(f"{within}nonmonotonic-poll", text)
    elif skipped := visible.between(partition, event.is_committed_read, last, offset):
        yield Finding(f"{within}poll-skip", f"{text} and skipped {', '.join(map(str, skipped[:5]))}")


def sends(logs: Logs) -> Iterator[Finding]:
    """Records of one process in one partition whose offsets are not in the order of sending."""
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
            yield Finding(f"{within}nonmonotonic-send", f"{where}, sent by {write.event}, is before {earlier}")
        last[sender] = write
