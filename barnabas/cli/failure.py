"""The message and exit code of a failed command: 1 failed, 2 usage, 3 not found, 4 timeout, 5 not authorized."""

from __future__ import annotations

from barnabas.cli.settings import SettingsError
from barnabas.client.errors import ClientError, NotFound, TimedOut, Unreachable
from barnabas.terminal.question import Declined
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError

FAILED, USAGE, NOT_FOUND, TIMED_OUT, NOT_AUTHORIZED = 1, 2, 3, 4, 5

_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND: NOT_FOUND,
    ErrorCode.RESOURCE_NOT_FOUND: NOT_FOUND,
    ErrorCode.REQUEST_TIMED_OUT: TIMED_OUT,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: NOT_AUTHORIZED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: NOT_AUTHORIZED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: NOT_AUTHORIZED,
    ErrorCode.SASL_AUTHENTICATION_FAILED: NOT_AUTHORIZED,
}


def explain(error: Exception) -> tuple[str, int] | None:
    """One sentence and an exit code for an expected error; None for a bug."""
    if isinstance(error, KafkaError):
        return str(error), _CODES.get(error.code, FAILED)
    if isinstance(error, ClientError):
        return _client_error(error)
    if isinstance(error, SettingsError):
        return str(error), USAGE
    if isinstance(error, Declined):
        return str(error), FAILED
    if isinstance(error, ProtocolError):
        return f"the broker's answer cannot be read: {error}", FAILED
    if isinstance(error, OSError):
        return f"{error.filename or 'input or output'}: {error.strerror or error}", FAILED
    return None


def _client_error(error: ClientError) -> tuple[str, int]:
    if isinstance(error, NotFound):
        return str(error), NOT_FOUND
    if isinstance(error, TimedOut):
        return str(error), TIMED_OUT
    hint = "; 'barnabas serve' starts one" if isinstance(error, Unreachable) and "refused" in str(error) else ""
    return f"{error}{hint}", FAILED
