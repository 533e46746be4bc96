"""The kinds of runs, and how to run one from its seed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tests.simulation.broker.world import World
from tests.simulation.cluster.coordinators import ClusterGroups, ClusterShare, ClusterTransactions
from tests.simulation.cluster.partitions import SimulatedCluster
from tests.simulation.cluster.world import ClusterWorld
from tests.simulation.groups.groups import ConsumerGroups, Groups, Migration
from tests.simulation.share.share import Share
from tests.simulation.transactions.transactions import Transactions


class Run(Protocol):
    """A run of any kind."""

    world: World | ClusterWorld

    def run(self) -> None:
        """Run from the first start of the broker to the last check."""


KINDS: dict[str, Callable[..., Run]] = {
    "cluster": SimulatedCluster,
    "cluster-groups": ClusterGroups,
    "cluster-share": ClusterShare,
    "cluster-transactions": ClusterTransactions,
    "consumer": ConsumerGroups,
    "groups": Groups,
    "migration": Migration,
    "share": Share,
    "transactions": Transactions,
}


class SimulationFailure(AssertionError):  # noqa: N818
    """A run in which a check failed."""

    def __init__(self, kind: str, seed: int, run: Run, cause: BaseException) -> None:
        notes = "".join(f"\n  {note[:2000]}" for note in getattr(cause, "__notes__", ()))
        super().__init__(
            f"{kind} seed {seed} after {run.world.clock.now - 1000:.3f} s, trace {run.world.trace.digest()}: "
            f"{type(cause).__name__}: {cause}{notes}\n"
            f"replay simulation with: python -m tests.simulation --kind {kind} --seed {seed} --seeds 1 --verbose"
            + (f" --disk-errors {run.world.disk_errors}" if run.world.disk_errors else "")
        )
        self.run = run


def run(kind: str, seed: int, *, is_verbose: bool = False, disk_errors: int = 0, **options: object) -> Run:
    """Run one seed; `disk_errors` times one operation of the disk fails. SimulationFailure when a check fails."""
    simulation = KINDS[kind](f"{kind}:{seed}", is_verbose=is_verbose, **options)
    simulation.world.disk_errors = disk_errors
    try:
        with simulation.world.node.errors:
            simulation.run()
    except Exception as error:
        raise SimulationFailure(kind, seed, simulation, error) from error
    return simulation
