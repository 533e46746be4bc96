"""Responses made in steps: in place if one step is enough, else in slices between the turns."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.sliced_response import respond_in_steps
from barnabas.broker.context import RequestContext
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.net.encoded_response import EncodedResponse
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import CreateTopicsResponse
from barnabas.wire.schema import Message
from barnabas.wire.types import chunk_bytes
from tests.support.memory.broker import MemoryBroker

Steps = Generator[None, None, "CreateTopicsResponse | DelayedResponse"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path)
    yield memory
    memory.close()


@pytest.fixture
def ctx(memory: MemoryBroker) -> RequestContext:
    connection = memory.client().connection
    return RequestContext(memory.broker, connection, ApiKey.CREATE_TOPICS, 7, 1, "test", memory.clock.now)


def _steps(done: list[int], count: int, outcome: CreateTopicsResponse | DelayedResponse | Exception) -> Steps:
    for step in range(count):
        if step:
            yield
        done.append(step)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _outcomes(delayed: object) -> list[Message | Exception]:
    assert isinstance(delayed, DelayedResponse)
    outcomes: list[Message | Exception] = []
    delayed.attach(outcomes.append)
    return outcomes


def _encoded(outcomes: list[Message | KafkaError]) -> bytes:
    """The bytes of the only outcome, a response that was encoded in steps."""
    (encoded,) = outcomes
    assert isinstance(encoded, EncodedResponse)
    return b"".join(map(chunk_bytes, encoded.chunks))


def test_one_step_is_done_in_place(ctx: RequestContext, memory: MemoryBroker) -> None:
    response = CreateTopicsResponse()
    assert respond_in_steps(ctx, _steps([], 1, response)) is response
    assert memory.broker.loop.timers.fire(memory.clock.now) == 0
    with pytest.raises(KafkaError):
        respond_in_steps(ctx, _steps([], 1, KafkaError(ErrorCode.INVALID_REQUEST)))


def test_further_steps_are_done_between_turns(ctx: RequestContext, memory: MemoryBroker) -> None:
    done: list[int] = []
    response = CreateTopicsResponse()
    outcomes = _outcomes(respond_in_steps(ctx, _steps(done, 5, response)))
    assert done == [0]
    assert outcomes == []
    memory.advance(0)
    assert done == [0, 1, 2, 3, 4]
    assert _encoded(outcomes) == response.encode(7)


def test_an_error_of_a_later_step_is_the_outcome(ctx: RequestContext, memory: MemoryBroker) -> None:
    refused = _outcomes(respond_in_steps(ctx, _steps([], 3, KafkaError(ErrorCode.POLICY_VIOLATION, "too much"))))
    broken = _outcomes(respond_in_steps(ctx, _steps([], 3, ValueError("a bug"))))
    memory.advance(0)
    (error,) = refused
    assert isinstance(error, KafkaError)
    assert (error.code, error.message) == (ErrorCode.POLICY_VIOLATION, "too much")
    (error,) = broken
    assert str(error) == "a bug"  # the dispatcher logs and answers it


def test_a_client_that_disconnects_ends_the_work(ctx: RequestContext, memory: MemoryBroker) -> None:
    done: list[int] = []
    delayed = respond_in_steps(ctx, _steps(done, 5, CreateTopicsResponse()))
    assert isinstance(delayed, DelayedResponse)
    delayed.cancel()
    memory.advance(0)
    assert done == [0]


def test_the_last_step_may_return_a_delayed_response(ctx: RequestContext, memory: MemoryBroker) -> None:
    cancelled: list[bool] = []
    inner = [DelayedResponse(), DelayedResponse(on_cancel=lambda: cancelled.append(True))]
    outcomes = _outcomes(respond_in_steps(ctx, _steps([], 2, inner[0])))
    other = respond_in_steps(ctx, _steps([], 2, inner[1]))
    assert isinstance(other, DelayedResponse)
    memory.advance(0)
    assert outcomes == []
    response = CreateTopicsResponse()
    inner[0].resolve(response)
    memory.advance(0)
    assert _encoded(outcomes) == response.encode(7)
    other.cancel()
    assert cancelled == [True]
