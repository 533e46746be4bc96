"""A kind of request that is counted: its preparation, and the step that is repeated."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.costs.client import Client
    from tests.costs.world import CountedWorld


@dataclass(frozen=True)
class Step:
    """Requests that arrive together. The step ends when the responses were read and the broker has nothing to do."""

    sends: Sequence[tuple[Client, Message, int]]
    """Clients, requests and versions."""
    reads: Sequence[Client] | None = None
    """Whose responses are read; None: of all that send."""
    is_counted: bool = True
    pieces: int = 1
    """In how many pieces the bytes of a request arrive: the next one when the broker has read the one before."""
    advances_s: float = 0.0
    """By how much the clocks are set forward before the broker goes on."""
    passes_deadlines_s: float = 0.0
    """The clocks are set forward, past periodic jobs, until none is due in so many seconds."""


Steps = Generator[Step, list[Any], None]
"""Prepares with a free broker until its first step, and has an endless number of steps. It gets the responses."""


@dataclass(frozen=True)
class Kind:
    """One row of the table."""

    name: str
    world: str
    """The broker that serves it (`tests.costs.world`)."""
    steps: Callable[[CountedWorld], Steps]
    requests: int = 1
    """How many requests are counted together: a step has so many of equal ones."""
    counted_steps: int = 1
    """In how many steps a request of this kind is served."""
    repeats: int = 32
    """How often it is counted. The mean is taken, so that occasional work has its share."""
    call_s: float = 0.0
    """By how much each system call sets the clocks of the broker forward, seconds; else they stand."""


def one_client(client: Client, request: Message, version: int) -> Step:
    """One request, counted, and its response."""
    return Step([(client, request, version)])
