"""Errors of the client, each with one sentence as its text. Errors answered by a broker are `KafkaError`."""

from __future__ import annotations

from barnabas.wire.errors import RETRIABLE, ErrorCode, KafkaError


class ClientError(Exception):
    """The operation failed."""


class Unreachable(ClientError):  # noqa: N818 (conditions, named as such)
    """No broker could be reached, or the connection to one was lost."""


class TimedOut(ClientError):  # noqa: N818 (conditions, named as such)
    """The deadline has passed."""


class NotFound(ClientError):  # noqa: N818 (conditions, named as such)
    """The requested object does not exist. `kind` (topic, group ...) and `name` where a name may be misspelt."""

    def __init__(self, text: str, *, kind: str = "", name: str = "") -> None:
        super().__init__(text)
        self.kind = kind
        self.name = name


def no_such(kind: str, name: str | None) -> NotFound:
    """The error of a name that nothing of this kind has."""
    return NotFound(f"there is no {kind} {name!r}", kind=kind, name=name or "")


def raise_for(code: int, about: str, message: str | None = None) -> None:
    """Raise a `KafkaError` about the object named in its text, unless `code` is NONE."""
    if code == ErrorCode.NONE:
        return
    known = code if code in ErrorCode._value2member_map_ else ErrorCode.UNKNOWN_SERVER_ERROR
    error = ErrorCode(known)
    said = f": {message}" if message and message != error.name else ""
    raise KafkaError(error, f"{about}: {error.name}{said}")


def is_retriable(error: Exception) -> bool:
    """True if the same request may be sent again."""
    return isinstance(error, Unreachable) or (isinstance(error, KafkaError) and error.code in RETRIABLE)
