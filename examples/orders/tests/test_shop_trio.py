"""A test in pytest-trio: confluent-kafka in a thread, the kit's operations awaited."""

from __future__ import annotations

import pytest
import trio
from confluent_kafka import Producer

from barnabas.testing import AsyncCluster


@pytest.mark.trio
async def test_an_order_is_stored(async_kafka: AsyncCluster) -> None:
    def place() -> None:
        producer = Producer({"bootstrap.servers": async_kafka.bootstrap_servers})
        producer.produce("orders", '{"id": 7}', key="7")
        producer.flush(10)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.to_thread.run_sync, place)
        record = await async_kafka.topic("orders").assert_produced(key="7")
    assert record.json() == {"id": 7}
