"""Committed offsets of groups are registers: whoever asks after a commit was answered finds it or a later one.

`committed-offset-regression`: an answer older than what was committed before it was asked for; workloads commit
forward only. `committed-offset-invented`: an answer that nobody ever asked to be committed. Offsets of a transaction
count once it has committed for certain, and must not be seen at all when it has not.
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
    """Every answer that no register would give."""
    asked = _asked(events, logs)
    highest: dict[Register, tuple[int, Event]] = {}
    answers = sorted(_in_force(events, logs), key=lambda pair: pair[0])
    questions = sorted((event for event in events if event.type == "fetched_offsets"), key=lambda event: event["since"])
    at = 0
    for question in questions:
        while at < len(answers) and answers[at][0] <= question["since"]:
            _raise(highest, answers[at][1])
            at += 1
        yield from _answer(question, highest, asked)


def _registers(event: Event) -> Iterator[tuple[Register, int]]:
    for topic, partition, offset in event["offsets"]:
        yield (event["group"], topic, partition), offset


def _asked(events: list[Event], logs: Logs) -> dict[Register, set[int]]:
    """The offsets that may be in each register at one time or another."""
    asked: dict[Register, set[int]] = defaultdict(set)
    for event in events:
        if event.type == "committing_offsets" and not _is_undone(event, logs):
            for register, offset in _registers(event):
                asked[register].add(offset)
    return asked


def _is_undone(event: Event, logs: Logs) -> bool:
    return event.txn is not None and logs.outcome_of(logs.transaction(event.txn)) is Outcome.NOT_DONE


def _in_force(events: list[Event], logs: Logs) -> Iterator[tuple[float, Event]]:
    """Commits that were answered, with the time since when they hold."""
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


def _answer(
    question: Event, highest: dict[Register, tuple[int, Event]], asked: dict[Register, set[int]]
) -> Iterator[Finding]:
    for register, offset in _registers(question):
        group, topic, partition = register
        told = f"{question} found {offset} for {partition_name(topic, partition)} in group {group}"
        if register in highest and offset < highest[register][0]:
            committed, commit = highest[register]
            yield Finding("committed-offset-regression", f"{told}, but {committed} was committed before ({commit})")
        elif offset >= 0 and offset not in asked[register]:
            yield Finding("committed-offset-invented", f"{told}, which nobody has committed")
