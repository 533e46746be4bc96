"""T3, T11, T12: transactional producers of real clients, exactly-once copies, and fencing.

confluent-kafka uses the first version of the transaction protocol, with AddPartitionsToTxn requests. Copies with kills
of broker and clients are in `test_exactly_once.py`.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiokafka's loop
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.waiting import Deadline

DEADLINE_S = 60.0
LOST = (KafkaError._TRANSPORT, KafkaError._TIMED_OUT)
"""What librdkafka says of a request whose connection has ended before its answer."""
STAY = {"metadata.recovery.strategy": "none"}
"""librdkafka 2.16 else decommissions the only broker when it is down for a moment, and waits for it for ever."""


def make_topic(bootstrap, name, partitions=1):
    """Make a topic, also while brokers are killed: librdkafka does not send an administrative request again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    deadline = time.monotonic() + DEADLINE_S
    is_first = True
    while True:
        try:
            admin.create_topics([NewTopic(name, partitions)])[name].result(30)
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS and not is_first:
                return name  # made by a request whose answer was lost
            if code not in LOST or time.monotonic() > deadline:
                raise
            is_first = False
        else:
            return name


def transactional(bootstrap, transactional_id, **config):
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "reconnect.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
            "retry.backoff.ms": 20,
            **STAY,
            **config,
        }
    )
    producer.init_transactions(DEADLINE_S)
    return producer


def read_all(bootstrap, topic, partitions=1, isolation="read_committed"):
    """Every value in the topic, up to the end of each partition for this isolation level."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-of-{topic}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    values, ended, deadline = [], set(), time.monotonic() + DEADLINE_S
    while len(ended) < partitions:
        assert time.monotonic() < deadline, "the end of the topic was not reached in time"
        for message in consumer.consume(10_000, 1.0):
            if message.error() is None:
                values.append(message.value().decode())
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                ended.add(message.partition())
    consumer.close()
    return values


def test_readers_see_what_was_committed(broker, topic):
    make_topic(broker.bootstrap, topic, 3)
    producer = transactional(broker.bootstrap, f"id-{topic}")
    for number in range(6):
        producer.begin_transaction()
        for index in range(3):
            producer.produce(topic, f"{number}-{index}", partition=index)
        if number % 2:
            producer.flush()
            producer.abort_transaction(DEADLINE_S)
        else:
            producer.commit_transaction(DEADLINE_S)
    committed = sorted(f"{number}-{index}" for number in (0, 2, 4) for index in range(3))
    assert sorted(read_all(broker.bootstrap, topic, 3)) == committed
    assert len(read_all(broker.bootstrap, topic, 3, "read_uncommitted")) == 18


def test_an_open_transaction_holds_readers_back(broker, topic):
    """T6: the last stable offset."""
    make_topic(broker.bootstrap, topic)
    producer = transactional(broker.bootstrap, f"id-{topic}")
    producer.begin_transaction()
    producer.produce(topic, "held")
    producer.flush()
    plain = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    plain.produce(topic, "after")
    plain.flush()
    assert read_all(broker.bootstrap, topic) == []
    assert read_all(broker.bootstrap, topic, isolation="read_uncommitted") == ["held", "after"]
    producer.commit_transaction(DEADLINE_S)
    assert read_all(broker.bootstrap, topic) == ["held", "after"]


def test_a_zombie_is_fenced(broker, topic):
    """T3."""
    make_topic(broker.bootstrap, topic)
    zombie = transactional(broker.bootstrap, f"id-{topic}")
    zombie.begin_transaction()
    zombie.produce(topic, "zombie")
    zombie.flush()
    successor = transactional(broker.bootstrap, f"id-{topic}")
    successor.begin_transaction()
    successor.produce(topic, "successor")
    successor.commit_transaction(DEADLINE_S)
    with pytest.raises(KafkaException) as raised:
        zombie.commit_transaction(DEADLINE_S)
    assert raised.value.args[0].fatal()
    assert read_all(broker.bootstrap, topic) == ["successor"]


class CopyLoop:
    """Consume, transform, produce: offsets and results in one transaction; after a failure a new transaction."""

    def __init__(self, bootstrap, source, target):
        self.bootstrap, self.source, self.target = bootstrap, source, target
        self.transactions = 0
        self.producer = None
        self.consumer = None

    def open(self):
        self.producer = transactional(self.bootstrap, f"copy-{self.source}")
        self.consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"copy-{self.source}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6000,
                **STAY,
            }
        )
        self.consumer.subscribe([self.source])

    def close(self):
        self.consumer.close()
        self.producer = None

    def step(self, size=20):
        """Copy at most `size` records in one transaction, and return their number."""
        messages = [message for message in self.consumer.consume(size, 0.5) if message.error() is None]
        if not messages:
            return 0
        self.producer.begin_transaction()
        for message in messages:
            self.producer.produce(self.target, message.value(), partition=message.partition())
        positions = self.consumer.position(self.consumer.assignment())
        self.producer.send_offsets_to_transaction(positions, self.consumer.consumer_group_metadata(), DEADLINE_S)
        self.producer.commit_transaction(DEADLINE_S)
        self.transactions += 1
        return len(messages)

    def run(self, total):
        """Copy until `total` records have been committed to the target; restarts after every error."""
        deadline = time.monotonic() + 4 * DEADLINE_S
        self.open()
        while True:
            assert time.monotonic() < deadline, "the copy was not complete in time"
            try:
                if not self.step() and self.committed() == total:
                    break
            except KafkaException as error:
                print(f"starting over after {error}")
                self.close()
                self.open()  # the successor commits or aborts its predecessor's transaction
        self.close()

    def committed(self):
        """The sum of the group's committed offsets in the source."""
        places = [TopicPartition(self.source, index) for index in range(2)]
        return sum(max(0, place.offset) for place in self.consumer.committed(places, DEADLINE_S))


