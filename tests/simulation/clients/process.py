"""A client process of a run. Its tasks are generators that wait for a response or for time.

    response = yield from process.ask(request, version)   # None: the connection broke, or the request timed out
    yield 0.5                                             # half a second

A process can be killed, while its requests may still arrive, or paused, as by a long garbage collection: it then
continues as if no time had passed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.broker.network import ResponseCallback
    from tests.simulation.environment import Environment

REQUEST_TIMEOUT_S = 2.0

T = TypeVar("T")
Steps: TypeAlias = "Generator[Any, Any, T]"
"""A task, or a part of one that returns a T."""

Start: TypeAlias = "Callable[[Callable[[Any], None]], None]"
"""Yielded by a task to wait for something else than time: it is called with the function that resumes the task."""


class Connection(Protocol):
    """A client's end of a connection, or of several: one request at a time."""

    incarnation: object
    """What the last response is from."""
    is_current: bool
    """Whether that is the coordinator or leader."""

    def ask(
        self,
        request: Message,
        version: int,
        on_response: ResponseCallback,
        timeout_s: float,
        *,
        may_outlive: bool = True,
    ) -> None:
        """Send a request."""

    def close(self) -> None:
        """Close the connection."""


class Links(Protocol):
    """Where a process gets its connections from."""

    def link(self, client_id: str, lane: str) -> Connection:
        """A connection for one purpose, which is opened when it is needed."""


class Process:
    """One client process."""

    def __init__(
        self,
        environment: Environment,
        network: Links,
        name: str,
        *,
        on_exit: Callable[[Process], None] = lambda process: process.kill(),
    ) -> None:
        """`on_exit` is called when the process exits by itself."""
        self.environment = environment
        self.random = environment.random
        self.name = name
        self._clock = environment.clock
        self._network = network
        self._on_exit = on_exit
        self.is_alive = True
        self.incarnation: object = 0
        """The source of the last response: the number of the broker's start, or a leadership in a cluster."""
        self.is_current = True
        """Whether the sender of the last response was the coordinator or leader all the time, and knew it. If not,
        it may have answered from stale memory, as in Kafka."""
        self._links: dict[str, Connection] = {}
        self._resumes_at = 0.0

    @property
    def is_asleep(self) -> bool:
        """Whether the process is paused."""
        return self.is_alive and self._clock.now < self._resumes_at

    def spawn(self, task: Steps[None]) -> None:
        """Start a task."""
        self._clock.after(0.0, lambda: self._step(task, None))

    def _step(self, task: Steps[None], value: Any) -> None:
        if not self.is_alive:
            task.close()
            return
        now = self._clock.now
        if now < self._resumes_at:
            self._clock.after(self._resumes_at - now, lambda: self._step(task, value))
            return
        try:
            wait = task.send(value)
        except StopIteration:
            return
        if isinstance(wait, (int, float)):
            self._clock.after(wait, lambda: self._step(task, None))
        else:
            wait(lambda result: self._step(task, result))

    def ask(
        self,
        request: Message,
        version: int,
        *,
        lane: str = "data",
        timeout_s: float = REQUEST_TIMEOUT_S,
        may_outlive: bool = True,
    ) -> Steps[Any]:
        """Send a request on the connection named `lane` and wait for the response."""
        link = self._links.get(lane)
        if link is None:
            link = self._links[lane] = self._network.link(self.name, lane)

        def start(resume: Callable[[Any], None]) -> None:
            link.ask(request, version, resume, timeout_s, may_outlive=may_outlive)

        response = yield start
        self.incarnation, self.is_current = link.incarnation, link.is_current
        return response

    def kill(self) -> None:
        """End the process; the operating system closes its connections."""
        self.is_alive = False
        self.environment.trace.note("killed", self.name)
        for link in self._links.values():
            link.close()

    def exit(self) -> None:
        """End the process by itself, on a fatal error."""
        self._on_exit(self)

    def pause(self, seconds: float) -> None:
        """Suspend the process for `seconds`; a pause within a longer one does not shorten it."""
        self.environment.trace.note("paused", self.name, seconds)
        self._resumes_at = max(self._resumes_at, self._clock.now + seconds)
