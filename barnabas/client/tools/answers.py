"""Error codes of answers as exceptions, with the broker's message and nothing added."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.client.cluster import Cluster
from barnabas.wire.errors import RETRIABLE, ErrorCode, KafkaError


def error_of(code: int, message: str | None = None) -> KafkaError | None:
    """The error of an item; None for NONE."""
    if code == ErrorCode.NONE:
        return None
    known = code if code in ErrorCode._value2member_map_ else ErrorCode.UNKNOWN_SERVER_ERROR
    return KafkaError(ErrorCode(known), message)


def check(code: int, message: str | None = None) -> None:
    """Raise the error of an answer, unless `code` is NONE."""
    error = error_of(code, message)
    if error is not None:
        raise error


def checked(code: int, message: str | None = None) -> KafkaError | None:
    """The error of an item; one that may be gone at the next attempt is raised, so that `Cluster.retry` repeats it.

    An unknown topic is an answer: it was named by a user.
    """
    error = error_of(code, message)
    if error is not None and error.code in RETRIABLE and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise error
    return error


def settle(cluster: Cluster, attempt: Callable[[float], KafkaError | None]) -> None:
    """Run `attempt` with retries, and raise the error that it returns."""
    error = cluster.retry(attempt)
    if error is not None:
        raise error
