"""The errors that the test kit raises beside AssertionError."""

from __future__ import annotations


class BrokerError(RuntimeError):
    """The broker could not be started, or has ended; the text says why."""


class SeedError(ValueError):
    """A seed file cannot be read, or a line of it is no record."""


class RefusedError(RuntimeError):
    """The broker refuses an operation of the test; the text is its sentence."""
