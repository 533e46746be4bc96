"""What a request has read before it waits is read again after it: each place, with a change in between."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.apis.admin import client_quotas, log_dirs
from barnabas.broker.apis.metadata import metadata
from barnabas.broker.apis.security import acls
from barnabas.broker.apis.transactions import transaction_admin
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.security.acls import Operation, Permission, ResourceType
from barnabas.wire.clients.broker_load import TAG, BrokerLoad
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.metadata import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    DescribeClientQuotasRequest,
    OpData,
)
from barnabas.wire.messages.raft import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
)
from barnabas.wire.messages.security import acls as a
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from barnabas.wire.principal import KafkaPrincipal
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.memory.cluster import MemoryCluster
from tests.support.memory.controller import MemoryController
from tests.support.requests.access_cases import acl_creation
from tests.support.requests.quotas import alter
from tests.support.requests.transactions import FEW, TransactionalClient

SETS = {
    **FEW,
    "authorizer.class.name": "barnabas",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}
MALLORY = KafkaPrincipal("User", "mallory")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path / "data", SETS)
    yield memory
    memory.close()


def denial(kind: ResourceType, name: str) -> a.AclCreation:
    """An ACL that denies everything of a resource to the clients of `client_of`."""
    return acl_creation(
        resource_type=kind,
        resource_name=name,
        principal=str(MALLORY),
        operation=Operation.ALL,
        permission_type=Permission.DENY,
    )


def deny(memory: MemoryBroker, kind: ResourceType, name: str) -> None:
    """Deny a resource."""
    request = a.CreateAclsRequest(creations=[denial(kind, name)])
    (result,) = memory.client().ask(request, 3, a.CreateAclsResponse).results
    assert result.error_code == 0, result


def creation(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


def client_of(memory: MemoryBroker) -> Client:
    """A client with a principal that ACLs can deny."""
    client = memory.client()
    client.connection.principal = MALLORY
    return client


def producer_of(memory: MemoryBroker, transactional_id: str = "x") -> TransactionalClient:
    """A transactional producer, whose coordinator is there."""
    producer = TransactionalClient(memory, transactional_id)
    assert producer.find() == 0
    producer.client.connection.principal = MALLORY
    return producer


# ---- transactions


def held_block(memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> list[Callable[[Any], None]]:
    """The callbacks of the requests for producer ids, which the controller has not answered."""
    held: list[Callable[[Any], None]] = []
    monkeypatch.setattr(memory.broker.producer_ids, "_allocate", held.append)
    return held


def init(transactional_id: str | None) -> p.InitProducerIdRequest:
    return p.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)


def test_a_transactional_id_that_is_denied_while_a_block_of_producer_ids_is_allocated(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = producer_of(memory)
    held = held_block(memory, monkeypatch)
    producer.client.send(init("x"), 5)
    assert producer.client.answers() == []
    deny(memory, ResourceType.TRANSACTIONAL_ID, "x")
    held.pop()((0, 1000))
    (response,) = producer.client.answers()
    assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "x" not in next(iter(memory.broker.transaction_coordinators)).transactions


def test_transactional_ids_that_were_made_while_a_block_of_producer_ids_was_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = MemoryBroker(tmp_path / "data", {**FEW, "barnabas.transactional.ids.max": "2"})
    producers = [producer_of(memory, str(number)) for number in range(5)]
    held = held_block(memory, monkeypatch)
    for producer in producers:
        producer.client.send(init(producer.transactional_id), 5)
    held.pop()((0, 1000))
    codes = [response.error_code for producer in producers for response in producer.client.answers()]
    assert codes == [0, 0] + [ErrorCode.POLICY_VIOLATION] * 3
    memory.close()


def test_a_group_that_is_denied_while_its_topic_is_created(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = producer_of(memory)
    assert producer.start() == 0
    held: list[Callable[[Any], None]] = []
    groups = memory.broker.group_coordinators
    services = memory.broker.services
    monkeypatch.setattr(groups, "_services", services._replace(create_topics=lambda _, then: held.append(then)))
    request = t.AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer.producer[0], producer_epoch=producer.producer[1], group_id="g"
    )
    producer.client.send(request, 4)
    assert producer.client.answers() == []
    deny(memory, ResourceType.GROUP, "g")
    services.create_topics(["__consumer_offsets"], held.pop())
    (response,) = producer.client.answers()
    assert response.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.fixture
def committing(tmp_path: Path) -> Iterator[tuple[MemoryBroker, TransactionalClient]]:
    """A producer whose TxnOffsetCommit of topics `t` and `u` waits until its group is added to the transaction."""
    memory = MemoryBroker(tmp_path / "data", {**SETS, "barnabas.log.sync": "always"})
    for name in ("t", "u"):
        memory.create_topic(name)
    assert memory.client().ask(
        g.FindCoordinatorRequest(coordinator_keys=["g"], key_type=0), 6, g.FindCoordinatorResponse
    )
    producer = producer_of(memory)
    assert producer.start() == 0
    memory.flushes.is_paused = True
    partitions = [t.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)]
    request = t.TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer.producer[0],
        producer_epoch=producer.producer[1],
        topics=[t.TxnOffsetCommitRequestTopic(name=name, partitions=partitions) for name in ("missing", "t", "u")],
    )
    producer.client.send(request, 5)
    assert producer.client.answers() == []
    yield memory, producer
    memory.flushes.is_paused = False
    memory.close()


def _offset_codes(memory: MemoryBroker, producer: TransactionalClient) -> list[int]:
    while memory.flushes.held:
        memory.run_flush()
    (response,) = producer.client.answers()
    return [partition.error_code for topic in response.topics for partition in topic.partitions]


def test_a_topic_that_is_deleted_while_a_group_is_added_to_the_transaction(
    committing: tuple[MemoryBroker, TransactionalClient],
) -> None:
    memory, producer = committing
    memory.client().ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert _offset_codes(memory, producer) == [unknown, unknown, 0]


def test_topics_that_are_deleted_while_a_group_is_added_to_the_transaction(
    committing: tuple[MemoryBroker, TransactionalClient],
) -> None:
    memory, producer = committing
    memory.client().ask(DeleteTopicsRequest(topic_names=["t", "u"]), 5, DeleteTopicsResponse)
    assert _offset_codes(memory, producer) == [int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] * 3


def test_a_group_that_is_denied_while_it_is_added_to_the_transaction(
    committing: tuple[MemoryBroker, TransactionalClient],
) -> None:
    memory, producer = committing
    deny(memory, ResourceType.GROUP, "g")
    assert _offset_codes(memory, producer) == [int(ErrorCode.GROUP_AUTHORIZATION_FAILED)] * 3


def listing(memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> Client:
    """A client whose ListTransactions waits after the first of two transactional ids."""
    monkeypatch.setattr(transaction_admin, "TRANSACTIONS_OF_A_STEP", 1)
    for name in ("x", "y"):
        assert producer_of(memory, name).start() == 0
    client = memory.client()
    client.send(t.ListTransactionsRequest(), 2)
    assert client.answers() == []
    return client


def test_a_transaction_that_begins_while_transactions_are_listed(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = listing(memory, monkeypatch)
    memory.create_topic("t")
    for name in ("x", "y"):
        producer = producer_of(memory, name)
        assert producer.start() == 0
        assert producer.produce(b"a") == 0
    memory.advance(0)
    (response,) = client.answers()
    assert sorted(listed.transaction_state for listed in response.transaction_states) == ["Empty", "Ongoing"]


def test_a_coordinator_that_moves_while_transactions_are_listed(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = listing(memory, monkeypatch)
    memory.broker.transaction_coordinators.stop()
    memory.advance(0)
    (response,) = client.answers()
    assert response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


# ---- metadata and administration


def test_a_topic_that_is_denied_while_earlier_changes_are_made(memory: MemoryBroker) -> None:
    client, admin, other = client_of(memory), memory.client(), memory.client()
    memory.disk.is_paused = True
    other.send(creation("first"), 7)
    denials = [denial(ResourceType.CLUSTER, "kafka-cluster"), denial(ResourceType.TOPIC, "t")]
    admin.send(a.CreateAclsRequest(creations=denials), 3)
    client.send(creation("t"), 7)
    memory.run_all()
    (response,) = client.answers()
    assert [topic.error_code for topic in response.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert set(memory.broker.image.topics) == {"first"}


def test_descriptors_that_are_used_up_while_earlier_changes_are_made(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [memory.client() for _ in range(2)]
    memory.disk.is_paused = True
    for client, name in zip(clients, ("first", "t"), strict=True):
        client.send(creation(name), 7)
    monkeypatch.setattr(type(memory.broker.log_dirs), "has_descriptors", lambda _: False)
    memory.run_all()
    codes = [topic.error_code for client in clients for response in client.answers() for topic in response.topics]
    assert codes == [0, ErrorCode.POLICY_VIOLATION]


def test_quotas_that_are_denied_while_hosts_are_looked_up(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.broker.apis.admin.client_quotas.addresses_of", lambda _: ["10.0.0.9"])
    client = client_of(memory)
    memory.disk.is_paused = True
    entity = [AlterClientQuotasRequestEntityData(entity_type="ip", entity_name="host.invalid")]
    rate = [OpData(key="connection_creation_rate", value=1.0)]
    client.send(AlterClientQuotasRequest(entries=[AlterClientQuotasRequestEntryData(entity=entity, ops=rate)]), 1)
    ((look_up, looked_up),) = memory.disk.held
    memory.disk.held.clear()
    memory.disk.is_paused = False
    deny(memory, ResourceType.CLUSTER, "kafka-cluster")
    look_up()
    looked_up(None)
    (response,) = client.answers()
    assert response.entries[0].error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert not memory.broker.image.quotas


def test_a_topic_that_is_denied_while_it_is_created_by_a_metadata_request(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(memory)
    held: list[tuple[list[str], Callable[[Any], None]]] = []
    create = memory.broker.metadata.auto_create
    monkeypatch.setattr(memory.broker.metadata, "auto_create", lambda names, then: held.append((names, then)))
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert client.answers() == []
    deny(memory, ResourceType.TOPIC, "t")
    create(*held.pop())
    (response,) = client.answers()
    assert [topic.error_code for topic in response.topics] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def test_topics_and_brokers_that_change_while_all_topics_are_described(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata, "PARTITIONS_OF_A_STEP", 1)
    for name in ("t", "u", "v"):
        memory.create_topic(name)
    client = client_of(memory)
    client.send(MetadataRequest(topics=None), 12)
    assert client.answers() == []
    memory.client().ask(DeleteTopicsRequest(topic_names=["u"]), 5, DeleteTopicsResponse)
    memory.broker.controller.commit(lambda: Outcome([MemoryCluster.registration(2)], None), lambda _: None)
    deny(memory, ResourceType.TOPIC, "v")
    memory.advance(0)
    (response,) = client.answers()
    assert [topic.name for topic in response.topics] == ["t"]
    assert [broker.node_id for broker in response.brokers] == [1, 2]


def test_a_broker_that_comes_while_the_load_is_measured(memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(memory)
    held: list[Callable[[Any], None]] = []
    monkeypatch.setattr(memory.broker.load, "current", held.append)
    request = DescribeClusterRequest()
    request.unknown_tagged_fields = ((TAG, b""),)
    client.send(request, 2)
    assert client.answers() == []
    records = [MemoryCluster.registration(2)]
    memory.broker.controller.commit(lambda: Outcome(records, None), lambda _: None)
    held.pop()(BrokerLoad(0.0, 0.0, 0, 0.0, 0.0, 0.0, 0, 0.0))
    (response,) = client.answers()
    assert [broker.broker_id for broker in response.brokers] == [1, 2]
    assert response.unknown_tagged_fields


def test_an_acl_that_is_deleted_while_acls_are_described(memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acls, "ACLS_OF_A_STEP", 1)
    for name in ("t", "u"):
        deny(memory, ResourceType.TOPIC, name)
    client, any_acl = memory.client(), {"resource_name_filter": None, "principal_filter": None, "host_filter": None}
    codes = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    client.send(a.DescribeAclsRequest(**any_acl, **codes), 3)
    assert client.answers() == []
    named = a.DeleteAclsFilter(**{**any_acl, "resource_name_filter": "u"}, **codes)
    memory.client().send(a.DeleteAclsRequest(filters=[named]), 3)
    memory.advance(0)
    (response,) = client.answers()
    assert [resource.resource_name for resource in response.resources] == ["t"]


def test_a_quota_that_changes_while_quotas_are_described(memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "ENTITIES_PER_STEP", 1)
    client, admin = memory.client(), memory.client()
    for name in ("alice", "bob", "carol"):
        assert alter(admin, {"user": name}, {"producer_byte_rate": 1024.0}) == (0, None)
    client.send(DescribeClientQuotasRequest(components=[]), 1)
    assert client.answers() == []
    assert alter(admin, {"user": "bob"}, {"producer_byte_rate": None}) == (0, None)
    assert alter(admin, {"user": "carol"}, {"producer_byte_rate": 2048.0}) == (0, None)
    memory.advance(0)
    (response,) = client.answers()
    shown = [(entry.entity[0].entity_name, entry.values[0].value) for entry in response.entries]
    assert shown == [("alice", 1024.0), ("carol", 2048.0)]


def test_a_partition_that_is_deleted_while_directories_are_described(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_dirs, "PARTITIONS_OF_A_STEP", 1)
    for name in ("t", "u"):
        memory.create_topic(name)
    client = client_of(memory)
    client.send(DescribeLogDirsRequest(topics=None), 4)
    assert client.answers() == []
    memory.client().ask(DeleteTopicsRequest(topic_names=["u"]), 5, DeleteTopicsResponse)
    memory.advance(0)
    (response,) = client.answers()
    shown = {topic.name: len(topic.partitions) for result in response.results for topic in result.topics}
    assert {name: count for name, count in shown.items() if count} == {"t": 1}


def test_a_snapshot_that_is_deleted_while_a_thread_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memory = MemoryController(tmp_path)
    quorum = memory.node.controller.quorum

    def deleted(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(quorum, "has_snapshot", lambda _: True)
    monkeypatch.setattr(quorum, "read_snapshot", deleted)
    memory.disk.is_paused = True
    partition = FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=quorum.epoch, snapshot_id=FetchSnapshotRequestSnapshotId(end_offset=3, epoch=1)
    )
    topics = [FetchSnapshotRequestTopicSnapshot(name="__cluster_metadata", partitions=[partition])]
    client = memory.client()
    client.send(FetchSnapshotRequest(topics=topics), 1)
    assert client.answers() == []
    memory.disk.run()
    (response,) = client.answers()
    assert response.topics[0].partitions[0].error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    memory.close()
