"""The APIs of topics and configs over a connection, in every version served."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.broker.apis.registry import served_versions
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import configs as c
from barnabas.wire.messages import topics as t
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND = 0, 1, 2


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def versions(key: ApiKey) -> range:
    low, high = served_versions(key)
    return range(low, high + 1)


def create(client: Client, version: int, *names: str, **fields: bool) -> list[t.CreatableTopicResult]:
    topics = [t.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names]
    return client.ask(t.CreateTopicsRequest(topics=topics, **fields), version, t.CreateTopicsResponse).topics


@for_each("version", versions(ApiKey.CREATE_TOPICS))
def test_a_topic_exists_when_its_creation_is_answered(memory: MemoryBroker, client: Client, version: int) -> None:
    good, bad = create(client, version, "orders", "no such name!")
    assert (good.error_code, good.error_message) == (0, None)
    assert bad.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False)
    (described,) = client.ask(request, 13, MetadataResponse).topics
    assert (described.error_code, len(described.partitions)) == (0, 2)
    assert memory.broker.partitions.get("orders", 1).log.log_end_offset == 0
    if version >= 5:
        assert (good.num_partitions, good.replication_factor, len(good.configs or [])) == (2, 1, 37)
    if version >= 7:
        assert good.topic_id == described.topic_id


@for_each("version", versions(ApiKey.DELETE_TOPICS))
def test_a_topic_is_gone_when_its_deletion_is_answered(memory: MemoryBroker, client: Client, version: int) -> None:
    create(client, 7, "orders")
    request = (
        t.DeleteTopicsRequest(topics=[t.DeleteTopicState(name=name) for name in ("orders", "other")])
        if version >= 6
        else t.DeleteTopicsRequest(topic_names=["orders", "other"])
    )
    gone, missing = client.ask(request, version, t.DeleteTopicsResponse).responses
    assert (gone.name, gone.error_code) == ("orders", 0)
    assert (missing.name, missing.error_code) == ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert list(memory.broker.partitions.of_topic("orders")) == []


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (5, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_disabled(tmp_path, version: int, code: int) -> None:
    memory = MemoryBroker(tmp_path, {"delete.topic.enable": "false"})
    client = memory.client()
    create(client, 7, "orders")
    request = t.DeleteTopicsRequest(topic_names=["orders"])
    (result,) = client.ask(request, version, t.DeleteTopicsResponse).responses
    assert (result.name, result.error_code) == ("orders", code)
    assert "orders" in memory.broker.image.topics


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_PARTITIONS))
def test_partitions_exist_when_their_creation_is_answered(memory: MemoryBroker, client: Client, version: int) -> None:
    create(client, 7, "orders")
    topics = [t.CreatePartitionsTopic(name=name, count=3, assignments=None) for name in ("orders", "other")]
    more, missing = client.ask(t.CreatePartitionsRequest(topics=topics), version, t.CreatePartitionsResponse).results
    assert (more.name, more.error_code, more.error_message) == ("orders", 0, None)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(memory.broker.partitions.of_topic("orders")) == 3


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_CONFIGS))
def test_configs_of_topic_and_broker_are_described(client: Client, version: int) -> None:
    create(client, 7, "orders")
    resources = [
        c.DescribeConfigsResource(resource_type=TOPIC, resource_name="orders", configuration_keys=["segment.bytes"]),
        c.DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None),
        c.DescribeConfigsResource(resource_type=TOPIC, resource_name="other", configuration_keys=None),
    ]
    request = c.DescribeConfigsRequest(resources=resources)
    topic, broker, missing = client.ask(request, version, c.DescribeConfigsResponse).results
    (entry,) = topic.configs
    assert (entry.name, entry.value, entry.config_source) == ("segment.bytes", "1073741824", 5)
    assert len(broker.configs) >= 350
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_CONFIGS))
def test_configs_are_replaced(memory: MemoryBroker, client: Client, version: int) -> None:
    create(client, 7, "orders")
    resources = [
        c.AlterConfigsRequestAlterConfigsResource(
            resource_type=TOPIC,
            resource_name="orders",
            configs=[c.AlterConfigsRequestAlterableConfig(name="segment.bytes", value="2000000")],
        )
    ]
    (result,) = client.ask(c.AlterConfigsRequest(resources=resources), version, c.AlterConfigsResponse).responses
    assert (result.error_code, result.error_message) == (0, None)
    assert memory.broker.partitions.get("orders", 0).log.config.segment_bytes == 2_000_000


def change(
    client: Client, kind: int, name: str, *changes: tuple[str, int, str | None], version: int = 1
) -> tuple[int, str | None]:
    configs = [
        c.IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = c.IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = client.ask(request, version, c.IncrementalAlterConfigsResponse).responses
    return result.error_code, result.error_message


@pytest.mark.parametrize("version", versions(ApiKey.INCREMENTAL_ALTER_CONFIGS))
def test_single_configs_are_changed_and_take_effect(memory: MemoryBroker, client: Client, version: int) -> None:
    create(client, 7, "orders")
    assert change(client, TOPIC, "orders", ("max.message.bytes", SET, "5"), version=version) == (0, None)
    assert memory.broker.partitions.get("orders", 0).log.config.max_message_bytes == 5
    assert change(client, BROKER, "", ("message.max.bytes", SET, "6"), version=version) == (0, None)
    assert change(client, TOPIC, "orders", ("max.message.bytes", DELETE, None), version=version) == (0, None)
    assert memory.broker.partitions.get("orders", 1).log.config.max_message_bytes == 6


@pytest.mark.parametrize("version", versions(ApiKey.LIST_CONFIG_RESOURCES))
def test_resources_are_listed(client: Client, version: int) -> None:
    create(client, 7, "orders")
    response = client.ask(c.ListConfigResourcesRequest(), version, c.ListConfigResourcesResponse)
    listed = {(resource.resource_type, resource.resource_name) for resource in response.config_resources}
    assert listed == (set() if version == 0 else {(TOPIC, "orders"), (BROKER, "1"), (LOGGER, "1")})


@pytest.fixture
def chatty() -> logging.Logger:
    name = "kafka.test.Chatty"
    yield logging.getLogger(name)
    logging.getLogger(name).setLevel(logging.NOTSET)


def test_levels_of_loggers_are_described_and_changed(client: Client, chatty: logging.Logger) -> None:
    """KIP-412."""
    assert change(client, LOGGER, "1", (chatty.name, SET, "DEBUG")) == (0, None)
    assert chatty.level == logging.DEBUG
    resource = c.DescribeConfigsResource(resource_type=LOGGER, resource_name="1", configuration_keys=[chatty.name])
    request = c.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = client.ask(request, 4, c.DescribeConfigsResponse).results
    (entry,) = result.configs
    assert (entry.value, entry.config_source, entry.synonyms[0].value) == ("DEBUG", 6, "DEBUG")
    assert change(client, LOGGER, "1", (chatty.name, DELETE, None)) == (0, None)
    assert chatty.level == logging.NOTSET


@for_each(
    ("name", "asked", "code"),
    [
        ("", ("root", SET, "INFO"), 42),
        ("2", ("root", SET, "INFO"), 42),
        ("1", ("no.such.logger", SET, "INFO"), 40),
        ("1", ("kafka.test.Chatty", SET, "LOUD"), 40),
        ("1", ("kafka.test.Chatty", APPEND, "INFO"), 42),
        ("1", ("root", DELETE, None), 42),
    ],
)
def test_invalid_levels_of_loggers(
    client: Client, chatty: logging.Logger, name: str, asked: tuple[str, int, str | None], code: int
) -> None:
    assert change(client, LOGGER, name, asked)[0] == code
    assert chatty.level == logging.NOTSET


def test_with_the_profile_kafka_min_insync_replicas_is_a_config_of_the_cluster(tmp_path: Path) -> None:
    """As on a node that Kafka 4.4 has formatted (KIP-966); with the profile `dev` it stays a default."""
    dynamic, default = ("min.insync.replicas", "1", 3), ("min.insync.replicas", "1", 5)
    for profile, expected in (("kafka", [dynamic, default]), ("dev", [default])):
        memory = MemoryBroker(tmp_path / profile, profile=profile)
        memory.create_topic("t")
        resources = [
            c.DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=[dynamic[0]])
            for kind, name in ((TOPIC, "t"), (BROKER, str(memory.broker.node_id)))
        ]
        request = c.DescribeConfigsRequest(resources=resources, include_synonyms=True)
        for result in memory.client().ask(request, 4, c.DescribeConfigsResponse).results:
            (config,) = result.configs
            assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == expected
            assert (config.name, config.value, config.config_source) == expected[0]
        memory.close()
