"""A broker with few descriptors: partitions have a share of them, and nothing that it needs cannot be opened."""

from __future__ import annotations

from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.records import build_batch
from tests.hostile.attacker import Attacker
from tests.hostile.harness import beside_healthy_client, stop_in_grace

PARTITIONS = 300


def produce_to_all(client: Attacker) -> set[int]:
    """A batch for each partition of the topic; gives the error codes."""
    batch = build_batch([(1000, None, b"value")])
    data = [PartitionProduceData(index=index, records=batch) for index in range(PARTITIONS)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name="many", partition_data=data)])
    return {one.error_code for one in client(request, 9).responses[0].partition_responses}


def test_300_partitions_with_256_descriptors(start_victim) -> None:
    """They can be written, and the broker starts again; or the topic is refused and everything else works."""
    victim = start_victim(files=256)
    topics = [CreatableTopic(name="many", num_partitions=PARTITIONS, replication_factor=1)]
    with Attacker(victim.bootstrap) as client:
        (made,) = client(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics
        if made.error_code == 0:
            assert produce_to_all(client) == {0}  # the first batches, which need more
    with beside_healthy_client(victim) as healthy:
        client = Attacker(victim.bootstrap, healthy)
        if made.error_code == 0:
            assert produce_to_all(client) == {0}
    stop_in_grace(victim, 10.0)
    victim.start()
    with beside_healthy_client(victim) as healthy:
        client = Attacker(victim.bootstrap, healthy)
        if made.error_code == 0:
            assert produce_to_all(client) == {0}
    stop_in_grace(victim, 10.0)


def test_more_connections_than_descriptors(start_victim) -> None:
    victim = start_victim(files=256)
    with beside_healthy_client(victim) as healthy:
        attackers = [Attacker(victim.bootstrap, healthy) for _ in range(400)]
        for attacker in attackers:
            attacker.close()
        healthy.settle()
        assert Attacker(victim.bootstrap, healthy)(ApiVersionsRequest(), 0).error_code == 0
    stop_in_grace(victim, 10.0)
