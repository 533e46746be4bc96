"""Errors that refuse a request of the control channel: an HTTP status and one sentence."""

from __future__ import annotations


class ControlError(Exception):
    """A request that cannot be done; the text is one sentence for the author of the test."""

    status = 400


class NotFoundError(ControlError):
    """An object that the request names does not exist."""

    status = 404


class WaitedTooLongError(ControlError):
    """The condition that the request waits for was not met in time."""

    status = 408
