"""The message and exit code of a failed command: 1 failed, 2 usage, 3 not found, 4 timeout, 5 not authorized."""

from __future__ import annotations

from barnabas.cli.connect.settings import SettingsError
from barnabas.client import errors
from barnabas.client.errors import Failure
from barnabas.terminal.question import Declined
from barnabas.wire.errors import ErrorCode

FAILED, USAGE, NOT_FOUND, TIMED_OUT, NOT_AUTHORIZED = 1, 2, 3, 4, 5
EXIT_CODES = {
    Failure.FAILED: FAILED,
    Failure.UNREACHABLE: FAILED,
    Failure.NOT_FOUND: NOT_FOUND,
    Failure.TIMED_OUT: TIMED_OUT,
    Failure.NOT_AUTHORIZED: NOT_AUTHORIZED,
}


def exit_code(error: ErrorCode) -> int:
    """The exit code of a command that a broker refused with this error."""
    return EXIT_CODES[errors.failure_of(error)]


def explain(error: Exception) -> tuple[str, int] | None:
    """One sentence and an exit code for an expected error; None for a bug."""
    of_client = errors.explain(error)
    if of_client is not None:
        return of_client[0], EXIT_CODES[of_client[1]]
    if isinstance(error, SettingsError):
        return str(error), USAGE
    if isinstance(error, Declined):
        return str(error), FAILED
    if type(error).__module__.startswith("barnabas.supervise."):  # imported only by the commands that need it
        return str(error), FAILED
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}", FAILED
    return None
