"""L3: kill -9 under load, again and again: every acknowledged record is there, in order, once.

An idempotent producer goes on through every crash and restart. The kills come at random moments counted in
acknowledgements, not in time; the seed is printed and replays the choice. BARNABAS_KILLS sets how many (3 in CI).
"""

from __future__ import annotations

import os
import random

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

KILLS = int(os.environ.get("BARNABAS_KILLS", "3"))
PARTITIONS = 3
SEED = int(os.environ.get("BARNABAS_SEED", str(random.SystemRandom().randrange(2**32))))


class Load:
    """A producer of numbered records that knows which of them were acknowledged, and at which offset."""

    def __init__(self, bootstrap, topic):
        self.topic = topic
        self.next = [0] * PARTITIONS
        self.acknowledged = [{} for _ in range(PARTITIONS)]
        self.errors = []
        self.acks = 0
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "compression.type": "lz4",
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
            }
        )

    def _delivered(self, error, message):
        if error is not None:
            self.errors.append(str(error))
            return
        self.acks += 1
        self.acknowledged[message.partition()][int(message.value())] = message.offset()

    def run_until(self, acks):
        """Produce until `acks` records in all have been acknowledged."""
        while self.acks < acks and not self.errors:
            for partition in range(PARTITIONS):
                if len(self.producer) < 5000:
                    self.producer.produce(
                        self.topic, value=str(self.next[partition]), partition=partition, on_delivery=self._delivered
                    )
                    self.next[partition] += 1
            self.producer.poll(0.001 if len(self.producer) >= 5000 else 0)


def _read(bootstrap, topic, partition):
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    records = []
    while True:
        for message in consumer.consume(10_000, 1.0):
            if message.error():
                consumer.close()
                return records
            records.append((message.offset(), int(message.value())))


def test_acknowledged_records_survive_kill_9_in_order_and_once(start_broker, topic):
    print(f"replay with BARNABAS_SEED={SEED} BARNABAS_KILLS={KILLS}")
    chance = random.Random(SEED)
    # A small segment makes rolls, and with them index and snapshot files, part of every crash.
    server = start_broker(config={"log.segment.bytes": "1048576"})
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
    load = Load(server.bootstrap, topic)
    for _ in range(KILLS):
        load.run_until(load.acks + chance.randrange(200, 20_000))
        server.kill9()
        server.restart()
    load.run_until(load.acks + 1000)
    assert load.producer.flush(60) == 0
    assert load.errors == []
    for partition in range(PARTITIONS):
        records = _read(server.bootstrap, topic, partition)
        assert [value for _, value in records] == list(range(load.next[partition]))
        assert {value: offset for offset, value in records} == load.acknowledged[partition]
