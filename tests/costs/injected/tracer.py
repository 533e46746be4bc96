"""Counts the bytecodes that each function executes, and the system calls, by thread.

CPython reports every bytecode to a trace function (`f_trace_opcodes`), in the form that the compiler has made: it does
not specialize code while it is traced. So a count depends on the source and on the version of Python only. Calls of
functions in C are reported to a profile function; `system_calls` knows which of them are system calls.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import BuiltinMethodType, CodeType, FrameType
from typing import Any

from .system_calls import system_call_of

Trace = Callable[[FrameType, str, Any], Any]


def _ignore() -> None:
    """Do nothing: the default of `called`."""


class ThreadCounts:
    """What one thread has executed."""

    def __init__(self, left_out: str, called: Callable[[], None] = _ignore) -> None:
        """Functions in files below the folder `left_out` are not counted; `called` is called at each system call."""
        self._left_out = left_out
        self._called = called
        self._traces: dict[int, Trace | None] = {}
        self._cells: list[tuple[CodeType, list[int]]] = []  # the codes are kept, so that their ids stay theirs
        self.calls: Counter[str] = Counter()

    def trace(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        """The trace function of the thread: a function begins, or a generator goes on."""
        code = frame.f_code
        try:
            trace = self._traces[id(code)]
        except KeyError:
            trace = self._traces[id(code)] = self._trace_of(code)
        if trace is not None:
            frame.f_trace_lines = False
            frame.f_trace_opcodes = True
        return trace

    def _trace_of(self, code: CodeType) -> Trace | None:
        cell = [0]
        self._cells.append((code, cell))
        if code.co_filename.startswith(self._left_out):
            return None

        def count(_frame: FrameType, event: str, _argument: object) -> Trace:
            if event == "opcode":
                cell[0] += 1
            return count

        return count

    def trace_outer(self, frame: FrameType | None) -> None:
        """Trace the functions that are in progress: they go on when the caller has returned."""
        while frame is not None:
            frame.f_trace = self.trace(frame, "call", None)
            frame = frame.f_back

    def profile(self, frame: FrameType, event: str, function: object) -> None:
        """The profile function of the thread."""
        if event == "c_call" and not frame.f_code.co_filename.startswith(self._left_out):
            assert isinstance(function, BuiltinMethodType)
            name = system_call_of(function)
            if name is not None:
                self.calls[name] += 1
                self._called()

    def bytecodes(self) -> Counter[tuple[str, str]]:
        """How many bytecodes each function has executed, by its file and its qualified name."""
        counts: Counter[tuple[str, str]] = Counter()
        for code, cell in list(self._cells):
            if cell[0]:
                counts[code.co_filename, code.co_qualname] += cell[0]
        return counts


class Counts:
    """What has been counted: bytecodes by function, system calls by name."""

    def __init__(self) -> None:
        self.bytecodes: Counter[tuple[str, str]] = Counter()
        self.calls: Counter[str] = Counter()

    def add(self, other: Counts, factor: int = 1) -> None:
        """Add what another one has, or subtract it with the factor -1."""
        for mine, theirs in ((self.bytecodes, other.bytecodes), (self.calls, other.calls)):
            for key, count in theirs.items():
                mine[key] += factor * count  # type: ignore[index]


class Tracer:
    """Counts in the thread of the loop while it is active, and in all other threads in the same time.

    Other threads are traced from their start, as tracing them cannot start later.
    """

    def __init__(self, left_out: str, called: Callable[[], None] = _ignore) -> None:
        """Functions in files below the folder `left_out` are not counted.

        `called` is called at each system call of the loop.
        """
        self._left_out = left_out
        self._called = called
        self._loop = ThreadCounts(left_out, called)
        self._others: list[ThreadCounts] = []
        self._is_active = False
        self._before = Counts()
        self._counted = Counts()

    def trace_thread(self, frame: FrameType, event: str, argument: object) -> Trace | None:
        """The first trace function of a thread (`threading.settrace`), which gets one of its own."""
        counts = ThreadCounts(self._left_out)
        self._others.append(counts)
        sys.setprofile(counts.profile)
        sys.settrace(counts.trace)
        return counts.trace(frame, event, argument)

    def profile_thread(self, frame: FrameType, event: str, argument: object) -> None:
        """The first profile function of a thread (`threading.setprofile`); `trace_thread` replaces it."""

    @property
    def is_active(self) -> bool:
        """Whether the work of the loop is counted."""
        return self._is_active

    def start(self) -> None:
        """Count from now on. The functions on the stack of the caller are in progress."""
        self._before = self._total()
        self._is_active = True
        self._loop.trace_outer(sys._getframe(1))

    def stop(self) -> None:
        """Count no longer."""
        if self._is_active:
            self._is_active = False
            self._counted.add(self._total())
            self._counted.add(self._before, -1)

    def pause(self) -> None:
        """The loop begins to wait: what happens until `resume` is not its work."""
        if self._is_active:
            sys.setprofile(None)
            sys.settrace(None)

    def resume(self) -> None:
        """The loop has waited."""
        if self._is_active:
            sys.settrace(self._loop.trace)
            sys.setprofile(self._loop.profile)

    def system_call(self, name: str) -> None:
        """The loop has made a system call through one of the functions that are left out."""
        if self._is_active:
            self._loop.calls[name] += 1
            self._called()

    def take(self) -> Counts:
        """What was counted since the last time."""
        taken, self._counted = self._counted, Counts()
        return taken

    def _total(self) -> Counts:
        total = Counts()
        for counts in (self._loop, *self._others):
            total.bytecodes.update(counts.bytecodes())
            total.calls.update(counts.calls)
        return total
