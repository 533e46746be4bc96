"""Committed offsets: an OffsetFetch after an answered commit returns that offset or a later one.

`committed-offset-regression`: a response below an offset that was committed before the request; workloads never commit
backwards. A commit without an answer may take effect at any later time, also after later commits that were answered: it
may wait in the socket of a broker that was paused, and Kafka's coordinator carries it out too. So its offset may be
found. `committed-offset-invented`: a response with an offset that no client has committed. Offsets of a transaction
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
    requested, unanswered = _requested(events, logs), _unanswered(events)
    highest: dict[Register, tuple[int, Event]] = {}
    commits = sorted(_valid_commits(events, logs), key=lambda pair: pair[0])
    fetches = sorted((event for event in events if event.type == "fetched_offsets"), key=lambda event: event["since"])
    at = 0
    for fetch in fetches:
        while at < len(commits) and commits[at][0] <= fetch["since"]:
            _raise(highest, commits[at][1])
            at += 1
        yield from _check(fetch, highest, requested, unanswered)


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


def _unanswered(events: list[Event]) -> dict[Register, list[tuple[float, int]]]:
    """The commits that had no answer, or were repeated by their client before they had one, with their times."""
    open_: dict[tuple[str, str], Event] = {}
    doubtful: list[Event] = []
    for event in events:
        if event.type == "note":
            doubtful += [commit for (process, _), commit in open_.items() if process == event.process]
        elif event.type in ("committing_offsets", "committed_offsets") and event.txn is None:
            before = open_.pop((event.process, event["group"]), None)
            if event.type == "committing_offsets":
                open_[event.process, event["group"]] = event
                doubtful += [] if before is None else [before]
    unanswered: dict[Register, list[tuple[float, int]]] = defaultdict(list)
    for commit in [*doubtful, *open_.values()]:
        for register, offset in _registers(commit):
            unanswered[register].append((commit.at, offset))
    return unanswered


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
    fetch: Event,
    highest: dict[Register, tuple[int, Event]],
    requested: dict[Register, set[int]],
    unanswered: dict[Register, list[tuple[float, int]]],
) -> Iterator[Finding]:
    for register, offset in _registers(fetch):
        group, topic, partition = register
        text = f"{fetch} found {offset} for {partition_name(topic, partition)} in group {group}"
        is_late = any(at <= fetch.at and late == offset for at, late in unanswered.get(register, ()))
        if register in highest and offset < highest[register][0] and not is_late:
            committed, commit = highest[register]
            yield Finding("committed-offset-regression", f"{text}, but {committed} was committed before ({commit})")
        elif offset >= 0 and offset not in requested[register]:
            yield Finding("committed-offset-invented", f"{text}, which was never committed")
