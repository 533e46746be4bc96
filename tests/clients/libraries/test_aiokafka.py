"""aiokafka: producer, consumer, groups, admin. Each test is one `asyncio.run`."""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka's loop
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from tests.clients.libraries.new_topics import wait_for_leaders
from tests.support.lazy import lazy, skip_without
from tests.support.processes.server import Server

skip_without("aiokafka")
aiokafka = lazy("aiokafka")
admin_api = lazy("aiokafka.admin")
config_resource = lazy("aiokafka.admin.config_resource")


CODECS = [None, "gzip", "snappy", "lz4", "zstd"]
DEADLINE_S = 45.0
EPOCH = int(time.time()) // 1000 * 1_000_000 - 86_400_000  # newer than Kafka's default retention
Name = Callable[..., str]


class Clients:
    """Clients of one broker that are stopped at the end of a test."""

    def __init__(self, broker: Server, stack: AsyncExitStack) -> None:
        self.broker = broker
        self.stack = stack

    async def producer(self, **config: Any) -> aiokafka.AIOKafkaProducer:
        settings = {"acks": "all"} | config  # with this client's default a test might look before the commit
        client = aiokafka.AIOKafkaProducer(**self.broker.clients.aiokafka(), **settings)
        await client.start()
        self.stack.push_async_callback(client.stop)
        return client

    async def consumer(self, *topics: str, **config: Any) -> aiokafka.AIOKafkaConsumer:
        settings = {"auto_offset_reset": "earliest", "enable_auto_commit": False} | config
        client = aiokafka.AIOKafkaConsumer(*topics, **self.broker.clients.aiokafka(), **settings)
        await client.start()
        self.stack.push_async_callback(client.stop)
        return client

    async def admin(self) -> admin_api.AIOKafkaAdminClient:
        client = admin_api.AIOKafkaAdminClient(**self.broker.clients.aiokafka())
        await client.start()
        self.stack.push_async_callback(client.close)
        return client

    async def create(self, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
        admin = await self.admin()
        replicas = len(self.broker.addresses)  # this client has no word for the broker's default
        response = await admin.create_topics([admin_api.NewTopic(topic, partitions, replicas, topic_configs=configs)])
        assert [error[1] for error in response.topic_errors] == [0]
        await self.wait_for_leaders(admin, topic, partitions)

    async def wait_for_leaders(self, admin: admin_api.AIOKafkaAdminClient, topic: str, partitions: int) -> None:
        """Wait until Metadata names a leader of every partition (Kafka needs a moment)."""
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            (described,) = await admin.describe_topics([topic])
            if sum(p["leader"] >= 0 for p in described["partitions"]) == partitions:
                return await asyncio.to_thread(wait_for_leaders, self.broker, topic, partitions)
            await asyncio.sleep(0.05)
        raise AssertionError(f"{topic} did not appear")


def run(broker: Server, scenario: Callable[[Clients], Awaitable[None]]) -> None:
    """Run one scenario with clients that are stopped afterwards."""

    @asynccontextmanager
    async def clients() -> AsyncIterator[Clients]:
        async with AsyncExitStack() as stack:
            yield Clients(broker, stack)

    async def whole() -> None:
        async with clients() as ready:
            await asyncio.wait_for(scenario(ready), 90)

    asyncio.run(whole())


async def read(consumer: aiokafka.AIOKafkaConsumer, count: int) -> list[Any]:
    """`count` records, or those received before the deadline."""
    records: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(records) < count and time.monotonic() < deadline:
        for batch in (await consumer.getmany(timeout_ms=200, max_records=count - len(records))).values():
            records.extend(batch)
    return records


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_unchanged_in_every_codec(codec, broker, topic) -> None:
    sent = [(f"key-{n}".encode(), (b"value-%d " % n) * 20, (("n", b"%d" % n), ("empty", b""))) for n in range(200)]

    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer(compression_type=codec, acks="all", linger_ms=5)
        futures = [
            await producer.send(topic, value, key=key, headers=list(headers), timestamp_ms=EPOCH + n)
            for n, (key, value, headers) in enumerate(sent)
        ]
        await producer.flush()
        assert [future.result().offset for future in futures] == list(range(200))
        records = await read(await clients.consumer(topic, check_crcs=True), 200)
        assert [(r.key, r.value, r.headers) for r in records] == sent
        assert [r.offset for r in records] == list(range(200))
        assert [r.timestamp for r in records] == [EPOCH + n for n in range(200)]

    run(broker, scenario)


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_acks_setting_stores_the_records(acks, broker, topic) -> None:
    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer(acks=acks)
        for n in range(100):
            await producer.send(topic, b"%d" % n)
        await producer.flush()
        assert [r.value for r in await read(await clients.consumer(topic), 100)] == [b"%d" % n for n in range(100)]

    run(broker, scenario)


def test_idempotent_producer_keeps_the_order(broker, topic) -> None:
    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer(enable_idempotence=True, max_batch_size=300)
        for n in range(500):
            await producer.send(topic, b"%d" % n)
        await producer.flush()
        assert [r.value for r in await read(await clients.consumer(topic), 500)] == [b"%d" % n for n in range(500)]

    run(broker, scenario)


def test_record_just_below_the_limit_is_stored_and_a_bigger_one_refused(broker, topic) -> None:
    """L11: max.message.bytes, error 10 MESSAGE_TOO_LARGE."""

    async def scenario(clients: Clients) -> None:
        await clients.create(topic, configs={"max.message.bytes": "200000"})
        producer = await clients.producer(max_request_size=10_000_000, max_batch_size=1_000_000)
        await producer.send_and_wait(topic, bytes(199_000))
        with pytest.raises(aiokafka.errors.MessageSizeTooLargeError):
            await producer.send_and_wait(topic, bytes(201_000))
        (record,) = await read(await clients.consumer(topic), 1)
        assert record.value == bytes(199_000)

    run(broker, scenario)


def test_offsets_are_found_by_timestamp_and_seek_works(broker, topic) -> None:
    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer()
        for n in range(50):
            await producer.send(topic, b"%d" % n, timestamp_ms=EPOCH + 1000 * n)
        await producer.flush()
        consumer = await clients.consumer(topic)
        partition = aiokafka.TopicPartition(topic, 0)
        offset_and_timestamp = (await consumer.offsets_for_times({partition: EPOCH + 21_500}))[partition]
        assert (offset_and_timestamp.offset, offset_and_timestamp.timestamp) == (22, EPOCH + 22_000)
        assert (await consumer.offsets_for_times({partition: EPOCH + 10**9}))[partition] is None
        assert await consumer.beginning_offsets([partition]) == {partition: 0}
        assert await consumer.end_offsets([partition]) == {partition: 50}
        consumer.seek(partition, 45)
        assert [r.offset for r in await read(consumer, 5)] == list(range(45, 50))
        await consumer.seek_to_beginning(partition)
        assert [r.offset for r in await read(consumer, 2)] == [0, 1]

    run(broker, scenario)


def test_group_commits_and_resumes(broker, topic, topic_name) -> None:
    group = topic_name("group")

    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer()
        for n in range(20):
            await producer.send(topic, b"%d" % n)
        await producer.flush()
        partition = aiokafka.TopicPartition(topic, 0)
        first = await clients.consumer(topic, group_id=group)
        assert [r.offset for r in await read(first, 12)] == list(range(12))
        await first.commit({partition: aiokafka.OffsetAndMetadata(12, "half way")})
        await first.stop()
        second = await clients.consumer(topic, group_id=group)
        assert [r.offset for r in await read(second, 8)] == list(range(12, 20))
        assert await second.committed(partition) == 12

    run(broker, scenario)


def test_three_members_share_the_partitions(broker, topic, topic_name) -> None:
    group = topic_name("group")

    async def settle(members: list[aiokafka.AIOKafkaConsumer], counts: list[int]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while sorted(len(member.assignment()) for member in members) != counts:
            assert time.monotonic() < deadline, "the group did not settle in time"
            for member in members:
                await member.getmany(timeout_ms=50)

    async def scenario(clients: Clients) -> None:
        await clients.create(topic, 6)
        members = [await clients.consumer(topic, group_id=group, heartbeat_interval_ms=300) for _ in range(3)]
        await settle(members, [2, 2, 2])
        assert sorted(p.partition for member in members for p in member.assignment()) == list(range(6))
        await members[0].stop()
        await settle(members[1:], [3, 3])
        assert sorted(p.partition for member in members[1:] for p in member.assignment()) == list(range(6))

    run(broker, scenario)


def test_admin_creates_describes_widens_and_deletes_topics(broker, topic) -> None:
    async def scenario(clients: Clients) -> None:
        await clients.create(topic, 2)
        admin = await clients.admin()
        response = await admin.create_topics([admin_api.NewTopic(topic, 1, 1)])
        assert [error[1] for error in response.topic_errors] == [aiokafka.errors.TopicAlreadyExistsError.errno]
        response = await admin.create_partitions({topic: admin_api.NewPartitions(4)})
        assert [error[1] for error in response.topic_errors] == [0]
        await clients.wait_for_leaders(admin, topic, 4)
        assert topic in await admin.list_topics()
        response = await admin.delete_topics([topic])
        assert [error[1] for error in response.topic_error_codes] == [0]
        response = await admin.delete_topics([topic])
        assert [e[1] for e in response.topic_error_codes] == [aiokafka.errors.UnknownTopicOrPartitionError.errno]

    run(broker, scenario)


def test_admin_reads_and_changes_configs(broker, topic) -> None:
    async def scenario(clients: Clients) -> None:
        await clients.create(topic, configs={"retention.ms": "1234567"})
        admin = await clients.admin()

        async def retention() -> str:
            (response,) = await admin.describe_configs(
                [config_resource.ConfigResource(config_resource.ConfigResourceType.TOPIC, topic)]
            )
            (resource,) = response.resources
            return str({entry[0]: entry[1] for entry in resource[4]}["retention.ms"])

        assert await retention() == "1234567"
        changed = config_resource.ConfigResource(
            config_resource.ConfigResourceType.TOPIC, topic, configs={"retention.ms": "7654321"}
        )
        (response,) = await admin.alter_configs([changed])
        assert [resource[0] for resource in response.resources] == [0]
        assert await retention() == "7654321"

    run(broker, scenario)


def test_admin_deletes_records(broker, topic) -> None:
    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer()
        for n in range(10):
            await producer.send(topic, b"%d" % n)
        await producer.flush()
        partition = aiokafka.TopicPartition(topic, 0)
        admin = await clients.admin()
        assert await admin.delete_records({partition: admin_api.RecordsToDelete(before_offset=4)}) == {partition: 4}
        consumer = await clients.consumer(topic)
        assert [r.offset for r in await read(consumer, 6)] == list(range(4, 10))

    run(broker, scenario)


def test_admin_lists_and_describes_groups(broker, topic, topic_name) -> None:
    group = topic_name("group")

    async def scenario(clients: Clients) -> None:
        await clients.create(topic)
        producer = await clients.producer()
        await producer.send_and_wait(topic, b"value")
        consumer = await clients.consumer(topic, group_id=group, client_id="reader")
        await read(consumer, 1)
        await consumer.commit()
        admin = await clients.admin()
        assert group in {listed[0] for listed in await admin.list_consumer_groups()}
        (response,) = await admin.describe_consumer_groups([group])
        (described,) = response.groups
        assert described[1:4] == (group, "Stable", "consumer")
        partition = aiokafka.TopicPartition(topic, 0)
        assert (await admin.list_consumer_group_offsets(group))[partition].offset == 1
        cluster = await admin.describe_cluster()
        assert [f"{node['host']}:{node['port']}" for node in cluster["brokers"]] == broker.addresses

    run(broker, scenario)
