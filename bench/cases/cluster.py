"""The cases of the group `Cluster`: three brokers and a controller, topics with three replicas, acks=all.

Each case starts a cluster of its own, since it changes the cluster.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.client.admin.reassignments import reassign
from barnabas.client.cluster import Cluster
from bench.cases.case import Case, Figures, Goal, Group, Mode, Scale
from bench.target import Target
from tests.support.processes.served_cluster import BarnabasCluster, KafkaCluster
from tests.support.requests import frames

SESSION_MS = 3000
SETTINGS = {
    "broker.session.timeout.ms": str(SESSION_MS),
    "broker.heartbeat.interval.ms": "500",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}
SETTLE_S = 3.0
TIMEOUT_S = 60.0
TOPIC = "bench"
RATE = 1000
LINGER_MS = 5
RAW_BYTES = 100 << 10
RAW_CONNECTIONS = 4
RAW_IN_FLIGHT = 4
ACKS_ALL = -1
Served = BarnabasCluster | KafkaCluster


def _new_cluster(group: Group, kind: str, folder: Path) -> Served:
    if kind == "barnabas":
        cluster: Served = BarnabasCluster(folder / kind, config=dict(group.barnabas))
    else:
        cluster = KafkaCluster(folder / kind, config=dict(group.kafka))
    cluster.prepare()
    return cluster


@contextmanager
def served(group: Group, kind: str) -> Iterator[Served]:
    """A cluster of one kind that serves."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        server = _new_cluster(group, kind, Path(folder))
        server.spawn()
        try:
            server.wait_ready()
            yield server
        finally:
            server.stop()


def create_topic(server: Served, partitions: int, replicas: list[int] | None = None) -> None:
    """A topic of three replicas, or all partitions with the given ones, once three brokers are there."""
    admin = AdminClient({"bootstrap.servers": server.bootstrap, "log_level": 0})
    deadline = time.monotonic() + TIMEOUT_S
    while len(admin.list_topics(timeout=10).brokers) < server.brokers and time.monotonic() < deadline:
        time.sleep(0.01)
    if replicas is None:
        topic = NewTopic(TOPIC, partitions, 3)
    else:
        topic = NewTopic(TOPIC, partitions, replica_assignment=[replicas] * partitions)
    for future in admin.create_topics([topic]).values():
        future.result(30)


def _producer(server: Served, **more: object) -> Producer:
    settings = {"bootstrap.servers": server.bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 0}
    return Producer({**settings, "reconnect.backoff.ms": 20, "retry.backoff.ms": 20, **more})


def start_and_idle(group: Group, kind: str, _: Scale) -> Figures:
    """Seconds until a topic with three replicas is created, and the memory of all processes after `SETTLE_S`."""
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        server = _new_cluster(group, kind, Path(folder))
        started = time.monotonic()
        server.spawn()
        try:
            server.wait_ready()
            create_topic(server, 1)
            took = time.monotonic() - started
            time.sleep(SETTLE_S)
            return {"start s": took, "idle MB": server.rss_bytes() / 1e6}
        finally:
            server.stop()


