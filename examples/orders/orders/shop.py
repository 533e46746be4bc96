"""Takes orders and tells which are billed, in asyncio."""

from __future__ import annotations

import json
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

ORDERS, INVOICES = "orders", "invoices"


class Shop:
    """The shop's side of the topics. Use it with `async with`."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    async def __aenter__(self) -> Shop:
        self._producer = AIOKafkaProducer(bootstrap_servers=self._bootstrap_servers, enable_idempotence=True)
        await self._producer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._producer.stop()

    async def order(self, number: int, amount: int) -> None:
        """Take an order; it is stored when this returns."""
        value = json.dumps({"id": number, "amount": amount}).encode()
        await self._producer.send_and_wait(ORDERS, value, key=str(number).encode())

    async def next_invoice(self) -> Any:
        """Wait for the next invoice."""
        consumer = AIOKafkaConsumer(
            INVOICES,
            bootstrap_servers=self._bootstrap_servers,
            group_id="shop",
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        async with consumer:
            return json.loads((await consumer.getone()).value)
