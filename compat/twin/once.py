"""Runs one sequence on a new pair of brokers and prints its requests, answers and differences."""

from __future__ import annotations

from compat.twin.nodes import NodePair
from compat.twin.runner import Runner, Tally
from compat.twin.steps import Step


def show(steps: list[Step]) -> int:
    """Print the differences; how many there are."""
    with NodePair() as pair:
        found = Runner(pair, Tally()).run(steps)
    for difference in found:
        print(f"step {difference.step}: {difference}")
    print(f"{len(found)} differences in {len(steps)} requests")
    return len(found)
