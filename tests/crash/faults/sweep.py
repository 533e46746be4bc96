"""Runs a history with a fault, then the broker on the disk without it, then restarts: everything must still hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import nullcontext
from copy import deepcopy
from typing import NamedTuple

from tests.crash.faults.facts import Facts, View
from tests.crash.faults.histories import HISTORIES, Begins
from tests.crash.faults.memory import MEMORY, MemoryFaults
from tests.crash.faults.session import Bugs, Session, Stopped, check_storage
from tests.crash.faults.work import Work
from tests.support.disks.broken import require
from tests.support.disks.faulty_disk import OPERATIONS, Fault, FaultyDisk

STICKY = ("EIO", "ENOSPC")
"""The faults that also stay: a disk that has died, or is full."""


class Case(NamedTuple):
    """A history and the fault in it; its text is the name that replays it."""

    history: str
    fault: Fault

    @classmethod
    def parse(cls, text: str) -> Case:
        """Parse `history:number:error`, with a plus sign behind the error for one that stays."""
        history, number, error = text.split(":")
        return cls(history, Fault(int(number), error.rstrip("+"), error.endswith("+")))

    def __str__(self) -> str:
        return f"{self.history}:{self.fault.number}:{self.fault.error}{'+' * self.fault.is_sticky}"


class SweepFailure(AssertionError):  # noqa: N818 - the name says what happened
    """A case in which something does not hold."""

    def __init__(self, case: Case, failed: list[str], cause: BaseException) -> None:
        super().__init__(
            f"{case} ({', '.join(failed[:3])}): {type(cause).__name__}: {cause}\n"
            f"replay it with: python -m tests.crash --faults --replay {case}"
        )


_prepared: dict[str, tuple[FaultyDisk, Facts]] = {}


def _prepare(name: str) -> tuple[FaultyDisk, Facts]:
    """The disk on which a history begins, made once, and the facts about it."""
    if name not in _prepared:
        history, facts = HISTORIES[name], Facts()
        session = Session(FaultyDisk({}), Bugs())
        history.prepare(Work(session, facts, 1))
        if history.is_killed:
            disk = session.content()
        else:
            require(session.stop(), "the stop after the preparation has failed")
            disk = session.disk
        _prepared[name] = disk, facts
    disk, facts = _prepared[name]
    return FaultyDisk(disk.content()), deepcopy(facts)


def _run_without_fault(name: str) -> FaultyDisk:
    """The disk of a history without a fault, which has counted its operations."""
    disk, facts = _prepare(name)
    with (bugs := Bugs()).collect():
        _work(disk, facts, bugs, name, None)
    return disk


def cases_of(name: str, error: str, operation: str) -> list[Case]:
    """The cases of a history in which the failing operation matches a regular expression."""
    seen = _run_without_fault(name).seen[error]
    return [Case(name, Fault(at, error)) for at, call in enumerate(seen, 1) if re.search(operation, call)]


def cases(name: str) -> Iterator[Case]:
    """Every case of a history."""
    disk = _run_without_fault(name)
    again, facts = _prepare(name)
    with (bugs := Bugs()).collect(), (memory := MemoryFaults()).installed():
        _work(again, facts, bugs, name, Fault(0, MEMORY), memory)
    yield from (Case(name, Fault(number, MEMORY)) for number in range(1, memory.count + 1))
    for error in OPERATIONS:
        for number in range(1, disk.counts[error] + 1):
            yield Case(name, Fault(number, error))
            if error in STICKY:
                yield Case(name, Fault(number, error, is_sticky=True))


def check(case: Case) -> None:
    """Run a case. SweepFailure."""
    disk, facts = _prepare(case.history)
    memory = MemoryFaults(case.fault.number if case.fault.error == MEMORY else 0)
    try:
        with (bugs := Bugs()).collect():
            with memory.installed() if case.fault.error == MEMORY else nullcontext():
                session = _work(disk, facts, bugs, case.history, case.fault, memory)
            memory.stop()
            disk.heal()
            require(bool(disk.failed) or memory.has_failed, "the fault has not happened")
            _check_all(session, disk, facts, bugs)
    except Exception as error:
        raise SweepFailure(case, disk.failed, error) from error


def _work(
    disk: FaultyDisk, facts: Facts, bugs: Bugs, name: str, fault: Fault | None, memory: MemoryFaults | None = None
) -> Session | None:
    """Run a history with a fault; the session, None if the broker has stopped."""
    history = HISTORIES[name]
    if history.begins is Begins.AT_START:
        disk.arm(fault)
    session: Session | None = None
    try:
        session = Session(disk, bugs)
        session.may_lack_memory = fault is not None and fault.error == MEMORY
        work = Work(session, facts, 2 if fault is not None and fault.is_sticky else 6, first=1000)
        work.shrink_segments()
        if history.begins is Begins.WITH_WORK:
            disk.arm(fault)
            if memory is not None:
                memory.start()
        history.run(work)
        if history.begins is not Begins.AT_STOP:
            return session
        disk.arm(fault)
        session.stop()
    except Stopped:
        if session is not None:
            session.release()
    return None


def _check_all(session: Session | None, disk: FaultyDisk, facts: Facts, bugs: Bugs) -> None:
    """Without the fault the broker goes on, unless its directory has failed, and each restart serves everything."""
    before: View | None = None
    if session is not None:
        try:
            before = _go_on(session, facts)
        except Stopped:
            session.release()
            session = None
    if session is not None:
        killed = Session(session.content(), bugs)
        _settle(killed)
        facts.check(killed, before)
        if session.stop() and before is not None:
            check_storage(disk, has_leftovers=True)
    again = Session(disk, bugs)
    _settle(again)
    facts.check(again, before)
    for topic, count in facts.topics.items():
        for index in range(count if topic in again.memory.broker.image.topics else 0):
            require(Work(again, facts, 1, first=9000 + index).produce(topic, index, b"0"), f"{topic} takes no records")
    view = facts.check(again)
    require(again.stop(), "the last stop has failed")
    check_storage(disk)
    facts.check(Session(disk, bugs), view)


def _go_on(session: Session, facts: Facts) -> View | None:
    """Everything that clients read once the fault is gone; None when the broker's directory is offline."""
    session.run_jobs()
    _settle(session)
    work = Work(session, facts, 6, first=5000)
    is_served = [work.produce(topic, key=b"0") for topic in facts.topics if topic not in facts.unsure_topics]
    if session.is_offline:
        return None
    require(all(is_served) or bool(session.memory.broker.partitions.offline), "a partition takes no records")
    return facts.check(session)


def _settle(session: Session) -> None:
    """Wait until transactions that have been abandoned are aborted."""
    session.wait(15.0)
    session.wait(5.0)
