"""What a request has held is freed when it is answered, not when garbage is collected.

A collection takes the longer the more garbage there is, and nobody is served meanwhile: cycles that hold requests with
thousands of elements make a pause of 0.4 s.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from functools import partial

import pytest

from barnabas.broker.guarded import answer_for
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.slices import SlicedWork
from barnabas.wire.errors import ErrorCode, KafkaError


class Request:
    """What a weak reference can refer to."""


@pytest.fixture(autouse=True)
def _without_collections() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def steps_on(request: Request, count: int) -> Iterator[None]:
    for _ in range(count):
        yield
    del request


def work_for(delayed: DelayedResponse, count: int) -> tuple[SlicedWork, weakref.ref[Request]]:
    """Work on a request, which the response cancels and which completes the response."""
    request = Request()
    work = SlicedWork(steps_on(request, count), partial(finish, delayed, request), delayed.complete)
    delayed.on_cancel = work.cancel
    return work, weakref.ref(request)


def finish(delayed: DelayedResponse, request: Request, result: object) -> None:
    delayed.complete(None)


def test_work_that_has_answered() -> None:
    delayed = DelayedResponse()
    work, request = work_for(delayed, 0)
    work.step()
    assert delayed.is_done
    del work, delayed
    assert request() is None


def test_work_that_was_cancelled() -> None:
    delayed = DelayedResponse()
    work, request = work_for(delayed, 5)
    work.step()
    delayed.cancel()
    del work, delayed
    assert request() is None


def test_a_response_that_another_has_given() -> None:
    request = Request()
    dead = weakref.ref(request)
    delayed, other = DelayedResponse(), DelayedResponse()
    delayed.follow(other, partial(finish, delayed, request))
    del request
    other.complete(None)
    assert delayed.is_done
    del delayed, other
    assert dead() is None


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
    delayed = DelayedResponse()
    try:
        failed_lookup(request)
    except KafkaError as error:
        outcome = error
    delayed.complete(outcome)


@pytest.mark.parametrize("answering", [refused, completed_with_error])
def test_an_error_that_was_the_answer(answering) -> None:
    request = Request()
    dead = weakref.ref(request)
    answering(request)
    del request
    assert dead() is None
