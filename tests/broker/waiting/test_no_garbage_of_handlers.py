"""A handler that waits leaves no cycles of references, whether it is answered, fails, or its client disconnects."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from barnabas.wire.clients.broker_load import TAG
from barnabas.wire.messages import cluster as c
from barnabas.wire.messages import configs as cf
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import quotas as q
from barnabas.wire.messages import topics as tp
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.metadata import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.security import acls as a
from barnabas.wire.schema import Message
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.access_cases import acl_creation
from tests.support.requests.transactions import FEW, TransactionalClient, marker

NUMBERS = count()


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    settings = {**FEW, "barnabas.log.sync": "always", "authorizer.class.name": "barnabas"}
    memory = MemoryBroker(tmp_path / "data", {**settings, "super.users": "User:ANONYMOUS"})
    memory.create_topic("t")
    yield memory
    gc.enable()
    memory.flushes.is_paused = memory.disk.is_paused = False
    memory.run_all()
    memory.close()


def creation(*names: str) -> tp.CreateTopicsRequest:
    topics = [tp.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return tp.CreateTopicsRequest(topics=topics)


def create_topics(_: TransactionalClient) -> tuple[Message, int]:
    return creation(*(f"new-{next(NUMBERS)}" for _ in range(30))), 7


def create_no_topic(_: TransactionalClient) -> tuple[Message, int]:
    return creation("t"), 7


def alter_configs(_: TransactionalClient) -> tuple[Message, int]:
    config = cf.IncrementalAlterConfigsRequestAlterableConfig(name="retention.ms", value=str(next(NUMBERS)))
    topic = cf.IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
    return cf.IncrementalAlterConfigsRequest(resources=[topic]), 1


def create_acls(_: TransactionalClient) -> tuple[Message, int]:
    return a.CreateAclsRequest(creations=[acl_creation(resource_name=f"acl-{next(NUMBERS)}")]), 3


def alter_quotas(_: TransactionalClient) -> tuple[Message, int]:
    entity = [q.AlterClientQuotasRequestEntityData(entity_type="ip", entity_name="host.invalid")]
    rate = [q.OpData(key="connection_creation_rate", value=1.0)]
    entry = q.AlterClientQuotasRequestEntryData(entity=entity, ops=rate)
    return q.AlterClientQuotasRequest(entries=[entry]), 1


def update_features(_: TransactionalClient) -> tuple[Message, int]:
    update = c.FeatureUpdateKey(feature="no.such.feature", max_version_level=1)
    return c.UpdateFeaturesRequest(feature_updates=[update]), 1


def list_reassignments(_: TransactionalClient) -> tuple[Message, int]:
    return tp.ListPartitionReassignmentsRequest(topics=None), 0


def create_by_metadata(_: TransactionalClient) -> tuple[Message, int]:
    return MetadataRequest(topics=[MetadataRequestTopic(name=f"new-{next(NUMBERS)}")]), 12


def describe_cluster(_: TransactionalClient) -> tuple[Message, int]:
    request = DescribeClusterRequest()
    request.unknown_tagged_fields = ((TAG, b""),)
    return request, 2


def describe_log_dirs(_: TransactionalClient) -> tuple[Message, int]:
    return DescribeLogDirsRequest(topics=None), 4


def delete_records(_: TransactionalClient) -> tuple[Message, int]:
    partitions = [tp.DeleteRecordsPartition(partition_index=0, offset=0)]
    return tp.DeleteRecordsRequest(topics=[tp.DeleteRecordsTopic(name="t", partitions=partitions)]), 2


def init_producer_id(_: TransactionalClient) -> tuple[Message, int]:
    return p.InitProducerIdRequest(transactional_id="y", transaction_timeout_ms=60_000), 5


def add_partitions(producer: TransactionalClient) -> tuple[Message, int]:
    transaction = t.AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=producer.producer[0],
        producer_epoch=producer.producer[1],
        topics=[t.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    return t.AddPartitionsToTxnRequest(transactions=[transaction]), 4


def end(producer: TransactionalClient) -> tuple[Message, int]:
    return producer.end_request(False), 4


def write_markers(producer: TransactionalClient) -> tuple[Message, int]:
    return marker(producer.producer, epoch=producer.producer[1]), 2


def describe_transactions(_: TransactionalClient) -> tuple[Message, int]:
    return t.DescribeTransactionsRequest(transactional_ids=["x"]), 0


REQUESTS = [
    create_topics,
    create_no_topic,
    alter_configs,
    create_acls,
    alter_quotas,
    update_features,
    list_reassignments,
    create_by_metadata,
    describe_cluster,
    describe_log_dirs,
    delete_records,
    init_producer_id,
    add_partitions,
    end,
    write_markers,
    describe_transactions,
]


def garbage_of(act: Callable[[], None]) -> list[object]:
    """The objects that are garbage after `act` and that only the garbage collector would free."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        act()
        gc.collect()
        return list(gc.garbage)
    finally:
        gc.garbage.clear()
        gc.set_debug(0)
        gc.enable()


@for_each("make", REQUESTS, ids=lambda make: make.__name__)
def test_a_request_leaves_no_garbage(
    memory: MemoryBroker, make: Callable[[TransactionalClient], tuple[Message, int]]
) -> None:
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    producer.find(key="y")

    def answered(client: Client) -> None:
        memory.flushes.is_paused = memory.disk.is_paused = True
        client.send(*make(producer))
        memory.run_all()
        memory.advance(0.1)
        memory.run_all()
        memory.flushes.is_paused = memory.disk.is_paused = False
        assert len(client.answers()) == 1

    def disconnected(client: Client) -> None:
        memory.flushes.is_paused = memory.disk.is_paused = True
        client.send(*make(producer))
        client.connection.close()
        memory.run_all()
        memory.flushes.is_paused = memory.disk.is_paused = False

    for act in (answered, disconnected):
        act(memory.client())  # the first request imports and compiles
        client = memory.client()
        assert garbage_of(lambda act=act, client=client: act(client)) == []
