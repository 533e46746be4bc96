"""Counts one kind of request after the other, in steady state."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.costs.broker import ROOT, Counts
from tests.costs.kind import Kind, Step
from tests.costs.world import WORLDS, CountedWorld, running

WARM_UP = 8
"""How often a kind is served before it counts, so that first uses import, compile and cache before."""


@dataclass(frozen=True)
class Cost:
    """The cost of one request of a kind."""

    bytecodes: float
    calls: dict[str, float]
    """System calls by name."""
    functions: dict[tuple[str, str], float]
    """Bytecodes by (file, function)."""


@dataclass(frozen=True)
class NotCounted:
    """A kind that the broker of a checkout does not serve."""

    reason: str


def count_all(kinds: Iterable[Kind], checkout: Path = ROOT) -> Iterator[tuple[Kind, Cost | NotCounted]]:
    """Count kinds, each world with one broker. NotCounted only for other checkouts than this one."""
    selected = list(kinds)
    for name in WORLDS:
        of_world = [kind for kind in selected if kind.world == name]
        if not of_world:
            continue
        with contextlib.ExitStack() as stack:
            try:
                world = stack.enter_context(running(name, checkout))
            except RuntimeError as error:
                if checkout == ROOT:
                    raise
                yield from ((kind, NotCounted(str(error))) for kind in of_world)
                continue
            for kind in of_world:
                yield kind, _counted(kind, world, may_fail=checkout != ROOT)


def _counted(kind: Kind, world: CountedWorld, *, may_fail: bool) -> Cost | NotCounted:
    try:
        return count(kind, world)
    except Exception as error:
        if not may_fail:
            raise
        return NotCounted(f"{type(error).__name__}: {error}")
    finally:
        world.broker.hold()
        world.broker.free()


def count(kind: Kind, world: CountedWorld) -> Cost:
    """Count one kind of request."""
    broker = world.broker
    steps = kind.steps(world)
    step = next(steps)
    broker.hold()
    for number in range(WARM_UP + kind.repeats):
        if number == WARM_UP:
            broker.take()
        for _ in range(kind.counted_steps):
            while not step.is_counted:
                step = steps.send(_done(step, world, kind))
            step = steps.send(_done(step, world, kind))
    counts = broker.take()
    broker.free()
    steps.close()
    world.close_clients()
    return _cost(counts, kind.repeats * kind.requests)


def _done(step: Step, world: CountedWorld, kind: Kind) -> list[Any]:
    """Do a step; the responses."""
    broker = world.broker
    if step.passes_deadlines_s:
        broker.pass_deadlines(step.passes_deadlines_s)
    if step.advances_s:
        broker.advance(step.advances_s)
    sends = [client.send(request, version, step.pieces) for client, request, version in step.sends]
    for _ in range(step.pieces - 1):
        broker.go(sum(map(next, sends)), is_counted=step.is_counted, call_s=kind.call_s)
    broker.go(sum(map(next, sends)), is_counted=step.is_counted, call_s=kind.call_s)
    readers = [client for client, _, _ in step.sends] if step.reads is None else step.reads
    return [client.read() for client in readers]


def _cost(counts: Counts, requests: int) -> Cost:
    return Cost(
        counts.bytecodes / requests,
        {name: number / requests for name, number in counts.calls.items()},
        {function: number / requests for function, number in counts.functions.items()},
    )
