"""One client process by confluent-kafka that writes a history: `write`, `copy`, `read`, `share`, by `name=value`s.

`python -m compat.exactly_once.confluent_client ROLE bootstrap=... process=... history=... source=... target=...`, with
`group`, `slot`, `session_ms` and `seed`. SIGTERM ends it in order; it may be killed at any moment.
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
    # librdkafka 2.16 else decommissions the only broker when it is down for a moment, and waits for it for ever.
    "metadata.recovery.strategy": "none",
}


class Client:
    """What the roles have in common: settings, history, and whether it is time to end."""

    def __init__(self, told: dict[str, str]) -> None:
        self.told = told
        self.history = Writer(Path(told["history"]), told["process"])
        self.chance = random.Random(f"{told['seed']} {told['process']}")
        self._stops: list[int] = []
        signal.signal(signal.SIGTERM, lambda number, _: self._stops.append(number))

    @property
    def is_over(self) -> bool:
        """Whether SIGTERM has come."""
        return bool(self._stops)

    def _protocol(self) -> dict[str, str | int]:
        if self.told.get("protocol") == "consumer":
            return {"group.protocol": "consumer"}
        session_ms = int(self.told["session_ms"])
        return {"session.timeout.ms": session_ms, "heartbeat.interval.ms": session_ms // 5}

    def consumer(self, topics: list[str], group: str) -> Consumer:
        """A member of a group that reads committed records and tells of its assignments."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.told["bootstrap"],
                "group.id": group,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **self._protocol(),
                "fetch.wait.max.ms": 50,
                "fetch.queue.backoff.ms": 5,
                **FAST,
            }
        )

        def tell(kind: str) -> Callable[[Consumer, list[TopicPartition]], None]:
            return lambda _, places: self.history.write(kind, partitions=[[one.topic, one.partition] for one in places])

        consumer.subscribe(topics, on_assign=tell("assigned"), on_revoke=tell("revoked"), on_lost=tell("revoked"))
        return consumer

    def poll(self, consumer: Consumer) -> list[Message]:
        """The next records, written down."""
        messages = [message for message in consumer.consume(BATCH, 0.2) if message.error() is None]
        if messages:
            rows = [[one.topic(), one.partition(), one.offset(), one.value().decode()] for one in messages]
            self.history.write("poll", records=rows, isolation="read_committed")
        return messages

    def committed(self, consumer: Consumer, group: str) -> list[TopicPartition]:
        """What the group has committed for the partitions that are assigned, written down."""
        since = time.monotonic()
        places = consumer.committed(consumer.assignment(), CALL_TIMEOUT_S)
        rows = [[one.topic, one.partition, max(-1, one.offset)] for one in places]
        self.history.write("fetched_offsets", group=group, offsets=rows, since=since)
        return places

    def again(self, call: Callable[[], Any]) -> Any:
        """Call until it succeeds or fails with what cannot be tried again."""
        while True:
            try:
                return call()
            except KafkaException as error:
                if not error.args[0].retriable() or self.is_over:
                    raise


def next_offsets(messages: list[Message]) -> list[TopicPartition]:
    """Where each partition goes on after these messages."""
    offsets = {(message.topic(), message.partition()): message.offset() + 1 for message in messages}
    return [TopicPartition(*partition, offset) for partition, offset in offsets.items()]


def rows_of(places: list[TopicPartition]) -> list[list[Any]]:
    """Places as a history has them."""
    return [[place.topic, place.partition, place.offset] for place in places]


def write(client: Client) -> None:
    """Write numbered values to the source, idempotent, as fast as `rate` allows, until it is over."""
    producer = Producer(
        {"bootstrap.servers": client.told["bootstrap"], "enable.idempotence": True, "linger.ms": 2, **FAST}
    )
    topic, partitions, rate = client.told["source"], int(client.told["partitions"]), float(client.told["rate"])

    def delivered(error: KafkaError | None, message: Message) -> None:
        value = message.value().decode()
        if error is None:
            where = {"topic": topic, "partition": message.partition(), "offset": message.offset()}
            client.history.write("sent", value=value, **where)
        else:
            client.history.write("note", text=f"{value}: {error}")

    began, number = time.monotonic(), 0
    while not client.is_over:
        if len(producer) < OUTSTANDING and number < (time.monotonic() - began) * rate:
            value, partition = f"{client.told['process']}/{number}", client.chance.randrange(partitions)
            client.history.write("send", topic=topic, partition=partition, value=value)
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
            number += 1
            producer.poll(0)
        else:
            producer.poll(0.01)
    assert producer.flush(60) == 0, "the last records were not written in a minute"


