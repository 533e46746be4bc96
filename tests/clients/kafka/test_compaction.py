"""Compacted topics with real clients: the last value of each key stays, and Kafka's tools read the files.

Tests wait for the broker's log line about a finished cleaning, with a deadline.
"""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.clients.kafka.dump_tools import both_agree, files_of
from tests.support.processes.server import Server
from tests.support.waiting import wait_for

DEADLINE_S = 100
KEYS = 300
NOISE = random.Random(5)  # incompressible values fill a segment sooner
CLEANING = {"log.cleaner.backoff.ms": "50"}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "1048576", "min.cleanable.dirty.ratio": "0.01"}

pytestmark = pytest.mark.usefixtures("needs_barnabas")


@pytest.fixture
def needs_barnabas(against: str) -> None:
    if against != "barnabas":
        pytest.skip("the waiting reads Barnabas' log")


@pytest.fixture
def server(start_broker) -> Server:
    return start_broker(config=CLEANING)


def create(server: Server, topic: str, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    settings = COMPACTED | {name.replace("_", "."): value for name, value in config.items()}
    for future in admin.create_topics([NewTopic(topic, 1, 1, config=settings)]).values():
        future.result()


def produce(server: Server, topic: str, start: int, count: int, codec: str = "lz4") -> dict[bytes, bytes | None]:
    """Produce records numbered from `start`, every 50th a tombstone; the last value of each key or None."""
    producer = Producer(
        {
            "bootstrap.servers": server.bootstrap,
            "compression.type": codec,
            "enable.idempotence": True,
            "linger.ms": 5,
            "batch.size": 20_000,
        }
    )
    latest: dict[bytes, bytes | None] = {}
    for number in range(start, start + count):
        key = b"key-%d" % (number * 7 % KEYS)
        value = None if number % 50 == 0 else b"%d " % number + NOISE.randbytes(150).hex().encode()
        producer.produce(topic, key=key, value=value)
        latest[key] = value
        producer.poll(0)
    assert producer.flush(30) == 0
    return latest


def consume(server: Server, topic: str, offset: int = 0) -> list[tuple[int, bytes, bytes | None]]:
    """(offset, key, value) of all records from an offset on."""
    consumer = Consumer(
        {
            "bootstrap.servers": server.bootstrap,
            "group.id": "g",
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(topic, 0, offset)])
    records = []
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        for message in consumer.consume(500, timeout=1.0):
            if message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                consumer.close()
                return records
            records.append((message.offset(), message.key(), message.value()))
    raise AssertionError(f"the end of {topic} was not reached after {len(records)} records")


def wait_cleaned(server: Server, name: str, up_to: int = 1) -> None:
    """Wait until the broker has logged that the partition is cleaned at least up to an offset."""
    pattern = re.compile(rf"Cleaned <Partition {re.escape(name)}> from dirty offset \d+ up to (\d+)")
    wait_for(
        lambda: any(int(end) >= up_to for end in pattern.findall(server.log())),
        lambda: f"{name} cleaned up to {up_to}:\n{server.log()[-3000:]}",
        DEADLINE_S,
    )


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd", "gzip", "snappy"])
def test_reader_from_the_start_builds_the_same_map(server: Server, topic: str, codec: str) -> None:
    """L7, L8: fewer records, increasing offsets, tombstones included, the same last value of each key."""
    create(server, topic)
    latest = produce(server, topic, 0, 12_000, codec)
    wait_cleaned(server, f"{topic}-0", 1000)
    records = consume(server, topic)
    assert len(records) < 11_000
    offsets = [offset for offset, _, _ in records]
    assert offsets == sorted(set(offsets))
    assert {key: value for _, key, value in records} == latest
    middle = records[len(records) // 3][0]
    assert consume(server, topic, middle - 1)[-5:] == records[-5:]
    assert "Traceback" not in server.log()


@pytest.mark.soak
def test_appends_continue_after_cleaning_kill_and_restart(server: Server, topic: str) -> None:
    """L3, L7: the broker is killed at any moment of a cleaning."""
    create(server, topic)
    latest = produce(server, topic, 0, 12_000, "none")
    for turn in range(1, 4):
        wait_cleaned(server, f"{topic}-0")
        latest |= produce(server, topic, turn * 12_000, 12_000, "none")
        server.kill9()
        server.restart()
        assert {key: value for _, key, value in consume(server, topic)} == latest
    server.stop()
    checkpoint = Path(server.data_dir, "cleaner-offset-checkpoint").read_text().splitlines()
    assert checkpoint[0] == "0"
    assert f"{topic} 0" in " ".join(checkpoint[2:])
    server.restart()
    assert {key: value for _, key, value in consume(server, topic)} == latest


@pytest.mark.soak
@pytest.mark.jvm
def test_kafkas_tool_reads_cleaned_segments(server: Server, topic: str) -> None:
    """Logs, indexes and time indexes, with delete horizons."""
    create(server, topic)
    for turn, codec in enumerate(("none", "lz4", "gzip")):
        produce(server, topic, turn * 12_000, 12_000, codec)
    directory = Path(server.data_dir, f"{topic}-0")
    wait_cleaned(server, f"{topic}-0", int(files_of(directory, ".log")[-1].stem))
    server.stop()
    assert not list(directory.glob("*.swap")), "a started swap is completed before the broker stops"
    dump = both_agree(files_of(directory, ".log"), "--deep-iteration", "--print-data-log")
    assert dump.offsets == sorted(set(dump.offsets))
    assert len(dump.offsets) < dump.offsets[-1]
    assert "isvalid: false" not in dump.text
    assert "deleteHorizonMs: OptionalLong[" in dump.text
    both_agree(files_of(directory, ".index", ".timeindex"), "--index-sanity-check")


def test_compact_and_delete_together(server: Server, topic: str) -> None:
    """With both policies: the last record of each key, limited by retention.bytes, which cleaned segments exceed."""
    create(server, topic, cleanup_policy="compact,delete", retention_bytes="1024")
    server.stop()
    server.config["log.retention.check.interval.ms"] = "200"
    server.restart()
    produce(server, topic, 0, 20_000, "none")
    wait_cleaned(server, f"{topic}-0")
    wait_for(lambda: "due to retention.bytes breach" in server.log(), lambda: server.log()[-3000:], DEADLINE_S)
    records = consume(server, topic)
    assert records[-1][0] == 19_999


def test_committed_positions_survive_compaction_of_their_topic(start_broker, topic: str) -> None:
    """G2: after a compaction of __consumer_offsets a restarted coordinator knows the last committed offsets."""
    config = CLEANING | {"offsets.topic.num.partitions": "1", "offsets.topic.segment.bytes": "1048576"}
    server = start_broker(config=config)
    create(server, topic, cleanup_policy="delete")
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    for future in admin.create_partitions([_partitions(topic, 100)]).values():
        future.result()
    for group in ("left", "right"):
        consumer = Consumer({"bootstrap.servers": server.bootstrap, "group.id": group})
        for position in range(1, 121):
            offsets = [TopicPartition(topic, index, position * 10 + index) for index in range(100)]
            consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()
    wait_cleaned(server, "__consumer_offsets-0", 5_000)
    assert len(consume(server, "__consumer_offsets")) < 20_000
    before = {group: _committed(admin, group) for group in ("left", "right")}
    assert before["left"] == {index: 1200 + index for index in range(100)} == before["right"]
    server.kill9()
    server.restart()
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    assert {group: _committed(admin, group) for group in ("left", "right")} == before


def _partitions(topic: str, count: int):
    from confluent_kafka.admin import NewPartitions

    return NewPartitions(topic, count)


def _committed(admin: AdminClient, group: str) -> dict[int, int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {position.partition: position.offset for position in future.result().topic_partitions}
