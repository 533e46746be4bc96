"""What all parts of a run share: randomness, time, faults and the trace."""

from __future__ import annotations

from random import Random

from tests.simulation.clock import Clock
from tests.simulation.faults import Faults
from tests.simulation.trace import Trace


class Environment:
    """One for each run; `name` is the seed."""

    def __init__(self, name: str, faults: Faults | None = None, *, is_verbose: bool = False) -> None:
        self.random = Random(name)
        self.clock = Clock()
        self.trace = Trace(self.clock, is_verbose=is_verbose)
        self.faults = faults or Faults.chosen(self.random)
        self.is_healed = False
        """Whether all faults are over."""
        self.late_ends_of_generation_1 = False
        """Whether a late EndTxn of KIP-98 may arrive during a later transaction, which it would end (T9)."""
        self.newest_producers: dict[str, tuple[int, int]] = {}
        """By transactional id: the producer id and epoch of the last response; older ones are fenced (T7)."""
