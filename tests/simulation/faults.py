"""The faults of a run, chosen by its seed. They stop when the run heals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random


class RequestOutcome(Enum):
    """The outcome of one request."""

    DELIVERED = "delivered"
    LOST = "lost"
    """The connection breaks before the request arrives."""
    RESPONSE_LOST = "response lost"
    """The connection breaks before the response arrives."""
    LATE = "late"
    """The request arrives after the client has timed out and opened another connection."""


@dataclass
class Faults:
    """Probabilities per request, and numbers per run."""

    mean_delay_s: float = 0.001
    lost: float = 0.0
    response_lost: float = 0.0
    late: float = 0.0
    late_s: float = 0.0
    """The maximum delay of a late request."""
    broker_crashes: int = 0
    client_kills: int = 0
    client_pauses: int = 0
    broker_pauses: int = 0
    crashes_at_start: float = 0.0
    """The probability that the broker crashes again during recovery."""

    @classmethod
    def chosen(cls, random: Random) -> Faults:
        """A random mixture; each kind of fault is absent from many runs, so that others show (swarm testing)."""

        def sometimes(value: float) -> float:
            return value if random.random() < 0.5 else 0.0

        return cls(
            mean_delay_s=random.choice((0.0005, 0.002, 0.02)),
            lost=sometimes(random.choice((0.01, 0.05))),
            response_lost=sometimes(random.choice((0.01, 0.05))),
            late=sometimes(random.choice((0.01, 0.05))),
            late_s=random.choice((3.0, 15.0)),
            broker_crashes=random.choice((0, 1, 1, 2, 3)),
            client_kills=random.choice((0, 0, 1, 2, 4)),
            client_pauses=random.choice((0, 0, 1, 2)),
            broker_pauses=random.choice((0, 0, 0, 1)),
            crashes_at_start=sometimes(0.3),
        )

    def heal(self) -> None:
        """Stop all faults."""
        self.lost = self.response_lost = self.late = self.crashes_at_start = 0.0

    def outcome(self, random: Random) -> RequestOutcome:
        """Choose the outcome of the next request."""
        dice = random.random()
        for outcome, chance in (
            (RequestOutcome.LOST, self.lost),
            (RequestOutcome.RESPONSE_LOST, self.response_lost),
            (RequestOutcome.LATE, self.late),
        ):
            if dice < chance:
                return outcome
            dice -= chance
        return RequestOutcome.DELIVERED
