"""Clients of coordinators that move to other brokers."""

from __future__ import annotations

import time

from confluent_kafka import Consumer, Producer

from tests.support.cluster.clusters import Cluster
from tests.support.waiting import ANY_ERROR, wait_for

OFFSETS, TRANSACTIONS, STATE = "__consumer_offsets", "__transaction_state", "__share_group_state"


PARTITIONS = 3
"""Of each internal topic, as the cluster's configuration says."""


PATIENCE_S = 60.0


def write(cluster: Cluster, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    for number in range(first, first + count):
        producer.produce(topic, str(number), partition=number % 3)
    assert producer.flush(PATIENCE_S) == 0


class Reader:
    """A consumer of a group, and what it has read."""

    def __init__(self, cluster: Cluster, group: str, topic: str, protocol: str) -> None:
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "group.protocol": protocol,
            "log_level": 0,
        }
        self.consumer = Consumer(settings)
        self.consumer.subscribe([topic])
        self.values: list[int] = []

    def read(self, count: int) -> None:
        """Read until so many values are known."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.values) < count:
            assert time.monotonic() < deadline, f"{len(self.values)} of {count} values"
            message = self.consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.values.append(int(message.value() or b"0"))

    def commit(self) -> None:
        """Commit what was read, also while the coordinator moves."""

        def attempt() -> bool:
            self.consumer.commit(asynchronous=False)
            return True

        wait_for(attempt, "a commit", errors=ANY_ERROR)
