"""Calls of callbacks that must not stop each other: an exception is logged, and the caller goes on with the next.

Used wherever a part of the broker calls functions that others have registered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import ParamSpec

from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError

logger = logging.getLogger("kafka.server.KafkaServer")

P = ParamSpec("P")


def call_guarded(what: str, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
    """Call `function` and return True, or log that `what` has failed with an exception and return False."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        log_failure(what, error)
        return False
    return True


def error_code_of(error: Exception) -> ErrorCode:
    """The error code that a client gets for an exception: an OSError comes from the disk, anything else is a bug."""
    if isinstance(error, KafkaError):
        return error.code
    return ErrorCode.KAFKA_STORAGE_ERROR if isinstance(error, OSError) else ErrorCode.UNKNOWN_SERVER_ERROR


def kept(error: KafkaError) -> KafkaError:
    """The error, to be kept as a value: without its traceback and its context.

    A frame whose variable is the error makes a reference cycle with it. Only the garbage collector would free the cycle
    and the objects of its frames: whole requests.
    """
    error.__traceback__ = error.__context__ = None
    return error


def answer_for(what: str, error: Exception) -> KafkaError:
    """The KafkaError that a client gets for an exception; any other exception is logged as a failure of `what`."""
    if isinstance(error, KafkaError):
        return kept(error)
    log_failure(what, error)
    return KafkaError(error_code_of(error), "The broker failed on this request; its log says why.")


def log_failure(what: str, error: Exception) -> None:
    """Log an exception: in one line if it says what has failed, otherwise, as a bug, with its traceback."""
    if isinstance(error, (OSError, KafkaError, ProtocolError, MemoryError)):
        logger.error("%s has failed: %s", what, str(error) or "out of memory")
    else:
        logger.error("%s has failed", what, exc_info=error)
