"""Makes the page of a scrape: in slices between the turns of the event loop, with the disks read in a thread.

One page is made at a time, and scrapes that come within `PAGE_S` share it, so that scrapers cannot take more than a
part of the broker's time, however many there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from barnabas.broker.event_loop.waiting import Task, start_later
from barnabas.broker.exporter import broker_figures
from barnabas.broker.exporter.group_figures import (
    Ends,
    ask_ends,
    group_steps,
    most_remote,
    remote_steps,
    transaction_steps,
)
from barnabas.broker.exporter.page import Page, text_of_clients
from barnabas.broker.exporter.replica_figures import replica_steps

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.metrics.meter import Meter
    from barnabas.broker.net.acceptor import Listener

R = TypeVar("R")

PAGE_S: Final = 1.0
"""How long a page is shared, seconds."""
IDLE_WINDOW_S: Final = 60.0
"""Over how long the idle part of the loop is taken, seconds, at least if there are scrapes so long ago."""


class Scraper:
    """Makes the pages of one broker."""

    def __init__(
        self, broker: Broker, meter: Meter, listeners: Sequence[Listener], connections: Mapping[str, int]
    ) -> None:
        """`connections` has the current number of connections by listener."""
        self._broker = broker
        self._meter = meter
        self._listeners = listeners
        self._connections = connections
        self._lock = trio.Lock()
        self._pieces: list[str] | None = None
        """The text of the last page, while it is shared."""
        self._busy: deque[tuple[float, float]] = deque([(broker.loop.now(), meter.turn_times.seconds)])

    async def body(self) -> AsyncGenerator[str, None]:
        """The text of /metrics, in pieces."""
        async with self._lock:
            pieces = self._pieces
            if pieces is None:
                pieces = self._pieces = await self._make()
                self._broker.loop.timers.at(self._broker.loop.now() + PAGE_S, self._forget)
        for piece in pieces:
            yield piece
        kept = self._broker.client_metrics.kept
        if kept is not None:
            for piece in text_of_clients(kept):
                yield piece

    def _forget(self) -> None:
        self._pieces = None

    async def _make(self) -> list[str]:
        broker, meter, page = self._broker, self._meter, Page()
        machine = broker_figures.Machine()
        await _in_thread(broker, partial(machine.read, broker))
        machine.add(page)
        broker_figures.add_load(page, await _called_back(broker.load.current), sum(self._connections.values()))
        broker_figures.add_listeners(page, self._listeners, self._connections)
        broker_figures.add_clients(page, broker.client_metrics)
        remote: list[tuple[str, int]] = []
        if broker.image.brokers.keys() > {broker.node_id}:
            await sliced(broker.loop, _collected(remote_steps(broker, most_remote(meter.most_labels)), remote))
        ends = await ask_ends(broker, remote) if remote else {}
        await sliced(broker.loop, all_steps(page, broker, meter, ends))
        broker_figures.add_loop(page, meter, self._idle())
        pieces: list[str] = []
        await sliced(broker.loop, _collected(page.pieces(), pieces))
        return pieces

    def _idle(self) -> float:
        """The part of the time in which the loop had nothing to do, since about a minute ago."""
        now, busy_s = self._broker.loop.now(), self._meter.turn_times.seconds
        while len(self._busy) > 1 and now - self._busy[1][0] >= IDLE_WINDOW_S:
            self._busy.popleft()
        since, busy_before = self._busy[0]
        self._busy.append((now, busy_s))
        return max(0.0, 1.0 - (busy_s - busy_before) / max(now - since, 0.001))


def all_steps(page: Page, broker: Broker, meter: Meter, ends: Ends) -> Generator[None, None, None]:
    """Add the samples of all that grows with the number of topics, groups ...; `ends` as of `ask_ends`."""
    yield from replica_steps(page, broker, meter)
    yield from group_steps(page, broker, meter.group_labels, ends)
    yield from transaction_steps(page, broker)
    yield from broker_figures.cluster_steps(page, broker)
    yield from broker_figures.request_steps(page, meter)


def _collected(items: Iterator[R | None], into: list[R]) -> Generator[None, None, None]:
    for item in items:
        if item is not None:
            into.append(item)
        yield


async def sliced(loop: Loop, steps: Generator[None, None, None]) -> None:
    """Do work between the turns of the loop; an exception of a step is raised here."""
    tasks: list[Task] = []
    try:
        await _called_back(lambda end: tasks.append(start_later(steps, loop.slices, end)))
    finally:
        tasks[0].cancel()


async def _in_thread(broker: Broker, job: Callable[[], None]) -> None:
    """Run a job that waits for a disk; an exception of it is raised here."""

    def steps() -> Steps[None]:
        yield job

    await _called_back(lambda end: broker.runner.start(steps(), end, end))


async def _called_back(begin: Callable[[Callable[[Any], None]], object]) -> Any:
    """The value that `begin` has its argument called with, now or later; an exception is raised."""
    ended = trio.Event()
    outcomes: list[Any] = []

    def end(outcome: Any) -> None:
        outcomes.append(outcome)
        ended.set()

    begin(end)
    await ended.wait()
    if isinstance(outcomes[0], Exception):
        raise outcomes[0]
    return outcomes[0]
