"""With a reactor: the times of requests and turns, and scrapes that are made between the turns."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
import trio

from barnabas.broker.exporter import scrape
from barnabas.broker.exporter.scrape import Scraper, sliced
from tests.broker.metrics.pages import Samples, samples_of, value
from tests.support.memory.broker import batch
from tests.support.memory.loopback import Loopback, fetch, make_topic, produce, serving

METERED = {"barnabas.metrics.listener": "127.0.0.1:0"}


def scraper_of(loopback: Loopback) -> Scraper:
    meter = loopback.broker.meter
    assert meter is not None
    return Scraper(loopback.broker, meter, [], loopback.reactor.admission.connection_counts)


async def scraped(scraper: Scraper) -> str:
    return "".join([piece async for piece in scraper.body()])


def count(samples: Samples, name: str, request: str) -> float | None:
    return value(samples, f"barnabas_request_{name}_seconds_count", request=request)


@pytest.mark.trio
async def test_each_part_of_a_request_is_timed(tmp_path: Path) -> None:
    async with serving(tmp_path, sets=METERED) as loopback:
        peer = await loopback.dial()
        await make_topic(peer, "t")
        for _ in range(3):
            await peer.ask(produce("t", batch(b"1")), 9)
        await peer.ask(fetch("t", 0), 12)
        await peer.ask(fetch("t", 3, max_wait_ms=1), 12)
        samples = samples_of(await scraped(scraper_of(loopback)))
        assert value(samples, "barnabas_requests_total", request="Produce") == 3
        timed = {count(samples, name, "Produce") for name in ("queue", "handling", "sending")}
        assert timed in ({1}, {2}, {3})  # the last timed one counts for those before it
        assert count(samples, "waiting", "Produce") == 0
        assert count(samples, "waiting", "Fetch") == 1
        assert (value(samples, "barnabas_turn_seconds_count") or 0) >= 6
        assert value(samples, "barnabas_connections") == 1


@pytest.mark.trio
async def test_scrapes_at_a_time_share_a_page(tmp_path: Path) -> None:
    async with serving(tmp_path, sets=METERED) as loopback:
        scraper = scraper_of(loopback)
        pages: list[str] = []

        async def take() -> None:
            pages.append(await scraped(scraper))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(take)
        assert len({page.partition("# HELP barnabas_client_metrics")[0] for page in pages}) == 1


def no_steps() -> Generator[None, None, None]:
    yield from ()


@pytest.mark.trio
async def test_a_page_is_shared_only_for_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scrape, "PAGE_S", 0.0)
    async with serving(tmp_path, sets=METERED) as loopback:
        scraper = scraper_of(loopback)
        first = await scraped(scraper)
        await sliced(loopback.broker.loop, no_steps())  # timers that are due fire before it
        assert (
            samples_of(await scraped(scraper))["barnabas_uptime_seconds"]
            != samples_of(first)["barnabas_uptime_seconds"]
        )


@pytest.mark.trio
async def test_a_scrape_that_fails_or_is_cancelled_leaves_no_work(tmp_path: Path) -> None:
    async with serving(tmp_path) as loopback:
        steps_done: list[int] = []

        def failing() -> Generator[None, None, None]:
            yield
            raise ValueError("a step fails")

        def endless() -> Generator[None, None, None]:
            while True:
                steps_done.append(1)
                yield

        with pytest.raises(ValueError, match="a step fails"):
            await sliced(loopback.broker.loop, failing())
        with trio.move_on_after(0.02):
            await sliced(loopback.broker.loop, endless())
        assert steps_done
        await sliced(loopback.broker.loop, no_steps())
        assert loopback.broker.loop.slices.is_idle
