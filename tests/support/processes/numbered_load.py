"""A producer of numbered records in a thread, and what a consumer reads of them."""

from __future__ import annotations

import itertools
import threading
import time
from contextlib import closing

from confluent_kafka import Consumer, Producer, TopicPartition

WAIT_S = 60.0


MAX_WAITING = 10_000


FAST = {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 100, "retry.backoff.ms": 10, "log_level": 0}


class Load:
    """An idempotent producer of numbered records in a thread."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: list[int] = []
        self.failures: list[str] = []
        self._topic = topic
        self._is_ending = threading.Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, **FAST})
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            if self._is_ending.is_set():
                break
            self._producer.produce(self._topic, b"%08d" % number + bytes(500), on_delivery=self._delivered)
            self._producer.poll(0 if len(self._producer) < MAX_WAITING else 0.1)
            time.sleep(0.0005)
        self._producer.flush(WAIT_S)

    def _delivered(self, error: object, message: object) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            self.acknowledged.append(int(message.value()[:8]))  # type: ignore[attr-defined]

    def end(self) -> None:
        self._is_ending.set()
        self._thread.join()


def read_all(bootstrap: str, topic: str) -> list[int]:
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True, **FAST}
    numbers: list[int] = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None
            if message.error():
                return numbers
            numbers.append(int(message.value()[:8]))
