"""The message and exit code of a failed command: 1 failed, 2 usage, 3 not found, 4 timeout, 5 not authorized."""

from __future__ import annotations

from barnabas.cli.connect.settings import SettingsError
from barnabas.client.errors import AuthenticationFailed, ClientError, NotFound, TimedOut, Unreachable
from barnabas.terminal.question import Declined
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError

FAILED, USAGE, NOT_FOUND, TIMED_OUT, NOT_AUTHORIZED = 1, 2, 3, 4, 5

_MISSING = ("UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "_NOT_FOUND")
_REFUSED = ("_AUTHORIZATION_FAILED", "_AUTHENTICATION_FAILED")


def exit_code(error: ErrorCode) -> int:
    """The exit code of a command that a broker refused with this error."""
    if error.name.endswith(_MISSING):
        return NOT_FOUND
    if error.name.endswith(_REFUSED):
        return NOT_AUTHORIZED
    return TIMED_OUT if error is ErrorCode.REQUEST_TIMED_OUT else FAILED


def explain(error: Exception) -> tuple[str, int] | None:
    """One sentence and an exit code for an expected error; None for a bug."""
    if isinstance(error, KafkaError):
        return str(error), exit_code(error.code)
    if isinstance(error, ClientError):
        return _client_error(error)
    if isinstance(error, SettingsError):
        return str(error), USAGE
    if isinstance(error, Declined):
        return str(error), FAILED
    if isinstance(error, ProtocolError):
        return f"the broker's answer cannot be read: {error}", FAILED
    if type(error).__module__.startswith("barnabas.supervise."):  # imported only by the commands that need it
        return str(error), FAILED
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}", FAILED
    return None


def _client_error(error: ClientError) -> tuple[str, int]:
    if isinstance(error, NotFound):
        return str(error), NOT_FOUND
    if isinstance(error, TimedOut):
        return str(error), TIMED_OUT
    if isinstance(error, AuthenticationFailed):
        return str(error), NOT_AUTHORIZED
    hint = "; 'barnabas serve' starts one" if isinstance(error, Unreachable) and "refused" in str(error) else ""
    return f"{error}{hint}", FAILED
