"""Uses the minutes: begins calls while they are expected to end in time, records each, and prints what to do."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue

from tests.soak.choice import by_age, expected_s, next_seed, next_turn
from tests.soak.machine import load, load_now
from tests.soak.part import Part
from tests.soak.process import TIMED_OUT, Ended, Process, StoppedError
from tests.soak.records import ROOT, Call, Machine, Records, commit, open_failures, product_version
from tests.soak.tools import missing

WITHOUT_COUNTS = -2
NO_TESTS = 5
"""Pytest's exit code if none was chosen."""
TAIL = 20
SHOWN = 8
"""How many lines of a failed call's output are printed."""
LOGS = ROOT / "build" / "soak" / "logs"


@dataclass(frozen=True, slots=True)
class Planned:
    """A call that is to be begun."""

    part: Part
    turn: str
    seed: int
    command: str
    expected_s: float
    failed_on: str = ""
    """The commit on which it has failed, if it is run again for that."""


@dataclass(slots=True)
class Running:
    """A call that was begun."""

    planned: Planned
    process: Process
    began: datetime
    version: str
    ends: float
    """When it is expected to, on the clock of the process."""


@dataclass(slots=True)
class Outcome:
    """What a soak has done."""

    calls: list[Call] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Parts, and why they cannot be run here."""
    is_interrupted: bool = False

    @property
    def failed(self) -> list[Call]:
        """The calls that have failed."""
        return [call for call in self.calls if not call.has_passed]


class Soak:
    """Calls parts until the minutes are over; several at a time."""

    def __init__(
        self,
        parts: Sequence[Part],
        records: Records,
        machine: Machine,
        *,
        jobs: int = 1,
        has_network: bool = False,
        logs: Path = LOGS,
        load_now: Callable[[], float] = load_now,
        after_each: Callable[[], None] = lambda: None,
    ) -> None:
        """`after_each` is called when a call was recorded."""
        self._load_now = load_now
        self._parts, self._records, self._machine = parts, records, machine
        self._jobs, self._has_network, self._logs, self._after_each = jobs, has_network, logs, after_each
        self._commit = commit()
        self._running: list[Running] = []
        self._ended: SimpleQueue[tuple[Running, Ended | None] | None] = SimpleQueue()
        self._again: list[Call] = []
        self._interrupted_by = ""
        self._outcome = Outcome()
        self._began = self._deadline = time.monotonic()

    def __call__(self, minutes: float) -> Outcome:
        """Call parts for so long."""
        self._began = time.monotonic()
        self._deadline = self._began + minutes * 60
        self._again = open_failures(self._records.calls)
        while True:
            while len(self._running) < self._jobs and (planned := self._next()):
                self._begin(planned)
            if not self._running:
                return self._outcome
            ended = self._ended.get()
            if ended is None:
                self._stop()
                return self._outcome
            self._end(*ended)

    def interrupt(self, by: str = "") -> None:
        """Stop the calls that run, and return; they are not recorded. May be called by a signal handler."""
        self._interrupted_by = by
        self._ended.put(None)

    def _next(self) -> Planned | None:
        """The next call that can begin now: first calls that have failed before, then calls of the oldest part."""
        now = time.monotonic()
        if any(running.planned.part.is_alone for running in self._running):
            return None
        limit = self._deadline
        has_heavy = any(running.planned.part.is_heavy for running in self._running)
        for planned in (*self._failed_before(), *self._new()):
            if now + planned.expected_s > limit or (has_heavy and planned.part.is_heavy):
                continue
            if not self._can_run(planned.part):
                continue
            if planned.part.is_alone and self._running:
                limit = min(
                    limit, max(running.ends for running in self._running)
                )  # a call that ends by then delays nothing
                continue
            return planned
        return None

    def _failed_before(self) -> Iterator[Planned]:
        parts = {part.name: part for part in self._parts}
        for call in list(self._again):
            if call.part in parts:
                expected = self._expected_s(parts[call.part], call.turn)
                yield Planned(
                    parts[call.part], call.turn, call.seed, call.command, expected, call.commit or "a checkout"
                )

    def _new(self) -> Iterator[Planned]:
        running = [one.planned for one in self._running]
        names = {one.part.name for one in running}
        parts = by_age(self._parts, self._records.calls)
        has_failed = {call.part for call in self._outcome.failed}
        for part in sorted(parts, key=lambda part: part.name in names):
            if part.name in has_failed:
                continue
            version = self._commit or product_version()
            used = {call.seed for call in self._records.calls if call.part == part.name}
            seed = next_seed(part, version, used | {one.seed for one in running if one.part is part})
            turn = next_turn(part, seed, self._records.calls, [one.turn for one in running if one.part is part])
            yield Planned(part, turn, seed, part.command_of(seed, turn), self._expected_s(part, turn))

    def _expected_s(self, part: Part, turn: str) -> float:
        assert self._machine.calibration is not None
        return expected_s(part, turn, self._records.calls, self._machine.calibration, self._load_now())

    def _can_run(self, part: Part) -> bool:
        if part.name not in self._outcome.skipped and (reason := missing(part.needs, has_network=self._has_network)):
            self._skip(part, reason)
        return part.name not in self._outcome.skipped

    def _skip(self, part: Part, reason: str) -> None:
        self._outcome.skipped[part.name] = reason
        self._say(f"{part.name}: skipped, {reason}")

    def _begin(self, planned: Planned) -> None:
        self._again = [call for call in self._again if call.command != planned.command]
        name = f"{planned.part.name.replace('/', '-')}-{planned.seed}.log"
        began, version = datetime.now(UTC), product_version()
        again = f", has failed on {planned.failed_on}" if planned.failed_on else ""
        self._say(f"{planned.part.name}, about {planned.expected_s:.0f} s{again}: {shown(planned.command)}")
        ends = time.monotonic() + planned.expected_s
        running = Running(planned, Process(planned.command, self._logs / name), began, version, ends)
        self._running.append(running)
        threading.Thread(target=self._wait, args=(running,)).start()

    def _wait(self, running: Running) -> None:
        try:
            self._ended.put((running, running.process.wait(running.planned.part.limit_s)))
        except StoppedError:
            self._ended.put((running, None))

    def _end(self, running: Running, ended: Ended | None) -> None:
        self._running.remove(running)
        if ended is None:
            return
        call = self._call(running, ended)
        if call is None:
            self._skip(running.planned.part, skipped_because(ended.output))
            return
        self._outcome.calls.append(call)
        self._records.add(call)
        self._after_each()
        if call.has_passed:
            self._say(f"{call.part}: ok, {counted([call])} in {ended.seconds:.0f} s")
        else:
            self._tell_failure(running.planned.part, call, running.process.log, ended)

    def _call(self, running: Running, ended: Ended) -> Call | None:
        """The record of a call; None if nothing was run in it."""
        planned = running.planned
        counts = {count.name: count.read(ended.output) for count in planned.part.counts}
        lacking = [count.name for count in planned.part.counts if count.is_required and counts[count.name] is None]
        known = {name: number for name, number in counts.items() if number is not None}
        code, output = ended.code, ended.output.splitlines()
        if planned.part.is_pytest and (code == NO_TESTS or (code == 0 and not known)):
            return None
        if code == 0 and lacking:
            code = WITHOUT_COUNTS
            output.append(f"the output does not say: {', '.join(lacking)}")
        return Call(
            part=planned.part.name,
            turn=planned.turn,
            seed=planned.seed,
            command=planned.command,
            commit=self._commit,
            version=running.version,
            began=running.began.isoformat(timespec="milliseconds"),
            seconds=round(ended.seconds, 1),
            cpu_seconds=round(ended.cpu_seconds, 1),
            load=round(load(), 1),
            code=code,
            machine=self._machine,
            counts=known,
            tail=[line[:300] for line in output[-TAIL:]] if code else [],
        )

    def _tell_failure(self, part: Part, call: Call, log: Path, ended: Ended) -> None:
        why = {
            TIMED_OUT: f"it was stopped at its limit of {part.limit_s:.0f} s",
            WITHOUT_COUNTS: "its output lacks what it counts",
        }
        self._say(f"{call.part}: FAILED, {why.get(call.code, f'exit code {call.code} after {ended.seconds:.0f} s')}")
        for line in call.tail[-SHOWN:]:
            print(f"         | {line}")
        print(f"         its output: {log.relative_to(ROOT) if log.is_relative_to(ROOT) else log}")
        if ended.folder is not None:
            print(f"         its files:  {ended.folder}")
        print(f"         again:      {shown(call.command)}", flush=True)

    def _stop(self) -> None:
        """Stop what runs, all at the same time; what has ended meanwhile is recorded."""
        self._outcome.is_interrupted = True
        by = f" by {self._interrupted_by}" if self._interrupted_by else ""
        self._say(f"interrupted{by}: stopping {', '.join(running.planned.part.name for running in self._running)}")
        stops = [threading.Thread(target=running.process.stop) for running in self._running]
        for thread in stops:
            thread.start()
        for thread in stops:
            thread.join()
        while self._running:
            ended = self._ended.get()
            if ended is not None:
                self._end(*ended)

    def _say(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        print(f"[{minutes:3}:{seconds:02}] {text}", flush=True)


def shown(command: str) -> str:
    """A command that can be copied into a shell in the project's folder."""
    python = Path(sys.executable)
    if not python.is_relative_to(ROOT):
        return command
    return command.replace("python -", f"{python.relative_to(ROOT)} -", 1)


def counted(calls: Sequence[Call]) -> str:
    """The sums of what calls have counted."""
    sums: Counter[str] = Counter()
    for call in calls:
        if call.has_passed:
            sums.update(call.counts)
    return ", ".join(f"{number:,} {name}" for name, number in sums.items() if number) or "nothing counted"


def skipped_because(output: str) -> str:
    """Why pytest has run nothing, by its summary."""
    reasons = [line.rpartition(": ")[2] for line in output.splitlines() if line.startswith("SKIPPED")]
    return reasons[0] if reasons else "it has no test that can be run here"
