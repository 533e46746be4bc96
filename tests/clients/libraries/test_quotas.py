"""Quotas with a real client (librdkafka): a producer that is limited to a byte rate ends up near that rate.

The times are the throttle times of the broker's responses (`throttle_cb`). The time that the test takes in between
only widens the allowed range.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from tests.support.processes.server import Server
from tests.support.requests.quotas import alteration, described
from tests.support.requests.raw_client import RawClient

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import Producer  # noqa: E402

RATE = 100_000
BURST_S = 11
"""The windows of the rate: bytes within them are not throttled."""
BATCH = 50_000
BATCHES = 34


@pytest.fixture
def limited(broker: Server, topic_name: Callable[..., str]) -> str:
    """A client id that may produce `RATE` bytes a second."""
    client_id = topic_name("limited")
    client = RawClient(broker.bootstrap)
    entries = [alteration({"client-id": client_id}, {"producer_byte_rate": RATE})]
    (changed,) = client(AlterClientQuotasRequest(entries=entries), 1).entries
    assert changed.error_code == 0, changed
    request = DescribeClientQuotasRequest(components=[ComponentData(entity_type="client-id", match=client_id)])
    deadline = time.monotonic() + 30
    while True:
        response = client(request, 1)
        assert isinstance(response, DescribeClientQuotasResponse)
        if described(response):
            break
        assert time.monotonic() < deadline
    assert described(response) == [({"client-id": client_id}, {"producer_byte_rate": RATE})]
    client.close()
    return client_id


def test_a_limited_producer_ends_up_near_its_rate(
    broker: Server, create: Callable[..., str], limited: str, is_under_kills: bool
) -> None:
    if is_under_kills:
        pytest.skip("a broker that has started again has counted nothing")
    topic = create()
    throttle_times: list[float] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap,
        "client.id": limited,
        "throttle_cb": lambda event: throttle_times.append(event.throttle_time),
        "batch.size": BATCH,
        "message.timeout.ms": 90_000,
    }
    producer = Producer(settings)
    began = time.monotonic()
    for number in range(BATCHES):
        producer.produce(topic, value=bytes([number]) * BATCH)
        assert producer.flush(90) == 0
    elapsed = time.monotonic() - began
    sent = BATCH * BATCHES
    throttled = sum(throttle_times)
    assert throttled > 0
    assert sent <= RATE * (BURST_S + elapsed) + 2 * BATCH, "it was served above its rate"
    assert throttled <= sent / RATE, "it was throttled for longer than all it has sent takes at its rate"
