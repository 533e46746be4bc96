"""A client of a run: tasks written as generators, which wait for an answer or for time, and know nothing else.

    answer = yield from process.ask(request, version)     # None: the connection broke, or it took too long
    yield 0.5                                             # half a second

A process can be killed, with whatever it had sent still under way, or stand still for a while as in a long garbage
collection: then it goes on as if no time had passed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tests.simulation.network import Link

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.world import World

REQUEST_TIMEOUT_S = 2.0

T = TypeVar("T")
Steps: TypeAlias = "Generator[Any, Any, T]"
"""A task, or a part of one that gives a T."""

Start: TypeAlias = "Callable[[Callable[[Any], None]], None]"
"""What a task yields to wait for something else than time: it is given the function that goes on with the result."""


class Process:
    """One client process."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.is_alive = True
        self.life = 0
        """Which life of the broker the last answer comes from."""
        self._links: dict[str, Link] = {}
        self._resumes_at = 0.0

    @property
    def is_asleep(self) -> bool:
        """Whether it stands still."""
        return self.is_alive and self.world.clock.now < self._resumes_at

    def spawn(self, task: Steps[None]) -> None:
        """Begin a task."""
        self.world.clock.after(0.0, lambda: self._step(task, None))

    def _step(self, task: Steps[None], value: Any) -> None:
        if not self.is_alive:
            task.close()
            return
        now = self.world.clock.now
        if now < self._resumes_at:
            self.world.clock.after(self._resumes_at - now, lambda: self._step(task, value))
            return
        try:
            wanted = task.send(value)
        except StopIteration:
            return
        if isinstance(wanted, (int, float)):
            self.world.clock.after(wanted, lambda: self._step(task, None))
        else:
            wanted(lambda result: self._step(task, result))

    def ask(
        self,
        request: Message,
        version: int,
        *,
        lane: str = "data",
        timeout_s: float = REQUEST_TIMEOUT_S,
        may_outlive: bool = True,
    ) -> Steps[Any]:
        """Send a request on one of the process's connections and wait for its answer."""
        link = self._links.get(lane)
        if link is None:
            link = self._links[lane] = Link(self.world, self.name)

        def start(go_on: Callable[[Any], None]) -> None:
            link.ask(request, version, go_on, timeout_s, may_outlive=may_outlive)

        answer = yield start
        self.life = link.life
        return answer

    def kill(self) -> None:
        """The process ends; its connections are closed by the system."""
        self.is_alive = False
        self.world.trace.note("killed", self.name)
        for link in self._links.values():
            link.close()

    def pause(self, seconds: float) -> None:
        """Nothing of the process happens for a while; a pause within a longer one does not cut that short."""
        self.world.trace.note("paused", self.name, seconds)
        self._resumes_at = max(self._resumes_at, self.world.clock.now + seconds)
