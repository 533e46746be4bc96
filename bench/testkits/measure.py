"""Measures one product once, in a process of its own: `python -m bench.testkits.measure NAME` prints figures as JSON.

The client is the same for all, confluent-kafka with its defaults: a producer that is flushed, and a consumer that
subscribes in a group of its own from the beginning. It was imported before the clock starts.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from bench.testkits.clients import WAIT_S, poll
from bench.testkits.product import Place, Product, Test, own_memory_mb
from bench.testkits.products import PRODUCTS

RECORDS = 10
"""Of a test."""
Figures = dict[str, float]


def clients_of(place: Place, group: str) -> tuple[Any, Any]:
    """A producer and a consumer, as a test has them."""
    if place.library == "mockafka":
        from mockafka import FakeConsumer, FakeProducer

        return FakeProducer(), FakeConsumer()
    from confluent_kafka import Consumer, Producer

    settings = {"bootstrap.servers": place.bootstrap}
    return Producer(settings), Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})


def exchange(test: Test, count: int) -> None:
    """Produce records and read them."""
    producer, consumer = clients_of(test.place, test.group)
    for number in range(count):
        producer.produce(test.topic, b"%d" % number, partition=0)  # mockafka-py has no partitioner
    assert producer.flush(WAIT_S) == 0, "records were not acknowledged in time"
    consumer.subscribe([test.topic])
    found = sorted(int(one.value()) for one in poll(consumer, count))
    assert found == list(range(count)), f"records {found}"
    consumer.close()


def measure(product: Product, tests: int = 0) -> Figures:
    """Start it and run tests, as many as it says or as are given."""
    before = own_memory_mb()
    began = time.monotonic()
    place = product.start()
    exchange(Test(place, "orders", "first"), 1)
    start_s = time.monotonic() - began
    alone, whole = [], []
    for _ in range(tests or product.tests):
        began = time.monotonic()
        test = product.begin()
        begun = time.monotonic()
        exchange(test, RECORDS)
        exchanged = time.monotonic()
        product.end(test)
        over = time.monotonic()
        alone.append(begun - began + over - exchanged)
        whole.append(over - began)
    memory_mb = own_memory_mb() - before if product.in_process else product.memory_mb()
    figures = {"start s": start_s, "memory MB": memory_mb}
    figures |= {"isolation ms": statistics.median(alone) * 1000, "test ms": statistics.median(whole) * 1000}
    broker_s = getattr(product, "broker_s", 0.0)
    return figures | ({"broker s": broker_s} if broker_s else {})


def main(name: str) -> None:
    """Print the figures of one run."""
    import confluent_kafka  # noqa: F401 - not part of what is measured

    PRODUCTS[name].prepare()
    with PRODUCTS[name]() as product:
        print(json.dumps(measure(product)))


if __name__ == "__main__":
    main(sys.argv[1])
