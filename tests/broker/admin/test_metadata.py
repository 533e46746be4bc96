"""Metadata, DescribeCluster, DescribeTopicPartitions: the first requests of a client."""

from __future__ import annotations

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsRequestTopicRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 3)
    memory.create_topic("u", 1)
    return memory.client()


def ask(client: Client, *names: str, version: int = 13, **options) -> MetadataResponse:
    topics = [MetadataRequestTopic(name=name) for name in names]
    return client.ask(MetadataRequest(topics=topics, **options), version, MetadataResponse)


@for_each("version", range(14))
def test_every_version_describes_brokers_and_topics(memory: MemoryBroker, client: Client, version: int) -> None:
    response = ask(client, "t", version=version)
    assert [(broker.node_id, broker.host, broker.port) for broker in response.brokers] == [(1, "127.0.0.1", 9092)]
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (0, "t", False)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    assert all(
        (partition.leader_id, partition.replica_nodes, partition.isr_nodes, partition.error_code) == (1, [1], [1], 0)
        for partition in topic.partitions
    )
    if version >= 1:
        assert response.controller_id == 1
    if version >= 2:
        assert response.cluster_id == memory.broker.cluster_id
    if version >= 10:
        assert topic.topic_id == memory.broker.image.topics["t"].topic_id


def test_all_topics_are_requested_by_null_and_in_version_0_by_an_empty_list(client: Client) -> None:
    def names(request: MetadataRequest, version: int) -> set[str | None]:
        return {topic.name for topic in client.ask(request, version, MetadataResponse).topics}

    assert names(MetadataRequest(topics=None), 12) == {"t", "u"}
    assert names(MetadataRequest(topics=[]), 0) == {"t", "u"}
    assert names(MetadataRequest(topics=[]), 1) == set()


def test_a_topic_can_be_requested_by_its_id(memory: MemoryBroker, client: Client) -> None:
    topic_id = memory.broker.image.topics["t"].topic_id
    request = MetadataRequest(
        topics=[MetadataRequestTopic(topic_id=topic_id, name=None), MetadataRequestTopic(topic_id=b"x" * 16, name=None)]
    )
    known, unknown = client.ask(request, 12, MetadataResponse).topics
    assert (known.error_code, known.name) == (0, "t")
    assert (unknown.error_code, unknown.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)
    both = MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"x" * 16, name="t")])  # the id decides
    (topic,) = client.ask(both, 12, MetadataResponse).topics
    assert (topic.error_code, topic.name) == (ErrorCode.UNKNOWN_TOPIC_ID, None)


def test_a_missing_topic_is_created_when_both_sides_allow_it(memory: MemoryBroker, client: Client) -> None:
    (refused,) = ask(client, "new", allow_auto_topic_creation=False).topics
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (created,) = ask(client, "new").topics
    assert (created.error_code, len(created.partitions)) == (0, 1)
    assert memory.broker.partitions.get("new", 0).log.log_end_offset == 0


def test_auto_creation_can_be_switched_off(tmp_path) -> None:
    memory = MemoryBroker(tmp_path, {"auto.create.topics.enable": "false"})
    (refused,) = ask(memory.client(), "new").topics
    assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    memory.close()


def test_an_invalid_topic_name_is_an_error(memory: MemoryBroker, client: Client) -> None:
    (bad, good) = ask(client, "a b", "t").topics
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert good.error_code == 0


def test_with_kafkas_profile_a_created_topic_is_unknown_in_the_first_response(tmp_path) -> None:
    """Apache Kafka 4.4.0 answers UNKNOWN_TOPIC_OR_PARTITION first; clients' own tests rely on it."""
    memory = MemoryBroker(tmp_path, {"default.replication.factor": "1"}, "kafka")
    client = memory.client()
    (first,) = ask(client, "new").topics
    assert (first.error_code, first.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    (again,) = ask(client, "new").topics
    assert (again.error_code, len(again.partitions)) == (0, 1)
    (bad,) = ask(client, "a b").topics
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    memory.close()


def test_with_kafkas_profile_a_topic_that_cannot_be_created_stays_unknown(tmp_path, caplog) -> None:
    memory = MemoryBroker(tmp_path, {"default.replication.factor": "3"}, "kafka")
    (first,) = ask(memory.client(), "new").topics
    assert first.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "Auto topic creation failed for new with error 'INVALID_REPLICATION_FACTOR'" in caplog.text
    memory.close()


def test_an_invalid_name_is_invalid_also_without_auto_creation(client: Client) -> None:
    (bad,) = ask(client, "a b", allow_auto_topic_creation=False).topics
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def describe(client: Client, names: list[str], cursor: tuple[str, int] | None = None) -> list[tuple[str | None, int]]:
    """DescribeTopicPartitions: (name, error code) of each topic answered."""
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names],
        response_partition_limit=100,
        cursor=cursor and DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    response = client.ask(request, 0, DescribeTopicPartitionsResponse)
    return [(topic.name, topic.error_code) for topic in response.topics]


