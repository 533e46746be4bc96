"""The clients of a check or a test: confluent-kafka at a place, or the classes that a product has instead."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cached_property
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.testkits.product import Place

WAIT_S = 20.0
"""How long anything may take."""
FAKE_WAIT_S = 1.0


class Clients:
    """Makes clients, and closes them at its end. Settings are written with `_` for `.`: `group_id="g"`."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._consumers: list[Any] = []

    @property
    def is_fake(self) -> bool:
        """Whether these are not clients of a broker."""
        return self.place.library == "mockafka"

    def _settings(self, more: dict[str, Any]) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.place.bootstrap,
            "socket.timeout.ms": int(WAIT_S * 1000),
            **self.place.client,
            **{key if key.endswith("_cb") else key.replace("_", "."): value for key, value in more.items()},
        }

    def producer(self, **more: Any) -> Any:
        """A producer whose records fail after WAIT_S."""
        if self.is_fake:
            from mockafka import FakeProducer

            return FakeProducer(more)
        timeout = {} if "transactional_id" in more else {"message_timeout_ms": int(WAIT_S * 1000)}
        return Producer(self._settings({"linger_ms": 0, **timeout, **more}))

    def consumer(self, **more: Any) -> Any:
        """A consumer from the beginning, in a group of its own, with the shortest session that Kafka allows."""
        if self.is_fake:
            from mockafka import FakeConsumer

            return FakeConsumer(more)
        usual = {"group_id": unique("group"), "auto_offset_reset": "earliest", "enable_auto_commit": False}
        if more.get("group_protocol") != "consumer":
            usual["session_timeout_ms"] = 6000  # who left is out of librdkafka's mock when the session ends
        consumer = Consumer(self._settings({**usual, **more}))
        self._consumers.append(consumer)
        return consumer

    @cached_property
    def admin(self) -> Any:
        """An administrator's client."""
        if self.is_fake:
            from mockafka import FakeAdminClientImpl

            return FakeAdminClientImpl()
        return AdminClient({**self._settings({}), **self.place.admin})

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new topic, with at least so many partitions, whose leaders are known."""
        name = unique("topic")
        if self.is_fake:
            from mockafka.admin_client import NewTopic as FakeTopic

            self.admin.create_topics([FakeTopic(name, partitions)])
            return name
        if self.place.creates_topics:
            dotted = {key.replace("_", "."): value for key, value in config.items()}
            self.admin.create_topics([NewTopic(name, partitions, config=dotted)])[name].result(WAIT_S)
        elif config:
            raise KafkaException(KafkaError(KafkaError._UNSUPPORTED_FEATURE, "no topic with a config can be made"))
        self.wait_for_topic(name, partitions)
        return name

    def wait_for_topic(self, name: str, partitions: int = 1) -> None:
        """Wait until a topic has so many partitions with leaders: Kafka answers CreateTopics before."""

        def is_known() -> bool:
            found = self.admin.list_topics(name, timeout=WAIT_S).topics[name]
            led = [one for one in found.partitions.values() if one.leader >= 0]
            return found.error is None and len(led) == len(found.partitions) >= partitions

        until(is_known, f"topic {name} with {partitions} partitions")

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has."""
        return len(self.admin.list_topics(topic, timeout=WAIT_S).topics[topic].partitions)

    def send(self, topic: str, *values: Any, producer: Any = None, partition: int = 0, **more: Any) -> list[Message]:
        """Produce values and wait until they are acknowledged. KafkaException with the first error."""
        producer = self.producer() if producer is None else producer
        errors: list[KafkaError] = []
        sent: list[Message] = []

        def report(error: KafkaError | None, message: Message) -> None:
            if error is None:
                sent.append(message)
            else:
                errors.append(error)

        for value in values:
            producer.produce(topic, value, partition=partition, on_delivery=report, **more)
        assert producer.flush(WAIT_S) == 0, "records were not acknowledged in time"
        if errors:
            raise KafkaException(errors[0])
        return sent

    def read(self, topic: str, count: int, partition: int = 0, offset: int = 0, **more: Any) -> list[Any]:
        """So many messages of a partition, from an offset on, without a group."""
        consumer = self.consumer(**more)
        if self.is_fake:
            consumer.subscribe([topic])
        else:
            consumer.assign([TopicPartition(topic, partition, offset)])
        return poll(consumer, count)

    def close(self) -> None:
        """Close the consumers."""
        for consumer in self._consumers:
            with suppress(RuntimeError, KafkaException):  # one that was closed already
                consumer.close()
        self._consumers.clear()

    def __enter__(self) -> Clients:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def unique(stem: str) -> str:
    """A name that is used once."""
    return f"{stem}-{uuid.uuid4().hex[:12]}"


def until(holds: Callable[[], object], what: str, wait_s: float = WAIT_S) -> None:
    """Call until the result is true. AssertionError when it takes too long."""
    deadline = time.monotonic() + wait_s
    while not holds():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)


def _patience_s(consumer: Any) -> float:
    """How long to poll: what is not a client of a broker has nothing to wait for."""
    return WAIT_S if isinstance(consumer, Consumer) else FAKE_WAIT_S


def poll(consumer: Any, count: int) -> list[Any]:
    """So many messages. KafkaException for an error, AssertionError when they do not come in time."""
    found: list[Any] = []
    deadline = time.monotonic() + _patience_s(consumer)
    while len(found) < count:
        assert time.monotonic() < deadline, f"{count} records expected, {len(found)} read"
        message = consumer.poll(0.2)
        if message is None:
            continue
        error = message.error()
        if error is None:
            found.append(message)
        elif not error.retriable():
            raise KafkaException(error)
    return found


def poll_all(consumers: Iterable[Any], holds: Callable[[], object], what: str) -> None:
    """Poll consumers in turn until something holds."""
    consumers = list(consumers)

    def turn() -> object:
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and message.error() and message.error().fatal():
                raise KafkaException(message.error())
        return holds()

    until(turn, what, _patience_s(consumers[0]))


def raised(call: Callable[[], object]) -> KafkaError:
    """The error that a call raises. AssertionError if it raises none."""
    try:
        call()
    except KafkaException as error:
        found: KafkaError = error.args[0]
        return found
    raise AssertionError("an error was expected, and there was none")


def error_of(call: Callable[[], object]) -> int:
    """The code of the error that a call raises. AssertionError if it raises none."""
    return int(raised(call).code())
