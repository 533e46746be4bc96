"""What goes wrong in a run: chosen by its seed, every run its own mixture, and all of it over when the run heals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random


class Fate(Enum):
    """What becomes of one request."""

    ANSWERED = "answered"
    LOST = "lost"
    """The connection breaks before the broker has it."""
    ANSWER_LOST = "answer lost"
    """The connection breaks before the client has the answer."""
    LATE = "late"
    """It arrives, though not before the client has given up and gone on over another connection."""


@dataclass
class Faults:
    """How likely what is, and how often what happens."""

    mean_delay_s: float = 0.001
    lost: float = 0.0
    answer_lost: float = 0.0
    late: float = 0.0
    late_s: float = 0.0
    """The most that a late request is late by."""
    broker_crashes: int = 0
    client_kills: int = 0
    client_pauses: int = 0
    broker_pauses: int = 0
    crashes_at_start: float = 0.0
    """The chance that a broker crashes again while it recovers."""

    @classmethod
    def chosen(cls, random: Random) -> Faults:
        """A mixture: each kind of fault is left out of many runs, so that others show (swarm testing)."""

        def sometimes(value: float) -> float:
            return value if random.random() < 0.5 else 0.0

        return cls(
            mean_delay_s=random.choice((0.0005, 0.002, 0.02)),
            lost=sometimes(random.choice((0.01, 0.05))),
            answer_lost=sometimes(random.choice((0.01, 0.05))),
            late=sometimes(random.choice((0.01, 0.05))),
            late_s=random.choice((3.0, 15.0)),
            broker_crashes=random.choice((0, 1, 1, 2, 3)),
            client_kills=random.choice((0, 0, 1, 2, 4)),
            client_pauses=random.choice((0, 0, 1, 2)),
            broker_pauses=random.choice((0, 0, 0, 1)),
            crashes_at_start=sometimes(0.3),
        )

    def heal(self) -> None:
        """From here on nothing goes wrong."""
        self.lost = self.answer_lost = self.late = self.crashes_at_start = 0.0

    def fate(self, random: Random) -> Fate:
        """What becomes of the next request."""
        dice = random.random()
        for fate, chance in ((Fate.LOST, self.lost), (Fate.ANSWER_LOST, self.answer_lost), (Fate.LATE, self.late)):
            if dice < chance:
                return fate
            dice -= chance
        return Fate.ANSWERED
