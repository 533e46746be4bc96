"""The error for a recovered disk that breaks a promise."""

from __future__ import annotations


class Broken(AssertionError):  # noqa: N818 - the name says what happened
    """A promise was broken."""


def require(condition: bool, what: str) -> None:
    """Raise `Broken` unless the condition holds."""
    if not condition:
        raise Broken(what)
