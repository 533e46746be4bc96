"""The shop in asyncio. With pytest-asyncio the tests are `async def` and need no `asyncio.run`."""

from __future__ import annotations

import asyncio

from orders.shop import INVOICES, ORDERS, Shop

from barnabas.testing import AsyncCluster


def test_an_order_is_stored(async_kafka: AsyncCluster) -> None:
    async def main() -> None:
        async with Shop(async_kafka.bootstrap_servers) as shop:
            await shop.order(7, 100)
        record = await async_kafka.topic(ORDERS).assert_produced(key="7")
        assert record.json() == {"id": 7, "amount": 100}

    asyncio.run(main())


def test_invoices_come_back(async_kafka: AsyncCluster) -> None:
    async def main() -> None:
        async with Shop(async_kafka.bootstrap_servers) as shop:
            waiting = asyncio.create_task(shop.next_invoice())
            await async_kafka.topic(INVOICES).produce('{"order": 7}')
            assert await waiting == {"order": 7}

    asyncio.run(main())
