"""A delayed response that follows another one: it has its answer, and is cancelled with it."""

from __future__ import annotations

import pytest

from barnabas.broker.net.delayed_response import DelayedResponse, Outcome
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchResponse


class Cancelled:
    """Counts calls of `on_cancel`."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


def followed(other: DelayedResponse | Outcome) -> tuple[DelayedResponse, list[Outcome]]:
    delayed, outcomes = DelayedResponse(), []
    delayed.attach(outcomes.append)
    delayed.follow(other)
    return delayed, outcomes


@pytest.mark.parametrize("outcome", [FetchResponse(), KafkaError(ErrorCode.NOT_COORDINATOR), None])
def test_it_has_the_outcome_of_the_other(outcome: Outcome) -> None:
    other = DelayedResponse()
    _, outcomes = followed(other)
    assert outcomes == []
    other.complete(outcome)
    assert outcomes == [outcome]
    assert followed(outcome)[1] == [outcome]
    answered = DelayedResponse()
    answered.complete(outcome)
    assert followed(answered)[1] == [outcome]


def test_the_other_is_cancelled_with_it() -> None:
    cancelled = Cancelled()
    delayed, outcomes = followed(DelayedResponse(cancelled))
    delayed.cancel()
    assert cancelled.count == 1
    assert outcomes == []


def test_what_is_followed_after_the_client_has_disconnected_is_cancelled() -> None:
    cancelled = Cancelled()
    delayed = DelayedResponse()
    delayed.cancel()
    delayed.follow(DelayedResponse(cancelled))
    assert cancelled.count == 1


def test_the_response_of_either_is_sent_before_the_broker_closes_the_connection() -> None:
    delayed = followed(DelayedResponse(send_before_close=True))[0]
    assert delayed.send_before_close
    delayed = DelayedResponse(send_before_close=True)
    delayed.follow(DelayedResponse())
    assert delayed.send_before_close


def test_an_exception_of_what_is_called_with_the_outcome_is_the_answer() -> None:
    other = DelayedResponse()
    delayed, outcomes = DelayedResponse(), []
    delayed.attach(outcomes.append)
    delayed.follow(other, lambda outcome: 1 // 0)
    other.resolve(FetchResponse())
    assert [type(outcome) for outcome in outcomes] == [ZeroDivisionError]
