"""Checks of what administrators do: topics, configs, records, offsets, log directories."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from barnabas.client.admin.quotas import alter_quotas
from barnabas.client.cluster import Cluster
from bench.testkits.behaviours import behaviour
from bench.testkits.clients import WAIT_S, Clients, error_of, poll, unique, until
from bench.testkits.product import Setup


def _create(clients: Clients, topic: Any) -> Any:
    return clients.admin.create_topics([topic])[topic.topic].result()


def _creation_error(clients: Clients, name: str, replicas: int = 1, **config: str) -> int:
    """The code with which the broker refuses to make a topic; 0 if it does not."""
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    try:
        _create(clients, NewTopic(name, 1, replicas, config=dotted))
    except KafkaException as error:
        if error.args[0].code() < 0:  # it is not of the broker
            raise
        return int(error.args[0].code())
    return 0


@behaviour("CreateTopics refuses a name that exists, and one with a space")
def creation_errors(clients: Clients) -> None:
    found = [_creation_error(clients, name) for name in (clients.topic(), "no spaces")]
    wanted = [KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.TOPIC_EXCEPTION]
    assert found == wanted, f"errors {found} for {wanted}"


@behaviour("CreateTopics refuses more replicas than there are brokers")
def too_many_replicas(clients: Clients) -> None:
    code = _creation_error(clients, unique("topic"), replicas=9)
    assert code == KafkaError.INVALID_REPLICATION_FACTOR, f"error {code}"


@behaviour("CreatePartitions adds, and refuses to take away")
def create_partitions(clients: Clients) -> None:
    topic = clients.topic()

    def change(count: int) -> None:
        clients.admin.create_partitions([NewPartitions(topic, count)])[topic].result()

    change(3)
    until(lambda: clients.partitions(topic) == 3, "three partitions")
    clients.wait_for_topic(topic, 3)
    clients.send(topic, b"x", partition=2)
    code = error_of(lambda: change(2))
    assert code == KafkaError.INVALID_PARTITIONS, f"error {code}"


@behaviour("A deleted topic is unknown, and empty when it is made again")
def deleted_topic(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, b"old")

    def delete() -> None:
        clients.admin.delete_topics([topic])[topic].result()

    delete()
    code = error_of(delete)
    assert code == KafkaError.UNKNOWN_TOPIC_OR_PART, f"error {code}"
    _create(clients, NewTopic(topic, 1))
    clients.wait_for_topic(topic)
    clients.send(topic, b"new")
    (message,) = clients.read(topic, 1)
    assert message.value() == b"new", "an old record was read"


def _described(clients: Clients, resource: ConfigResource) -> Any:
    (future,) = clients.admin.describe_configs([resource]).values()
    return future.result()


@behaviour("Configs of topics are described, and changed one by one")
def configs(clients: Clients) -> None:
    topic = clients.topic(retention_ms="1234567")
    found = _described(clients, ConfigResource(ResourceType.TOPIC, topic))
    own, default = found["retention.ms"], found["max.message.bytes"]
    assert (own.value, own.is_default) == ("1234567", False), f"retention.ms {own.value}"
    assert (default.value, default.is_default) == ("1048588", True), f"max.message.bytes {default.value}"

    _change(clients, topic, "7654321")
    resource = ConfigResource(ResourceType.TOPIC, topic)
    until(lambda: _described(clients, resource)["retention.ms"].value == "7654321", "the new value")


def _change(clients: Clients, topic: str, retention_ms: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entry = ConfigEntry("retention.ms", retention_ms, incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(entry)
    (future,) = clients.admin.incremental_alter_configs([resource]).values()
    future.result()


@behaviour("A config with a value that is none is refused, for a new topic and later")
def bad_config(clients: Clients) -> None:
    topic = clients.topic()
    codes = [_creation_error(clients, unique("topic"), retention_ms="never")]
    codes.append(error_of(lambda: _change(clients, topic, "never")))
    assert codes == [KafkaError.INVALID_CONFIG] * 2, f"errors {codes}"


@behaviour("Configs of the broker are described")
def broker_configs(clients: Clients) -> None:
    node = min(clients.admin.list_topics(timeout=WAIT_S).brokers)
    found = _described(clients, ConfigResource(ResourceType.BROKER, str(node)))
    missing = {"num.partitions", "log.retention.ms", "message.max.bytes", "auto.create.topics.enable"} - set(found)
    assert not missing, f"without {sorted(missing)}"
    assert found["message.max.bytes"].value == "1048588", f"message.max.bytes {found['message.max.bytes'].value}"


@behaviour("ListOffsets of an administrator: earliest, latest, latest timestamp")
def list_offsets(clients: Clients) -> None:
    topic, now = clients.topic(), int(time.time() * 1000)
    for after in (0, 5000, 1000):
        clients.send(topic, b"x", timestamp=now - 60_000 + after)

    def offset(spec: OffsetSpec) -> int:
        wanted = {TopicPartition(topic, 0): spec}
        (future,) = clients.admin.list_offsets(wanted).values()
        return int(future.result().offset)

    found = [offset(spec) for spec in (OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.max_timestamp())]
    assert found == [0, 3, 1], f"offsets {found}"


@behaviour("DeleteRecords moves the begin of a partition")
def delete_records(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, *[b"%d" % number for number in range(10)])
    (future,) = clients.admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    assert future.result().low_watermark == 4, "another low watermark"
    (first,) = clients.read(topic, 1)
    assert first.offset() == 4, f"offset {first.offset()} was read"
    beyond = clients.admin.delete_records([TopicPartition(topic, 0, 99)])
    code = error_of(lambda: next(iter(beyond.values())).result())
    assert code == KafkaError.OFFSET_OUT_OF_RANGE, f"error {code}"


def _kafka_python(clients: Clients) -> Any:
    """kafka-python's administrator, for what confluent-kafka cannot ask."""
    if clients.is_fake:
        raise AttributeError("there is nothing that kafka-python could connect to")
    from kafka import KafkaAdminClient

    return KafkaAdminClient(bootstrap_servers=clients.place.bootstrap, request_timeout_ms=int(WAIT_S * 1000))


