"""Clients of the libraries that are installed, made for a test's cluster with settings that suit tests.

A setting of the test replaces any of these. Consumers read from the beginning, and are in a group "test" unless the
test names another.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from barnabas.testing.access import Access

GROUP = "test"


class _Clients:
    """Makes clients, and closes them at the end, the last one first."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._made = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._made.close()

    def _closed_by(self, close: Callable[[], object]) -> None:
        self._made.callback(close)


class ConfluentClients(_Clients):
    """Clients of confluent-kafka."""

    def producer(self, **config: Any) -> Any:
        """A producer; keys with `_` for `.`: `linger_ms=5`."""
        from confluent_kafka import Producer

        made = Producer(self._config(config))
        self._closed_by(lambda: made.flush(5))
        return made

    def consumer(self, *topics: str, **config: Any) -> Any:
        """A consumer that has subscribed to these topics."""
        from confluent_kafka import Consumer

        made = Consumer({"group.id": GROUP, "auto.offset.reset": "earliest"} | self._config(config))
        self._closed_by(made.close)
        if topics:
            made.subscribe(list(topics))
        return made

    def admin(self, **config: Any) -> Any:
        """An admin client."""
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._config(config))

    def _config(self, config: dict[str, Any]) -> dict[str, Any]:
        own: dict[str, Any] = {"log_level": 2}
        return own | self._access.confluent() | {key.replace("_", "."): value for key, value in config.items()}


class KafkaPythonClients(_Clients):
    """Clients of kafka-python."""

    def producer(self, **config: Any) -> Any:
        """A producer."""
        from kafka import KafkaProducer

        made = KafkaProducer(**(self._access.kafka_python() | config))
        self._closed_by(lambda: made.close(timeout=5))
        return made

    def consumer(self, *topics: str, **config: Any) -> Any:
        """A consumer that has subscribed to these topics."""
        from kafka import KafkaConsumer

        own = {"group_id": GROUP, "auto_offset_reset": "earliest"} | self._access.kafka_python()
        made = KafkaConsumer(*topics, **(own | config))
        self._closed_by(made.close)
        return made

    def admin(self, **config: Any) -> Any:
        """An admin client."""
        from kafka import KafkaAdminClient

        made = KafkaAdminClient(**(self._access.kafka_python() | config))
        self._closed_by(made.close)
        return made


class AiokafkaClients:
    """Clients of aiokafka, each to be used with `async with`."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def producer(self, **config: Any) -> Any:
        """A producer."""
        from aiokafka import AIOKafkaProducer

        return AIOKafkaProducer(**(self._access.aiokafka() | config))

    def consumer(self, *topics: str, **config: Any) -> Any:
        """A consumer that subscribes to these topics."""
        from aiokafka import AIOKafkaConsumer

        own = {"group_id": GROUP, "auto_offset_reset": "earliest"} | self._access.aiokafka()
        return AIOKafkaConsumer(*topics, **(own | config))