def test_topics_that_cannot_be_described_are_answered_one_by_one(client: Client) -> None:
    """As Apache Kafka 4.4.0 answered the same requests, except for the empty name, which fails the whole request."""
    invalid, unknown = ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert describe(client, ["a b", "missing", "t"]) == [("a b", invalid), ("missing", unknown), ("t", 0)]
    assert describe(client, [".", "x" * 250, ""]) == [("", invalid), (".", invalid), ("x" * 250, invalid)]


@pytest.mark.parametrize("cursor", [("t", -1), ("v", 0), ("a b", 0)])
def test_a_bad_cursor_is_answered_for_each_topic(client: Client, cursor: tuple[str, int]) -> None:
    bad = ErrorCode.INVALID_REQUEST
    assert describe(client, ["t", "u"], cursor) == [("t", bad), ("u", bad)]


def test_a_cursor_without_names_may_name_any_topic(client: Client) -> None:
    assert describe(client, [], ("s", 0)) == [("t", 0), ("u", 0)]


def test_operations_are_reported_only_when_requested(client: Client) -> None:
    plain = ask(client, "t", version=8)
    assert plain.topics[0].topic_authorized_operations == -(2**31)
    assert plain.cluster_authorized_operations == -(2**31)
    response = ask(
        client, "t", version=8, include_topic_authorized_operations=True, include_cluster_authorized_operations=True
    )
    assert response.topics[0].topic_authorized_operations == 0b110111111000
    missing = ask(client, "a b", version=8, include_topic_authorized_operations=True).topics[0]
    assert (missing.error_code, missing.topic_authorized_operations) == (17, 0b110111111000)
    assert response.cluster_authorized_operations == 0b1111110100000


def test_without_advertised_listeners_the_clients_address_is_advertised(memory: MemoryBroker) -> None:
    client = memory.client(local=("192.168.7.7", 19092))
    (broker,) = ask(client).brokers
    assert (broker.host, broker.port) == ("192.168.7.7", 19092)
    (broker,) = client.ask(DescribeClusterRequest(), 1, DescribeClusterResponse).brokers
    assert (broker.host, broker.port) == ("192.168.7.7", 19092)


def test_advertised_listeners_are_advertised(tmp_path) -> None:
    memory = MemoryBroker(tmp_path, {"advertised.listeners": "PLAINTEXT://kafka:19092", "broker.rack": "r1"})
    (broker,) = ask(memory.client()).brokers
    assert (broker.host, broker.port, broker.rack) == ("kafka", 19092, "r1")
    memory.close()


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_cluster_is_described(memory: MemoryBroker, client: Client, version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = client.ask(request, version, DescribeClusterResponse)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, memory.broker.cluster_id, 1)
    assert [broker.broker_id for broker in response.brokers] == [1]
    assert response.cluster_authorized_operations == 0b1111110100000


def test_controllers_are_not_described_on_this_endpoint(client: Client) -> None:
    response = client.ask(DescribeClusterRequest(endpoint_type=2), 1, DescribeClusterResponse)
    assert response.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    response = client.ask(DescribeClusterRequest(endpoint_type=9), 1, DescribeClusterResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


def page(client: Client, names: list[str], limit: int, cursor: tuple[str, int] | None = None):
    request = DescribeTopicPartitionsRequest(
        topics=[DescribeTopicPartitionsRequestTopicRequest(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None
        if cursor is None
        else DescribeTopicPartitionsRequestCursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return client.ask(request, 0, DescribeTopicPartitionsResponse)


@for_each("limit", [1, 2, 3, 4, 5, 2000])
def test_partitions_are_paged_through_by_the_cursor(client: Client, limit: int) -> None:
    """KIP-966: each partition once, in order, at most the limit per response."""
    seen: list[tuple[str | None, int]] = []
    cursor = None
    for _ in range(10):
        response = page(client, [], limit, cursor)
        partitions = [
            (topic.name, partition.partition_index) for topic in response.topics for partition in topic.partitions
        ]
        assert len(partitions) <= limit
        seen += partitions
        if response.next_cursor is None:
            break
        cursor = (response.next_cursor.topic_name, response.next_cursor.partition_index)
    assert seen == [("t", 0), ("t", 1), ("t", 2), ("u", 0)]


def test_named_topics_are_described_and_missing_ones_are_errors(client: Client) -> None:
    missing, known = page(client, ["u", "missing"], 2000).topics
    assert (missing.name, missing.error_code) == ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert missing.topic_authorized_operations == known.topic_authorized_operations == 0b110111111000
    full = page(client, ["t", "x-missing"], 3)
    assert [topic.name for topic in full.topics] == ["t"]
    assert full.next_cursor is not None
    assert full.next_cursor.topic_name == "x-missing"
    assert (known.name, known.error_code, known.partitions[0].isr_nodes) == ("u", 0, [1])
