"""The billing worker, from an order to its invoice: retries, a fenced worker, a broker that fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaException
from orders.billing import FAILED, INVOICES, ORDERS, Billing, PaymentError

from barnabas.testing import Cluster


@pytest.fixture
def billing(kafka: Cluster) -> Iterator[Callable[..., Billing]]:
    made = []

    def start(charge: Callable[[dict[str, Any]], None] = lambda order: None, name: str = "billing-1") -> Billing:
        made.append(Billing(kafka.bootstrap_servers, charge, name))
        return made[-1]

    yield start
    for worker in made:
        worker.close()


def order(kafka: Cluster, number: int) -> None:
    kafka.topic(ORDERS).produce(json.dumps({"id": number, "amount": 10 * number}), key=str(number))


def run_until(worker: Billing, is_done: Callable[[], bool]) -> None:
    while not is_done():
        worker.run_once(0.1)


def test_an_order_is_billed_once(kafka: Cluster, billing: Callable[..., Billing]) -> None:
    order(kafka, 1)
    worker = billing()
    run_until(worker, lambda: bool(kafka.topic(INVOICES).records()))
    assert kafka.topic(INVOICES).assert_produced(key="1").json() == {"order": 1, "total": 10}
    kafka.topic(INVOICES).assert_no_more()
    kafka.group("billing").assert_committed(ORDERS, 1)


def test_what_can_never_be_paid_is_set_aside(kafka: Cluster, billing: Callable[..., Billing]) -> None:
    def refuse(_: dict[str, Any]) -> None:
        raise PaymentError("no such card")

    order(kafka, 1)
    run_until(billing(refuse), lambda: bool(kafka.topic(FAILED).records()))
    assert kafka.topic(FAILED).assert_produced(key="1").json()["reason"] == "no such card"
    assert kafka.topic(INVOICES).records() == []


def test_a_second_worker_with_the_name_fences_the_first(kafka: Cluster, billing: Callable[..., Billing]) -> None:
    kafka.topic(ORDERS).create()
    first = billing()
    run_until(first, lambda: any(member.assignment for member in kafka.group("billing").describe().members))
    second = billing()
    order(kafka, 1)
    with pytest.raises(KafkaException):
        run_until(first, lambda: False)
    run_until(second, lambda: bool(kafka.topic(INVOICES).records()))
    kafka.topic(INVOICES).assert_produced(key="1")
    kafka.topic(INVOICES).assert_no_more()
