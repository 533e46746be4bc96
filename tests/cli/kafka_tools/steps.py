"""What transcripts prepare with `%` steps: records, members of groups, transactions, files."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

DEADLINE_S = 60.0
FIRST_TIMESTAMP = 1_700_000_000_000
Client = Consumer | Producer


class Preparation:
    """The clients that a transcript has started."""

    def __init__(self, settings: dict[str, Any], folder: Path) -> None:
        """`settings` are settings of librdkafka."""
        self.settings = settings
        self.folder = folder
        self.members: dict[str, _Member] = {}
        self.producers: dict[str, Producer] = {}

    def run(self, words: list[str]) -> None:
        """One `%` step: the name of a method and its arguments."""
        method: Callable[..., None] = getattr(self, words[0].replace("-", "_"))
        method(*words[1:])

    def close(self) -> None:
        """Close all clients."""
        for name in list(self.members):
            self.leave(name)
        self.producers.clear()

    def settle(self) -> None:
        """Wait until the broker acts on all that its controller has accepted.

        Metadata is applied in order, batch by batch: when the second of two new topics is seen, all before the first
        has taken effect.
        """
        admin = AdminClient(self.settings)
        for name in (f"settled-{uuid.uuid4()}", f"settled-{uuid.uuid4()}"):
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(DEADLINE_S)
            end = time.monotonic() + DEADLINE_S
            while admin.list_topics(name, DEADLINE_S).topics[name].error is not None:
                assert time.monotonic() < end

    def topic(self, name: str, partitions: str = "1") -> None:
        """Create a topic."""
        admin = AdminClient(self.settings)
        admin.create_topics([NewTopic(name, int(partitions), 1)])[name].result(DEADLINE_S)

    def produce(self, topic: str, count: str, partition: str = "0") -> None:
        """Send records `0`, `1` … in one batch, with one second between their timestamps."""
        producer = Producer({**self.settings, "linger.ms": 10_000})  # `flush` does not linger
        producer.list_topics(topic, DEADLINE_S)  # else records wait outside their partition, and may be split
        for number in range(int(count)):
            timestamp = FIRST_TIMESTAMP + number * 1000
            producer.produce(topic, str(number), partition=int(partition), timestamp=timestamp)
        assert producer.flush(DEADLINE_S) == 0

    def record(self, topic: str, key: str, value: str, *headers: str) -> None:
        """Send one record with headers `name=value`."""
        producer = Producer(self.settings)
        pairs = [(name, text.encode()) for name, _, text in (header.partition("=") for header in headers)]
        producer.produce(topic, value, key, 0, timestamp=FIRST_TIMESTAMP, headers=pairs)
        assert producer.flush(DEADLINE_S) == 0

    def commit(self, group: str, topic: str, *offsets: str) -> None:
        """Commit one offset per partition, from partition 0 on."""
        consumer = Consumer({**self.settings, "group.id": group, "enable.auto.commit": False})
        places = [TopicPartition(topic, index, int(offset)) for index, offset in enumerate(offsets)]
        consumer.commit(offsets=places, asynchronous=False)
        consumer.close()

    def member(self, group: str, topic: str, protocol: str = "classic") -> None:
        """Start a member of a group, and wait until it has partitions; it commits nothing."""
        settings = {**self.settings, "group.id": group, "client.id": "reader"}
        settings |= {"auto.offset.reset": "earliest", "enable.auto.commit": False}
        if protocol == "consumer":
            settings["group.protocol"] = "consumer"
        self.members[group] = _Member(Consumer(settings), topic)

    def share_member(self, group: str, topic: str, count: str) -> None:
        """Start a member of a share group, and wait until it has read `count` records."""
        settings = {**self.settings, "group.id": group, "client.id": "worker"}
        self.members[group] = _ShareMember(ShareConsumer(settings), topic, int(count))

    def leave(self, group: str) -> None:
        """End the member of a group."""
        self.members.pop(group).close()

    def begin(self, transactional_id: str, topic: str) -> None:
        """Open a transaction with one record."""
        producer = Producer({**self.settings, "transactional.id": transactional_id})
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
        producer.produce(topic, "open", partition=0, timestamp=FIRST_TIMESTAMP)
        assert producer.flush(DEADLINE_S) == 0
        self.producers[transactional_id] = producer

    def end(self, transactional_id: str) -> None:
        """Commit the transaction."""
        self.producers.pop(transactional_id).commit_transaction(DEADLINE_S)

    def file(self, name: str, text: str) -> None:
        """Write a file in TMP."""
        (self.folder / name).write_text(text.encode().decode("unicode_escape"), encoding="utf-8")


class _Member:
    """A consumer in a thread of its own, which polls until it is closed."""

    def __init__(self, consumer: Consumer | ShareConsumer, topic: str) -> None:
        self.consumer = consumer
        self.is_closing = threading.Event()
        self.is_ready = threading.Event()
        consumer.subscribe([topic])
        self.thread = threading.Thread(target=self._poll, daemon=True)
        self.thread.start()
        assert self.is_ready.wait(DEADLINE_S)

    def _poll(self) -> None:
        while not self.is_closing.is_set():
            self.consumer.poll(0.05)
            if self.consumer.assignment():
                self.is_ready.set()
        self.consumer.close()

    def close(self) -> None:
        self.is_closing.set()
        self.thread.join(DEADLINE_S)


class _ShareMember(_Member):
    """A share consumer, ready when it has read some records; it accepts them with the next poll."""

    def __init__(self, consumer: ShareConsumer, topic: str, count: int) -> None:
        self.missing = count
        super().__init__(consumer, topic)

    def _poll(self) -> None:
        while not self.is_closing.is_set():
            self.missing -= len(self.consumer.poll(0.05))
            if self.missing <= 0:
                self.consumer.commit_sync()
                self.is_ready.set()
        self.consumer.close()
