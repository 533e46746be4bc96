"""A client's mistake in its requests, as a test sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class BarnabasLintWarning(UserWarning):
    """A finding, as the warning of a test."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of `lint`."""

    rule: str
    """Its name, by which it is ignored: tiny-batches, retry-storm."""
    client_id: str | None
    text: str
    """What happened."""
    explanation: str
    """Its meaning and its remedy."""

    def __str__(self) -> str:
        who = f" by {self.client_id}" if self.client_id else ""
        return f"{self.rule}{who}: {self.text}. {self.explanation}"


def rules_of(ignore: str | Sequence[str]) -> list[str]:
    """The names of rules to ignore, which may be a single one."""
    return [ignore] if isinstance(ignore, str) else list(ignore)