@behaviour("DescribeLogDirs: a partition with its size")
def log_dirs(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, bytes(1000))
    admin = _kafka_python(clients)
    try:
        described = admin.describe_log_dirs([topic])
    finally:
        admin.close()
    dirs = [one for broker in described for one in broker["log_dirs"]]
    sizes = [part["partition_size"] for one in dirs for found in one["topics"] for part in found["partitions"]]
    assert sum(sizes) > 1000, f"sizes {sizes}"


@behaviour("DescribeTopicPartitions (KIP-966), page by page")
def describe_topic_partitions(clients: Clients) -> None:
    topic = clients.topic(3)
    admin = _kafka_python(clients)
    found, cursor = [], None
    try:
        for _ in range(9):
            page = admin.describe_topic_partitions([topic], response_partition_limit=2, cursor=cursor)
            found += [one["partition_index"] for each in page["topics"] for one in each["partitions"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
    finally:
        admin.close()
    assert found == [0, 1, 2], f"partitions {found}"


@behaviour("A producer makes its topic, a consumer does not")
def auto_creation(clients: Clients) -> None:
    topic, other = unique("auto"), unique("auto")
    reader = clients.consumer()
    reader.subscribe([other])
    code = error_of(lambda: poll(reader, 1))
    assert code == KafkaError.UNKNOWN_TOPIC_OR_PART, f"error {code}"
    clients.send(topic, b"x", partition=0)
    (message,) = clients.read(topic, 1)
    assert message.value() == b"x", "another record"
    known = clients.admin.list_topics(timeout=WAIT_S).topics
    assert topic in known, "the producer's topic is not listed"
    assert other not in known, "the consumer's topic was made"


@behaviour("Without auto creation an unknown topic is an error", Setup.NO_AUTO_CREATION)
def unknown_topic(clients: Clients) -> None:
    topic = unique("unknown")
    code = error_of(
        lambda: clients.send(topic, b"x", producer=clients.producer(topic_metadata_propagation_max_ms=2000))
    )
    assert code in (KafkaError._UNKNOWN_TOPIC, KafkaError.UNKNOWN_TOPIC_OR_PART), f"error {code}"
    assert topic not in clients.admin.list_topics(timeout=WAIT_S).topics, "the topic was made"
    made = clients.topic()
    clients.send(made, b"x")


@behaviour("Quotas: a producer above its rate is throttled")
def quotas(clients: Clients) -> None:
    topic, name = clients.topic(), unique("limited")
    with Cluster(clients.place.bootstrap, timeout_s=WAIT_S) as cluster:
        alter_quotas(cluster, {"client": name}, {"producer_byte_rate": 10_000.0})
    told: list[float] = []
    producer = clients.producer(client_id=name, throttle_cb=lambda event: told.append(event.throttle_time))
    deadline = time.monotonic() + WAIT_S
    while not told:
        clients.send(topic, bytes(50_000), producer=producer)
        assert time.monotonic() < deadline, "it was not throttled"
    assert max(told) > 0, f"throttled for {told}"
