"""The kinds of runs, and one run of a kind from its seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.simulation.consumer_groups import ConsumerGroups
from tests.simulation.groups import Groups
from tests.simulation.migration import Migration
from tests.simulation.share import Share
from tests.simulation.transactions import Transactions
from tests.simulation.world import World


class Run(Protocol):
    """A run of some kind."""

    world: World

    def run(self) -> None:
        """From beginning to end."""


KINDS: dict[str, Callable[..., Run]] = {
    "consumer": ConsumerGroups,
    "groups": Groups,
    "migration": Migration,
    "share": Share,
    "transactions": Transactions,
}


class SimulationFailure(AssertionError):  # noqa: N818 - says what is the matter
    """A run in which something did not hold."""

    def __init__(self, kind: str, seed: int, run: Run, cause: BaseException) -> None:
        notes = "".join(f"\n  {note[:2000]}" for note in getattr(cause, "__notes__", ()))
        super().__init__(
            f"{kind} seed {seed} after {run.world.clock.now - 1000:.3f} s, trace {run.world.trace.digest()}: "
            f"{type(cause).__name__}: {cause}{notes}\n"
            f"replay it with: python -m tests.simulation --kind {kind} --seed {seed} --seeds 1 --tell"
        )
        self.run = run


def run(kind: str, seed: int, *, is_told: bool = False, **options: object) -> Run:
    """One run. SimulationFailure when something does not hold."""
    it = KINDS[kind](f"{kind}:{seed}", is_told=is_told, **options)
    try:
        with it.world.node.errors:
            it.run()
    except Exception as error:
        raise SimulationFailure(kind, seed, it, error) from error
    return it
