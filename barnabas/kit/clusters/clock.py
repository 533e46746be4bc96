"""The clock of a virtual cluster: it can be frozen, advanced, set to another date, and be let run again.

The state of its brokers uses it (`Loop.state_now`, `Loop.state_timers`, `Loop.now_ms`): timestamps, sessions,
rebalances, transactions, locks, tokens, quotas, retention, compaction. Waits within a request, idle connections and the
limits of work within a turn stay in real time, so that clients of a frozen cluster go on.

Invariants: time goes back only by `jump`, which moves the date only; timers fire in the order of their deadlines;
when `advance` returns, all that was due has happened, with the work in threads and processes that it has started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.timers import Timer, Timers
from barnabas.broker.world import wall_clock_ms
from barnabas.kit.errors import ControlError, WaitedTooLongError

if TYPE_CHECKING:
    from barnabas.broker.server import Server

RUNS: Final = 50
"""How often a periodic job runs at most in one advance; the last time is its end. Seven days have 40,000 checks for
logs to be compacted, of which the others find nothing that these do not."""
SETTLE_S: Final = 60.0
"""How long the work that an advance has started may take, seconds."""
LOOK_S: Final = 0.0002
"""How often an advance looks whether that work has ended, seconds: threads and processes have no event in common."""


class StateTimers(Timers):
    """The timers of one broker that go by the clock of its cluster. They are fired by the clock."""

    def __init__(self, clock: Clock, now: Callable[[], float], after_firing: Callable[[], None]) -> None:
        """`now` is the real clock: how long callbacks run between two turns is real time."""
        super().__init__(now, after_firing)
        self._clock = clock

    def at(self, deadline: float, callback: Callable[[], None]) -> Timer:
        """Call `callback` as soon as the clock has reached `deadline`."""
        timer = super().at(deadline, callback)
        self._clock.deadline_set(deadline)
        return timer


class ControlledLoop(Loop):
    """The loop of a broker whose state uses the clock of its cluster."""

    def __init__(self, clock: Clock, now: Callable[[], float]) -> None:
        super().__init__(now, clock.now_ms)
        self._clock = clock
        self.state_now = clock.now
        self.state_timers = StateTimers(clock, now, self.end_turn)

    async def pause(self, seconds: float, unless: trio.Event | None = None) -> None:
        """As in `Loop`, by the clock of the cluster."""
        await self._clock.pause(self.state_timers, seconds, unless)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """As in `Loop`; an advance waits for the end."""
        with self._clock.at_work():
            yield


class ClockState(NamedTuple):
    """A clock in a snapshot: how far it is ahead of the real one, or the time at which it is frozen, both in ms."""

    ahead_ms: int
    frozen_ms: int | None


class Clock:
    """The clock of one virtual cluster."""

    def __init__(self) -> None:
        self._real: Callable[[], float] = trio.current_time
        self._ahead_s = 0.0
        self._ahead_ms = 0
        self._frozen_at: float | None = None
        self._frozen_ms = 0
        self._servers: list[Server] = []
        self._loops: dict[Server, ControlledLoop] = {}
        self._scope: trio.CancelScope | None = None
        self._wakes_at = inf
        self._end: float | None = None  # of the advance in progress
        self._stride_s = 0.0
        self._awake: set[trio.lowlevel.Task] = set()  # jobs that are running
        self._working = 0
        self._advancing = trio.Lock()

    def add(self, server: Server) -> None:
        """Have the state of a server, which has not started yet, go by this clock."""
        server.world = replace(server.world, make_loop=partial(self._make_loop, server))
        self._servers.append(server)

    def remove(self, server: Server) -> None:
        """The server has ended, or has not started."""
        self._servers.remove(server)
        self._loops.pop(server, None)

    def _make_loop(self, server: Server, now: Callable[[], float], _now_ms: Callable[[], int]) -> Loop:
        self._real = now
        loop = self._loops[server] = ControlledLoop(self, now)
        return loop

    # -- called by brokers

    def now(self) -> float:
        """The monotonic clock of the state, seconds."""
        return self._real() + self._ahead_s if self._frozen_at is None else self._frozen_at

    def now_ms(self) -> int:
        """The date, ms since 1970."""
        return wall_clock_ms() + self._ahead_ms if self._frozen_at is None else self._frozen_ms

    @property
    def is_frozen(self) -> bool:
        """Whether time stands still."""
        return self._frozen_at is not None

    def deadline_set(self, deadline: float) -> None:
        """A timer was set."""
        if deadline < self._wakes_at:
            self._wakes_at = deadline
            self._set_alarm()

    async def pause(self, timers: Timers, seconds: float, unless: trio.Event | None) -> None:
        """Wait between two runs of a job; while it does not wait, an advance does not end."""
        task = trio.lowlevel.current_task()
        self._awake.discard(task)
        with trio.CancelScope() as scope:

            def wake() -> None:
                self._awake.add(task)
                scope.cancel()

            timer = timers.at(self._wake_time(seconds), wake)
            try:
                await (trio.Event() if unless is None else unless).wait()
            finally:
                timer.cancel()
        self._awake.add(task)

    def _wake_time(self, seconds: float) -> float:
        """When a job runs again: in an advance of days not at each of its intervals."""
        now = self.now()
        wake = now + seconds
        if self._end is None or wake > self._end:
            return wake
        return min(self._end, now + max(seconds, self._stride_s))

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Work that an advance waits for."""
        self._working += 1
        try:
            yield
        finally:
            self._working -= 1

    # -- called by tests

    def freeze(self) -> None:
        """Let time stand still."""
        if self._frozen_at is None:
            self._frozen_ms = self.now_ms()
            self._frozen_at = self.now()
            self._set_alarm()

    def resume(self) -> None:
        """Let time run again, from where it stands."""
        if self._frozen_at is not None:
            self._ahead_s = self._frozen_at - self._real()
            self._ahead_ms = self._frozen_ms - wall_clock_ms()
            self._frozen_at = None
            self._set_alarm()

    def jump(self, to_ms: int) -> None:
        """Set the date, ms since 1970, forward or back; timers of sessions and locks are not affected."""
        change = to_ms - self.now_ms()
        if self._frozen_at is None:
            self._ahead_ms += change
        else:
            self._frozen_ms += change

    def state(self) -> ClockState:
        """The state to give to `set_state`."""
        return ClockState(self._ahead_ms, self._frozen_ms if self.is_frozen else None)

    def set_state(self, state: ClockState) -> None:
        """Have the date that another clock has, or had when it was frozen."""
        self.resume()
        if state.frozen_ms is None:
            self._ahead_ms = state.ahead_ms
        else:
            self.freeze()
            self._frozen_ms = state.frozen_ms

    async def advance(self, seconds: float) -> None:
        """Let so much time pass, and everything happen that is due in it; whether time runs is as before.

        WaitedTooLongError if the due work does not end within `SETTLE_S`.
        """
        if seconds < 0:
            raise ControlError("Time goes forward only; clock_jump sets the date back")
        async with self._advancing:
            was_frozen = self.is_frozen
            self.freeze()
            try:
                await self._pass(seconds)
            finally:
                self._end = None
                if not was_frozen:
                    self.resume()

    async def _pass(self, seconds: float) -> None:
        start, end = self.now(), self.now() + seconds
        self._end, self._stride_s = end, seconds / RUNS
        start_ms = self._frozen_ms
        while True:
            await self.settle()
            deadline = min((loop.state_timers.next_deadline() for loop in self._loops.values()), default=inf)
            if deadline > end and self._frozen_at == end:
                return
            at = max(self.now(), min(deadline, end))
            self._frozen_at = at
            self._frozen_ms = start_ms + round((at - start) * 1000)
            self._fire(at)

    async def settle(self) -> None:
        """Wait until nothing is in progress that a timer, a job or a request has started. WaitedTooLongError."""
        with trio.move_on_after(SETTLE_S) as limit:
            await trio.lowlevel.checkpoint()
            while not self._is_quiet():  # noqa: ASYNC110 - threads, processes and turns
                await trio.sleep(LOOK_S)
        if limit.cancelled_caught:
            raise WaitedTooLongError(f"Work has not ended within {SETTLE_S:g} s")

    def _is_quiet(self) -> bool:
        return not (self._awake or self._working) and all(server.is_idle for server in self._servers)

    def _fire(self, now: float) -> None:
        for loop in list(self._loops.values()):
            loop.state_timers.fire(now)
            loop.end_turn()

    # -- while time runs

    async def run(self) -> None:
        """Fire the timers while time runs, until cancelled."""
        while True:
            self._wakes_at = min((loop.state_timers.next_deadline() for loop in self._loops.values()), default=inf)
            with trio.CancelScope() as self._scope:
                self._set_alarm()
                await trio.sleep_forever()
            self._scope = None
            if self._frozen_at is None:
                self._fire(self.now())

    def _set_alarm(self) -> None:
        """Wake `run` when the next timer is due: never while time stands still."""
        if self._scope is not None:
            self._scope.deadline = inf if self._frozen_at is not None else self._wakes_at - self._ahead_s
