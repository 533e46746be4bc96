"""A part of the proof by volume: which command proves it, and what its output counts."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """A number in the output of a call: the sum of the first groups of all matches of `pattern`."""

    name: str
    pattern: str
    is_required: bool = True
    """Whether a call without a match has failed; faults that a plan does not have are not printed."""

    def read(self, output: str) -> int | None:
        """The number; None if nothing matches."""
        numbers = re.findall(self.pattern, output, re.MULTILINE)
        return sum(int(number.replace(",", "")) for number in numbers) if numbers else None


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of evidence. A call is one run of its command with a seed of its own."""

    name: str
    shows: str
    """What its name does not say."""
    command: str
    """With `{seed}` and `{turn}`, after variables of the environment. It exits with 0 only if nothing was found."""
    counts: tuple[Count, ...]
    seconds: float
    """What a call takes on two slow cores; used until calls are on record."""
    turns: tuple[str, ...] = ("",)
    """What the calls take turns with: parts of a list that is too long for one call."""
    limit_s: float = 600.0
    """A call that takes longer is stopped and has failed."""
    is_alone: bool = False
    """Whether it needs the machine for itself: waits that are compared by the clock."""
    is_heavy: bool = False
    """Whether it takes gigabytes of memory: several JVMs, Spark. Only one such part runs at a time."""
    needs: tuple[str, ...] = ()
    """Programs, `history` (of the repository) or `network`."""
    is_pytest: bool = False
    """Whether the command runs pytest: a call in which every test was skipped proves nothing."""

    def command_of(self, seed: int, turn: str) -> str:
        """The command of a call."""
        return self.command.format(seed=seed, turn=turn)
