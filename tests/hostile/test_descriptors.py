"""A broker with few descriptors: partitions have a share of them, and nothing that it needs cannot be opened."""

from __future__ import annotations

import pytest

from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.hostile.attacker import Attacker
from tests.hostile.harness import beside_healthy_client, needs_plaintext, stop_in_grace

PARTITIONS = 300


def produce_to_all(client: Attacker, batch: bytes = build_batch([(1000, None, b"value")])) -> set[int]:
    """A batch for each partition of the topic; gives the error codes."""
    data = [PartitionProduceData(index=index, records=batch) for index in range(PARTITIONS)]
    request = ProduceRequest(acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name="many", partition_data=data)])
    return {partition.error_code for partition in client(request, 9).responses[0].partition_responses}


def test_300_partitions_with_256_descriptors(start_victim) -> None:
    """They can be written, and the broker starts again; or the topic is refused and everything else works."""
    victim = start_victim(files=256)
    topics = [CreatableTopic(name="many", num_partitions=PARTITIONS, replication_factor=1)]
    with Attacker(victim) as client:
        (created,) = client(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics
        if created.error_code == 0:
            assert produce_to_all(client) == {0}  # the first batches, which need more
    with beside_healthy_client(victim) as healthy:
        client = Attacker(victim, healthy)
        if created.error_code == 0:
            assert produce_to_all(client) == {0}
    stop_in_grace(victim, 10.0)
    victim.start()
    with beside_healthy_client(victim) as healthy:
        client = Attacker(victim, healthy)
        if created.error_code == 0:
            assert produce_to_all(client) == {0}
    stop_in_grace(victim, 10.0)


@pytest.mark.parametrize("sync", ["os", pytest.param("always", marks=pytest.mark.soak)])
def test_records_of_all_partitions_in_one_response(start_victim, sync) -> None:
    """A slice of each of 300 files is more than the descriptors: the records are read into memory then."""
    victim = start_victim({"barnabas.log.sync": sync}, files=256)
    large = build_batch([(1000, None, bytes(20_000))])
    with Attacker(victim) as client:
        topics = [CreatableTopic(name="many", num_partitions=PARTITIONS, replication_factor=1)]
        assert client(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7).topics[0].error_code == 0
        assert produce_to_all(client, large) == {0}
        assert produce_to_all(client, large) == {0}
    with beside_healthy_client(victim) as healthy:
        client = Attacker(victim, healthy)
        for _ in range(3):
            partitions = [
                FetchRequestFetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
                for index in range(PARTITIONS)
            ]
            requested = [FetchRequestFetchTopic(topic="many", partitions=partitions)]
            request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=50 << 20, session_epoch=-1, topics=requested)
            answers = client(request, 12).responses[0].partitions
            assert {partition.error_code for partition in answers} == {0}
            assert {len(partition.records or b"") for partition in answers} == {2 * len(large)}
    assert "Too many open files" not in victim.log()
    victim.kill9()
    victim.start()
    with beside_healthy_client(victim) as healthy:
        client = Attacker(victim, healthy)
        assert {len(partition.records or b"") for partition in client(request, 12).responses[0].partitions} == {
            2 * len(large)
        }
    stop_in_grace(victim, 10.0)


def test_more_connections_than_descriptors(start_victim) -> None:
    victim = start_victim(files=256)
    needs_plaintext(victim)
    with beside_healthy_client(victim) as healthy:
        attackers = [Attacker(victim, healthy) for _ in range(400)]
        for attacker in attackers:
            attacker.close()
        healthy.settle()
        assert Attacker(victim, healthy)(ApiVersionsRequest(), 0).error_code == 0
    stop_in_grace(victim, 10.0)
