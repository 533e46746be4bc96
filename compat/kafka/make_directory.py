"""Creates a small log directory with Apache Kafka, for tests without Java.

    python -m compat.kafka.make_directory tests/data/kafka-4.4.0-directory.tar.gz

It has: a quorum with its voters in records, two snapshots of the metadata, a group, and a committed, an aborted and an
open transaction with offsets of the group `movers` (5, 12 and 99 of `orders`). The indexes of the metadata log are
omitted, because Kafka leaves them with 10 MB of zeros.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.processes.kafka import KafkaServer

CONFIG = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
WAIT_S = 60


def fill(bootstrap: str) -> None:
    """Produce the content of the directory."""
    client = {"bootstrap.servers": bootstrap}
    admin = AdminClient(client)
    topics = [NewTopic("orders", 2, 1, config={"retention.ms": "-1"}), NewTopic("ledger", 1, 1)]
    for created in admin.create_topics(topics).values():
        created.result(WAIT_S)
    producer = Producer(client | {"enable.idempotence": True})
    for number in range(20):
        producer.produce("orders", b"order %d" % number, partition=number % 2)
    producer.flush(WAIT_S)
    reader = Consumer(client | {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False})
    reader.subscribe(["orders"])
    for _ in range(20):
        reader.poll(WAIT_S)
    reader.commit(asynchronous=False)
    reader.close()
    mover = Producer(client | {"transactional.id": "mover", "transaction.timeout.ms": 900_000})
    mover.init_transactions(WAIT_S)
    group = Consumer(client | {"group.id": "movers"}).consumer_group_metadata()
    for outcome, position in (("committed", 5), ("aborted", 12), ("open", 99)):
        mover.begin_transaction()
        mover.produce("ledger", outcome.encode())
        mover.send_offsets_to_transaction([TopicPartition("orders", 0, position)], group, WAIT_S)
        mover.flush(WAIT_S)
        if outcome == "committed":
            mover.commit_transaction(WAIT_S)
        elif outcome == "aborted":
            mover.abort_transaction(WAIT_S)


def main(target: Path) -> None:
    """Create the directory and pack it as `target`."""
    with tempfile.TemporaryDirectory() as where:
        kafka = KafkaServer(Path(where) / "node", config=CONFIG, dynamic_quorum=True)
        metadata = kafka.log_dir / "__cluster_metadata-0"
        with kafka:
            fill(kafka.bootstrap)
            deadline = time.monotonic() + WAIT_S
            while len(list(metadata.glob("*.checkpoint"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.1)
        for index in metadata.glob("*index"):
            index.unlink()
        with tarfile.open(target, "w:gz") as archive:
            archive.add(kafka.log_dir, ".")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
