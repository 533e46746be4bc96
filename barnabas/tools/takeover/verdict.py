"""What a check has found: what stands against a start, and what the operator should know of."""

from __future__ import annotations


class Verdict:
    """Sentences of two kinds, in the order in which they were found."""

    def __init__(self) -> None:
        self.against: list[str] = []
        """Barnabas would not start, or would do something else than the broker before it."""
        self.notes: list[str] = []
        """What will be different, or could not be asked."""

    def refuse(self, text: str) -> None:
        """Add a sentence that stands against it."""
        self.against.append(text)

    def note(self, text: str) -> None:
        """Add a sentence to know."""
        self.notes.append(text)
