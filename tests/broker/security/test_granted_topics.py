"""What a connection keeps of the authorizer's decisions never outlives them: the ACLs of now decide."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.security import authorizer
from barnabas.coord.security.acls import Operation, Permission
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import configs as cf
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import produce as p
from barnabas.wire.principal import KafkaPrincipal
from tests.broker.security.acl_requests import as_alice, create, delete
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests import frames
from tests.support.requests.access_cases import acl_creation
from tests.support.world import START_MS

TOPIC = "orders"
BATCH = frames.spread_batch(1, 100, START_MS)
REFUSED, NONE = ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0
BROKER_LOGGER, SET, REMOVE = 8, 0, 1
AUDIT = "kafka.authorizer.logger"
Ask = Callable[[Client, str, bytes], int]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path, {"authorizer.class.name": "barnabas", "super.users": "User:ANONYMOUS"})
    yield memory
    memory.close()


def produce(client: Client, *topics: tuple[str, bytes], version: int) -> list[int]:
    """The error of a record for each topic, named by its name or its id."""
    data = [p.PartitionProduceData(index=0, records=BATCH)]
    named = [p.TopicProduceData(name=name, topic_id=topic_id, partition_data=data) for name, topic_id in topics]
    response = client.ask(p.ProduceRequest(acks=1, timeout_ms=1000, topic_data=named), version, p.ProduceResponse)
    return [topic.partition_responses[0].error_code for topic in response.responses]


def fetch(client: Client, *topics: tuple[str, bytes], version: int) -> list[int]:
    """The error of reading the start of each topic, named by its name or its id."""
    partitions = [f.FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)]
    named = [
        f.FetchRequestFetchTopic(topic=name, topic_id=topic_id, partitions=partitions) for name, topic_id in topics
    ]
    request = f.FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=10_000, topics=named)
    response = client.ask(request, version, f.FetchResponse)
    return [topic.partitions[0].error_code for topic in response.responses]


def produced_by_name(client: Client, name: str, topic_id: bytes) -> int:
    return produce(client, (name, topic_id), version=9)[0]


def produced_by_id(client: Client, name: str, topic_id: bytes) -> int:
    return produce(client, (name, topic_id), version=13)[0]


def fetched_by_name(client: Client, name: str, topic_id: bytes) -> int:
    return fetch(client, (name, topic_id), version=11)[0]


def fetched_by_id(client: Client, name: str, topic_id: bytes) -> int:
    return fetch(client, (name, topic_id), version=13)[0]


WAYS = [
    (produced_by_name, Operation.WRITE),
    (produced_by_id, Operation.WRITE),
    (fetched_by_name, Operation.READ),
    (fetched_by_id, Operation.READ),
]
each_way = pytest.mark.parametrize(("ask", "operation"), WAYS, ids=[ask.__name__ for ask, _ in WAYS])


def allow(memory: MemoryBroker, operation: Operation, name: str = TOPIC, **others: object) -> None:
    acl = acl_creation(resource_name=name, principal="User:alice", operation=operation, **others)
    assert create(memory.client(), acl) == [(0, None)]


@each_way
def test_an_open_connection_is_decided_by_the_acls_of_now(memory: MemoryBroker, ask: Ask, operation: Operation) -> None:
    topic_id = memory.create_topic(TOPIC)
    alice, admin = as_alice(memory), memory.client()
    for _ in range(2):
        assert ask(alice, TOPIC, topic_id) == REFUSED
        allow(memory, operation)
        assert [ask(alice, TOPIC, topic_id) for _ in range(3)] == [NONE] * 3
        allow(memory, operation, permission_type=Permission.DENY)
        assert ask(alice, TOPIC, topic_id) == REFUSED, "a denial is in effect"
        delete(admin, permission_type=Permission.DENY)
        assert [ask(alice, TOPIC, topic_id) for _ in range(3)] == [NONE] * 3
        delete(admin)
        assert ask(alice, TOPIC, topic_id) == REFUSED, "what was allowed is forgotten"


@pytest.mark.parametrize("ask", [fetched_by_name, fetched_by_id])
def test_records_are_not_read_any_more_once_reading_is_denied(memory: MemoryBroker, ask: Ask) -> None:
    topic_id = memory.create_topic(TOPIC)
    alice, admin = as_alice(memory), memory.client()
    assert produced_by_name(admin, TOPIC, topic_id) == NONE
    for _ in range(2):
        allow(memory, Operation.READ)
        assert [ask(alice, TOPIC, topic_id) for _ in range(4)] == [NONE] * 4
        allow(memory, Operation.READ, permission_type=Permission.DENY)
        assert [ask(alice, TOPIC, topic_id) for _ in range(3)] == [REFUSED] * 3
        delete(admin)


@each_way
def test_another_principal_does_not_have_what_the_last_one_was_granted(
    memory: MemoryBroker, ask: Ask, operation: Operation
) -> None:
    topic_id = memory.create_topic(TOPIC)
    allow(memory, operation)
    client = as_alice(memory)
    assert ask(client, TOPIC, topic_id) == NONE
    client.connection.principal = KafkaPrincipal("User", "bob")
    assert ask(client, TOPIC, topic_id) == REFUSED
    client.connection.principal = KafkaPrincipal("User", "ANONYMOUS")
    assert ask(client, TOPIC, topic_id) == NONE, "a super user"


@each_way
def test_one_operation_does_not_grant_the_other(memory: MemoryBroker, ask: Ask, operation: Operation) -> None:
    topic_id = memory.create_topic(TOPIC)
    allow(memory, operation)
    alice = as_alice(memory)
    for other, _ in WAYS:
        expected = NONE if (other, operation) in WAYS else REFUSED
        assert [other(alice, TOPIC, topic_id) for _ in range(2)] == [expected] * 2


@pytest.mark.parametrize("version", [9, 13])
def test_several_topics_are_each_decided(memory: MemoryBroker, version: int) -> None:
    topics = [(name, memory.create_topic(name)) for name in ("a", "b", "c")]
    allow(memory, Operation.WRITE, "a")
    allow(memory, Operation.WRITE, "c")
    alice = as_alice(memory)
    for _ in range(2):
        assert produce(alice, *topics, version=version) == [NONE, REFUSED, NONE]
        assert produce(alice, topics[0], topics[2], version=version) == [NONE, NONE]


@each_way
def test_what_is_remembered_is_bounded_and_still_forgotten(
    memory: MemoryBroker, ask: Ask, operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the bound all is forgotten: a set that a connection has from before is not filled again."""
    monkeypatch.setattr(authorizer, "MOST_REMEMBERED", 3)
    topics = {name: memory.create_topic(name) for name in "abcdefg"}
    for name in topics:
        allow(memory, operation, name)
    clients = [as_alice(memory) for _ in range(3)]
    for n, (name, topic_id) in enumerate([*topics.items()] * 2):
        assert ask(clients[n % 3], name, topic_id) == NONE
    remembered = [names for client in clients for names in client.connection.granted_topics.values()]
    assert remembered
    assert all(len(names) <= 2 * 3 for names in remembered), "names, and as many ids"
    delete(memory.client())
    assert not any(names for client in clients for names in client.connection.granted_topics.values())
    for client in clients:
        assert {ask(client, name, topic_id) for name, topic_id in topics.items()} == {REFUSED}


