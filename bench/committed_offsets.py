"""Measures how long a broker loads 1,000,000 committed offsets, and how much memory it has then, beside Apache Kafka.

`python -m bench.committed_offsets` writes the logs of `__consumer_offsets` into a directory of each broker, in Kafka's
format, starts each once to recover them, and then times starts after a clean stop: from the process to the moment when
OffsetFetch and DescribeGroups answer for a group of every partition. Each offset is of a distinct group, topic and
partition; afterwards every group is asked for all of its offsets, and they are counted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from barnabas.coord.groups import records
from barnabas.coord.partitioning import coordinator_partition
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.records.coordinator_records import OffsetCommitKey, OffsetCommitValue
from bench import start
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.server import BarnabasServer, Server

COORDINATORS = 50
"""Partitions of `__consumer_offsets`, the default of both brokers."""
TOPIC = "orders"
TOPIC_ID = bytes(range(16))
FETCH_VERSION, DESCRIBE_VERSION = 8, 5
GROUPS_OF_A_REQUEST = 20
OFFSET = 123_456_789
RETRIABLE = start.RETRIABLE


def write_logs(folder: Path, groups: Sequence[str], partitions: int, of_a_batch: int, metadata: str) -> int:
    """Replace the logs of `__consumer_offsets` in a directory of partitions; returns the bytes written."""
    by_coordinator: defaultdict[int, list[str]] = defaultdict(list)
    for group in groups:
        by_coordinator[coordinator_partition(group, COORDINATORS)].append(group)
    total = 0
    for index, names in by_coordinator.items():
        directory = folder / f"__consumer_offsets-{index}"
        for stale in itertools.chain(directory.glob("*.*index"), directory.glob("*.snapshot")):
            stale.unlink()
        with (directory / f"{0:020}.log").open("wb") as log:
            total += sum(map(log.write, _batches(names, partitions, of_a_batch, metadata)))
    for marker in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (folder / marker).unlink(missing_ok=True)
    return total


def _batches(groups: Sequence[str], partitions: int, of_a_batch: int, metadata: str) -> Iterator[bytes]:
    now_ms = int(time.time() * 1000)
    value = OffsetCommitValue(offset=OFFSET, metadata=metadata, commit_timestamp=now_ms, topic_id=TOPIC_ID)
    offset = 0
    for group in groups:
        for first in range(0, partitions, of_a_batch):
            builder = BatchBuilder(base_offset=offset, partition_leader_epoch=0)
            for partition in range(first, min(first + of_a_batch, partitions)):
                key = OffsetCommitKey(group=group, topic=TOPIC, partition=partition)
                builder.append(now_ms, *records.offset_commit(key, value))
                offset += 1
            yield bytes(builder.build())


def ready(server: Server, started: float, groups: Sequence[str]) -> float:
    """Seconds since `started` until every one of these groups is answered by OffsetFetch and DescribeGroups."""
    fetch = start.request_bytes(_fetch(groups, [0]), FETCH_VERSION)
    start.until(server, started, fetch, lambda response: _has_loaded(response, len(groups)))
    describe = start.request_bytes(g.DescribeGroupsRequest(groups=list(groups)), DESCRIBE_VERSION)
    return start.until(server, started, describe, _has_described)


def _fetch(groups: Sequence[str], partitions: list[int] | None) -> o.OffsetFetchRequest:
    topics = None if partitions is None else [o.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=partitions)]
    return o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id=group, topics=topics) for group in groups])


def _has_loaded(response: bytes, count: int) -> bool:
    loaded = start.decoded(response, o.OffsetFetchResponse, FETCH_VERSION).groups
    _check_codes({group.error_code for group in loaded})
    return (
        sum(
            partition.committed_offset == OFFSET
            for group in loaded
            for topic in group.topics
            for partition in topic.partitions
        )
        == count
    )


def _has_described(response: bytes) -> bool:
    codes = {group.error_code for group in start.decoded(response, g.DescribeGroupsResponse, DESCRIBE_VERSION).groups}
    _check_codes(codes)
    return codes == {0}


def _check_codes(codes: set[int]) -> None:
    if codes - {0} - RETRIABLE:
        raise RuntimeError(f"A group was answered with error codes {codes}")


def count_offsets(server: Server, groups: Sequence[str]) -> int:
    """The number of committed offsets of these groups."""
    count = 0
    for first in range(0, len(groups), GROUPS_OF_A_REQUEST):
        request = start.request_bytes(_fetch(groups[first : first + GROUPS_OF_A_REQUEST], None), FETCH_VERSION)
        response = start.decoded(start.request(server, request), o.OffsetFetchResponse, FETCH_VERSION)
        count += sum(len(topic.partitions) for group in response.groups for topic in group.topics)
    return count


def pss_mb(server: Server) -> float:
    """The memory of all processes of the broker (PSS: a shared page is divided among its processes; 10^6 B)."""
    return sum(process.memory_full_info().pss for process in server.processes()) / 1e6


def heap_mb(server: Server) -> float:
    """The live objects in Kafka's heap: its use after a full collection (10^6 bytes)."""
    pid = str(next(process.pid for process in server.processes() if "java" in process.name()))
    subprocess.run(["jcmd", pid, "GC.run"], check=True, capture_output=True)
    shown = subprocess.run(["jcmd", pid, "GC.heap_info"], check=True, capture_output=True, text=True).stdout
    return int(shown.partition("used ")[2].partition("K")[0]) * 1024 / 1e6


