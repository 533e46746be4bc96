"""The load generators count what they did: C and its Python stand-in alike."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from bench import frames, target
from bench.report import number
from bench.servers import Server

GENERATORS = [
    pytest.param("c", marks=pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")),
    "python",
]


@pytest.fixture(params=GENERATORS)
def loaded(request, broker: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[target.Target]:
    if request.param == "python":
        monkeypatch.setattr(target, "generator", lambda: [sys.executable, "-m", "bench.load"])
    return target.Target(broker)


def test_produced_batches_are_stored(loaded: target.Target) -> None:
    topic = loaded.create(2)
    batch, count = frames.batch(5000, 100)
    requests = [frames.produce(topic, partition, batch) for partition in range(2)]
    outcome = loaded.raw("produce", requests, 2, 5, 0, 20, 1)
    stored = sum(loaded.end_offsets(topic, 2))
    assert outcome.bytes >= 1 << 20
    assert outcome.requests <= stored // count <= outcome.requests + 2 * 5
    assert outcome.p50_us <= outcome.p99_us
    loaded.delete(topic)


def test_fetched_bytes_go_round_the_topic(loaded: target.Target) -> None:
    topic, count = loaded.fill(1, 1000, 2)
    outcome = loaded.raw("fetch", [frames.fetch(topic, 0)], 2, count, 0, 20, 8)
    assert outcome.bytes >= 8 << 20
    loaded.delete(topic)


def test_an_error_code_ends_the_load(loaded: target.Target) -> None:
    batch, _ = frames.batch(100, 10)
    with pytest.raises(RuntimeError, match="error code 3"):
        loaded.raw("produce", [frames.produce("no-such-topic-here", 0, batch)], 1, 1, 0, 5, 1)


@pytest.mark.parametrize(("value", "text"), [(1234567.0, "1,234,567"), (0.12345, "0.123"), (12.345, "12.3")])
def test_figures_have_three_digits(value: float, text: str) -> None:
    assert number(value) == text
