"""The counting itself: bytecodes of functions that are known, system calls, threads, and clocks that stand."""

from __future__ import annotations

import dis
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.costs.injected.clock import Clock
from tests.costs.injected.system_calls import system_call_of
from tests.costs.injected.tracer import Counts, Tracer
from tests.costs.python import why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())
INJECTED = str(Path(__file__).parent / "injected")


def _counted(work: Callable[[], object], left_out: str = INJECTED) -> Counts:
    """What `work` executes, counted as in the thread of a broker's loop."""
    tracer = Tracer(left_out)
    counts: list[Counts] = []

    def loop() -> None:
        before = sys.gettrace(), sys.getprofile()
        tracer.start()
        tracer.resume()
        work()
        tracer.pause()
        tracer.stop()
        sys.settrace(before[0])
        sys.setprofile(before[1])
        counts.append(tracer.take())

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    return counts[0]


def _bytecodes_of(work: Callable[[], object], function: Callable[..., object]) -> int:
    code = function.__code__
    return _counted(work).bytecodes[code.co_filename, code.co_qualname]


def straight(a: int) -> int:
    b = a + 1
    return b * b


def loop_of(count: int) -> int:
    total = 0
    for number in range(count):
        total += number
    return total


def pairs(count: int) -> Iterator[int]:
    for number in range(count):
        yield number * number


def fails() -> None:
    raise ValueError("no")


def test_a_function_without_branches_executes_each_of_its_instructions_once() -> None:
    instructions = [instruction.opname for instruction in dis.get_instructions(straight)]
    assert instructions[0] == "RESUME"  # it is the call, which is not counted
    assert _bytecodes_of(lambda: straight(3), straight) == len(instructions) - 1 == 8


def test_each_turn_of_a_loop_costs_the_same() -> None:
    ten, twenty, thirty = (_bytecodes_of(partial(loop_of, count), loop_of) for count in (10, 20, 30))
    assert thirty - twenty == twenty - ten == 10 * 7  # instructions a turn


def test_a_count_does_not_depend_on_how_often_a_function_has_run() -> None:
    first = _bytecodes_of(lambda: straight(3), straight)
    for _ in range(1000):
        straight(3)  # CPython specializes its code
    assert _bytecodes_of(lambda: straight(3), straight) == first


def test_a_function_that_is_called_again_counts_again() -> None:
    once = _counted(lambda: straight(3))
    twice = _counted(lambda: straight(straight(3)))
    here = (__file__, "straight")
    assert twice.bytecodes[here] == 2 * once.bytecodes[here]
    assert twice.bytecodes.total() > once.bytecodes.total() + once.bytecodes[here]


def test_generators_and_exceptions_are_counted() -> None:
    assert _bytecodes_of(lambda: list(pairs(20)), pairs) > _bytecodes_of(lambda: list(pairs(10)), pairs)

    def caught() -> None:
        try:
            fails()
        except ValueError:
            pass

    assert _bytecodes_of(caught, fails) == 5


def test_functions_below_the_folder_that_is_left_out_are_not_counted() -> None:
    counts = _counted(lambda: straight(os.getpid()), left_out=str(Path(__file__).parent))
    assert not counts.bytecodes
    assert not counts.calls


def test_what_happens_while_the_loop_waits_is_not_counted() -> None:
    tracer = Tracer(INJECTED)
    counts: list[Counts] = []

    def loop() -> None:
        tracer.start()
        tracer.resume()
        tracer.pause()
        straight(1)
        os.getpid()
        tracer.resume()
        tracer.pause()
        tracer.stop()
        counts.append(tracer.take())

    thread = threading.Thread(target=loop)
    thread.start()
    thread.join()
    assert counts[0].bytecodes[__file__, "straight"] == 0
    assert not counts[0].calls


def test_system_calls_are_counted_by_their_names() -> None:
    near, other = socket.socketpair()

    def work() -> None:
        near.send(b"abc")
        near.send(b"def")
        other.recv_into(bytearray(10))
        os.fstat(near.fileno())
        os.fspath("x")
        time.sleep(0)
        len("x")
        time.monotonic()

    with near, other:
        counts = _counted(work)
    assert counts.calls == {"sendto": 2, "recvfrom": 1, "fstat": 1, "clock_nanosleep": 1}


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (os.pwrite, "pwrite64"),
        (os.sendfile, "sendfile"),
        (os.fdatasync, "fdatasync"),
        (os.urandom, "getrandom"),
        (open, "openat"),
        (os.strerror, None),
        (len, None),
        ({}.get, None),
    ],
)
def test_what_a_function_in_c_is_called(function: Any, name: str | None) -> None:
    assert system_call_of(function) == name


def test_the_work_of_other_threads_is_counted() -> None:
    tracer = Tracer(INJECTED)
    begins, ended = threading.Event(), threading.Event()

    def other() -> None:
        begins.wait()
        straight(1)
        os.getppid()
        ended.set()

    before = threading.gettrace(), threading.getprofile()
    threading.settrace(tracer.trace_thread)
    threading.setprofile(tracer.profile_thread)
    try:
        thread = threading.Thread(target=other)
        thread.start()
    finally:
        threading.settrace(before[0])
        threading.setprofile(before[1])
    tracer.start()
    begins.set()
    ended.wait()
    thread.join()
    tracer.stop()
    counts = tracer.take()
    assert counts.bytecodes[__file__, "straight"] == 8
    assert counts.calls["getppid"] == 1


def test_clocks_stand_can_be_advanced_and_go_on_from_there() -> None:
    clock = Clock()
    clock.stop()
    began = clock.read("monotonic")
    time.sleep(0.01)
    assert clock.read("monotonic") == began
    clock.advance(5)
    assert clock.read("monotonic") == began + 5
    clock.call_s = 0.5
    clock.called()
    assert clock.read("monotonic") == began + 5.5
    clock.go_on()
    assert began + 5.5 <= clock.read("monotonic") < began + 6.5


def test_only_a_clock_that_costs_a_system_call_is_one() -> None:
    clock = Clock()
    names: list[str] = []
    clock.system_call = names.append
    clock.read("perf_counter")
    clock.thread_time()
    assert names == ["clock_gettime"]
