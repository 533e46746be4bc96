"""The same operations in plain tests, and to await in asyncio, trio and anyio."""

from __future__ import annotations

import asyncio  # noqa: TID251 - users' tests run on it
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from barnabas.testing import AsyncCluster, Broker


async def use(kafka: AsyncCluster) -> None:
    """Every kind of operation."""
    topic = kafka.topic("orders")
    await topic.create(2)
    record = await topic.produce("x", key="k")
    assert await topic.wait_for(1) == [record]
    assert await topic.assert_produced("x") == record
    await topic.assert_no_more()
    assert (await kafka.group("g").describe()).state == "Dead"


def with_asyncio(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    asyncio.run(function(*args))


def with_anyio(function: Callable[..., Awaitable[Any]], *args: Any) -> None:
    anyio = pytest.importorskip("anyio")
    anyio.run(function, *args)


@pytest.mark.parametrize("run", [with_asyncio, trio.run, with_anyio])
def test_a_shared_cluster(run: Callable[..., Any], async_kafka: AsyncCluster) -> None:
    run(use, async_kafka)


@pytest.mark.parametrize("run", [with_asyncio, trio.run])
def test_a_broker_of_its_own(run: Callable[..., Any]) -> None:
    async def main() -> None:
        broker = Broker()
        async with broker as kafka:
            await use(kafka)
            other = await broker.open_async({"num.partitions": 2})
            await use(other)
            await other.close()

    run(main)


def test_the_event_loop_goes_on_while_a_test_waits(async_kafka: AsyncCluster) -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(async_kafka.topic("orders").wait_for, 1)
            await async_kafka.topic("orders").produce("x")

    trio.run(main)
