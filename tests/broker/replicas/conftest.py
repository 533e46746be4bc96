"""A broker that leads a partition, and its two followers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.replicas.partition import Partition
from tests.broker.replicas.replicated_broker import (
    SECOND,
    THIRD,
    FollowerClient,
    ReplicatedBroker,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    broker = ReplicatedBroker(tmp_path, {"min.insync.replicas": "2"})
    yield broker
    broker.close()


@pytest.fixture
def partition(memory: ReplicatedBroker) -> Partition:
    return memory.lead()


@pytest.fixture
def second(memory: ReplicatedBroker, partition: Partition) -> FollowerClient:
    return FollowerClient(memory, SECOND)


@pytest.fixture
def third(memory: ReplicatedBroker, partition: Partition) -> FollowerClient:
    return FollowerClient(memory, THIRD)
