"""Bench rows with their own servers or topics measure what they state: each is run small, on Barnabas only."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench import target
from bench.cases import compaction, synced, thousand
from bench.cases.by_time import read_by_time
from bench.cases.case import Group, Scale
from bench.cases.groups import CLEANER, PAGE_CACHE
from bench.stage import Stage
from tests.support.processes.ports import free_port
from tests.support.processes.server import BarnabasServer, Server

BRIEF = Scale(seconds=0.2, warmup_s=0.1, compact_mb=32)
REQUEST_FIGURES = {"req/s", "p50 ms", "p99 ms"}


def _group(**config: str) -> Group:
    return Group("Test", "", (), barnabas={**PAGE_CACHE, **config}, kafka={})


@pytest.fixture
def served(tmp_path: Path) -> Iterator[target.Target]:
    """A broker that compacts without delay."""
    with _group(**CLEANER).server("barnabas", tmp_path) as server:
        yield target.Target(server)


def test_memory_is_what_the_partitions_add(monkeypatch: pytest.MonkeyPatch) -> None:
    def a_megabyte_for_each(server: Server) -> int:
        return 1_000_000 * len(list(server.log_dir.glob("bench-*")))

    monkeypatch.setattr(thousand, "SETTLE_S", 0)
    monkeypatch.setattr(Server, "rss_bytes", a_megabyte_for_each)
    assert thousand.memory(_group(), "barnabas", BRIEF, partitions=50) == {"MB": 50}


def test_starts_are_timed_after_clean_stops_and_after_crashes_without_a_lost_record() -> None:
    measured = thousand.start_with_log(_group(), "barnabas", BRIEF, 1, partitions=10, megabytes=4)
    kinds = [tuple(figures) for figures in measured]
    clean, killed = ("clean start s", "clean all s"), ("kill start s", "kill all s", "kill read MB")
    assert kinds == [clean, killed]


def test_a_start_that_lost_records_is_an_error(tmp_path: Path) -> None:
    with _group().server("barnabas", tmp_path) as server:
        topics = thousand.create(target.Target(server), 10)
        missing = {(topic, 0): 1 for topic in topics}
        server.stop()
        with pytest.raises(RuntimeError, match="lost records"):
            thousand._timed_start(server, topics, missing)


def test_times_are_looked_up_in_as_many_segments_as_the_row_says(served: target.Target) -> None:
    figures = read_by_time(served, BRIEF, segments=12)
    assert set(figures) == REQUEST_FIGURES
    assert read_by_time(served, BRIEF, segments=12)["req/s"] > 0, "the topic is not made twice"


@pytest.mark.parametrize("record_bytes", [100, 1000])
def test_a_compaction_is_measured_to_its_end(served: target.Target, record_bytes: int) -> None:
    figures = compaction.alone(served, BRIEF, record_bytes=record_bytes)
    assert set(figures) == {"MB/s", "CPU s/GB"}
    assert min(figures.values()) > 0


def test_traffic_lasts_as_long_as_the_compaction(served: target.Target) -> None:
    figures = compaction.under_load(served, BRIEF, record_bytes=1000)
    assert set(figures) >= REQUEST_FIGURES | {"MB/s"}


def test_a_log_that_was_not_compacted_is_an_error(served: target.Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "_cleaned_to", lambda *_: 1 << 60)
    with pytest.raises(RuntimeError, match="are left after compaction"):
        compaction.alone(served, BRIEF, record_bytes=1000)


def test_synced_requests_are_compared_with_the_disk_itself(served: target.Target) -> None:
    figures = synced.closed_loop(served, BRIEF, connections=3)
    assert set(figures) == REQUEST_FIGURES | {"p99/sync"}


def test_the_probe_of_the_disk_leaves_nothing(tmp_path: Path) -> None:
    times = synced.sync_times_ms(tmp_path, 0)
    assert len(times) >= 2
    assert min(times) > 0
    assert list(tmp_path.iterdir()) == []


def _state(server: Server) -> str:
    return psutil.Process(server.pid).status()


def test_only_the_broker_whose_turn_it_is_runs(tmp_path: Path) -> None:
    servers: dict[str, Server] = {}

    def serve(kind: str, folder: Path) -> Server:
        servers[kind] = BarnabasServer(folder / kind, port=free_port())
        return servers[kind]

    with Stage(_group(), BRIEF, tmp_path, serve) as stage:
        for kind, other in itertools.permutations(("barnabas", "kafka")):
            assert stage.activate(kind).server is servers[kind]
            assert _state(servers[other]) == psutil.STATUS_STOPPED
            assert _state(servers[kind]) != psutil.STATUS_STOPPED
            stage.activate(kind).delete(stage.activate(kind).create(1))
        stage.pause_all()
        assert {_state(server) for server in servers.values()} == {psutil.STATUS_STOPPED}
    codes = [server.process.returncode for server in servers.values() if server.process is not None]
    assert codes == [0, 0], "a paused broker is stopped as any other"


def test_a_topic_has_exactly_as_many_records_as_were_asked_for(served: target.Target) -> None:
    topic = served.fill_exactly(4, 1000, 800)
    assert served.end_offsets(topic, 4) == [200] * 4
    assert served.fill_exactly(4, 1000, 800) == topic
    with pytest.raises(ValueError, match="multiple"):
        served.fill_exactly(4, 1000, 801)
