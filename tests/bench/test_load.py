"""The load generators, in C and in Python, report correct counts."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator

import pytest

from bench import target
from tests.support.processes.server import Server
from tests.support.requests import frames

GENERATORS = [
    pytest.param("c", marks=pytest.mark.skipif(not shutil.which("cc"), reason="needs a C compiler")),
    "python",
]


@pytest.fixture(params=GENERATORS)
def loaded(request, broker: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[target.Target]:
    if request.param == "python":
        monkeypatch.setattr(target, "generator", lambda: [sys.executable, "-m", "bench.loads.load"])
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


def test_a_window_counts_at_least_one_response_however_slow_the_machine_is(loaded: target.Target) -> None:
    """A row of a busy machine once divided by no requests."""
    topic = loaded.create(1)
    requests = [frames.produce(topic, 0, frames.batch(1000, 100)[0])]
    assert loaded.raw("produce", requests, 1, 1, 0, 0).requests >= 1
    loaded.delete(topic)


def test_fetched_bytes_go_round_the_topic(loaded: target.Target) -> None:
    topic, count = loaded.fill(1, 1000, 2)
    outcome = loaded.raw("fetch", [frames.fetch(topic, 0)], 2, count, 0, 20, 8)
    assert outcome.bytes >= 8 << 20
    loaded.delete(topic)


def test_a_walk_sends_each_frame_in_turn_whichever_connection_is_free(loaded: target.Target) -> None:
    topic = loaded.create(4)
    batch, count = frames.batch(5000, 100)
    requests = [frames.produce(topic, partition, batch) for partition in range(4)]
    loaded.raw("walk", requests, 3, 2, 0, 20, 1)
    stored = [offset // count for offset in loaded.end_offsets(topic, 4)]
    assert sum(stored) >= (1 << 20) // 5000
    assert max(stored) - min(stored) <= 3 * 2
    loaded.delete(topic)


def test_a_walk_takes_list_offsets_too(loaded: target.Target) -> None:
    topic = loaded.create(2)
    calls = 0

    def during() -> None:
        nonlocal calls
        calls += 1

    requests = [frames.list_offsets({topic: [n]}, -1) for n in range(2)]
    outcome = loaded.raw("walk", requests, 2, 1, 0, target.LOAD_TIMEOUT_S, during=during)
    assert calls == 1
    assert outcome.seconds < target.LOAD_TIMEOUT_S, "the load did not end with what it was beside"
    with pytest.raises(RuntimeError, match="error code 3"):
        loaded.raw("walk", [frames.list_offsets({"no-such-topic-here": [0]}, -1)], 1, 1, 0, 5)


def test_sent_frames_are_stored_once_each(broker: Server) -> None:
    broker_target = target.Target(broker)
    topic = broker_target.create(1)
    batch, count = frames.batch(1000, 100)
    broker_target.send(frames.produce(topic, 0, batch) for _ in range(3 * target.MAX_IN_FLIGHT + 1))
    assert broker_target.end_offsets(topic, 1) == [count * (3 * target.MAX_IN_FLIGHT + 1)]
    with pytest.raises(RuntimeError, match="error code 3"):
        broker_target.send([frames.produce("no-such-topic-here", 0, batch)])
    broker_target.delete(topic)


def test_an_error_code_ends_the_load(loaded: target.Target) -> None:
    batch, _ = frames.batch(100, 10)
    with pytest.raises(RuntimeError, match="error code 3"):
        loaded.raw("produce", [frames.produce("no-such-topic-here", 0, batch)], 1, 1, 0, 5, 1)
