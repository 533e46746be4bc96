"""confluent-kafka (librdkafka): producer, consumer, groups, admin.

librdkafka retries silently, so the tests check which records arrived, in which order, and the error codes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest

from tests.clients.libraries.new_topics import wait_for_leaders
from tests.support.processes.server import Server

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import (  # noqa: E402
    OFFSET_BEGINNING,
    OFFSET_END,
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (  # noqa: E402
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
DEADLINE_S = 45.0
EPOCH = int(time.time()) // 1000 * 1_000_000 - 86_400_000  # newer than Kafka's default retention
Name = Callable[..., str]


@pytest.fixture(scope="module")
def admin(broker: Server) -> AdminClient:
    """An admin client of the shared broker."""
    return AdminClient(broker.clients.librdkafka())


@pytest.fixture
def create(broker: Server, admin: AdminClient, topic_name: Name) -> Callable[..., str]:
    """A factory of topics: `create(partitions=1, config=None) -> name`."""

    def create_topic(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        name = topic_name()
        futures = admin.create_topics([NewTopic(name, partitions, config=config or {})])
        futures[name].result(30)
        deadline = time.monotonic() + DEADLINE_S
        while not is_known(name):  # Kafka answers before the broker knows the topic
            assert time.monotonic() < deadline, "the new topic did not appear"
        wait_for_leaders(broker, name, partitions)
        return name

    def is_known(name: str) -> bool:
        metadata = admin.list_topics(name, timeout=20).topics[name]
        return metadata.error is None and all(partition.leader >= 0 for partition in metadata.partitions.values())

    return create_topic


class Produced:
    """A producer that keeps the delivery report of each record."""

    def __init__(self, broker: Server, **config: object) -> None:
        settings = {**broker.clients.librdkafka(), "linger.ms": 5} | {
            key.replace("_", "."): value for key, value in config.items()
        }
        self.producer = Producer(settings)
        self.delivered: list[Message] = []
        self.errors: list[KafkaError] = []

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.delivered.append(message)
        else:
            self.errors.append(error)

    def send(self, topic: str, value: bytes | None, **rest: object) -> None:
        """Queue one record."""
        self.producer.produce(topic, value, on_delivery=self._on_delivery, **rest)

    def flush(self) -> Produced:
        """Wait for the delivery report of every record."""
        assert self.producer.flush(DEADLINE_S) == 0, "records were not acknowledged in time"
        return self


@pytest.fixture
def consumer(broker: Server) -> Iterator[Callable[..., Consumer]]:
    """A factory of consumers that are closed after the test."""
    opened: list[Consumer] = []

    def consume(group: str = "unused", **config: object) -> Consumer:
        settings = {
            **broker.clients.librdkafka(),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
        }
        opened.append(Consumer(settings | {key.replace("_", "."): value for key, value in config.items()}))
        return opened[-1]

    yield consume
    for client in opened:
        client.close()


def read(consumer: Consumer, count: int) -> list[Message]:
    """`count` messages, or those received before the deadline."""
    messages: list[Message] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(messages) < count and time.monotonic() < deadline:
        for message in consumer.consume(min(500, count - len(messages)), 0.2):
            if message.error() is None:
                messages.append(message)
            elif not message.error().retriable():
                raise KafkaException(message.error())
    return messages


def read_from(consumer: Consumer, topic: str, count: int, partition: int = 0, offset: int = 0) -> list[Message]:
    """`count` messages of one partition from an offset, without a group."""
    consumer.assign([TopicPartition(topic, partition, offset)])
    return read(consumer, count)


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_unchanged_in_every_codec(codec, broker, create, consumer) -> None:
    topic = create()
    sent = [
        (f"key-{n}".encode(), (b"value-%d " % n) * 20, [("n", b"%d" % n), ("empty", b""), ("null", None)])
        for n in range(500)
    ]
    produced = Produced(broker, compression_type=codec, acks="all")
    for n, (key, value, headers) in enumerate(sent):
        produced.send(topic, value, key=key, headers=headers, timestamp=EPOCH + n)
    produced.flush()
    assert [message.offset() for message in produced.delivered] == list(range(500))

    messages = read_from(consumer(check_crcs=True), topic, 500)
    assert [(m.key(), m.value(), m.headers()) for m in messages] == sent
    assert [m.offset() for m in messages] == list(range(500))
    assert [m.timestamp() for m in messages] == [(TIMESTAMP_CREATE_TIME, EPOCH + n) for n in range(500)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_stores_the_records(acks, broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker, acks=acks)
    for n in range(300):
        produced.send(topic, b"%d" % n)
    produced.flush()
    assert not produced.errors
    assert [m.value() for m in read_from(consumer(), topic, 300)] == [b"%d" % n for n in range(300)]


def test_idempotent_producer_keeps_the_order(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker, enable_idempotence=True, batch_num_messages=7, max_in_flight_requests_per_connection=5)
    for n in range(2000):
        produced.send(topic, b"%d" % n)
    produced.flush()
    assert not produced.errors
    assert [m.value() for m in read_from(consumer(), topic, 2000)] == [b"%d" % n for n in range(2000)]


def test_null_key_null_value_and_empty_value_are_distinguished(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    for key, value in [(None, b""), (b"", None), (None, None), (b"k", b"v")]:
        produced.send(topic, value, key=key)
        produced.flush()
    assert [(m.key(), m.value()) for m in read_from(consumer(), topic, 4)] == [
        (None, b""),
        (b"", None),
        (None, None),
        (b"k", b"v"),
    ]


def test_record_just_below_the_limit_is_stored_and_a_bigger_one_refused(broker, create, consumer) -> None:
    """L11: max.message.bytes, error 10 MESSAGE_TOO_LARGE."""
    topic = create(config={"max.message.bytes": "200000"})
    produced = Produced(broker, message_max_bytes=10_000_000)
    produced.send(topic, bytes(199_000))
    produced.flush()
    produced.send(topic, bytes(201_000))
    produced.flush()
    assert [error.code() for error in produced.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    (message,) = read_from(consumer(), topic, 1)
    assert message.value() == bytes(199_000)


def test_records_of_several_megabytes_if_the_topic_allows_them(broker, create, consumer) -> None:
    topic = create(config={"max.message.bytes": "8000000"})
    value = os.urandom(5_000_000)
    produced = Produced(broker, message_max_bytes=8_000_000)
    for _ in range(3):
        produced.send(topic, value)
    produced.flush()
    assert not produced.errors
    messages = read_from(consumer(), topic, 3)
    assert [m.value() == value for m in messages] == [True] * 3


def test_keys_spread_over_partitions_and_keep_their_order(broker, create, consumer) -> None:
    topic = create(6)
    produced = Produced(broker, partitioner="murmur2_random")
    for n in range(600):
        produced.send(topic, b"%d" % n, key=b"key-%d" % (n % 50))
    produced.flush()
    reader = consumer()
    reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(6)])
    messages = read(reader, 600)
    assert {m.partition() for m in messages} == set(range(6))
    for key in range(50):
        values = [int(m.value()) for m in messages if m.key() == b"key-%d" % key]
        assert values == sorted(values)
        assert len(values) == 12


def test_offsets_are_found_by_timestamp(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    for n in range(100):
        produced.send(topic, b"%d" % n, timestamp=EPOCH + 1000 * n)
    produced.flush()
    reader = consumer()

    def offset_at(timestamp: int) -> int:
        (located,) = reader.offsets_for_times([TopicPartition(topic, 0, timestamp)], timeout=20)
        return int(located.offset)

    assert offset_at(EPOCH) == 0
    assert offset_at(EPOCH + 41_500) == 42
    assert offset_at(EPOCH + 42_000) == 42
    assert offset_at(EPOCH + 10**9) == OFFSET_END
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=20) == (0, 100)


def test_seek_backwards_and_forwards(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    for n in range(100):
        produced.send(topic, b"%d" % n)
    produced.flush()
    reader = consumer()
    assert [m.offset() for m in read_from(reader, topic, 3)] == [0, 1, 2]
    reader.seek(TopicPartition(topic, 0, 90))
    assert [m.offset() for m in read(reader, 10)] == list(range(90, 100))
    reader.seek(TopicPartition(topic, 0, 5))
    assert [m.offset() for m in read(reader, 2)] == [5, 6]


def test_reading_beyond_the_end_follows_the_reset_policy(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    produced.send(topic, b"only")
    produced.flush()
    assert [m.value() for m in read_from(consumer(auto_offset_reset="earliest"), topic, 1, offset=1000)] == [b"only"]


def test_end_of_partition_is_reported(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    produced.send(topic, b"only")
    produced.flush()
    reader = consumer(enable_partition_eof=True)
    reader.assign([TopicPartition(topic, 0, 0)])
    seen: list[object] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(seen) < 2 and time.monotonic() < deadline:
        message = reader.poll(0.2)
        if message is not None:
            seen.append(message.value() if message.error() is None else message.error().code())
    assert seen == [b"only", KafkaError._PARTITION_EOF]


def test_the_record_without_a_key_is_named_in_the_error(broker, create) -> None:
    """A compacted topic rejects the batch, and the client knows which record was the cause (KIP-467)."""
    topic = create(config={"cleanup.policy": "compact"})
    produced = Produced(broker, linger_ms=500)
    for key in (b"k", None, b"k", None):
        produced.send(topic, b"value", key=key)
    produced.flush()
    bad, neighbour = KafkaError.INVALID_RECORD, KafkaError._INVALID_DIFFERENT_RECORD
    assert [error.code() for error in produced.errors] == [neighbour, bad, neighbour, bad]


def test_log_append_time_is_the_brokers_clock(broker, create, consumer) -> None:
    topic = create(config={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    produced = Produced(broker, compression_type="lz4")
    produced.send(topic, b"value", timestamp=1)
    produced.flush()
    (message,) = read_from(consumer(check_crcs=True), topic, 1)
    kind, timestamp = message.timestamp()
    assert kind == TIMESTAMP_LOG_APPEND_TIME
    assert before - 1000 <= timestamp <= int(time.time() * 1000) + 1000


def test_read_committed_reads_plain_records(broker, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    for n in range(10):
        produced.send(topic, b"%d" % n)
    produced.flush()
    assert len(read_from(consumer(isolation_level="read_committed"), topic, 10)) == 10


def test_unknown_topic_is_created_by_a_producer(broker, admin, topic) -> None:
    produced = Produced(broker)
    produced.send(topic, b"value")
    produced.flush()
    assert not produced.errors
    assert len(admin.list_topics(topic, timeout=20).topics[topic].partitions) >= 1


def test_bad_topic_name_is_refused(broker, admin) -> None:
    futures = admin.create_topics([NewTopic("no spaces allowed", 1, 1)])
    with pytest.raises(KafkaException) as caught:
        futures["no spaces allowed"].result(20)
    assert caught.value.args[0].code() == KafkaError.TOPIC_EXCEPTION


PROTOCOLS = ["classic", "consumer"]
"""Values of group.protocol."""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_group_commits_and_resumes(protocol, broker, create, consumer, topic_name) -> None:
    topic, group = create(), topic_name("group")
    produced = Produced(broker)
    for n in range(20):
        produced.send(topic, b"%d" % n)
    produced.flush()
    first = consumer(group, group_protocol=protocol)
    first.subscribe([topic])
    messages = read(first, 12)
    assert [m.offset() for m in messages] == list(range(12))
    first.commit(message=messages[-1], asynchronous=False)
    assert first.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 12
    first.close()

    second = consumer(group, group_protocol=protocol)
    second.subscribe([topic])
    assert [m.offset() for m in read(second, 8)] == list(range(12, 20))


def poll_all(consumers: list[Consumer], until: Callable[[], bool]) -> list[Message]:
    """Poll all consumers in turn until the condition is true; the received messages."""
    messages: list[Message] = []
    deadline = time.monotonic() + DEADLINE_S
    while not until():
        assert time.monotonic() < deadline, "the group did not settle in time"
        for reader in consumers:
            message = reader.poll(0.05)
            if message is not None and message.error() is None:
                messages.append(message)
    return messages


def classic(strategy: str) -> dict[str, object]:
    return {"partition_assignment_strategy": strategy, "heartbeat_interval_ms": 300}


STRATEGIES = {name: classic(name) for name in ["range", "roundrobin", "cooperative-sticky"]} | {
    f"remote-{name}": {"group_protocol": "consumer", "group_remote_assignor": name} for name in ["uniform", "range"]
}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_three_members_share_the_partitions(strategy, broker, create, consumer, topic_name) -> None:
    topic, group = create(6), topic_name("group")
    members = [consumer(group, **STRATEGIES[strategy]) for _ in range(3)]
    for member in members:
        member.subscribe([topic])
    poll_all(members, lambda: [len(member.assignment()) for member in members] == [2, 2, 2])
    owned = [p.partition for member in members for p in member.assignment()]
    assert sorted(owned) == list(range(6))

    members[0].close()
    rest = members[1:]
    poll_all(rest, lambda: sorted(p.partition for member in rest for p in member.assignment()) == list(range(6)))


def test_static_member_gets_its_partitions_again(broker, create, consumer, topic_name) -> None:
    topic, group = create(2), topic_name("group")

    def member(name: str) -> Consumer:
        static_member = consumer(group, group_instance_id=name, session_timeout_ms=30000, heartbeat_interval_ms=300)
        static_member.subscribe([topic])
        return static_member

    first, second = member("a"), member("b")
    poll_all([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 1)
    owned = first.assignment()[0].partition
    partition = second.assignment()[0].partition
    first.close()
    again = member("a")
    poll_all([again, second], lambda: len(again.assignment()) == 1)
    assert again.assignment()[0].partition == owned
    assert second.assignment()[0].partition == partition


def test_admin_describes_and_deletes_topics(admin, create, broker) -> None:
    topic = create(3)
    described = admin.list_topics(topic, timeout=20).topics[topic]
    assert sorted(described.partitions) == [0, 1, 2]
    nodes = list(range(1, len(broker.addresses) + 1))
    assert all(sorted(p.replicas) == sorted(p.isrs) == nodes for p in described.partitions.values())
    again = admin.create_topics([NewTopic(topic, 1, 1)])
    with pytest.raises(KafkaException) as caught:
        again[topic].result(20)
    assert caught.value.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS

    admin.delete_topics([topic])[topic].result(20)
    with pytest.raises(KafkaException) as caught:
        admin.delete_topics([topic])[topic].result(20)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_recreated_topic_is_empty(broker, admin, create, consumer) -> None:
    """R22: a topic that is deleted and created again contains no old records."""
    topic = create()
    produced = Produced(broker)
    produced.send(topic, b"old")
    produced.flush()
    admin.delete_topics([topic])[topic].result(20)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    produced = Produced(broker)
    produced.send(topic, b"new")
    produced.flush()
    assert [m.value() for m in read_from(consumer(), topic, 1)] == [b"new"]


def test_admin_adds_partitions(broker, admin, create) -> None:
    topic = create(1)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(20)
    deadline = time.monotonic() + DEADLINE_S
    while len(admin.list_topics(topic, timeout=20).topics[topic].partitions) != 4:  # Kafka answers before
        assert time.monotonic() < deadline, "the new partitions did not appear"
    with pytest.raises(KafkaException) as caught:
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(20)
    assert caught.value.args[0].code() == KafkaError.INVALID_PARTITIONS


def test_admin_reads_and_changes_configs(admin, create) -> None:
    topic = create(config={"retention.ms": "1234567"})
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def described(key: str) -> str:
        (future,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
        return str(future.result(20)[key].value)

    (future,) = admin.describe_configs([resource]).values()
    entries = future.result(20)
    assert entries["retention.ms"].value == "1234567"
    assert not entries["retention.ms"].is_default
    assert entries["max.message.bytes"].value == "1048588"
    assert entries["max.message.bytes"].is_default

    resource.add_incremental_config(ConfigEntry("retention.ms", "7654321", incremental_operation=AlterConfigOpType.SET))
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(20)
    deadline = time.monotonic() + DEADLINE_S
    while described("retention.ms") != "7654321":  # Kafka answers before the broker knows the new value
        assert time.monotonic() < deadline, described("retention.ms")

    bad = ConfigResource(ResourceType.TOPIC, topic)
    bad.add_incremental_config(ConfigEntry("retention.ms", "never", incremental_operation=AlterConfigOpType.SET))
    (future,) = admin.incremental_alter_configs([bad]).values()
    with pytest.raises(KafkaException) as caught:
        future.result(20)
    assert caught.value.args[0].code() == KafkaError.INVALID_CONFIG


def test_admin_describes_the_brokers_configs(admin) -> None:
    node = min(admin.list_topics(timeout=20).brokers)
    (future,) = admin.describe_configs([ConfigResource(ResourceType.BROKER, str(node))]).values()
    entries = future.result(20)
    assert entries["node.id"].value == str(node)
    assert entries["num.partitions"].value == "1"


def test_admin_deletes_records(broker, admin, create, consumer) -> None:
    topic = create()
    produced = Produced(broker)
    for n in range(10):
        produced.send(topic, b"%d" % n)
    produced.flush()
    (future,) = admin.delete_records([TopicPartition(topic, 0, 4)]).values()
    assert future.result(20).low_watermark == 4
    reader = consumer()
    assert reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=20) == (4, 10)
    assert [m.offset() for m in read_from(reader, topic, 6, offset=0)] == list(range(4, 10))


def test_admin_lists_offsets(broker, admin, create) -> None:
    topic = create()
    produced = Produced(broker)
    for n, timestamp in enumerate([EPOCH, EPOCH + 5_000, EPOCH + 1_000]):
        produced.send(topic, b"%d" % n, timestamp=timestamp)
        produced.flush()

    def offset(spec: OffsetSpec) -> int:
        (future,) = admin.list_offsets({TopicPartition(topic, 0): spec}).values()
        return int(future.result(20).offset)

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 3
    assert offset(OffsetSpec.max_timestamp()) == 1
    assert offset(OffsetSpec.for_timestamp(EPOCH + 500)) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_admin_lists_describes_and_deletes_groups(protocol, broker, admin, create, consumer, topic_name) -> None:
    topic, group = create(), topic_name("group")
    produced = Produced(broker)
    produced.send(topic, b"value")
    produced.flush()
    reader = consumer(group, client_id="reader", group_protocol=protocol)
    reader.subscribe([topic])
    (message,) = read(reader, 1)
    reader.commit(message=message, asynchronous=False)

    listed = {entry.group_id: entry for entry in admin.list_consumer_groups().result(20).valid}
    assert listed[group].state.name == "STABLE"
    assert listed[group].type.name == protocol.upper()
    described = admin.describe_consumer_groups([group])[group].result(20)
    assert described.partition_assignor == {"classic": "range", "consumer": "uniform"}[protocol]
    (member,) = described.members
    assert member.client_id == "reader"
    assert member.assignment.topic_partitions == [TopicPartition(topic, 0)]
    with pytest.raises(KafkaException) as caught:
        admin.delete_consumer_groups([group])[group].result(20)
    assert caught.value.args[0].code() == KafkaError.NON_EMPTY_GROUP

    reader.close()
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(20)
    assert [(p.topic, p.partition, p.offset) for p in offsets.topic_partitions] == [(topic, 0, 1)]
    moved = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 0)])
    admin.alter_consumer_group_offsets([moved])[group].result(20)
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(20)
    assert [p.offset for p in offsets.topic_partitions] == [0]
    admin.delete_consumer_groups([group])[group].result(20)
    assert group not in {entry.group_id for entry in admin.list_consumer_groups().result(20).valid}


def test_a_transaction_commits_offsets_of_a_member_of_the_consumer_protocol(
    broker, create, consumer, topic_name
) -> None:
    """KIP-447, KIP-848: TxnOffsetCommit carries the member's epoch; a stale epoch is rejected."""
    topic, group = create(2), topic_name("group")
    produced = Produced(broker)
    produced.send(topic, b"one", partition=0)
    produced.flush()
    member = consumer(group, group_protocol="consumer")
    member.subscribe([topic])
    read(member, 1)
    stale = member.consumer_group_metadata()
    producer = Producer({**broker.clients.librdkafka(), "transactional.id": group})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], stale, 30)
    producer.commit_transaction(30)
    assert member.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 1

    other = consumer(group, group_protocol="consumer")
    other.subscribe([topic])
    poll_all([member, other], lambda: [len(each.assignment()) for each in (member, other)] == [1, 1])
    member.close()
    producer.begin_transaction()
    with pytest.raises(KafkaException) as caught:
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, 9)], stale, 30)
    assert caught.value.args[0].txn_requires_abort()
    producer.abort_transaction(30)
    assert other.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 1


def test_admin_describes_the_cluster(broker, admin) -> None:
    cluster = admin.describe_cluster().result(20)
    assert cluster.cluster_id
    assert sorted(f"{node.host}:{node.port}" for node in cluster.nodes) == sorted(broker.bootstrap.split(","))
