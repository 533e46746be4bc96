"""Each record once, where it was said to be, and only when it was committed.

`lost-write`, `duplicate`, `inconsistent-offsets`, `aborted-read` (G1a), `precommitted-read` and `torn-transaction`,
after the anomalies of Jepsen's analysis of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from compat.checker.finding import Finding, partition_name, place_name
from compat.checker.history import Event
from compat.checker.logs import Logs, Outcome, Write


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Everything that is wrong with single records."""
    yield from lost_writes(logs)
    yield from duplicates(logs)
    yield from inconsistent_offsets(logs)
    for event in events:
        if event.type == "poll" and event.is_committed_read:
            yield from unfit_reads(event, logs)


def lost_writes(logs: Logs) -> Iterator[Finding]:
    """A write that must be there, in a log that was read beyond it or to its end, and nobody has read it."""
    for write in logs.writes:
        if logs.outcome(write) is not Outcome.DONE or logs.was_read(write):
            continue
        end = logs.ends.get(write.partition)
        if end is not None or _was_read_beyond(write, logs):
            yield Finding(_kind(write, logs), _lost(write, end))


def _was_read_beyond(write: Write, logs: Logs) -> bool:
    is_committed = write.event.txn is not None and write.event["topic"] in logs.committed_topics
    return write.offset is not None and write.offset < logs.highest.get((*write.partition, is_committed), -1)


def _kind(write: Write, logs: Logs) -> str:
    """A transaction of which some was read and some was not is torn."""
    writes = logs.transaction(write.event.txn).writes if write.event.txn is not None else []
    return "torn-transaction" if any(map(logs.was_read, writes)) else "lost-write"


def _lost(write: Write, end: Event | None) -> str:
    where = partition_name(*write.partition) + (f"@{write.offset}" if write.offset is not None else "")
    how = f"in transaction {write.event.txn}, " if write.event.txn else ""
    until = f"though the log was read to its end {end['offset']} ({end})" if end else "though later records were read"
    return f"{write.event['value']!r} of {where}, sent by {write.event}, {how}was never read {until}"


def duplicates(logs: Logs) -> Iterator[Finding]:
    """One value at two places of a topic, where readers found it or where it was said to be for certain."""
    for topic in dict.fromkeys(topic for topic, _, _ in logs.values_at):
        places_of = logs.places_of(topic)
        for write in logs.writes:
            if write.place and write.sent and write.event["topic"] == topic and logs.outcome(write) is Outcome.DONE:
                places_of[write.event["value"]].setdefault(write.place, write.sent)
        for value, places in places_of.items():
            if len(places) > 1:
                told = ", ".join(f"{place_name(place)} ({event})" for place, event in sorted(places.items()))
                yield Finding("duplicate", f"{value!r} is at {told}")


def inconsistent_offsets(logs: Logs) -> Iterator[Finding]:
    """Two values at one place."""
    for place, values in logs.values_at.items():
        if len(values) > 1:
            told = ", ".join(f"{value!r} ({event})" for value, event in values.items())
            yield Finding("inconsistent-offsets", f"{place_name(place)} holds {told}")


def unfit_reads(poll: Event, logs: Logs) -> Iterator[Finding]:
    """What a reader of committed records must not have seen: the aborted, the failed, and the not yet committed."""
    for topic, partition, offset, value in poll["records"]:
        place = (topic, partition, offset)
        write = logs.write_at(place, value)
        if write is None:
            continue
        told = f"{value!r} of {place_name(place)}, sent by {write.event}, was read by {poll}"
        committing = logs.transaction(write.event.txn).committing if write.event.txn is not None else None
        if logs.outcome(write) is Outcome.NOT_DONE:
            yield Finding("aborted-read", f"{told}, but {_why_not(write, logs)}")
        elif committing is not None and poll.at < committing.at:
            yield Finding("precommitted-read", f"{told} before its commit was asked for ({committing})")


def _why_not(write: Write, logs: Logs) -> str:
    if write.failed is not None:
        return f"its send failed ({write.failed})"
    ended = logs.transaction(write.event.txn or "").ended
    return f"its transaction was aborted ({ended})" if ended else "its commit was never asked for"