def set_level(memory: MemoryBroker, level: str | None) -> None:
    """Set the level of the audit log, or reset it."""
    change = cf.IncrementalAlterConfigsRequestAlterableConfig(
        name=AUDIT, config_operation=REMOVE if level is None else SET, value=level
    )
    resource = cf.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=BROKER_LOGGER, resource_name="1", configs=[change]
    )
    request = cf.IncrementalAlterConfigsRequest(resources=[resource])
    response = memory.client().ask(request, 1, cf.IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0, response


@each_way
def test_the_audit_log_has_every_permission_once_its_level_asks_for_that(
    memory: MemoryBroker, ask: Ask, operation: Operation, caplog: pytest.LogCaptureFixture
) -> None:
    topic_id = memory.create_topic(TOPIC)
    allow(memory, operation)
    alice = as_alice(memory)
    assert [ask(alice, TOPIC, topic_id) for _ in range(2)] == [NONE, NONE]
    try:
        set_level(memory, "DEBUG")
        caplog.clear()
        assert [ask(alice, TOPIC, topic_id) for _ in range(3)] == [NONE] * 3
        audit_records = [
            record for record in caplog.records if record.name == AUDIT and "Allowed" in record.getMessage()
        ]
        assert len(audit_records) == 3
    finally:
        set_level(memory, None)
        logging.getLogger(AUDIT).setLevel(logging.NOTSET)
