"""Errors of the client, each with one sentence as its text. Errors answered by a broker are `KafkaError`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from typing import ParamSpec

from barnabas.wire.errors import RETRIABLE, ErrorCode, KafkaError, ProtocolError

P = ParamSpec("P")


class ClientError(Exception):
    """The operation failed."""


class Unreachable(ClientError):  # noqa: N818 (conditions, named as such)
    """No broker could be reached, or the connection to one was lost."""


class TimedOut(ClientError):  # noqa: N818 (conditions, named as such)
    """The deadline has passed."""


class TlsFailed(ClientError):  # noqa: N818 (conditions, named as such)
    """TLS cannot be spoken with a broker, or is missing; another attempt would fail as well."""


class AuthenticationFailed(ClientError):  # noqa: N818 (conditions, named as such)
    """A broker does not let the client in, or cannot be trusted; another attempt would fail as well."""


class ResponseTooLarge(ClientError):  # noqa: N818 (conditions, named as such)
    """An answer, or what is compressed in it, is larger than the caller allows; another attempt would fail as well."""


class NotFound(ClientError):  # noqa: N818 (conditions, named as such)
    """The requested object does not exist. `kind` (topic, group ...) and `name` where a name may be misspelt.

    `answer` is the error that a broker answered, if it was asked for this object alone.
    """

    def __init__(self, text: str, *, kind: str = "", name: str = "", answer: KafkaError | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.name = name
        self.answer = answer

    def __reduce__(self) -> tuple[object, ...]:
        """Errors are sent between processes of one program."""
        return NotFound, self.args, self.__dict__


class Refused(KafkaError):  # noqa: N818 (conditions, named as such)
    """An error that a broker answered: its text names the object, `message` is the broker's own or None."""

    def __init__(self, code: ErrorCode, about: str, message: str | None, hint: str | None) -> None:
        super().__init__(code, message)
        why = message or hint
        self.args = (f"{about}: {code.name}{f': {why}' if why and why != code.name else ''}",)


def no_such(kind: str, name: str | None, answer: KafkaError | None = None) -> NotFound:
    """The error for a name that does not exist."""
    return NotFound(f"there is no {kind} {name!r}", kind=kind, name=name or "", answer=answer)


def error_for(code: int, about: str, message: str | None = None, hint: str | None = None) -> KafkaError | None:
    """The error about the object named in its text, None for NONE; `hint` explains one that has no message."""
    if code == ErrorCode.NONE:
        return None
    known = code if code in ErrorCode._value2member_map_ else ErrorCode.UNKNOWN_SERVER_ERROR
    return Refused(ErrorCode(known), about, message, hint)


def raise_for(code: int, about: str, message: str | None = None, hint: str | None = None) -> None:
    """Raise the error of an answer, unless `code` is NONE; as `error_for`."""
    error = error_for(code, about, message, hint)
    if error is not None:
        raise error


def outcome_for(code: int, about: str, message: str | None = None, hint: str | None = None) -> KafkaError | None:
    """The error of one item of an answer; raised if another attempt may succeed, so that the request is repeated.

    An unknown topic is an answer: it was named by a user.
    """
    error = error_for(code, about, message, hint)
    if error is not None and error.code in RETRIABLE and error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise error
    return error


def refusal(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> KafkaError | None:
    """The error with which a broker refuses `call`; None if it succeeds. Other errors pass."""
    try:
        call(*args, **kwargs)
    except KafkaError as error:
        return error
    return None


def raise_first(outcomes: Iterable[object]) -> None:
    """Raise the first error among the outcomes of items."""
    for outcome in outcomes:
        if isinstance(outcome, KafkaError):
            raise outcome


def is_retriable(error: Exception) -> bool:
    """True if the same request may be sent again."""
    return isinstance(error, Unreachable) or (isinstance(error, KafkaError) and error.code in RETRIABLE)


class Failure(Enum):
    """What kind of failure an expected error is: an exit code of a command, a status of HTTP."""

    FAILED = "failed"
    NOT_FOUND = "not found"
    TIMED_OUT = "timed out"
    NOT_AUTHORIZED = "not authorized"
    UNREACHABLE = "unreachable"


_MISSING = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "_NOT_FOUND")
_REFUSED = ("_AUTHORIZATION_FAILED", "_AUTHENTICATION_FAILED")


def failure_of(code: ErrorCode) -> Failure:
    """The kind of an error that a broker answered."""
    if code.name.endswith(_MISSING):
        return Failure.NOT_FOUND
    if code.name.endswith(_REFUSED):
        return Failure.NOT_AUTHORIZED
    return Failure.TIMED_OUT if code is ErrorCode.REQUEST_TIMED_OUT else Failure.FAILED


def explain(error: Exception) -> tuple[str, Failure] | None:
    """One sentence and the kind of an expected error of the client or a broker; None for any other."""
    if isinstance(error, KafkaError):
        return str(error), failure_of(error.code)
    if isinstance(error, ProtocolError):
        return f"the broker's answer cannot be read: {error}", Failure.FAILED
    if not isinstance(error, ClientError):
        return None
    if isinstance(error, NotFound):
        return str(error), Failure.NOT_FOUND
    if isinstance(error, TimedOut):
        return str(error), Failure.TIMED_OUT
    if isinstance(error, AuthenticationFailed):
        return str(error), Failure.NOT_AUTHORIZED
    if isinstance(error, Unreachable):
        hint = "; 'barnabas serve' starts one" if "refused" in str(error) else ""
        return f"{error}{hint}", Failure.UNREACHABLE
    return str(error), Failure.FAILED
