"""Operations on the clock of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.kit.errors import ControlError
from barnabas.kit.operations.registry import operation

if TYPE_CHECKING:
    from barnabas.kit.clusters.clock import Clock
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.values import Values

LATEST_MS: Final = 253_402_300_799_999
"""The end of the year 9999, ms since 1970."""


def _state(clock: Clock) -> object:
    return {"now_ms": clock.now_ms(), "frozen": clock.is_frozen}


@operation("clock")
async def clock(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001
    """The date, in ms since 1970, and whether time stands still."""
    return _state(cluster.clock)


@operation("clock_freeze")
async def freeze(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001
    """Let time stand still."""
    cluster.clock.freeze()
    return _state(cluster.clock)


@operation("clock_resume")
async def resume(cluster: VirtualCluster, values: Values) -> object:  # noqa: ARG001
    """Let time run again."""
    cluster.clock.resume()
    return _state(cluster.clock)


@operation("clock_advance", "seconds")
async def advance(cluster: VirtualCluster, values: Values) -> object:
    """Let time pass; answered when all that was due has happened."""
    await cluster.clock.advance(values.number("seconds", 0.0))
    return _state(cluster.clock)


@operation("clock_jump", "to_ms")
async def jump(cluster: VirtualCluster, values: Values) -> object:
    """Set the date."""
    to_ms = values.integer("to_ms")
    if not 0 <= to_ms <= LATEST_MS:
        raise ControlError("The date must be from 1970 to 9999")
    cluster.clock.jump(to_ms)
    return _state(cluster.clock)
