"""Bills orders exactly once: reads `orders`, writes `invoices` and the offsets in one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

ORDERS, INVOICES, FAILED = "orders", "invoices", "orders.failed"
GROUP = "billing"


class PaymentError(Exception):
    """The payment service has refused an order, for good."""


class Billing:
    """One worker. `charge` takes the money: it raises PaymentError for an order that can never be paid."""

    def __init__(
        self, bootstrap_servers: str, charge: Callable[[dict[str, Any]], None], name: str = "billing-1"
    ) -> None:
        self._charge = charge
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap_servers,
                "group.id": GROUP,
                "group.instance.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "transactional.id": name})
        self._producer.init_transactions(30)
        self._consumer.subscribe([ORDERS])

    def run_once(self, timeout: float = 1.0) -> bool:
        """Bill one order if there is one; True if there was. KafkaException if another worker has this one's name."""
        message = self._consumer.poll(timeout)
        if message is None:
            return False
        if (error := message.error()) is not None:
            if error.fatal() or error.code() == KafkaError._FATAL:
                raise KafkaException(error)
            return False
        self._producer.begin_transaction()
        try:
            self._write(message)
            self._producer.commit_transaction(30)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._producer.abort_transaction(30)
            self._consumer.seek(TopicPartition(ORDERS, message.partition(), message.offset()))
        return True

    def _write(self, message: Message) -> None:
        topic, value = self._billed(message)
        self._producer.produce(topic, value, key=message.key())
        position = TopicPartition(ORDERS, message.partition(), message.offset() + 1)
        self._producer.send_offsets_to_transaction([position], self._consumer.consumer_group_metadata(), 30)

    def _billed(self, message: Message) -> tuple[str, bytes]:
        order = json.loads(message.value())
        try:
            self._charge(order)
        except PaymentError as error:
            return FAILED, json.dumps(order | {"reason": str(error)}).encode()
        return INVOICES, json.dumps({"order": order["id"], "total": order["amount"]}).encode()

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