def prepare(server: Server, groups: Sequence[str], options: argparse.Namespace) -> int:
    """Make the server's directory: with the topic, the logs, and the files that a recovery adds to them."""
    server.start()
    start.find_coordinators(server, groups[:1])
    server.stop()
    size = write_logs(server.log_dir, groups, options.offsets // len(groups), options.batch, options.metadata)
    server.start()
    server.stop()
    return size


def measure(server: Server, groups: Sequence[str], offsets: int) -> dict[str, float]:
    """Start the server; its figures when all groups are loaded."""
    probes = list({coordinator_partition(group, COORDINATORS): group for group in groups}.values())
    began = time.monotonic()
    server.spawn()
    try:
        return _figures(server, began, probes, groups, offsets)
    finally:
        server.stop()


def _figures(
    server: Server, began: float, probes: Sequence[str], groups: Sequence[str], offsets: int
) -> dict[str, float]:
    figures = {"metadata s": start.first_metadata(server, began), "ready s": ready(server, began, probes)}
    figures["CPU s"] = server.cpu_s()
    figures["RSS MB"], figures["PSS MB"] = server.rss_bytes() / 1e6, pss_mb(server)
    if isinstance(server, KafkaServer):
        figures["heap MB"] = heap_mb(server)
    assert count_offsets(server, groups) == offsets, "offsets are missing"
    return figures


def main() -> None:
    """Print one line for each start."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--offsets", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=100, help="offsets of a batch: of a commit")
    parser.add_argument("--metadata", default="", help="metadata of each offset")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--server", choices=("barnabas", "kafka"), action="append")
    parser.add_argument("--dir", type=Path, help="keep the directories here and use those that are there")
    options = parser.parse_args()
    groups = [f"group-{number:06}" for number in range(options.groups)]
    with tempfile.TemporaryDirectory(prefix="offsets-") as folder:
        for kind in options.server or ("barnabas", "kafka"):
            home = (options.dir or Path(folder)) / f"{kind}-{options.groups}-{options.batch}-{len(options.metadata)}"
            is_there = home.exists()
            server = (BarnabasServer if kind == "barnabas" else KafkaServer)(home)
            if is_there:
                _use(server)
            else:
                print(f"# {kind}: {prepare(server, groups, options) / 1e6:.0f} MB of log", flush=True)
            _runs(server, groups, options)


def _use(server: Server) -> None:
    """Take a directory as an earlier run has left it: Kafka's has the port in its properties."""
    if isinstance(server, KafkaServer):
        server.port = int(server.properties.read_text().partition(f"PLAINTEXT://{server.host}:")[2].partition(",")[0])
    server.prepare()


def _runs(server: Server, groups: Sequence[str], options: argparse.Namespace) -> None:
    runs: list[dict[str, float]] = []
    for _ in range(options.runs):
        runs.append(measure(server, groups, options.offsets))
        print(f"  {_line(runs[-1])} load {os.getloadavg()[0]:.1f}", flush=True)
    medians = {name: statistics.median([run[name] for run in runs]) for name in runs[0]}
    print(f"{server.name}: {options.groups} groups, batches of {options.batch}: {_line(medians)}", flush=True)


def _line(figures: dict[str, float]) -> str:
    return ", ".join(
        f"{name} {value:.2f}" if name.endswith(" s") else f"{name} {value:.0f}" for name, value in figures.items()
    )


if __name__ == "__main__":
    main()
