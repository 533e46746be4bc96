"""The objects of a request are freed when it is answered, not when garbage is collected.

A collection takes the longer the more garbage there is, and no request is served meanwhile: cycles that hold requests
with thousands of elements make a pause of 0.4 s.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from barnabas.broker.event_loop.guarded import answer_for, kept
from barnabas.broker.event_loop.waiting import Future
from barnabas.wire.errors import ErrorCode, KafkaError


class Request:
    """What a weak reference can refer to."""


@pytest.fixture(autouse=True)
def _without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def failed_lookup(request: Request) -> None:
    try:
        {}[request]
    except KeyError:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)  # noqa: B904 (the coordinators raise so)


def refused(request: Request) -> KafkaError:
    try:
        failed_lookup(request)
    except Exception as error:
        outcome = answer_for("A request", error)
    return outcome


def completed_with_error(request: Request) -> None:
    future: Future[None] = Future()
    try:
        failed_lookup(request)
    except KafkaError as error:
        outcome = error
    future.complete(kept(outcome))


@pytest.mark.parametrize("answering", [refused, completed_with_error])
def test_an_error_that_was_the_answer(answering) -> None:
    request = Request()
    dead = weakref.ref(request)
    answering(request)
    del request
    assert dead() is None
