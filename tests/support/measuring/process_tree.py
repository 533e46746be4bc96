"""The processes of a test run, from /proc: the CPU seconds of a tree, and which kinds of processes were started.

Linux only. Once a parent has waited for a child that has ended, its CPU time includes the child's. If the parent ends
first, the child's CPU time is lost to the tree (`Watcher` keeps it).
"""

from __future__ import annotations

import os
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
INTERVAL_S = 0.2
"""How often the watcher looks: a process that lives shorter may be missed."""

KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("forked run", r"tests\.support\.processes\.fork_server"),
        ("Spark session", r"java .*(org\.apache\.spark|pyspark)"),
        ("Maven", r"java .*(classworlds|maven)"),
        ("JVM", r"(^|/)java "),
        ("pip", r"-m pip |/pip3? |-m build |pip/__pip-runner__"),
        ("Spark's Python worker", r"pyspark[./]daemon"),
        ("pytest", r"-m pytest|/pytest |^pytest "),
        ("test worker", r"import sys;exec\(eval\(sys\.stdin\.readline"),
        ("cluster", r"barnabas(\.cli)? serve .*--brokers"),
        ("broker", r"barnabas(\.cli|\.broker)? (serve|controller)|barnabas\.broker|tests\.support\.processes\.warm"),
        ("cleaner", r"cleaner_worker|cleaning"),
        ("barnabas command", r"(-m barnabas|bin/barnabas)"),
        ("Go", r"/go |go-build|franz"),
        ("kcat", r"kcat|kafkacat"),
        ("Python", r"python"),
    )
)
"""The kinds of processes, the first that matches: a name, and what the command line contains."""


@dataclass(slots=True)
class Process:
    """One row of /proc."""

    pid: int
    parent: int
    started: int
    """Clock ticks since the machine's start; with the pid it identifies the process."""
    own_s: float
    """CPU seconds of the process itself."""
    with_ended_s: float
    """CPU seconds of the process and of its children that have ended."""


def running() -> dict[int, Process]:
    """All processes by pid. Empty where there is no /proc."""
    if not PROC.is_dir():
        return {}
    rows = (_read(int(name)) for name in os.listdir(PROC) if name.isdigit())  # noqa: PTH208 - paths take four times as long
    return {process.pid: process for process in rows if process is not None}


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    user, system, ended_user, ended_system = (int(field) for field in fields[11:15])
    own = (user + system) / TICKS
    return Process(pid, int(fields[1]), int(fields[19]), own, own + (ended_user + ended_system) / TICKS)


def descendants(processes: dict[int, Process], root: int, without: Collection[int] = frozenset()) -> Iterator[Process]:
    """The process `root` and its descendants, except the processes in `without` and their descendants."""
    children = defaultdict(list)
    for process in processes.values():
        children[process.parent].append(process.pid)
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        if pid in processes and pid not in without:
            yield processes[pid]
            waiting.extend(children[pid])


def tree_seconds(root: int, without: Collection[int] = frozenset()) -> float:
    """The CPU seconds of `root` and its descendants, ended ones included, except `without` and their descendants."""
    return sum(process.with_ended_s for process in descendants(running(), root, without))


def kind_of(command: str) -> str:
    """The kind of process that a command line starts, one of `KINDS` or `other`."""
    return next((name for name, pattern in KINDS if pattern.search(command)), "other")


class Watcher:
    """Looks at the processes below this one again and again, in a thread, and remembers each that it has seen."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], tuple[str, float]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watcher", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look once more, and no more."""
        self._over.set()
        self._thread.join()

    def counts(self) -> dict[str, tuple[int, float]]:
        """For each kind, how many processes were started, and their CPU seconds as last seen."""
        sums: dict[str, tuple[int, float]] = {}
        for command, seconds in self._seen.values():
            number, before = sums.get(kind := kind_of(command), (0, 0.0))
            sums[kind] = (number + 1, before + seconds)
        return sums

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL_S):
            self._look()
        self._look()

    def _look(self) -> None:
        processes = running()
        ours = {process.pid: process for process in descendants(processes, os.getpid())}
        for pid, started in list(self._seen):
            if pid not in ours and pid in processes and processes[pid].started == started:
                ours[pid] = processes[pid]  # its parent has ended
        for process in ours.values():
            if process.pid != os.getpid():
                key = process.pid, process.started
                command = self._seen[key][0] if key in self._seen else ""
                # Between fork and exec a process has the command line of its parent.
                self._seen[key] = (_command(process.pid) or command, process.own_s)


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(4096).replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
