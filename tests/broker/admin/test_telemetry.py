"""GetTelemetrySubscriptions (71) and PushTelemetry (72) over a connection, and the configs they follow. KIP-714."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import snappy
import zstandard

from barnabas.broker.apis.registry import TELEMETRY_APIS, served_versions
from barnabas.broker.exporter.page import text_of_clients
from barnabas.broker.metrics import client_metrics
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import configs as c
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from barnabas.wire.types import uuid_to_text
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.otlp_writer import gauge, number, push, sum_of

CLIENT_METRICS = 16
SET, DELETE, APPEND = 0, 1, 2
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
INTERVAL_S = 1.0
METRICS = push([gauge("queue.size", number(3, topic="t")), sum_of("sent.total", number(5), is_delta=True)])


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    """A broker whose pushed metrics have somewhere to go."""
    broker = MemoryBroker(tmp_path / "data", {"barnabas.metrics.listener": "127.0.0.1:0"})
    yield broker
    broker.close()


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def alter(client: Client, name: str, *changes: tuple[str, int, str | None]) -> tuple[int, str | None]:
    configs = [
        c.IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=CLIENT_METRICS, resource_name=name, configs=configs
    )
    request = c.IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = client.ask(request, 1, c.IncrementalAlterConfigsResponse).responses
    return result.error_code, result.error_message


def subscribe(client: Client, name: str = "s", **configs: str) -> None:
    settings = {"metrics": "*", "interval_ms": str(int(INTERVAL_S * 1000))} | configs
    changes = [(key.replace("_", "."), SET, value) for key, value in settings.items()]
    assert alter(client, name, *changes) == (0, None)


def get(client: Client, instance_id: bytes = bytes(16)) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
    return client.ask(request, 0, GetTelemetrySubscriptionsResponse)


def pushing(
    subscription: GetTelemetrySubscriptionsResponse, metrics: bytes = METRICS, **fields: Any
) -> PushTelemetryRequest:
    ids = {"client_instance_id": subscription.client_instance_id, "subscription_id": subscription.subscription_id}
    return PushTelemetryRequest(**{**ids, "metrics": metrics, **fields})


def send(client: Client, request: PushTelemetryRequest) -> int:
    """Push, let all steps be done, and return the error code."""
    client.send(request, 0)
    client.memory.advance(0.0)
    (response,) = client.answers()
    assert isinstance(response, PushTelemetryResponse)
    return response.error_code


def shown(memory: MemoryBroker) -> list[str]:
    """The lines of clients' metrics at /metrics, without the labels of the client."""
    metrics = memory.broker.client_metrics.kept
    return [] if metrics is None else "".join(text_of_clients(metrics)).splitlines()


def test_the_versions_of_both_apis_are_those_of_these_tests() -> None:
    assert {served_versions(key) for key in TELEMETRY_APIS} == {(0, 0)}


def test_a_client_gets_an_id_and_what_it_should_push(client: Client) -> None:
    subscribe(client, metrics="org.apache.kafka.producer.,org.apache.kafka.consumer.")
    subscription = get(client)
    assert (subscription.error_code, subscription.throttle_time_ms) == (0, 0)
    assert subscription.client_instance_id != bytes(16)
    assert set(subscription.requested_metrics) == {"org.apache.kafka.producer.", "org.apache.kafka.consumer."}
    assert (subscription.push_interval_ms, subscription.telemetry_max_bytes, subscription.delta_temporality) == (
        1000,
        1_048_576,
        True,
    )
    assert subscription.accepted_compression_types == [ZSTD, LZ4, GZIP, SNAPPY]


def test_without_a_subscription_nothing_is_asked_for(client: Client) -> None:
    subscription = get(client)
    assert (subscription.error_code, subscription.requested_metrics, subscription.push_interval_ms) == (0, [], 300_000)


@for_each(
    ("match", "matches"),
    [
        ("client_id=test", True),
        ("client_id=other", False),
        ("client_software_name=my-lib,client_software_version=1\\.2.*", True),
        ("client_software_name=unknown", False),
        ("client_source_address=10\\.0\\.0\\.1,client_source_port=5000", True),
        ("client_source_port=5001", False),
    ],
)
def test_a_subscription_is_for_the_clients_that_match(client: Client, match: str, matches: bool) -> None:
    client.ask(
        ApiVersionsRequest(client_software_name="my-lib", client_software_version="1.2.3"), 3, ApiVersionsResponse
    )
    subscribe(client, match=match)
    assert get(client).requested_metrics == (["*"] if matches else [])


def test_a_client_that_has_not_said_what_it_is_is_unknown(client: Client) -> None:
    subscribe(client, match="client_software_name=unknown,client_software_version=unknown")
    assert get(client).requested_metrics == ["*"]


def test_a_subscription_for_one_instance_matches_its_id(client: Client) -> None:
    instance_id = bytes(range(16))
    subscribe(client, match=f"client_instance_id={uuid_to_text(instance_id)}")
    assert get(client).requested_metrics == []
    assert get(client, instance_id).requested_metrics == ["*"]


