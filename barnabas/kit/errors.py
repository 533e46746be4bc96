"""What a request of the control channel is refused with: a status of HTTP and one sentence."""

from __future__ import annotations


class ControlError(Exception):
    """A request that cannot be done; the text is one sentence for the author of the test."""

    status = 400


class NotFoundError(ControlError):
    """What the request names does not exist."""

    status = 404


class WaitedTooLongError(ControlError):
    """What the request waits for has not happened in time."""

    status = 408
