"""What a checker found: the kind of anomaly and one line that tells where it shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One anomaly."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def partition_name(topic: str, partition: int) -> str:
    """How a partition is written in findings."""
    return f"{topic}-{partition}"


def place_name(place: tuple[str, int, int]) -> str:
    """How a place in a log is written in findings."""
    topic, partition, offset = place
    return f"{topic}-{partition}@{offset}"