def produce(group: Group, kind: str, scale: Scale, *, size: int) -> Figures:
    """Produce with confluent-kafka to six partitions."""
    count = scale.synced_records if size < 1000 else scale.synced_records // 3
    with served(group, kind) as server:
        create_topic(server, 6)
        _send(server, count // 10, size)
        before, began = server.cpu_s(), time.monotonic()
        _send(server, count, size)
        seconds, cpu_s = time.monotonic() - began, server.cpu_s() - before
        return {"msg/s": count / seconds, "CPU s/GB": cpu_s / (count * size / 1e9)}


def _send(server: Served, count: int, size: int) -> None:
    producer = _producer(server, **{"linger.ms": 5, "batch.size": 131_072, "queue.buffering.max.messages": 200_000})
    failed: list[KafkaError] = []
    value = os.urandom(size)

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    for _ in range(count):
        while True:
            try:
                producer.produce(TOPIC, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(TIMEOUT_S) or failed:
        raise RuntimeError(f"records were not acknowledged: {failed[:1]}")


def raw_produce(group: Group, kind: str, scale: Scale) -> Figures:
    """Produce encoded batches of 100 KB to the leader of all partitions; each connection has its own partition."""
    with served(group, kind) as server:
        create_topic(server, RAW_CONNECTIONS, [1, 2, 3])
        target = Target(server)
        batch, _ = frames.batch(RAW_BYTES, 1000)
        requests = [frames.produce(TOPIC, n, batch, ACKS_ALL) for n in range(RAW_CONNECTIONS)]
        target.wait_served(TOPIC, RAW_CONNECTIONS)
        time.sleep(SETTLE_S)  # modules that are loaded after the start do not count as a cost of the load
        limits = (scale.warmup_s, scale.seconds, scale.max_mb)
        outcome = target.raw("produce", requests, RAW_CONNECTIONS, RAW_IN_FLIGHT, *limits)
        return {"MB/s": outcome.bytes / outcome.seconds / 1e6, "CPU s/GB": outcome.cpu_s_per_gb}


def end_to_end(group: Group, kind: str, scale: Scale) -> Figures:
    """Latency from produce in one process to poll in another, acks=all, at a constant rate.

    The producer has its default linger: with a request for each record, two cores are too few for either side.
    """
    with served(group, kind) as server:
        create_topic(server, 1)
        target = Target(server)
        target.wait_served(TOPIC, 1)
        time.sleep(SETTLE_S)
        durations = (4 * scale.warmup_s, 4 * scale.seconds)
        outcome = target.confluent("latency", TOPIC, RATE, *durations, LINGER_MS)
        return {"p50 ms": outcome.p50_us / 1000, "p99 ms": outcome.p99_us / 1000}


def catch_up(group: Group, kind: str, scale: Scale) -> Figures:
    """A partition with data gets a replica on a third broker: megabytes a second until it is in sync."""
    with served(group, kind) as server:
        create_topic(server, 1, [1, 2])
        target = Target(server)
        batch, _ = frames.batch(RAW_BYTES, 1000)
        requests = [frames.produce(TOPIC, 0, batch, ACKS_ALL)]
        target.wait_served(TOPIC, 1)
        filled = target.raw("produce", requests, 1, RAW_IN_FLIGHT, 0, TIMEOUT_S, 4 * scale.fill_mb)
        with Cluster(server.bootstrap) as cluster:
            began = time.monotonic()
            reassign(cluster, {(TOPIC, 0): [1, 2, 3]})
            while len(target.admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0].isrs) < server.brokers:
                if time.monotonic() - began > TIMEOUT_S:
                    raise RuntimeError("the new replica did not catch up")
                time.sleep(0.01)
            return {"MB/s": filled.bytes / (time.monotonic() - began) / 1e6}


def interrupted(group: Group, kind: str, _: Scale, *, number: signal.Signals) -> Figures:
    """The longest pause between acknowledgements when the leader of the only partition gets a signal."""
    with served(group, kind) as server:
        create_topic(server, 1)
        producer = _producer(server, **{"linger.ms": 0})
        acknowledged: list[float] = []
        failed: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            acknowledged.append(time.monotonic())
            if error is not None:
                failed.append(error)

        def run(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                producer.produce(TOPIC, b"x" * 100, on_delivery=delivered)
                producer.poll(0.005)

        run(SETTLE_S)
        leader = producer.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0].leader
        os.kill(server.pid_of(leader), number)
        run(SESSION_MS / 1000 + SETTLE_S)
        if producer.flush(TIMEOUT_S) or failed:
            raise RuntimeError(f"records were not acknowledged: {failed[:1]}")
        pauses = [after - before for before, after in pairwise(acknowledged)]
        return {"pause ms": max(pauses) * 1000}


def group(page_cache: Mapping[str, str], more: Iterable[Case] = ()) -> Group:
    """The group, with more cases; `page_cache` are the settings of a broker of ours that does not sync."""
    return Group(
        "Cluster",
        "Three brokers and one controller, topics with three replicas of which two must be in sync, acks=all; neither "
        "side syncs before it acknowledges. Memory and CPU are those of all processes.",
        (*cases(), *more),
        barnabas={**page_cache, **SETTINGS},
        kafka=SETTINGS,
    )


def cases() -> Iterator[Case]:
    """The cases of the group, in order."""
    yield Case("start of a cluster", start_and_idle, {"start s": Goal(0.25), "idle MB": Goal(0.2)}, Mode.OWN_SERVER)
    for size, label in ((100, "100 B"), (1000, "1 KB")):
        goals = {"msg/s": Goal(1.0), "CPU s/GB": Goal(0.67)}
        yield Case(
            f"confluent produce {label}, 6 part., 3 replicas", partial(produce, size=size), goals, Mode.OWN_SERVER
        )
    yield Case(
        f"raw produce 100 KB, {RAW_CONNECTIONS} conn., 3 replicas",
        raw_produce,
        {"MB/s": Goal(1.0), "CPU s/GB": Goal(0.67)},
        Mode.OWN_SERVER,
    )
    yield Case(f"end-to-end at {RATE:,} msg/s", end_to_end, {"p99 ms": Goal(0.5)}, Mode.OWN_SERVER)
    yield Case("catch-up of an empty follower", catch_up, {"MB/s": Goal(1.0)}, Mode.OWN_SERVER)
    killed = partial(interrupted, number=signal.SIGKILL)
    yield Case("kill -9 of a leader", killed, {"pause ms": Goal(limit=SESSION_MS + 1000)}, Mode.OWN_SERVER)
    stopped = partial(interrupted, number=signal.SIGTERM)
    yield Case("controlled shutdown of a leader", stopped, {"pause ms": Goal(limit=300)}, Mode.OWN_SERVER)
