"""What the test kit raises beside AssertionError."""

from __future__ import annotations


class BrokerError(RuntimeError):
    """The broker could not be started, or has ended; the text says why."""


class RefusedError(RuntimeError):
    """The broker refuses what the test asks for; the text is its sentence."""
