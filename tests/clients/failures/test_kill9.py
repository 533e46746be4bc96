"""L3: repeated kill -9 under load: every acknowledged record is stored once and in order; offsets and keys are kept.

An idempotent producer runs through all crashes and restarts, on two topics, one of them continuously compacted; a group
commits offsets up to the kill. The kills happen after random numbers of acknowledgements; the seed is printed and
repeats the choice. BARNABAS_KILLS sets how many (2 unless set).
"""

from __future__ import annotations

import os
import random
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.volume import first_seed, how_many, limited, replay
from tests.support.waiting import Deadline

KILLS = how_many("BARNABAS_KILLS", 2)
PARTITIONS = 3
KEYS = 40
MOST_ACKS = 2500
"""Between two kills."""
# With small segments and frequent cleaning, crashes hit rolls, index files, snapshots and swaps.
BROKER = {"log.segment.bytes": "1048576", "log.cleaner.backoff.ms": "50", "log.segment.delete.delay.ms": "200"}
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "300"}
FAST = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 10, "log_level": 0}


class Load:
    """A producer of numbered records that keeps the offset of each acknowledged record."""

    def __init__(self, bootstrap, topic, compacted):
        self.topic, self.compacted = topic, compacted
        self.next = [0] * PARTITIONS
        self.acknowledged = [{} for _ in range(PARTITIONS)]
        self.last_of_key = {}
        self.updates = 0
        self.errors = []
        self.acks = 0
        options = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2}
        self.producer = Producer({**options, **FAST, "compression.type": "lz4"})

    def _delivered(self, error, message):
        if error is not None:
            self.errors.append(str(error))
            return
        self.acks += 1
        if message.topic() == self.topic:
            self.acknowledged[message.partition()][int(message.value())] = message.offset()

    def _produce(self, partition):
        number = self.next[partition]
        self.next[partition] += 1
        self.producer.produce(self.topic, value=str(number), partition=partition, on_delivery=self._delivered)
        if number % 4 == 0:
            self.updates += 1
            key = b"%d" % (self.updates * 7 % KEYS)
            self.last_of_key[key] = b"%d " % self.updates + os.urandom(250)
            self.producer.produce(self.compacted, key=key, value=self.last_of_key[key], on_delivery=self._delivered)

    def run_until(self, acks):
        """Produce until `acks` records in all have been acknowledged."""
        while self.acks < acks and not self.errors:
            for partition in range(PARTITIONS):
                if len(self.producer) < 2000:
                    self._produce(partition)
            self.producer.poll(0.001 if len(self.producer) >= 2000 else 0)


class Group:
    """A group that commits increasing offsets; one commit is in progress at each kill."""

    def __init__(self, bootstrap, topic):
        self.consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "kill9", **FAST})
        self.topic = topic
        self.offset = 0
        self.committing = threading.Thread()

    def commit(self):
        """Commit an offset and start to commit the next."""
        self._commit()
        self.committing = threading.Thread(target=self._commit)
        self.committing.start()

    def _commit(self):
        offset = self.offset + 1
        self._retry(lambda: self.consumer.commit(offsets=[TopicPartition(self.topic, 0, offset)], asynchronous=False))
        self.offset = offset

    def check(self):
        """Assert that the committed offset is the last acknowledged one, or the one in progress at the kill."""
        self.committing.join()
        (committed,) = self._retry(lambda: self.consumer.committed([TopicPartition(self.topic, 0)], timeout=10))
        assert committed.offset == self.offset

    @staticmethod
    def _retry(call):
        deadline = Deadline("the coordinator of the group")
        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
            deadline.check()


def _read(bootstrap, topic, partition):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    messages = []
    while True:
        for message in consumer.consume(10_000, 1.0):
            if message.error():
                consumer.close()
                return messages
            messages.append(message)


@limited(300)
@pytest.mark.parametrize("policy", ["always", "os"])
def test_acknowledged_records_survive_kill_9(start_broker, topic_name, policy):
    print(replay("BARNABAS_KILLS", KILLS))
    chance = random.Random(first_seed())
    server = start_broker(config={**BROKER, "barnabas.log.sync": policy})
    topic, compacted = topic_name("kill9"), topic_name("kill9-compacted")
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    futures = admin.create_topics([NewTopic(topic, PARTITIONS), NewTopic(compacted, 1, config=COMPACTED)])
    for future in futures.values():
        future.result(30)
    load, group = Load(server.bootstrap, topic, compacted), Group(server.bootstrap, topic)
    began = time.monotonic()
    for _ in range(KILLS):
        load.run_until(load.acks + chance.randrange(200, MOST_ACKS))
        group.commit()
        server.kill9()
        server.restart()
        group.check()
    print(f"{KILLS} kills with {policy}: {(time.monotonic() - began) / KILLS:.2f} s each, {load.acks} acknowledgements")
    load.run_until(load.acks + 1000)
    assert load.producer.flush(60) == 0
    assert load.errors == []
    for partition in range(PARTITIONS):
        records = [(message.offset(), int(message.value())) for message in _read(server.bootstrap, topic, partition)]
        assert [value for _, value in records] == list(range(load.next[partition]))
        assert {value: offset for offset, value in records} == load.acknowledged[partition]
    updates = _read(server.bootstrap, compacted, 0)
    offsets = [message.offset() for message in updates]
    assert offsets == sorted(set(offsets))
    assert {message.key(): message.value() for message in updates} == load.last_of_key
    print(f"compaction has left {len(updates)} of {load.updates} records")