def test_a_change_is_seen_at_once_by_who_asks_and_by_who_pushes(memory: MemoryBroker, client: Client) -> None:
    subscribe(client, metrics="a.")
    first = get(client)
    subscribe(client, metrics="b.")
    assert send(client, pushing(first)) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    second = get(client, first.client_instance_id)
    assert (second.error_code, second.requested_metrics) == (0, ["b."])
    assert second.subscription_id != first.subscription_id
    memory.advance(INTERVAL_S)
    assert send(client, pushing(second)) == 0
    assert alter(client, "s", ("metrics", DELETE, None), ("interval.ms", DELETE, None)) == (0, None)
    assert get(client, first.client_instance_id).requested_metrics == []


def test_subscriptions_survive_a_restart(tmp_path: Path) -> None:
    before = MemoryBroker(tmp_path / "data")
    subscribe(before.client(), metrics="a.")
    before.close()
    after = MemoryBroker(tmp_path / "data")
    assert get(after.client()).requested_metrics == ["a."]
    after.close()


COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    NONE: bytes,
    GZIP: gzip.compress,
    SNAPPY: snappy.compress,
    LZ4: lambda data: lz4.frame.compress(data, block_linked=False),
    ZSTD: zstandard.compress,
}


@for_each("codec", COMPRESS)
def test_pushed_metrics_are_shown(memory: MemoryBroker, client: Client, codec: int) -> None:
    subscribe(client)
    subscription = get(client)
    for _ in range(2):
        assert send(client, pushing(subscription, COMPRESS[codec](METRICS), compression_type=codec)) == 0
        memory.advance(INTERVAL_S)
    identity = (
        f'client_instance_id="{uuid_to_text(subscription.client_instance_id)}",client_id="test",'
        'client_software_name="unknown",client_software_version="unknown"'
    )
    assert shown(memory) == [
        "# TYPE queue_size gauge",
        f'queue_size{{{identity},topic="t"}} 3',
        "# TYPE sent_total counter",
        f"sent_total{{{identity}}} 10",
    ]


def test_without_a_listener_of_metrics_pushes_are_answered_and_forgotten(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "data")
    client = memory.client()
    subscribe(client)
    subscription = get(client)
    assert send(client, pushing(subscription)) == 0
    memory.advance(INTERVAL_S)
    assert send(client, pushing(subscription, b"\x0b")) == ErrorCode.INVALID_RECORD
    assert memory.broker.client_metrics.kept is None
    memory.close()


def test_pushes_come_once_an_interval(memory: MemoryBroker, client: Client) -> None:
    subscribe(client)
    subscription = get(client)
    assert send(client, pushing(subscription)) == 0
    memory.advance(INTERVAL_S - 0.1)
    assert send(client, pushing(subscription)) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert get(client, subscription.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    memory.advance(0.1)
    assert send(client, pushing(subscription)) == 0
    assert send(client, pushing(subscription, terminating=True)) == 0
    memory.advance(INTERVAL_S)
    assert send(client, pushing(subscription)) == ErrorCode.INVALID_REQUEST


@for_each(
    ("fields", "expected"),
    [
        ({"client_instance_id": bytes(16)}, ErrorCode.INVALID_REQUEST),
        ({"client_instance_id": bytes(15) + b"\x01"}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": 5}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": bytes(1_048_577)}, ErrorCode.TELEMETRY_TOO_LARGE),
        ({"metrics": b"\x0b"}, ErrorCode.INVALID_RECORD),
        ({"metrics": METRICS, "compression_type": ZSTD}, ErrorCode.INVALID_RECORD),
        ({"metrics": zstandard.compress(bytes(1_048_577)), "compression_type": ZSTD}, ErrorCode.INVALID_RECORD),
        ({"metrics": b""}, ErrorCode.NONE),
    ],
)
def test_what_is_refused_of_a_push(memory: MemoryBroker, client: Client, fields: Any, expected: ErrorCode) -> None:
    subscribe(client)
    assert send(client, pushing(get(client), **fields)) == expected
    assert shown(memory) == []
    assert memory.broker.client_metrics._pending_bytes == 0


def test_the_limit_of_a_push_is_a_config(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "data", {"telemetry.max.bytes": "100"})
    client = memory.client()
    subscribe(client)
    subscription = get(client)
    assert subscription.telemetry_max_bytes == 100
    assert send(client, pushing(subscription, bytes(101))) == ErrorCode.TELEMETRY_TOO_LARGE
    memory.close()


def test_a_decompression_bomb_is_stopped_at_the_limit(client: Client) -> None:
    """A megabyte that becomes gigabytes: no more than `telemetry.max.bytes` of it are made."""
    subscribe(client)
    bomb = zstandard.ZstdCompressor(level=1).compress(bytes(200 * 2**20))
    assert len(bomb) < 100_000
    assert send(client, pushing(get(client), bomb, compression_type=ZSTD)) == ErrorCode.INVALID_RECORD


