"""The simulated processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.broker.world import World
from tests.simulation.clients.process import Process
from tests.simulation.faults import Faults

if TYPE_CHECKING:
    from tests.simulation.clients.process import Steps


def test_a_pause_within_a_longer_pause_does_not_shorten_it() -> None:
    """No task resumes before the longer pause ends."""
    world = World("pauses", {}, Faults())
    process = Process(world, world.network, "member")
    resumed: dict[str, float] = {}

    def task(name: str, seconds: float) -> Steps[None]:
        yield seconds
        resumed[name] = world.clock.now

    began = world.clock.now
    process.spawn(task("due before the second pause", 0.5))
    process.spawn(task("due after both began", 1.5))
    world.run(0.25)
    process.pause(20.0)
    world.run(0.75)
    process.pause(1.0)
    world.run(18.0)
    assert process.is_asleep
    assert resumed == {}
    world.run(5.0)
    assert not process.is_asleep
    assert {moment - began for moment in resumed.values()} == {20.25}
    assert len(resumed) == 2
