"""The same web application for asyncio: a plain ASGI application, as FastAPI's and Starlette's are."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Application:
    """POST /orders writes an order. The producer lives as long as the server: ASGI's lifespan."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._producer: AIOKafkaProducer

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            body = (await receive())["body"]
            status = await self._order(body)
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        self._producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap_servers, acks="all", request_timeout_ms=5000
        )
        await self._producer.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._producer.stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _order(self, body: bytes) -> int:
        try:
            await self._producer.send_and_wait("orders", body, key=str(json.loads(body)["id"]).encode())
        except KafkaError:
            return 503
        return 202
