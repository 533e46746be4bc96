"""The cases of the group `1,000 partitions`: memory, and start-up with a log after a clean stop and after a crash.

A crash is kill -9 after one more batch in every partition. There is no clean stop between the crashes, so a start
recovers from all of them. The log is in the page cache: the work of a start is compared, not the disk.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.cases.case import FULL, Case, Figures, Goal, Group, Mode, Scale
from bench.start import all_serve, end_offsets, first_metadata
from bench.target import LOAD_TIMEOUT_S, Target
from tests.support.processes.server import Server
from tests.support.requests import frames

TOPICS = 10
SETTLE_S = 3.0
STOP_TIMEOUT_S = 120.0  # a thousand syncs are slow on a busy disk
BATCH_BYTES = 100 << 10
RECORD_BYTES = 1000
SPARE_MB = 5000  # of disk space to leave free
Topics = dict[str, range]


def create(target: Target, partitions: int) -> Topics:
    """Create `partitions` partitions in ten topics."""
    each = partitions // TOPICS
    return {target.create(each): range(each) for _ in range(TOPICS)}


def memory(group: Group, kind: str, _: Scale, *, partitions: int) -> Figures:
    """The growth of resident memory by creating the partitions, each value after `SETTLE_S`."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, group.server(kind, Path(folder)) as server:
        target = Target(server)
        create(target, TOPICS)  # memory that does not depend on the number of partitions
        time.sleep(SETTLE_S)
        before = server.rss_bytes()
        create(target, partitions)
        time.sleep(SETTLE_S)
        return {"MB": (server.rss_bytes() - before) / 1e6}


def start_with_log(
    group: Group, kind: str, _: Scale, runs: int, *, partitions: int, megabytes: int
) -> Iterator[Figures]:
    """Fill the partitions once; then time `runs` starts after a clean stop and `runs` starts after kill -9."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = group.server(kind, Path(folder))
        try:
            server.start()
            topics = create(Target(server), partitions)
            _write(server, topics, megabytes)
            os.sync()  # otherwise Kafka's syncs at a stop could exceed STOP_TIMEOUT_S
            for _run in range(runs):
                yield _start_after_clean_stop(server, topics)
            for _run in range(runs):
                yield _start_after_crash(server, topics)
        finally:
            if server.process is not None:
                server.kill9()


def _write(server: Server, topics: Topics, megabytes: int) -> None:
    """Write batches to all partitions in turn."""
    batch, _ = frames.batch(BATCH_BYTES, RECORD_BYTES)
    requests = [frames.produce(topic, n, batch) for topic, partitions in topics.items() for n in partitions]
    Target(server).raw("walk", requests, 8, 2, 0, LOAD_TIMEOUT_S * 0.9, megabytes)


def _start_after_clean_stop(server: Server, topics: Topics) -> Figures:
    before = end_offsets(server, topics)
    if server.stop(STOP_TIMEOUT_S) == -signal.SIGKILL:
        raise RuntimeError(f"{server.name} did not stop in time")
    start_s, all_s = _timed_start(server, topics, before)
    return {"clean start s": start_s, "clean all s": all_s}


def _start_after_crash(server: Server, topics: Topics) -> Figures:
    _write(server, topics, (sum(map(len, topics.values())) * BATCH_BYTES >> 20) + 1)
    before = end_offsets(server, topics)
    server.kill9()
    start_s, all_s = _timed_start(server, topics, before)
    return {"kill start s": start_s, "kill all s": all_s, "kill read MB": server.read_bytes() / 1e6}


def _timed_start(server: Server, topics: Topics, expected: dict[tuple[str, int], int]) -> tuple[float, float]:
    """Seconds until Metadata is answered and until all partitions serve; RuntimeError if records are missing."""
    started = time.monotonic()
    server.spawn()
    start_s = first_metadata(server, started)
    all_s = all_serve(server, started, topics)
    after = end_offsets(server, topics)
    if any(after[partition] < offset for partition, offset in expected.items()):
        raise RuntimeError(f"{server.name} lost records at its start")
    return start_s, all_s


def cases(scale: Scale) -> Iterator[Case]:
    """The cases of the group, in order; with a smaller log if the disk is too small."""
    yield Case("memory of 1,000 partitions", partial(memory, partitions=1000), {"MB": Goal(limit=50)}, Mode.OWN_SERVER)
    free_mb = shutil.disk_usage(tempfile.gettempdir()).free // 1_000_000
    megabytes = max(1000, min(scale.partitions_mb, free_mb - SPARE_MB) // 1000 * 1000)
    measure = partial(start_with_log, partitions=1000, megabytes=megabytes)
    goals = {"clean start s": Goal(limit=1), "clean all s": Goal(limit=1)}
    short = " (not enough disk space for 10)" if megabytes < scale.partitions_mb and scale is FULL else ""
    yield Case(f"1,000 partitions, {megabytes // 1000} GB of log{short}", measure, goals, Mode.OWN_SERVER_ALL_RUNS)
