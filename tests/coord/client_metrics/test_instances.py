"""When a client instance may ask and push, with which errors, and how long it is known. KIP-714."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coord.client_metrics.instances import ClientInstance, ClientInstances, check_instance_id
from barnabas.coord.client_metrics.subscriptions import Granted
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.telemetry import PushTelemetryRequest
from tests.support.cases import for_each

SUBSCRIPTION, INTERVAL_S, MAX_BYTES = 77, 10.0, 1000
ZSTD = 4


def an_instance(instance_id: bytes = b"1" * 16, interval_ms: int = int(INTERVAL_S * 1000)) -> ClientInstance:
    return ClientInstance(instance_id, {}, Granted(SUBSCRIPTION, ("*",), interval_ms), 1)


def get(instance: ClientInstance, now: float) -> ErrorCode:
    try:
        instance.check_get(now)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def push(instance: ClientInstance, now: float, size: int = 5, **fields: Any) -> ErrorCode:
    request = PushTelemetryRequest(**{"subscription_id": SUBSCRIPTION, "compression_type": ZSTD, **fields})
    try:
        instance.check_push(request, size, now, MAX_BYTES)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_a_subscription_can_be_asked_for_once_an_interval() -> None:
    instance = an_instance()
    assert get(instance, 0.0) == 0
    assert get(instance, INTERVAL_S - 0.1) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(instance, INTERVAL_S) == 0


def test_the_first_push_may_come_early_the_next_ones_once_an_interval() -> None:
    instance = an_instance()
    assert get(instance, 0.0) == 0
    assert push(instance, 0.5 * INTERVAL_S) == 0
    assert push(instance, 1.4 * INTERVAL_S) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert push(instance, 1.5 * INTERVAL_S) == 0
    assert get(instance, 2.4 * INTERVAL_S) == ErrorCode.THROTTLING_QUOTA_EXCEEDED  # a push counts as well
    assert get(instance, 2.5 * INTERVAL_S) == 0


def test_a_terminating_push_may_come_at_any_time_and_is_the_last() -> None:
    instance = an_instance()
    assert push(instance, 0.0) == 0
    assert push(instance, 1.0, terminating=True) == 0
    assert push(instance, 2 * INTERVAL_S) == ErrorCode.INVALID_REQUEST


@for_each(
    ("fields", "size", "expected"),
    [
        ({"subscription_id": SUBSCRIPTION + 1}, 5, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, 5, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": 0}, 5, ErrorCode.NONE),
        ({}, MAX_BYTES, ErrorCode.NONE),
        ({}, MAX_BYTES + 1, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"subscription_id": 0, "compression_type": 9}, MAX_BYTES + 1, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
    ],
)
def test_what_is_refused_of_a_push(fields: dict[str, int], size: int, expected: ErrorCode) -> None:
    assert push(an_instance(), 0.0, size, **fields) == expected


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, {"subscription_id": 0}),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, {"compression_type": 9}),
    ],
)
def test_after_these_errors_a_client_may_ask_at_once(error: ErrorCode, fields: dict[str, int]) -> None:
    instance = an_instance()
    assert get(instance, 0.0) == 0
    assert push(instance, 1.0, **fields) == error
    assert get(instance, 1.1) == 0
    assert get(instance, 1.2) == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("number", [0, 1])
def test_reserved_ids_are_refused(number: int) -> None:
    with pytest.raises(KafkaError) as refused:
        check_instance_id(bytes(15) + bytes([number]))
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    check_instance_id(bytes(15) + b"\x02")


def test_the_least_recently_used_instance_gives_way() -> None:
    instances = ClientInstances(max_instances=2)
    first, second, third = (an_instance(letter * 16) for letter in (b"1", b"2", b"3"))
    instances.put(first, "connection", 0.0)
    instances.put(second, "connection", 0.0)
    instances.touch(first, 1.0)
    instances.put(third, "connection", 2.0)
    assert [instances.find(instance.id, 1)[0] for instance in (first, second, third)] == [first, None, third]


@pytest.mark.parametrize(("interval_ms", "kept_s"), [(1000, 60.0), (100_000, 300.0)])
def test_an_instance_expires_after_three_intervals_and_at_least_a_minute(interval_ms: int, kept_s: float) -> None:
    instances = ClientInstances()
    instance = an_instance(interval_ms=interval_ms)
    instances.put(instance, "connection", 100.0)
    instances.expire(100.0 + kept_s - 1)
    assert len(instances) == 1
    assert instances.next_deadline() == 100.0 + kept_s
    instances.expire(100.0 + kept_s)
    assert len(instances) == 0


def test_an_instance_ends_with_the_connection_that_it_was_made_on() -> None:
    instances = ClientInstances()
    first, second = an_instance(b"1" * 16), an_instance(b"2" * 16)
    assert instances.put(first, "a", 0.0)
    assert instances.put(second, "b", 0.0)
    assert not instances.put(second, "b", 1.0)
    instances.disconnected("a")
    instances.disconnected("a")
    assert [instances.find(each.id, 1)[0] for each in (first, second)] == [None, second]


def test_an_older_version_of_the_subscriptions_is_told() -> None:
    instances = ClientInstances()
    instance = an_instance()
    instances.put(instance, "a", 0.0)
    assert instances.find(instance.id, 1) == (instance, True)
    assert instances.find(instance.id, 2) == (instance, False)
