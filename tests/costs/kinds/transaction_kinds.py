"""The requests of a transactional producer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from barnabas.wire.messages.produce import InitProducerIdRequest, ProduceRequest
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from tests.costs.client import TRANSACTION, Client, check, find_coordinator, when_available
from tests.costs.kind import Kind, Step, Steps
from tests.costs.kinds.batches import batch
from tests.costs.kinds.produce_kinds import VERSION as PRODUCE_VERSION
from tests.costs.kinds.produce_kinds import produce_request, produced
from tests.costs.world import PLAIN, CountedWorld

VERSION = 3
"""Of AddPartitionsToTxn and EndTxn: the last one of the first generation (KIP-890 has two)."""


CONNECTIONS = 50


class Producer:
    """A transactional producer of one topic with one partition."""

    def __init__(self, client: Client, name: str, topic: str | None = None) -> None:
        """`topic` exists already; None: a topic of the name of the producer is created."""
        self.client = client
        self._name = name
        self._topic = topic or name
        if topic is None:
            client.create_topic(name)
        find_coordinator(client, name, TRANSACTION)
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=600_000)
        response = when_available(lambda: client.ask(request, 4), lambda reply: reply.error_code)
        self._id, self._epoch = response.producer_id, response.producer_epoch
        self._sequence = count()

    def add(self) -> tuple[Client, AddPartitionsToTxnRequest, int]:
        """Add the partition to the transaction."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=[0])],
        )
        return self.client, request, VERSION

    def produce(self) -> tuple[Client, ProduceRequest, int]:
        """One record."""
        records = batch(
            1,
            producer_id=self._id,
            producer_epoch=self._epoch,
            base_sequence=next(self._sequence),
            transactional=True,
        )
        request = produce_request(self._topic, records)
        request.transactional_id = self._name
        return self.client, request, PRODUCE_VERSION

    def end(self) -> tuple[Client, EndTxnRequest, int]:
        """Commit the transaction."""
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=True
        )
        return self.client, request, VERSION


def _produce(world: CountedWorld) -> Steps:
    """All in one transaction."""
    producer = Producer(world.client(), "txn-produce")
    (added,) = yield Step([producer.add()], is_counted=False)
    check(added.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code, "AddPartitionsToTxn")
    while True:
        (response,) = yield Step([producer.produce()])
        produced(response)


def _ended_together(world: CountedWorld) -> Steps:
    """The transactions of many producers to one partition end in one turn."""
    world.client().create_topic("txn-many")
    producers = [Producer(world.client(), f"txn-many-{number}", "txn-many") for number in range(CONNECTIONS)]
    while True:
        yield Step([producer.add() for producer in producers], is_counted=False)
        yield Step([producer.produce() for producer in producers], is_counted=False)
        responses = yield Step([producer.end() for producer in producers])
        for response in responses:
            check(response.error_code, "EndTxn")


def _transaction(counted: str) -> Callable[[CountedWorld], Steps]:
    """One transaction after the other, of one record each; one of their requests counts."""

    def steps(world: CountedWorld) -> Steps:
        producer = Producer(world.client(), f"txn-{counted}")
        while True:
            (added,) = yield Step([producer.add()], is_counted=counted == "add")
            partition = added.results_by_topic_v3_and_below[0].results_by_partition[0]
            check(partition.partition_error_code, "AddPartitionsToTxn")
            (response,) = yield Step([producer.produce()], is_counted=False)
            produced(response)
            (ended,) = yield Step([producer.end()], is_counted=counted == "end")
            check(ended.error_code, "EndTxn")

    return steps


TRANSACTIONS = (
    Kind("Produce 1 record, transactional", PLAIN, _produce),
    Kind("AddPartitionsToTxn", PLAIN, _transaction("add")),
    Kind("EndTxn", PLAIN, _transaction("end")),
    Kind("EndTxn, 50 connections", PLAIN, _ended_together, requests=CONNECTIONS),
)
