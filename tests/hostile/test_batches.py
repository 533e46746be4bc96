"""Record batches that hold the loop when they are opened, and batches that no client could read."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.hostile.attacker import Attacker
from tests.hostile.harness import beside_healthy_client
from tests.support.logs import gzip_bombs as bombs


def create(client: Attacker, name: str, **configs: str) -> None:
    """Create a topic, unless it exists."""
    values = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=values)
    client(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)


def produce(client: Attacker, topic: str, batch: bytes):
    """Produce a batch; gives the response of its partition."""
    data = PartitionProduceData(index=0, records=batch)
    request = ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    return client(request, 9).responses[0].partition_responses[0]


@pytest.mark.parametrize("count", [2_000_000, pytest.param(10_000_000, marks=pytest.mark.soak)])
def test_zstd_bomb_to_a_compacted_topic(victim, count) -> None:
    bomb = bombs.zstd_bomb(count)
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        create(attacker, "compacted", cleanup_policy="compact")
        assert produce(attacker, "compacted", bomb).error_code != 0


def test_large_valid_batch_to_a_compacted_topic_is_accepted(victim) -> None:
    batch = bombs.honest_batch(400_000)
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        create(attacker, "compacted", cleanup_policy="compact", max_message_bytes="10000000")
        create(attacker, "large", cleanup_policy="compact", max_message_bytes="10000000")
        assert produce(attacker, "large", batch).error_code == 0


def test_lookup_by_time_in_a_batch_that_lies_about_its_timestamps(victim) -> None:
    lie = bombs.with_max_timestamp(bombs.honest_batch(400_000), 5_000_000)
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        create(attacker, "lies", max_message_bytes="10000000")
        produce(attacker, "lies", lie)
        requested = ListOffsetsTopic(
            name="lies", partitions=[ListOffsetsPartition(partition_index=0, timestamp=4_000_000)]
        )
        for _ in range(3):
            response = attacker(ListOffsetsRequest(replica_id=-1, topics=[requested]), 5)
            assert response.topics[0].partitions[0].error_code == 0


def test_gzip_of_many_empty_members(victim) -> None:
    bomb = bombs.gzip_of_empty_members(50_000)
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        create(attacker, "compacted", cleanup_policy="compact")
        assert produce(attacker, "compacted", bomb).error_code != 0


@pytest.mark.parametrize("wrong", sorted(bombs.nonsense()))
def test_nonsense_under_a_right_crc_is_rejected(victim, wrong) -> None:
    with beside_healthy_client(victim) as healthy:
        attacker = Attacker(victim, healthy)
        create(attacker, "plain")
        assert produce(attacker, "plain", bombs.nonsense()[wrong]).error_code != 0