class Copy:
    """consume, transform, produce: results and offsets in one transaction, and anew after what cannot be mended."""

    def __init__(self, client: Client) -> None:
        self.client, self.told, self.history = client, client.told, client.history
        self.number = 0

    def run(self) -> None:
        """Copy until it is over, with new clients whenever the old ones have failed for good."""
        while not self.client.is_over:
            consumer = self.client.consumer([self.told["source"]], self.told["group"])
            try:
                producer = self._producer()
                while not self.client.is_over:
                    self._step(producer, consumer)
            except KafkaException as error:
                self.history.write("note", text=f"starting over after {error}")
            finally:
                consumer.close()

    def _producer(self) -> Producer:
        settings = {
            "bootstrap.servers": self.told["bootstrap"],
            "transactional.id": f"{self.told['group']}-{self.told['slot']}",
            "transaction.timeout.ms": 20_000,
            "linger.ms": 1,
            **FAST,
        }
        producer = Producer(settings)
        self.client.again(lambda: producer.init_transactions(CALL_TIMEOUT_S))
        return producer

    def _step(self, producer: Producer, consumer: Consumer) -> None:
        messages = self.client.poll(consumer)
        if not messages:
            return
        self.number += 1
        txn = f"{self.told['process']}/{self.number}"
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
        places = next_offsets(messages)
        offsets = {"group": self.told["group"], "offsets": rows_of(places), "txn": txn}
        self.history.write("committing_offsets", **offsets)
        metadata = consumer.consumer_group_metadata()
        self.client.again(lambda: producer.send_offsets_to_transaction(places, metadata, CALL_TIMEOUT_S))
        self.history.write("committed_offsets", **offsets)
        self.history.write("committing", txn=txn)
        self.client.again(lambda: producer.commit_transaction(CALL_TIMEOUT_S))
        self.history.write("committed", txn=txn)

    def _produce(self, txn: str, producer: Producer, message: Message) -> None:
        place = {"topic": self.told["target"], "partition": message.partition(), "value": message.value().decode()}

        def delivered(error: KafkaError | None, answer: Message) -> None:
            if error is None:
                self.history.write("sent", offset=answer.offset(), txn=txn, **place)

        self.history.write("send", txn=txn, **place)
        producer.produce(place["topic"], message.value(), partition=place["partition"], on_delivery=delivered)

    def _abort(self, txn: str, producer: Producer, consumer: Consumer) -> None:
        self.client.again(lambda: producer.abort_transaction(CALL_TIMEOUT_S))
        self.history.write("aborted", txn=txn)
        for place in self.client.committed(consumer, self.told["group"]):
            place.offset = max(0, place.offset)
            self.history.write("seek", topic=place.topic, partition=place.partition, offset=place.offset)
            consumer.seek(place)


def read(client: Client) -> None:
    """A plain group over source and target that commits what it has read."""
    group = f"{client.told['group']}-readers"
    consumer = client.consumer([client.told["source"], client.told["target"]], group)
    while not client.is_over:
        messages = client.poll(consumer)
        if not messages:
            continue
        offsets = {"group": group, "offsets": rows_of(next_offsets(messages))}
        try:
            client.history.write("committing_offsets", **offsets)
            places = next_offsets(messages)
            client.again(lambda places=places: consumer.commit(offsets=places, asynchronous=False))
            client.history.write("committed_offsets", **offsets)
            client.again(lambda: client.committed(consumer, group))
        except KafkaException as error:
            client.history.write("note", text=f"commit: {error}")
    consumer.close()


def share(client: Client) -> None:
    """A member of a share group that accepts most records, and releases or rejects the others."""
    group, topic = client.told["share_group"], client.told["source"]
    bootstrap = client.told["bootstrap"]
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = ShareConsumer({**settings, "reconnect.backoff.max.ms": 200, "log_level": 0})
    consumer.subscribe([topic])
    while not client.is_over:
        try:
            messages = [message for message in consumer.poll(0.2) if message.error() is None]
            if messages:
                share_batch(client, consumer, group, messages)
        except KafkaException as error:
            client.history.write("note", text=f"share: {error}")
    consumer.close()


def share_batch(client: Client, consumer: ShareConsumer, group: str, messages: list[Message]) -> None:
    """One delivery, and its acknowledgements."""
    places = [(one.topic(), one.partition(), one.offset()) for one in messages]
    values = [(one.value().decode(), one.delivery_count()) for one in messages]
    rows = [[*place, *value] for place, value in zip(places, values, strict=True)]
    client.history.write("acquired", group=group, records=rows)
    kinds = client.chance.choices(["accept", "release", "reject"], [8, 1, 1], k=len(messages))
    rows = [[*place, kind] for place, kind in zip(places, kinds, strict=True)]
    client.history.write("acknowledging", group=group, records=rows)
    for message, kind in zip(messages, kinds, strict=True):
        consumer.acknowledge(message, AcknowledgeType[kind.upper()])
    answers = consumer.commit_sync(CALL_TIMEOUT_S)
    taken = {(place.topic, place.partition) for place, error in answers.items() if error is None}
    done = [row for row in rows if (row[0], row[1]) in taken]
    client.history.write("acknowledged", group=group, records=done)


def main() -> None:
    """Play the role of the first argument."""
    client = Client(dict(argument.split("=", 1) for argument in sys.argv[2:]))
    {"write": write, "copy": lambda one: Copy(one).run(), "read": read, "share": share}[sys.argv[1]](client)
    client.history.write("closed")


if __name__ == "__main__":
    main()
