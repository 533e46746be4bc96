"""kafka-python: producer, consumer, groups, admin."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest

from tests.clients.libraries.new_topics import wait_for_leaders
from tests.support.lazy import lazy, skip_without
from tests.support.processes.server import Server
from tests.support.waiting import wait_for

skip_without("kafka")
kafka = lazy("kafka")


CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
DEADLINE_S = 45.0
POLL_MS = 1000
"""The client may lose a join that is under way when a poll ends: polls that are long enough for a join."""
EPOCH = int(time.time()) // 1000 * 1_000_000 - 86_400_000  # newer than Kafka's default retention
Name = Callable[..., str]


@pytest.fixture(scope="module")
def admin(broker: Server) -> Iterator[kafka.KafkaAdminClient]:
    """An admin client of the shared broker."""
    client = kafka.KafkaAdminClient(**broker.clients.kafka_python())
    yield client
    client.close()


@pytest.fixture
def create(broker: Server, admin: kafka.KafkaAdminClient, topic_name: Name) -> Callable[..., str]:
    """A factory of topics: `create(partitions=1, configs=None) -> name`."""

    def create_topic(partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        name = topic_name()
        settings = {"num_partitions": partitions, "replication_factor": -1, "configs": configs or {}}
        admin.create_topics({name: settings}, wait_for_metadata=True)
        wait_for_leaders(broker, name, partitions)
        return name

    return create_topic


@pytest.fixture
def producer(broker: Server) -> Iterator[Callable[..., kafka.KafkaProducer]]:
    """A factory of producers that are closed at the end."""
    opened: list[kafka.KafkaProducer] = []

    def produce(**config: Any) -> kafka.KafkaProducer:
        opened.append(kafka.KafkaProducer(**broker.clients.kafka_python(), **config))
        return opened[-1]

    yield produce
    for client in opened:
        client.close(timeout=10)


@pytest.fixture
def consumer(broker: Server) -> Iterator[Callable[..., kafka.KafkaConsumer]]:
    """A factory of consumers that are closed at the end."""
    opened: list[kafka.KafkaConsumer] = []

    def consume(*topics: str, **config: Any) -> kafka.KafkaConsumer:
        settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False} | config
        opened.append(kafka.KafkaConsumer(*topics, **broker.clients.kafka_python(), **settings))
        return opened[-1]

    yield consume
    for client in opened:
        client.close()


def read(consumer: kafka.KafkaConsumer, count: int) -> list[Any]:
    """`count` records, or those received before the deadline."""
    records: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(records) < count and time.monotonic() < deadline:
        for batch in consumer.poll(timeout_ms=POLL_MS, max_records=count - len(records)).values():
            records.extend(batch)
    return records


def read_from(consumer: kafka.KafkaConsumer, topic: str, count: int, partition: int = 0, offset: int = 0) -> list[Any]:
    """`count` records of one partition from an offset, without a group."""
    consumer.assign([kafka.TopicPartition(topic, partition)])
    consumer.seek(kafka.TopicPartition(topic, partition), offset)
    return read(consumer, count)


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_unchanged_in_every_codec(codec, create, producer, consumer) -> None:
    topic = create()
    sent = [(f"key-{n}".encode(), (b"value-%d " % n) * 20, [("n", b"%d" % n), ("empty", b"")]) for n in range(300)]
    client = producer(compression_type=codec, acks="all", linger_ms=5)
    futures = [
        client.send(topic, value, key=key, headers=headers, timestamp_ms=EPOCH + n)
        for n, (key, value, headers) in enumerate(sent)
    ]
    client.flush(timeout=DEADLINE_S)
    assert [future.get(1).offset for future in futures] == list(range(300))

    records = read_from(consumer(check_crcs=True), topic, 300)
    assert [(r.key, r.value, list(r.headers)) for r in records] == sent
    assert [r.offset for r in records] == list(range(300))
    assert [r.timestamp for r in records] == [EPOCH + n for n in range(300)]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_setting_stores_the_records(acks, create, producer, consumer) -> None:
    topic = create()
    client = producer(acks=acks, enable_idempotence=False)
    for n in range(200):
        client.send(topic, b"%d" % n)
    client.flush(timeout=DEADLINE_S)
    assert [r.value for r in read_from(consumer(), topic, 200)] == [b"%d" % n for n in range(200)]


def test_idempotent_producer_keeps_the_order(create, producer, consumer) -> None:
    topic = create()
    client = producer(enable_idempotence=True, batch_size=300, max_in_flight_requests_per_connection=5)
    for n in range(1000):
        client.send(topic, b"%d" % n)
    client.flush(timeout=DEADLINE_S)
    assert [r.value for r in read_from(consumer(), topic, 1000)] == [b"%d" % n for n in range(1000)]


def test_record_just_below_the_limit_is_stored_and_a_bigger_one_refused(create, producer, consumer) -> None:
    """L11: max.message.bytes, error 10 MESSAGE_TOO_LARGE."""
    topic = create(configs={"max.message.bytes": "200000"})
    client = producer(max_request_size=10_000_000)
    client.send(topic, bytes(199_000)).get(DEADLINE_S)
    with pytest.raises(kafka.errors.MessageSizeTooLargeError):
        client.send(topic, bytes(201_000)).get(DEADLINE_S)
    (record,) = read_from(consumer(), topic, 1)
    assert record.value == bytes(199_000)


def test_records_of_a_key_are_in_one_partition(create, producer, consumer) -> None:
    topic = create(6)
    client = producer()
    sent = [client.send(topic, b"%d" % n, key=b"key-%d" % (n % 50)) for n in range(300)]
    client.flush(timeout=DEADLINE_S)
    placed = {(n % 50): future.get(1).partition for n, future in enumerate(sent)}
    assert [future.get(1).partition for future in sent] == [placed[n % 50] for n in range(300)]
    reader = consumer()
    reader.assign([kafka.TopicPartition(topic, partition) for partition in range(6)])
    reader.seek_to_beginning()
    records = read(reader, 300)
    assert sorted(int(r.value) for r in records) == list(range(300))
    assert len({r.partition for r in records}) == 6


def test_offsets_are_found_by_timestamp(create, producer, consumer) -> None:
    topic = create()
    client = producer()
    for n in range(50):
        client.send(topic, b"%d" % n, timestamp_ms=EPOCH + 1000 * n)
    client.flush(timeout=DEADLINE_S)
    partition = kafka.TopicPartition(topic, 0)
    reader = consumer()
    located = reader.offsets_for_times({partition: EPOCH + 21_500})[partition]
    assert (located.offset, located.timestamp) == (22, EPOCH + 22_000)
    assert reader.offsets_for_times({partition: EPOCH + 10**9})[partition] is None
    assert reader.beginning_offsets([partition]) == {partition: 0}
    assert reader.end_offsets([partition]) == {partition: 50}


def test_seek_backwards_and_forwards(create, producer, consumer) -> None:
    topic = create()
    client = producer()
    for n in range(100):
        client.send(topic, b"%d" % n)
    client.flush(timeout=DEADLINE_S)
    reader = consumer()
    partition = kafka.TopicPartition(topic, 0)
    assert [r.offset for r in read_from(reader, topic, 3)] == [0, 1, 2]
    reader.seek(partition, 90)
    assert [r.offset for r in read(reader, 10)] == list(range(90, 100))
    reader.seek_to_beginning(partition)
    assert [r.offset for r in read(reader, 2)] == [0, 1]
    reader.seek_to_end(partition)
    assert reader.position(partition) == 100


def test_group_commits_and_resumes(create, producer, consumer, topic_name) -> None:
    topic, group = create(), topic_name("group")
    client = producer()
    for n in range(20):
        client.send(topic, b"%d" % n)
    client.flush(timeout=DEADLINE_S)
    partition = kafka.TopicPartition(topic, 0)
    first = consumer(topic, group_id=group)
    assert [r.offset for r in read(first, 12)] == list(range(12))
    first.commit({partition: kafka.structs.OffsetAndMetadata(12, "half way", -1)})
    first.close()

    second = consumer(topic, group_id=group)
    assert [r.offset for r in read(second, 8)] == list(range(12, 20))
    committed = second.committed(partition, metadata=True)
    assert (committed.offset, committed.metadata) == (12, "half way")


class Member(Thread):
    """A consumer that a thread polls until `leave` is called."""

    def __init__(self, consumer: kafka.KafkaConsumer) -> None:
        super().__init__()
        self.consumer = consumer
        self.partitions: list[int] = []
        self._is_over = Event()
        self.start()

    def run(self) -> None:
        while not self._is_over.is_set():
            self.consumer.poll(timeout_ms=POLL_MS)
            self.partitions = sorted(partition.partition for partition in self.consumer.assignment())
        self.consumer.close()

    def leave(self) -> None:
        self._is_over.set()
        self.join(DEADLINE_S)


def test_three_members_share_the_partitions(create, consumer, topic_name) -> None:
    topic, group = create(6), topic_name("group")

    def have_shared(members: list[Member], counts: list[int]) -> None:
        wait_for(
            lambda: [len(member.partitions) for member in members] == counts,
            lambda: f"{counts} partitions, not {[member.partitions for member in members]}",
            DEADLINE_S,
        )
        assert sorted(partition for process in members for partition in process.partitions) == list(range(6))

    members = [Member(consumer(topic, group_id=group, heartbeat_interval_ms=300)) for _ in range(3)]
    try:
        have_shared(members, [2, 2, 2])
        members[0].leave()
        have_shared(members[1:], [3, 3])
    finally:
        for process in members:
            process.leave()


def test_pattern_subscription_finds_topics(create, producer, consumer, topic_name) -> None:
    topic, group = create(), topic_name("group")
    client = producer()
    client.send(topic, b"value").get(DEADLINE_S)
    reader = consumer(group_id=group)
    reader.subscribe(pattern=f"^{topic}$")
    assert [r.topic for r in read(reader, 1)] == [topic]


def test_admin_describes_and_deletes_topics(admin, create) -> None:
    topic = create(3)
    (described,) = admin.describe_topics([topic])
    assert sorted(p["partition_index"] for p in described["partitions"]) == [0, 1, 2]
    assert described["topic_id"] is not None
    with pytest.raises(kafka.errors.TopicAlreadyExistsError):
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})
    admin.delete_topics([topic])
    with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
        admin.delete_topics([topic])


def test_admin_describes_topic_partitions(admin, create) -> None:
    topic = create(2)
    (described,) = admin.describe_topic_partitions([topic])["topics"]
    assert [p["partition_index"] for p in described["partitions"]] == [0, 1]
    assert all(p["leader_id"] == p["isr_nodes"][0] for p in described["partitions"])


def test_admin_adds_partitions(admin, create) -> None:
    topic = create()
    admin.create_partitions({topic: 4})
    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 4
    with pytest.raises(kafka.errors.InvalidPartitionsError):
        admin.create_partitions({topic: 2})


def test_admin_reads_and_changes_configs(admin, create) -> None:
    from kafka.admin import ConfigResource, ConfigResourceType

    topic = create(configs={"retention.ms": "1234567"})

    def modified() -> dict[str, str]:
        (configs,) = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])["topic"].values()
        return {name: entry["value"] for name, entry in configs.items()}

    assert modified() == {"retention.ms": "1234567"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7654321"})])
    assert modified() == {"retention.ms": "7654321"}


def test_admin_deletes_records(admin, create, producer, consumer) -> None:
    topic = create()
    client = producer()
    for n in range(10):
        client.send(topic, b"%d" % n)
    client.flush(timeout=DEADLINE_S)
    partition = kafka.TopicPartition(topic, 0)
    assert admin.delete_records({partition: 4})[partition]["low_watermark"] == 4
    reader = consumer()
    assert reader.beginning_offsets([partition]) == {partition: 4}
    assert [r.offset for r in read_from(reader, topic, 6)] == list(range(4, 10))


def test_admin_lists_offsets(admin, create, producer) -> None:
    topic = create()
    client = producer()
    for n, timestamp in enumerate([EPOCH, EPOCH + 5_000, EPOCH + 1_000]):
        client.send(topic, b"%d" % n, timestamp_ms=timestamp).get(DEADLINE_S)
    partition = kafka.TopicPartition(topic, 0)

    def offset(spec: Any) -> int:
        return int(admin.list_partition_offsets({partition: spec})[partition].offset)

    assert offset(kafka.OffsetSpec.EARLIEST) == 0
    assert offset(kafka.OffsetSpec.LATEST) == 3
    assert offset(kafka.OffsetSpec.MAX_TIMESTAMP) == 1
    assert offset(EPOCH + 500) == 1


def test_admin_lists_describes_and_deletes_groups(admin, create, producer, consumer, topic_name) -> None:
    topic, group = create(), topic_name("group")
    producer().send(topic, b"value").get(DEADLINE_S)
    partition = kafka.TopicPartition(topic, 0)
    reader = consumer(topic, group_id=group, client_id="reader")
    read(reader, 1)
    reader.commit()
    listed = {entry["group_id"]: entry for entry in admin.list_groups()}
    assert listed[group]["group_state"] == "Stable"
    described = admin.describe_groups([group])[group]
    (member,) = described["members"]
    assert member["client_id"] == "reader"
    assert member["member_assignment"]["assigned_partitions"] == [{"topic": topic, "partitions": [0]}]

    reader.close()
    assert admin.list_group_offsets({group: None})[group][partition].offset == 1
    admin.alter_group_offsets(group, {partition: kafka.structs.OffsetAndMetadata(5, "", -1)})
    assert admin.list_group_offsets({group: None})[group][partition].offset == 5
    admin.delete_group_offsets(group, [partition])
    assert admin.list_group_offsets({group: None})[group] == {}
    assert admin.delete_groups([group]) == {group: "OK"}
    assert group not in {entry["group_id"] for entry in admin.list_groups()}


def test_admin_describes_the_cluster_and_its_log_dirs(admin, broker, create) -> None:
    topic = create(2)
    cluster = admin.describe_cluster()
    assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == broker.addresses

    def logs() -> list[int]:
        topics = [t for log_dir in admin.describe_log_dirs() for d in log_dir["log_dirs"] for t in d["topics"]]
        return sorted(p["partition_index"] for t in topics if t["name"] == topic for p in t["partitions"])

    deadline = time.monotonic() + DEADLINE_S
    while logs() != sorted([0, 1] * len(broker.addresses)):  # Kafka creates the logs after its answer
        assert time.monotonic() < deadline, logs()


def test_admin_describes_the_producers_of_a_partition(admin, create, producer) -> None:
    topic = create()
    client = producer(enable_idempotence=True)
    for n in range(5):
        client.send(topic, b"%d" % n)
    client.flush(timeout=DEADLINE_S)
    partition = kafka.TopicPartition(topic, 0)
    (state,) = admin.describe_producers([partition])[partition].active_producers
    assert state.last_sequence == 4
    assert state.producer_epoch == 0
