"""Committed offsets: an OffsetFetch after an answered commit returns that offset or a later one.

`committed-offset-regression`: a response below an offset that was committed before the request; workloads never commit
backwards. `committed-offset-invented`: a response with an offset that no client has committed. Offsets of a transaction
are valid once it has certainly committed, and must never be returned when it has not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from compat.checker.finding import Finding, partition_name
from compat.checker.history import Event
from compat.checker.logs import Logs, Outcome

Register = tuple[str, str, int]
"""Group, topic, partition."""


def findings(events: list[Event], logs: Logs) -> Iterator[Finding]:
    """Every response that contradicts the commits."""
    requested = _requested(events, logs)
    highest: dict[Register, tuple[int, Event]] = {}
    commits = sorted(_valid_commits(events, logs), key=lambda pair: pair[0])
    fetches = sorted((event for event in events if event.type == "fetched_offsets"), key=lambda event: event["since"])
    at = 0
    for fetch in fetches:
        while at < len(commits) and commits[at][0] <= fetch["since"]:
            _raise(highest, commits[at][1])
            at += 1
        yield from _check(fetch, highest, requested)


def _registers(event: Event) -> Iterator[tuple[Register, int]]:
    for topic, partition, offset in event["offsets"]:
        yield (event["group"], topic, partition), offset


def _requested(events: list[Event], logs: Logs) -> dict[Register, set[int]]:
    """The offsets that each register may have at any time."""
    requested: dict[Register, set[int]] = defaultdict(set)
    for event in events:
        if event.type == "committing_offsets" and not _is_undone(event, logs):
            for register, offset in _registers(event):
                requested[register].add(offset)
    return requested


def _is_undone(event: Event, logs: Logs) -> bool:
    return event.txn is not None and logs.outcome_of(logs.transaction(event.txn)) is Outcome.NOT_DONE


def _valid_commits(events: list[Event], logs: Logs) -> Iterator[tuple[float, Event]]:
    """Answered commits, each with the time from which it is valid."""
    for event in events:
        if event.type != "committed_offsets":
            continue
        if event.txn is None:
            yield event.at, event
        elif (ended := logs.transaction(event.txn).ended) is not None and ended.type == "committed":
            yield max(event.at, ended.at), event


def _raise(highest: dict[Register, tuple[int, Event]], commit: Event) -> None:
    for register, offset in _registers(commit):
        if offset >= highest.get(register, (-1, commit))[0]:
            highest[register] = (offset, commit)


def _check(
    fetch: Event, highest: dict[Register, tuple[int, Event]], requested: dict[Register, set[int]]
) -> Iterator[Finding]:
    for register, offset in _registers(fetch):
        group, topic, partition = register
        text = f"{fetch} found {offset} for {partition_name(topic, partition)} in group {group}"
        if register in highest and offset < highest[register][0]:
            committed, commit = highest[register]
            yield Finding("committed-offset-regression", f"{text}, but {committed} was committed before ({commit})")
        elif offset >= 0 and offset not in requested[register]:
            yield Finding("committed-offset-invented", f"{text}, which was never committed")
