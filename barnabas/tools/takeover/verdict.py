"""The findings of a check: reasons against a start, and notes for the operator."""

from __future__ import annotations


class Verdict:
    """Sentences of two kinds, in the order in which they were found."""

    def __init__(self) -> None:
        self.against: list[str] = []
        """Findings by which Barnabas would not start, or would do something else than the broker before it."""
        self.notes: list[str] = []
        """Differences to the broker before it, and checks that were not possible."""

    def refuse(self, text: str) -> None:
        """Add a reason against a start."""
        self.against.append(text)

    def note(self, text: str) -> None:
        """Add a note for the operator."""
        self.notes.append(text)
