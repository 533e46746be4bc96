"""Makes a sequence small that shows a difference: leaves out steps as long as the difference stays."""

from __future__ import annotations

from collections.abc import Callable

from compat.twin.nodes import NodePair
from compat.twin.runner import Runner, Tally
from compat.twin.steps import Step


def shrunk(steps: list[Step], shows: Callable[[list[Step]], bool], tries: int = 60) -> list[Step]:
    """The smallest sequence found in so many runs: halves, quarters, then single steps are left out."""
    size = max(1, len(steps) // 2)
    while tries > 0:
        at, progress = 0, False
        while at < len(steps) and tries > 0:
            fewer = steps[:at] + steps[at + size :]
            tries -= 1
            if fewer and shows(fewer):
                steps, progress = fewer, True
            else:
                at += size
        if size == 1 and not progress:
            break
        size = max(1, size // 2)
    return steps


def script(steps: list[Step], title: str) -> str:
    """A Python file that sends the sequence to a new pair of brokers and prints the differences."""
    lines = ",\n".join(f"    {step!r}" for step in steps)
    return f'''"""{title}"""

from compat.twin.batches import Batch, Batches
from compat.twin.shrink import show
from compat.twin.steps import Saved, Step

STEPS = [
{lines},
]

if __name__ == "__main__":
    show(STEPS)
'''


def show(steps: list[Step]) -> int:
    """Run one sequence on a new pair of brokers and print the differences; how many there are."""
    with NodePair() as pair:
        found = Runner(pair, Tally()).run(steps)
    for difference in found:
        print(f"step {difference.step}: {difference}")
    print(f"{len(found)} differences in {len(steps)} requests")
    return len(found)
