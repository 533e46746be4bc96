"""What is raised when a recovered disk does not keep what was promised."""

from __future__ import annotations


class Broken(AssertionError):  # noqa: N818 - says what is the matter
    """A promise that was not kept."""


def require(condition: bool, what: str) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise Broken(what)
