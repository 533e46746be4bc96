"""The collector against a broker: rates, lags and open transactions arrive; it pauses; failures are sentences."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from barnabas.client.admin.topics import create_topic
from barnabas.client.cluster import Cluster
from barnabas.client.groups.consumer_groups import commit_offsets
from barnabas.client.producer import Producer
from barnabas.console.collector.collector import Collector
from barnabas.console.collector.figures import Figures
from barnabas.console.collector.views import transaction_rows
from barnabas.wire.clients.partitioners import RoundRobin
from tests.support.processes.ports import free_port

HANGS_S = 60


@contextmanager
def collecting(bootstrap: str) -> Iterator[Collector]:
    collector = Collector(lambda: Cluster(bootstrap, timeout_s=5), interval_s=0.05)
    try:
        yield collector
    finally:
        collector.close()


def wait_until(collector: Collector, holds: Callable[[Figures], bool]) -> None:
    """Wait for samples until the figures are so."""
    count, give_up_at = 0, time.monotonic() + HANGS_S
    while True:
        collector.keep_sampling()
        count = collector.wait_for_sample(count, HANGS_S)
        with collector.lock:
            if holds(collector.figures):
                return
            assert time.monotonic() < give_up_at, collector.figures


def test_figures_of_a_broker_arrive_and_follow_what_happens(broker, topic_name) -> None:
    orders, group, name = topic_name("orders"), topic_name("readers"), topic_name("pay")
    with Cluster(broker.bootstrap) as cluster, collecting(broker.bootstrap) as collector:
        create_topic(cluster, orders, partitions=2)
        commit_offsets(cluster, group, {(orders, 0): 0, (orders, 1): 0})
        wait_until(collector, lambda figures: figures.groups.get(group) is not None and figures.groups[group].lag == 0)
        producer = Producer(cluster, RoundRobin)
        for number in range(10):
            producer.send(orders, b"record", partition=number % 2)
        producer.flush()
        wait_until(collector, lambda figures: figures.groups[group].lags == {(orders, 0): 5, (orders, 1): 5})
        assert collector.figures.topics[orders].history is not None  # the rate was seen
        commit_offsets(cluster, group, {(orders, 0): 5, (orders, 1): 5})
        wait_until(collector, lambda figures: figures.groups[group].lag == 0)

        writer = Producer(cluster, RoundRobin, transactional_id=name)
        writer.send(orders, b"record", partition=0)
        writer.flush()
        transaction = writer.transaction
        assert transaction is not None
        wait_until(collector, lambda figures: any(row.held == 1 for row in transaction_rows(figures, time.time())))
        (row,) = [row for row in transaction_rows(collector.figures, time.time()) if row.transactional_id == name]
        assert (row.producer_id, row.state) == (transaction.identity.producer_id, "Ongoing")
        assert [(held.topic, held.partition, held.held, held.groups) for held in row.partitions] == [
            (orders, 0, 1, [group])
        ]
        transaction.end(commit=True)
        wait_until(collector, lambda figures: not any(each.transactional_id == name for each in figures.transactions))
        (figures,) = collector.figures.brokers.values()
        assert figures.answers
        assert figures.load is not None
        assert figures.disk_used == figures.load.disk
        assert collector.figures.failures == {}


def test_without_a_broker_there_is_a_sentence_and_nobody_waits() -> None:
    with collecting(f"127.0.0.1:{free_port()}") as collector:
        collector.keep_sampling()
        assert collector.wait_for_sample(0, HANGS_S) == 0
        assert "no broker answers" in collector.failure


def test_it_does_not_run_before_somebody_looks() -> None:
    with collecting("127.0.0.1:1") as collector:
        assert collector.wait_for_sample(0, 0) == 0
        assert collector.failure == ""
