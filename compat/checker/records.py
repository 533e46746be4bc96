"""Each record is in the log once, at its acknowledged position, and is read only when committed.

`lost-write`, `duplicate`, `inconsistent-offsets`, `aborted-read` (G1a), `precommitted-read` and `torn-transaction`,
after the anomalies of Jepsen's analysis of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator

from compat.checker.finding import Finding, partition_name, position_name
from compat.checker.history import Event
from compat.checker.logs import Logs, Outcome, Write


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """All anomalies of single records."""
    yield from lost_writes(logs)
    yield from duplicates(logs)
    yield from inconsistent_offsets(logs)
    for event in events:
        if event.type == "poll" and event.is_committed_read:
            yield from uncommitted_reads(event, logs)


def lost_writes(logs: Logs) -> Iterator[Finding]:
    """Writes that must be in the log but were not read, although the log was read beyond them or to its end."""
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
    """torn-transaction if other writes of the transaction were read, else lost-write."""
    writes = logs.transaction(write.event.txn).writes if write.event.txn is not None else []
    return "torn-transaction" if any(map(logs.was_read, writes)) else "lost-write"


def _lost(write: Write, end: Event | None) -> str:
    where = partition_name(*write.partition) + (f"@{write.offset}" if write.offset is not None else "")
    how = f"in transaction {write.event.txn}, " if write.event.txn else ""
    until = f"though the log was read to its end {end['offset']} ({end})" if end else "though later records were read"
    return f"{write.event['value']!r} of {where}, sent by {write.event}, {how}was never read {until}"


def duplicates(logs: Logs) -> Iterator[Finding]:
    """Values at two positions of a topic, where they were read or acknowledged."""
    for topic in dict.fromkeys(topic for topic, _, _ in logs.values_at):
        positions_of = logs.positions_of(topic)
        for write in logs.writes:
            if write.position and write.sent and write.event["topic"] == topic and logs.outcome(write) is Outcome.DONE:
                positions_of[write.event["value"]].setdefault(write.position, write.sent)
        for value, positions in positions_of.items():
            if len(positions) > 1:
                text = ", ".join(
                    f"{position_name(position)} ({event})" for position, event in sorted(positions.items())
                )
                yield Finding("duplicate", f"{value!r} is at {text}")


def inconsistent_offsets(logs: Logs) -> Iterator[Finding]:
    """Positions with two values."""
    for position, values in logs.values_at.items():
        if len(values) > 1:
            text = ", ".join(f"{value!r} ({event})" for value, event in values.items())
            yield Finding("inconsistent-offsets", f"{position_name(position)} has {text}")


def uncommitted_reads(poll: Event, logs: Logs) -> Iterator[Finding]:
    """Records that a read_committed reader must not get: aborted, failed, and not yet committed ones."""
    for topic, partition, offset, value in poll["records"]:
        position = (topic, partition, offset)
        write = logs.write_at(position, value)
        if write is None:
            continue
        text = f"{value!r} of {position_name(position)}, sent by {write.event}, was read by {poll}"
        committing = logs.transaction(write.event.txn).committing if write.event.txn is not None else None
        if logs.outcome(write) is Outcome.NOT_DONE:
            yield Finding("aborted-read", f"{text}, but {_why_not(write, logs)}")
        elif committing is not None and poll.at < committing.at:
            yield Finding("precommitted-read", f"{text} before its commit was requested ({committing})")


def _why_not(write: Write, logs: Logs) -> str:
    if write.failed is not None:
        return f"its send failed ({write.failed})"
    ended = logs.transaction(write.event.txn or "").ended
    return f"its transaction was aborted ({ended})" if ended else "its commit was never requested"
