"""The application for asyncio, called as the test clients of FastAPI and Starlette do, with its lifespan around."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from orders.asgi import Application

from barnabas.testing import AsyncCluster


@asynccontextmanager
async def running(application: Application) -> AsyncIterator[None]:
    """Start the application, and stop it at the end."""
    asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    living = asyncio.create_task(application({"type": "lifespan"}, asked.get, told.put))
    await asked.put({"type": "lifespan.startup"})
    await told.get()
    yield
    await asked.put({"type": "lifespan.shutdown"})
    await living


async def post(application: Application, body: dict[str, Any]) -> int:
    """The status of POST /orders."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application({"type": "http", "method": "POST", "path": "/orders"}, receive, send)
    status: int = sent[0]["status"]
    return status


def test_an_order_is_accepted_when_it_is_stored(async_kafka: AsyncCluster) -> None:
    async def main() -> None:
        application = Application(async_kafka.bootstrap_servers)
        async with running(application):
            assert await post(application, {"id": 7, "amount": 1}) == 202
        record = await async_kafka.topic("orders").assert_produced(key="7")
        assert record.json() == {"id": 7, "amount": 1}

    asyncio.run(main())


def test_others_are_served_while_the_broker_holds_an_order(async_kafka: AsyncCluster) -> None:
    async def main() -> None:
        application = Application(async_kafka.bootstrap_servers)
        async with running(application):
            async with async_kafka.hold("Produce", topic="orders") as held:
                waiting = asyncio.create_task(post(application, {"id": 7, "amount": 1}))
                await held.wait(1)
                assert not waiting.done()
                await held.release()
            assert await waiting == 202

    asyncio.run(main())


def test_the_client_hears_when_it_is_not(async_kafka: AsyncCluster) -> None:
    async def main() -> None:
        application = Application(async_kafka.bootstrap_servers)
        failing = await async_kafka.faults.add(api="Produce", topic="orders", error="INVALID_TOPIC_EXCEPTION")
        async with running(application), failing:
            assert await post(application, {"id": 7, "amount": 1}) == 503
        assert await async_kafka.topic("orders").records() == []

    asyncio.run(main())
