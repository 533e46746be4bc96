"""How a client call fails: a sentence for a person, of three kinds. Errors a broker answers are `KafkaError`."""

from __future__ import annotations

from barnabas.wire.errors import RETRIABLE, ErrorCode, KafkaError


class ClientError(Exception):
    """The call failed; the text is one sentence."""


class Unreachable(ClientError):  # noqa: N818 (conditions, named as such)
    """No broker could be reached, or the connection to one was lost."""


class TimedOut(ClientError):  # noqa: N818 (conditions, named as such)
    """The deadline passed first."""


class NotFound(ClientError):  # noqa: N818 (conditions, named as such)
    """What was asked for does not exist."""


def raise_for(code: int, about: str, message: str | None = None) -> None:
    """Raise a `KafkaError` whose text says what it is about, unless `code` is NONE."""
    if code == ErrorCode.NONE:
        return
    known = code if code in ErrorCode._value2member_map_ else ErrorCode.UNKNOWN_SERVER_ERROR
    error = ErrorCode(known)
    said = f": {message}" if message and message != error.name else ""
    raise KafkaError(error, f"{about}: {error.name}{said}")


def is_retriable(error: Exception) -> bool:
    """True when the same request may be sent again."""
    return isinstance(error, Unreachable) or (isinstance(error, KafkaError) and error.code in RETRIABLE)
