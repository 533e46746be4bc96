"""A client process with kafka-python that writes a history; its role is `write` or `read`.

`python -m compat.exactly_once.kafka_python_client ROLE NAME=VALUE...` with the settings of `confluent_client`: an
idempotent writer, or a member of a group of the classic protocol that commits the records it has read. SIGTERM ends it.
"""

from __future__ import annotations

import random
import signal
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata

from compat.checker.history import Writer

DELIVERY_MS = 300_000
"""A record may wait that long: a slow cluster must not look like one that has lost it."""
POLL_MS = 500
"""A shorter poll can lose a join (FINDINGS.md of kafka-python)."""
OUTSTANDING = 300


class Client(ConsumerRebalanceListener):
    """Settings, history, and the end by SIGTERM of both roles."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.history = Writer(Path(settings["history"]), settings["process"])
        self.bootstrap = settings["bootstrap"].split(",")
        self._is_over = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: self._is_over.set())

    @property
    def is_stopping(self) -> bool:
        """Whether SIGTERM was received."""
        return self._is_over.is_set()

    # -- the writer

    def write(self) -> None:
        """Write numbered values until SIGTERM. Values that are finally refused have no answer in the history."""
        settings, chance = self.settings, random.Random(f"{self.settings['seed']} {self.settings['process']}")
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, linger_ms=2, delivery_timeout_ms=DELIVERY_MS)
        room = threading.Semaphore(OUTSTANDING)
        rate, began, number = float(settings["rate"]), time.monotonic(), 0
        while not self.is_stopping:
            if number > (time.monotonic() - began) * rate or not room.acquire(timeout=0.05):
                time.sleep(0.005)
                continue
            fields = {
                "topic": settings["source"],
                "partition": chance.randrange(int(settings["partitions"])),
                "value": f"{settings['process']}/{number}",
            }
            number += 1
            self.history.write("send", **fields)
            self._send(producer, fields, room)
        producer.flush(timeout=90)
        producer.close(timeout=10)

    def _send(self, producer: KafkaProducer, fields: dict[str, object], room: threading.Semaphore) -> None:
        def sent(metadata: object) -> None:
            room.release()
            self.history.write("sent", offset=metadata.offset, **fields)

        def not_known(error: BaseException) -> None:
            room.release()
            self.history.write("note", text=f"{fields['value']}: {error!r}")

        try:
            future = producer.send(fields["topic"], str(fields["value"]).encode(), partition=fields["partition"])
        except KafkaError as error:
            not_known(error)
            return
        future.add_callback(sent)
        future.add_errback(not_known)

    # -- the member of a group

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Called by the consumer."""
        self.history.write("assigned", partitions=[list(partition) for partition in assigned])

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Called by the consumer."""
        self.history.write("revoked", partitions=[list(partition) for partition in revoked])

    def read(self) -> None:
        """Read the source, and commit the records read."""
        settings, session_ms = self.settings, int(self.settings["session_ms"])
        group = f"{settings['group']}-readers"
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=session_ms // 5,
            fetch_max_wait_ms=50,
        )
        consumer.subscribe([settings["source"]], listener=self)
        while not self.is_stopping:
            rows = [
                [record.topic, record.partition, record.offset, record.value.decode()]
                for records in consumer.poll(POLL_MS, max_records=200).values()
                for record in records
            ]
            if rows:
                self.history.write("poll", records=rows, isolation="read_committed")
                self._commit(consumer, group, {(topic, partition): offset + 1 for topic, partition, offset, _ in rows})
        consumer.close()

    def _commit(self, consumer: KafkaConsumer, group: str, offsets: dict[tuple[str, int], int]) -> None:
        event = {"group": group, "offsets": [[*where, offset] for where, offset in offsets.items()]}
        self.history.write("committing_offsets", **event)
        positions = {TopicPartition(*where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()}
        try:
            consumer.commit(positions)
        except KafkaError as error:
            self.history.write("note", text=f"commit: {error!r}")
            return
        self.history.write("committed_offsets", **event)


def main() -> None:
    """Run the role of the first argument."""
    client = Client(dict(argument.split("=", 1) for argument in sys.argv[2:]))
    {"write": client.write, "read": client.read}[sys.argv[1]]()
    client.history.write("closed")


if __name__ == "__main__":
    main()