def test_a_long_push_is_read_in_steps_and_others_are_served_meanwhile(memory: MemoryBroker, client: Client) -> None:
    subscribe(client)
    subscription = get(client)
    many = push([gauge("m", *(number(1.0, topic=f"t{index}") for index in range(2000)))])
    client.send(pushing(subscription, many), 0)
    assert client.answers() == []
    assert get(memory.client()).error_code == 0
    memory.advance(0.0)
    (response,) = client.answers()
    assert isinstance(response, PushTelemetryResponse)
    assert response.error_code == 0
    assert len(shown(memory)) == 2001


def test_pushes_that_wait_to_be_read_are_bounded(
    memory: MemoryBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_metrics, "PENDING_BYTES", 2_000_000)
    subscribe(client)
    large = push([gauge("m", *(number(1.0, topic=f"t{index:050}") for index in range(9000)))])
    others = [memory.client() for _ in range(3)]
    for other in others:
        other.send(pushing(get(other), large), 0)
    (throttled,) = [response for other in others for response in other.answers()]
    assert isinstance(throttled, PushTelemetryResponse)
    assert throttled.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    memory.advance(0.0)
    last = memory.client()
    assert send(last, pushing(get(last), METRICS)) == 0


def test_a_client_that_leaves_during_its_push_leaves_nothing_behind(memory: MemoryBroker, client: Client) -> None:
    subscribe(client)
    subscription = get(client)
    many = push([gauge("m", *(number(1.0, topic=f"t{index}") for index in range(2000)))])
    client.send(pushing(subscription, many), 0)
    telemetry = memory.broker.client_metrics
    assert (telemetry.instance_count, telemetry._pending_bytes) == (1, len(many))
    client.connection.close()
    assert (telemetry.instance_count, telemetry._pending_bytes) == (0, 0)


def test_metrics_are_shown_for_a_minute_after_the_last_push(memory: MemoryBroker, client: Client) -> None:
    subscribe(client)
    assert send(client, pushing(get(client), terminating=True)) == 0
    client.connection.close()
    memory.advance(59.0)
    assert shown(memory)
    memory.advance(1.0)
    assert (shown(memory), memory.broker.client_metrics.instance_count) == ([], 0)


# The configs of subscriptions.


@for_each(
    ("change", "expected"),
    [
        (("interval.ms", SET, "99"), (ErrorCode.INVALID_REQUEST, "between 100 and 3600000")),
        (("interval.ms", SET, "3600001"), (ErrorCode.INVALID_REQUEST, "Invalid value 3600001 for interval.ms")),
        (("interval.ms", SET, "often"), (ErrorCode.INVALID_CONFIG, "Not a number of type INT")),
        (("period", SET, "5"), (ErrorCode.INVALID_REQUEST, "Unknown client metrics configuration: period")),
        (("match", SET, "client=x"), (ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client=x")),
        (("match", SET, "client_id=("), (ErrorCode.INVALID_CONFIG, "Illegal client matching pattern: client_id=(")),
        (("metrics", SET, "a,,b"), (ErrorCode.INVALID_CONFIG, "Configuration 'metrics' values must not be empty.")),
        (("metrics", APPEND, "a"), (ErrorCode.INVALID_CONFIG, "Can't APPEND to key metrics")),
    ],
)
def test_invalid_subscriptions_are_refused(
    client: Client, change: tuple[str, int, str], expected: tuple[ErrorCode, str]
) -> None:
    code, message = alter(client, "s", change)
    assert code == expected[0]
    assert expected[1] in (message or "")
    assert get(client).push_interval_ms == 300_000


def test_a_subscription_has_a_name(client: Client) -> None:
    code, message = alter(client, "", ("metrics", SET, "*"))
    assert (code, message) == (ErrorCode.INVALID_REQUEST, "Subscription name can't be empty")


@pytest.mark.parametrize("version", range(1, 5))
def test_a_subscription_is_described_with_its_defaults(client: Client, version: int) -> None:
    subscribe(client, metrics="a.,b.")
    resource = c.DescribeConfigsResource(resource_type=CLIENT_METRICS, resource_name="s", configuration_keys=None)
    (result,) = client.ask(c.DescribeConfigsRequest(resources=[resource]), version, c.DescribeConfigsResponse).results
    assert {entry.name: (entry.value, entry.config_source) for entry in result.configs} == {
        "interval.ms": ("1000", 7),
        "match": ("", 5),
        "metrics": ("a.,b.", 7),
    }


@pytest.mark.parametrize("version", range(2))
def test_subscriptions_are_listed(client: Client, version: int) -> None:
    subscribe(client, "one")
    subscribe(client, "two")
    request = c.ListConfigResourcesRequest(resource_types=[CLIENT_METRICS] if version else [])
    response = client.ask(request, version, c.ListConfigResourcesResponse)
    assert [resource.resource_name for resource in response.config_resources] == ["one", "two"]
    assert served_versions(ApiKey.LIST_CONFIG_RESOURCES) == (0, 1)
