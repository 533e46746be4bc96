"""A finding of the checker: the kind of anomaly, and one line that describes it."""

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
    """The text of a partition."""
    return f"{topic}-{partition}"


def position_name(position: tuple[str, int, int]) -> str:
    """The text of a position in a log."""
    topic, partition, offset = position
    return f"{topic}-{partition}@{offset}"
