"""Checks of transactions: what readers of committed records see, and who may write."""

from __future__ import annotations

from typing import Any

from confluent_kafka import TopicPartition

from bench.testkits.behaviours import behaviour
from bench.testkits.clients import WAIT_S, Clients, raised, unique, until

COMMITTED = {"isolation_level": "read_committed"}


def _transactional(clients: Clients, transactional_id: str, **more: Any) -> Any:
    producer = clients.producer(transactional_id=transactional_id, **more)
    producer.init_transactions(WAIT_S)
    return producer


def _write(producer: Any, topic: str, value: bytes) -> None:
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    assert producer.flush(WAIT_S) == 0, "the record was not acknowledged in time"


def _values(clients: Clients, topic: str, count: int, **more: Any) -> list[bytes]:
    return [one.value() for one in clients.read(topic, count, **more)]


@behaviour("Transactions: committed records are read, aborted ones are not")
def commit_and_abort(clients: Clients) -> None:
    topic = clients.topic()
    producer = _transactional(clients, unique("tx"))
    _write(producer, topic, b"aborted")
    producer.abort_transaction(WAIT_S)
    _write(producer, topic, b"committed")
    producer.commit_transaction(WAIT_S)
    found = _values(clients, topic, 1, **COMMITTED)
    assert found == [b"committed"], f"{found}"
    both = _values(clients, topic, 2, isolation_level="read_uncommitted")
    assert both == [b"aborted", b"committed"], f"{both}"


@behaviour("An open transaction holds back readers of committed records")
def open_transaction(clients: Clients) -> None:
    topic = clients.topic()
    producer = _transactional(clients, unique("tx"))
    _write(producer, topic, b"open")
    clients.send(topic, b"after")
    assert _values(clients, topic, 2, isolation_level="read_uncommitted") == [b"open", b"after"], "not written"
    reader = clients.consumer(enable_partition_eof=True, **COMMITTED)
    reader.assign([TopicPartition(topic, 0, 0)])
    message = reader.poll(WAIT_S)
    assert message is not None, "no end of the partition"
    assert message.error() is not None, f"{message.value()!r} was read"
    producer.commit_transaction(WAIT_S)
    assert _values(clients, topic, 2, **COMMITTED) == [b"open", b"after"], "not read after the commit"


@behaviour("An older producer with the same transactional.id is fenced")
def producer_fencing(clients: Clients) -> None:
    topic, name = clients.topic(), unique("tx")
    zombie = _transactional(clients, name)
    _write(zombie, topic, b"zombie")
    successor = _transactional(clients, name)
    _write(successor, topic, b"successor")
    successor.commit_transaction(WAIT_S)
    error = raised(lambda: zombie.commit_transaction(WAIT_S))
    assert error.fatal(), f"not fatal: {error}"
    found = _values(clients, topic, 1, **COMMITTED)
    assert found == [b"successor"], f"{found}"


@behaviour("Offsets are committed with a transaction, and not when it is aborted")
def offsets_in_transaction(clients: Clients) -> None:
    topic, group = clients.topic(), unique("group")
    clients.send(topic, b"0", b"1")
    consumer = clients.consumer(group_id=group)
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.2) is not None, "a record")
    producer = _transactional(clients, unique("tx"))

    def commit(offset: int, *, aborts: bool) -> int:
        producer.begin_transaction()
        places = [TopicPartition(topic, 0, offset)]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), WAIT_S)
        producer.abort_transaction(WAIT_S) if aborts else producer.commit_transaction(WAIT_S)
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
        return int(found.offset)

    found = [commit(1, aborts=False), commit(2, aborts=True)]
    assert found == [1, 1], f"committed {found}"


@behaviour("A transaction that takes longer than its timeout is aborted")
def transaction_timeout(clients: Clients) -> None:
    topic = clients.topic()
    producer = _transactional(clients, unique("tx"), transaction_timeout_ms=2000, socket_timeout_ms=2000)
    _write(producer, topic, b"late")
    clients.send(topic, b"after")
    found = _values(clients, topic, 1, **COMMITTED)
    assert found == [b"after"], f"{found}"
    raised(lambda: producer.commit_transaction(WAIT_S))
