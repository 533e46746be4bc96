"""Errors as answers: a status of HTTP and one sentence. Everything unexpected is 500 and logged with its traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from starlette.exceptions import HTTPException

from barnabas.client.errors import Failure, TimedOut, Unreachable, explain, failure_of
from barnabas.console.values import BadInput
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

T = TypeVar("T")

log = logging.getLogger(__name__)

STATUSES = {
    Failure.FAILED: HTTPStatus.BAD_REQUEST,
    Failure.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Failure.TIMED_OUT: HTTPStatus.GATEWAY_TIMEOUT,
    Failure.NOT_AUTHORIZED: HTTPStatus.FORBIDDEN,
    Failure.UNREACHABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}
CONFLICTS = ("_ALREADY_EXISTS", "NON_EMPTY_GROUP", "REASSIGNMENT_IN_PROGRESS", "ELECTION_NOT_NEEDED")
DETAILS_S = 3.0
"""How long a page waits for brokers that tell what it can do without, seconds."""
BROKEN = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)


class Refused(Exception):  # noqa: N818 (as the client's errors)
    """A request that the console itself refuses; the text is one sentence."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


def unless_refused(question: Callable[[], T], otherwise: T) -> T:
    """The answer to a question that the user may not be allowed to ask; `otherwise` if so."""
    try:
        return question()
    except KafkaError as error:
        if failure_of(error.code) is not Failure.NOT_AUTHORIZED:
            raise
        return otherwise


def unless_unreachable(cluster: Cluster, question: Callable[[], T], otherwise: T) -> tuple[T, str]:
    """The answer to a question to all brokers, and no text; `otherwise` and a sentence if one is not reached.

    For what a page can do without: it waits for `DETAILS_S` at most.
    """
    before, cluster.timeout_s = cluster.timeout_s, min(cluster.timeout_s, DETAILS_S)
    try:
        return question(), ""
    except (Unreachable, TimedOut) as error:
        return otherwise, str(error)
    finally:
        cluster.timeout_s = before


class Answer(NamedTuple):
    """What a failed request is answered."""

    status: HTTPStatus
    text: str


def answer(error: Exception) -> Answer:
    """The answer to a request that failed with `error`."""
    if isinstance(error, Refused):
        return Answer(error.status, str(error))
    if isinstance(error, BadInput):
        return Answer(HTTPStatus.BAD_REQUEST, str(error))
    if isinstance(error, HTTPException):
        return Answer(HTTPStatus(error.status_code), error.detail)
    explained = explain(error)
    if explained is None and type(error).__module__.startswith("barnabas.supervise."):
        return Answer(HTTPStatus.CONFLICT, str(error))
    if explained is None:
        log.error("a request failed", exc_info=error)
        return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "the console failed: its log has the details")
    text, failure = explained
    if isinstance(error, KafkaError) and error.code.name.endswith(CONFLICTS):
        return Answer(HTTPStatus.CONFLICT, text)
    if isinstance(error, KafkaError) and error.code in BROKEN:
        return Answer(HTTPStatus.BAD_GATEWAY, text)
    return Answer(STATUSES[failure], text)