def fill(bootstrap, topic, count):
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, str(number), partition=number % 2)
    assert producer.flush(DEADLINE_S) == 0


def test_an_exactly_once_copy(broker, topic_name):
    """T11, T12."""
    source, target = (
        make_topic(broker.bootstrap, topic_name("in"), 2),
        make_topic(broker.bootstrap, topic_name("out"), 2),
    )
    fill(broker.bootstrap, source, 200)
    CopyLoop(broker.bootstrap, source, target).run(200)
    everything = Counter(map(str, range(200)))
    deadline = Deadline("all copies", DEADLINE_S)
    while (copies := Counter(read_all(broker.bootstrap, target, 2))) != everything:
        assert copies <= everything
        deadline.check()  # a leader that was killed gets the last commit's marker when it is back


def test_a_transaction_of_a_killed_producer_is_aborted_after_its_timeout(start_broker, topic):
    """T10: transaction.timeout.ms aborts it, so readers continue."""
    server = start_broker(config={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"})
    make_topic(server.bootstrap, topic)
    producer = transactional(server.bootstrap, "dies", **{"transaction.timeout.ms": 1000})
    producer.begin_transaction()
    producer.produce(topic, "lost")
    producer.flush()
    plain = Producer({"bootstrap.servers": server.bootstrap, "enable.idempotence": True})
    plain.produce(topic, "kept")
    plain.flush()
    deadline = Deadline("the end of the transaction whose producer has gone", DEADLINE_S)
    while (values := read_all(server.bootstrap, topic)) != ["kept"]:
        assert values == []
        deadline.check()


def test_aiokafka_transactions(broker, topic):
    aiokafka = pytest.importorskip("aiokafka")
    make_topic(broker.bootstrap, topic)

    async def produce():
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"aio-{topic}")
        await producer.start()
        try:
            async with producer.transaction():
                await producer.send_and_wait(topic, b"committed")
                await producer.send_offsets_to_transaction({aiokafka.TopicPartition(topic, 0): 7}, f"group-{topic}")
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
        finally:
            await producer.stop()

    asyncio.run(produce())
    assert read_all(broker.bootstrap, topic) == ["committed"]
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"group-{topic}"})
    (place,) = consumer.committed([TopicPartition(topic, 0)], DEADLINE_S)
    consumer.close()
    assert place.offset == 7


def test_kafka_python_transactions(broker, topic):
    kafka = pytest.importorskip("kafka")
    make_topic(broker.bootstrap, topic)
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"python-{topic}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"committed").get(DEADLINE_S)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send(topic, b"aborted").get(DEADLINE_S)
    producer.abort_transaction()
    producer.close()
    assert read_all(broker.bootstrap, topic) == ["committed"]
