"""Measures memory and start after 1,000,000 metadata records: both stay bounded, since snapshots replace the records.

`python -m bench.metadata_records [--cluster]` has a node (or three brokers and their controller) change the configs of
100 topics and create and delete topics until so many records are written, looks at the memory on the way, stops it and
times the next start.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.wire.messages import configs as c
from barnabas.wire.messages import topics as t
from barnabas.wire.schema import Message
from bench import start
from tests.support.processes.served_cluster import BarnabasCluster
from tests.support.processes.server import BarnabasServer, Server

TOPICS = 100
KEYS = ("retention.ms", "segment.ms", "retention.bytes", "file.delete.delay.ms", "flush.ms")
TOPIC_RESOURCE, SET = 2, 0
CHANGES_OF_A_REQUEST = TOPICS * len(KEYS)
REQUESTS_BETWEEN_LOOKS = 200


def create(names: list[str]) -> Message:
    """CreateTopics with one partition each."""
    topics = [t.CreatableTopic(name=name, num_partitions=1, replication_factor=-1) for name in names]
    return t.CreateTopicsRequest(topics=topics, timeout_ms=60_000)


def delete(names: list[str]) -> Message:
    """DeleteTopics by name."""
    topics = [t.DeleteTopicState(name=name) for name in names]
    return t.DeleteTopicsRequest(topics=topics, timeout_ms=60_000)


def change(number: int) -> Message:
    """IncrementalAlterConfigs of every topic: a record for each key, with new values."""
    values = [
        c.IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=SET, value=str(10**8 + number))
        for key in KEYS
    ]
    return c.IncrementalAlterConfigsRequest(
        resources=[
            c.IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=f"topic-{index}", configs=values
            )
            for index in range(TOPICS)
        ]
    )


def ask(server: Server, message: Message, version: int) -> bytes:
    """Send a request and return its response."""
    return start.request(server, start.request_bytes(message, version))


def changes(server: Server, records: int) -> Iterator[int]:
    """Write so many records of configs; yields how many there are so far."""
    answer_type = c.IncrementalAlterConfigsResponse
    for number in range(records // CHANGES_OF_A_REQUEST):
        response = start.decoded(ask(server, change(number), 1), answer_type, 1)
        assert all(result.error_code == 0 for result in response.responses), response
        if (number + 1) % REQUESTS_BETWEEN_LOOKS == 0:
            yield (number + 1) * CHANGES_OF_A_REQUEST


def creations(server: Server, topics: int) -> Iterator[int]:
    """Create and delete so many topics: two records or three for each; yields how many there were so far."""
    for first in range(0, topics, TOPICS):
        names = [f"short-{first + index}" for index in range(TOPICS)]
        response = start.decoded(ask(server, create(names), 7), t.CreateTopicsResponse, 7)
        assert all(topic.error_code == 0 for topic in response.topics), response
        ask(server, delete(names), 6)
        if (first + TOPICS) % (10 * TOPICS) == 0:
            yield first + TOPICS


def memory(server: Server) -> str:
    """The memory of each process (PSS, 10^6 bytes)."""
    return " + ".join(f"{process.memory_full_info().pss / 1e6:.0f}" for process in server.processes())


def log_mb(server: Server) -> float:
    """The size of the metadata logs and their snapshots (10^6 bytes)."""
    folders = [server.log_dir, *server.log_dir.glob("broker-*"), *server.log_dir.glob("controller*")]
    return sum(path.stat().st_size for folder in folders for path in folder.glob("__cluster_metadata-0/*")) / 1e6


def main() -> None:
    """Print a line for each look."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--topics", type=int, default=3000, help="how many topics are created and deleted as well")
    parser.add_argument("--cluster", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="metadata-") as folder:
        home = Path(folder) / "data"
        with BarnabasCluster(home) if options.cluster else BarnabasServer(home) as server:
            _measure(server, options)


def _measure(server: Server, options: argparse.Namespace) -> None:
    ask(server, create([f"topic-{index}" for index in range(TOPICS)]), 7)
    print(f"before: {memory(server)} MB, log {log_mb(server):.1f} MB", flush=True)
    began, cpu_s = time.monotonic(), server.cpu_s()
    for count in changes(server, options.records):
        print(f"{count} config records: {memory(server)} MB, log {log_mb(server):.1f} MB", flush=True)
    for count in creations(server, options.topics):
        print(f"{count} topics made and deleted: {memory(server)} MB, log {log_mb(server):.1f} MB", flush=True)
    print(f"written in {time.monotonic() - began:.0f} s, CPU {server.cpu_s() - cpu_s:.0f} s", flush=True)
    server.stop()
    began = time.monotonic()
    server.spawn()
    answered_s = start.first_metadata(server, began)
    server.wait_ready()
    ready_s, cpu_s = time.monotonic() - began, server.cpu_s()
    print(f"start: Metadata after {answered_s:.2f} s, ready after {ready_s:.2f} s, CPU {cpu_s:.2f} s", flush=True)
    print(f"after the start: {memory(server)} MB, log {log_mb(server):.1f} MB", flush=True)


if __name__ == "__main__":
    main()
