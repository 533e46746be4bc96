"""A client process with confluent-kafka that writes a history; its role is `write`, `copy`, `read` or `share`.

`python -m compat.exactly_once.confluent_client ROLE bootstrap=... process=... history=... source=... target=...`, with
`group`, `slot`, `session_ms` and `seed`. SIGTERM ends it cleanly; it may be killed at any moment.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from compat.checker.history import Writer

CALL_TIMEOUT_S = 20.0
BATCH = 40
OUTSTANDING = 500
FAST = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    "log_level": 0,
}


def settings_of(bootstrap: str) -> dict[str, str | int]:
    """Address and pauses of every client.

    Of a single broker: librdkafka 2.16 removes it when it is down for a moment, and never reconnects. Of a cluster,
    where metadata has live brokers only, the first addresses must be asked again when all have been down.
    """
    strategy = "rebootstrap" if "," in bootstrap else "none"
    return {"bootstrap.servers": bootstrap, "metadata.recovery.strategy": strategy, **FAST}


class Client:
    """Settings and history of all roles, and whether they are to end."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.history = Writer(Path(settings["history"]), settings["process"])
        self.chance = random.Random(f"{settings['seed']} {settings['process']}")
        self.is_stopping = False

    def stop(self, *_signal: object) -> None:
        """End soon, and cleanly."""
        self.is_stopping = True

    def _protocol(self) -> dict[str, str | int]:
        if self.settings.get("protocol") == "consumer":
            return {"group.protocol": "consumer"}
        session_ms = int(self.settings["session_ms"])
        return {"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 5}

    def consumer(self, topics: list[str], group: str) -> Consumer:
        """A read_committed consumer that records its assignments in the history."""
        consumer = Consumer(
            {
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **self._protocol(),
                "fetch.wait.max.ms": 50,
                "fetch.queue.backoff.ms": 5,
                **settings_of(self.settings["bootstrap"]),
            }
        )

        def record(kind: str) -> Callable[[Consumer, list[TopicPartition]], None]:
            return lambda _, partitions: self.history.write(
                kind, partitions=[[partition.topic, partition.partition] for partition in partitions]
            )

        consumer.subscribe(topics, on_assign=record("assigned"), on_revoke=record("revoked"), on_lost=record("revoked"))
        return consumer

    def poll(self, consumer: Consumer) -> list[Message]:
        """Poll, and record the result in the history."""
        messages = [message for message in consumer.consume(BATCH, 0.2) if message.error() is None]
        if messages:
            rows = [
                [record.topic(), record.partition(), record.offset(), record.value().decode()] for record in messages
            ]
            self.history.write("poll", records=rows, isolation="read_committed")
        return messages

    def committed(self, consumer: Consumer, group: str) -> list[TopicPartition]:
        """Fetch the committed offsets of the assigned partitions, and record them in the history."""
        since = time.monotonic()
        partitions = consumer.committed(consumer.assignment(), CALL_TIMEOUT_S)
        rows = [[partition.topic, partition.partition, max(-1, partition.offset)] for partition in partitions]
        self.history.write("fetched_offsets", group=group, offsets=rows, since=since)
        return partitions

    def retry(self, call: Callable[[], Any]) -> Any:
        """Call until it succeeds or fails with an error that is not retriable."""
        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable() or self.is_stopping:
                    raise
                self.history.write("note", text=f"again after: {error}")


def next_offsets(messages: list[Message]) -> list[TopicPartition]:
    """The next offset of each partition after these messages."""
    offsets = {(message.topic(), message.partition()): message.offset() + 1 for message in messages}
    return [TopicPartition(*partition, offset) for partition, offset in offsets.items()]


def known_offset(message: Message) -> int:
    """The offset of a delivered message, -1 if librdkafka does not know it.

    When the response to an idempotent batch is lost and a later batch succeeds, librdkafka reports the first as
    delivered without an offset, for which confluent-kafka returns None: the sequences prove that it was appended.
    """
    offset = message.offset()
    return -1 if offset is None else offset


def rows_of(partitions: list[TopicPartition]) -> list[list[Any]]:
    """Partitions with offsets as rows of a history."""
    return [[partition.topic, partition.partition, partition.offset] for partition in partitions]


def write(client: Client) -> None:
    """Write numbered values to the source with an idempotent producer at `rate` until SIGTERM."""
    settings = client.settings
    producer = Producer({"enable.idempotence": True, "linger.ms": 2, **settings_of(settings["bootstrap"])})
    topic, partitions, rate = settings["source"], int(settings["partitions"]), float(settings["rate"])

    def delivered(error: KafkaError | None, message: Message) -> None:
        value = message.value().decode()
        if error is None:
            where = {"topic": topic, "partition": message.partition(), "offset": known_offset(message)}
            client.history.write("sent", value=value, **where)
        else:
            client.history.write("note", text=f"{value}: {error}")

    began, number = time.monotonic(), 0
    while not client.is_stopping:
        if len(producer) < OUTSTANDING and number < (time.monotonic() - began) * rate:
            value, partition = f"{settings['process']}/{number}", client.chance.randrange(partitions)
            client.history.write("send", topic=topic, partition=partition, value=value)
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
            number += 1
            producer.poll(0)
        else:
            producer.poll(0.01)
    assert producer.flush(60) == 0, "records were not written within 60 s"


class Copy:
    """Copies records with their offsets in transactions; starts over with new clients after a fatal error."""

    def __init__(self, client: Client) -> None:
        self.client, self.settings, self.history = client, client.settings, client.history
        self.number = 0

    def run(self) -> None:
        """Copy until SIGTERM, with new clients after a fatal error."""
        while not self.client.is_stopping:
            consumer = self.client.consumer([self.settings["source"]], self.settings["group"])
            try:
                producer = self._producer()
                while not self.client.is_stopping:
                    self._step(producer, consumer)
            except KafkaException as error:
                self.history.write("note", text=f"starting over after {error}")
            finally:
                consumer.close()

    def _producer(self) -> Producer:
        settings = {
            "transactional.id": f"{self.settings['group']}-{self.settings['slot']}",
            "transaction.timeout.ms": 20_000,
            "linger.ms": 1,
            **settings_of(self.settings["bootstrap"]),
        }
        producer = Producer(settings)
        self.client.retry(lambda: producer.init_transactions(CALL_TIMEOUT_S))
        return producer

    def _step(self, producer: Producer, consumer: Consumer) -> None:
        messages = self.client.poll(consumer)
        if not messages:
            return
        self.number += 1
        txn = f"{self.settings['process']}/{self.number}"
        self.history.write("begin", txn=txn)
        producer.begin_transaction()
        try:
            self._transaction(txn, producer, consumer, messages)
        except KafkaException as error:
            self.history.write("note", text=f"{txn}: {error}")
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(txn, producer, consumer)

    def _transaction(self, txn: str, producer: Producer, consumer: Consumer, messages: list[Message]) -> None:
        for message in messages:
            self._produce(txn, producer, message)
        if self.client.chance.random() < 0.1:
            self._abort(txn, producer, consumer)
            return
        partitions = next_offsets(messages)
        offsets = {"group": self.settings["group"], "offsets": rows_of(partitions), "txn": txn}
        self.history.write("committing_offsets", **offsets)
        metadata = consumer.consumer_group_metadata()
        self.client.retry(lambda: producer.send_offsets_to_transaction(partitions, metadata, CALL_TIMEOUT_S))
        self.history.write("committed_offsets", **offsets)
        self.history.write("committing", txn=txn)
        self.client.retry(lambda: producer.commit_transaction(CALL_TIMEOUT_S))
        self.history.write("committed", txn=txn)

    def _produce(self, txn: str, producer: Producer, message: Message) -> None:
        fields = {"topic": self.settings["target"], "partition": message.partition(), "value": message.value().decode()}

        def delivered(error: KafkaError | None, report: Message) -> None:
            if error is None:
                self.history.write("sent", offset=known_offset(report), txn=txn, **fields)

        self.history.write("send", txn=txn, **fields)
        producer.produce(fields["topic"], message.value(), partition=fields["partition"], on_delivery=delivered)

    def _abort(self, txn: str, producer: Producer, consumer: Consumer) -> None:
        self.client.retry(lambda: producer.abort_transaction(CALL_TIMEOUT_S))
        self.history.write("aborted", txn=txn)
        for partition in self.client.committed(consumer, self.settings["group"]):
            partition.offset = max(0, partition.offset)
            self.history.write("seek", topic=partition.topic, partition=partition.partition, offset=partition.offset)
            consumer.seek(partition)


def read(client: Client) -> None:
    """Read source and target in a group, and commit the offsets."""
    group = f"{client.settings['group']}-readers"
    consumer = client.consumer([client.settings["source"], client.settings["target"]], group)
    while not client.is_stopping:
        messages = client.poll(consumer)
        if not messages:
            continue
        offsets = {"group": group, "offsets": rows_of(next_offsets(messages))}
        try:
            client.history.write("committing_offsets", **offsets)
            partitions = next_offsets(messages)
            client.retry(lambda partitions=partitions: consumer.commit(offsets=partitions, asynchronous=False))
            client.history.write("committed_offsets", **offsets)
            client.retry(lambda: client.committed(consumer, group))
        except KafkaException as error:
            client.history.write("note", text=f"commit: {error}")
    consumer.close()


def share(client: Client) -> None:
    """Read in a share group, accept most records, and release or reject the others."""
    group, topic = client.settings["share_group"], client.settings["source"]
    bootstrap = client.settings["bootstrap"]
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer({**settings, "reconnect.backoff.max.ms": 200, "log_level": 0})
    consumer.subscribe([topic])
    while not client.is_stopping:
        try:
            messages = [message for message in consumer.poll(0.2) if message.error() is None]
            if messages:
                share_batch(client, consumer, group, messages)
        except KafkaException as error:
            client.history.write("note", text=f"share: {error}")
    consumer.close()


def share_batch(client: Client, consumer: ShareConsumer, group: str, messages: list[Message]) -> None:
    """Acknowledge one batch."""
    positions = [(record.topic(), record.partition(), record.offset()) for record in messages]
    values = [(record.value().decode(), record.delivery_count()) for record in messages]
    rows = [[*position, *value] for position, value in zip(positions, values, strict=True)]
    client.history.write("acquired", group=group, records=rows)
    kinds = client.chance.choices(["accept", "release", "reject"], [8, 1, 1], k=len(messages))
    rows = [[*position, kind] for position, kind in zip(positions, kinds, strict=True)]
    client.history.write("acknowledging", group=group, records=rows)
    for message, kind in zip(messages, kinds, strict=True):
        consumer.acknowledge(message, AcknowledgeType[kind.upper()])
    errors = consumer.commit_sync(CALL_TIMEOUT_S)
    acknowledged = {(partition.topic, partition.partition) for partition, error in errors.items() if error is None}
    done = [row for row in rows if (row[0], row[1]) in acknowledged]
    client.history.write("acknowledged", group=group, records=done)


def main() -> None:
    """Run the role of the first argument."""
    client = Client(dict(argument.split("=", 1) for argument in sys.argv[2:]))
    signal.signal(signal.SIGTERM, client.stop)
    {"write": write, "copy": lambda copier: Copy(copier).run(), "read": read, "share": share}[sys.argv[1]](client)
    client.history.write("closed")


if __name__ == "__main__":
    main()
