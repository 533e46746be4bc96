"""Makes a sequence from its seed: a few families, an order of actions by their weights, and variations of requests."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from compat.twin.steps import Step
from compat.twin.vary import vary
from compat.twin.world import World

Action = Callable[[World], None]
FAMILIES = sorted(path.stem for path in (Path(__file__).parent / "families").glob("[a-z]*.py"))
"""Modules with `ACTIONS`: pairs of a weight and a function that adds requests to a world."""
ACTIONS_OF_A_SEQUENCE = (15, 45)
STANDARD_FAMILIES = ["configs", "fetch", "offsets", "produce", "topics", "transactions", "versions"]
STANDARD_SEEDS = (
    1, 3, 4, 14, 15, 19, 23, 29, 30, 36, 42, 43, 44, 48, 50, 51, 57, 60, 65, 66, 69, 70, 71, 72, 73, 79, 86, 89,
)  # fmt: skip
"""Sequences of these families that `make test` runs; none has acks=0, after which Kafka closes when it likes."""
VARIED = 0.2
"""How often an action is the variation of an earlier request."""


def actions_of(family: str) -> list[tuple[float, Action]]:
    """The weighted actions of a family."""
    return list(import_module(f"compat.twin.families.{family}").ACTIONS)


def sequence(seed: int, families: list[str] | None = None) -> list[Step]:
    """The steps of a seed, from some of the families, or of these."""
    world = World(seed)
    names = families or FAMILIES
    chosen = world.random.sample(names, min(len(names), world.pick(1, 2, 2, 3, 4)))
    actions = [pair for name in chosen for pair in actions_of(name)]
    world.connections = ["a"] if world.chance(0.7) else ["a", "b"]
    weights = [weight for weight, _ in actions]
    for _ in range(world.random.randint(*ACTIONS_OF_A_SEQUENCE)):
        if world.steps and world.chance(VARIED):
            vary(world)
        else:
            world.random.choices(actions, weights)[0][1](world)
    return world.steps
