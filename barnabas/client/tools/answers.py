"""Error codes of answers as exceptions, with the broker's message and nothing added."""

from __future__ import annotations

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
    """The error of an item; one that may be gone at the next attempt is raised, so that `Cluster.retry` repeats it."""
    error = error_of(code, message)
    if error is not None and error.code in RETRIABLE:
        raise error
    return error
