"""What the simulated processes must do for a run to tell the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.faults import Faults
from tests.simulation.process import Process
from tests.simulation.world import World

if TYPE_CHECKING:
    from tests.simulation.process import Steps


def test_all_tasks_of_a_process_stand_still_together_when_a_shorter_pause_falls_into_a_longer_one() -> None:
    """None of them goes on before the longer one is over, nor is the process awake before that."""
    world = World("pauses", {}, Faults())
    process = Process(world, "member")
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
