"""Each API that answers later is answered, whatever fails between the parking of its request and the answer."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.event_loop.waiting import Future
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups import share_groups as sg
from barnabas.wire.messages.groups import share_state as s
from barnabas.wire.messages.groups import streams_groups as st
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import at, fetch
from tests.support.requests.groups import commit, find, join_request, member_id_of, stable
from tests.support.requests.transactions import FEW, TransactionalClient, marker

MEMBER = "A" * 22
SETS = {**FEW, "share.coordinator.state.topic.num.partitions": "3", "barnabas.log.sync": "always"}


class Case:
    """What the request of one API needs: a broker, a client with a group `g`, and a transactional producer."""

    def __init__(self, memory: MemoryBroker) -> None:
        self.memory = memory
        self.topic_id = memory.create_topic("t")
        self.client = memory.client()
        find(self.client)
        assert commit(self.client, "t", 5) == {0}
        self.producer = TransactionalClient(memory)
        assert self.producer.start() == 0

    def pause(self) -> None:
        """Pause flushes: records written from now on are not flushed."""
        self.memory.flushes.is_paused = True

    def uncommitted_offset(self) -> None:
        """Leave an offset of the group without its flush."""
        self.pause()
        topics = [_commit_topic()]
        self.memory.client().send(o.OffsetCommitRequest(group_id="g", topics=topics), 9)

    def uncommitted_transaction(self) -> None:
        """Leave a state of the transactional id without its flush."""
        self.pause()
        producer = TransactionalClient(self.memory)
        producer.producer = self.producer.producer
        producer.client.send(_add(producer), 3)

    def share_state(self, partition: Any, request: Callable[..., Any], data: Callable[..., Any]) -> Message:
        return request(group_id="g", topics=[data(topic_id=self.topic_id, partitions=[partition])])


def _commit_topic() -> o.OffsetCommitRequestTopic:
    partitions = [o.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)]
    return o.OffsetCommitRequestTopic(name="t", partitions=partitions)


def _add(producer: TransactionalClient) -> t.AddPartitionsToTxnRequest:
    return t.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer.producer[0],
        v3_and_below_producer_epoch=producer.producer[1],
        v3_and_below_topics=[t.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )


def produce(case: Case) -> tuple[Message, int]:
    case.pause()
    data = [PartitionProduceData(index=0, records=batch(b"a"))]
    return ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)]), 9


def produce_in_transaction(case: Case) -> tuple[Message, int]:
    case.client = case.producer.client
    return case.producer.produce_request(b"a"), 12


def fetch_(_: Case) -> tuple[Message, int]:
    return fetch(at(0), max_wait_ms=1000), 12


def join(case: Case) -> tuple[Message, int]:
    return join_request(member_id_of(case.client)), 9


def leave(case: Case) -> tuple[Message, int]:
    joined = stable(case.client)
    return g.LeaveGroupRequest(group_id="g", members=[g.MemberIdentity(member_id=joined.member_id)]), 5


def offset_commit(_: Case) -> tuple[Message, int]:
    return o.OffsetCommitRequest(group_id="g", topics=[_commit_topic()]), 9


def txn_offset_commit(case: Case) -> tuple[Message, int]:
    case.client = case.producer.client
    partitions = [t.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)]
    request = t.TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=case.producer.producer[0],
        producer_epoch=case.producer.producer[1],
        topics=[t.TxnOffsetCommitRequestTopic(name="t", partitions=partitions)],
    )
    return request, 5


def offset_fetch(case: Case) -> tuple[Message, int]:
    case.uncommitted_offset()
    return o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="g", topics=None)]), 9


def offset_delete(_: Case) -> tuple[Message, int]:
    partitions = [o.OffsetDeleteRequestPartition(partition_index=0)]
    topics = [o.OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    return o.OffsetDeleteRequest(group_id="g", topics=topics), 0


def delete_groups(_: Case) -> tuple[Message, int]:
    return g.DeleteGroupsRequest(groups_names=["g"]), 2


def add_partitions(case: Case) -> tuple[Message, int]:
    return _add(case.producer), 3


def add_partitions_of_brokers(case: Case) -> tuple[Message, int]:
    transaction = t.AddPartitionsToTxnTransaction(
        transactional_id="x",
        producer_id=case.producer.producer[0],
        producer_epoch=case.producer.producer[1],
        topics=[t.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    return t.AddPartitionsToTxnRequest(transactions=[transaction]), 4


def add_offsets(case: Case) -> tuple[Message, int]:
    request = t.AddOffsetsToTxnRequest(
        transactional_id="x",
        group_id="g",
        producer_id=case.producer.producer[0],
        producer_epoch=case.producer.producer[1],
    )
    return request, 4


def write_markers(case: Case) -> tuple[Message, int]:
    assert case.producer.produce(b"a") == 0
    case.pause()
    return marker(case.producer.producer, epoch=case.producer.producer[1] + 1), 2


def describe_transactions(case: Case) -> tuple[Message, int]:
    case.uncommitted_transaction()
    return t.DescribeTransactionsRequest(transactional_ids=["x"]), 0


def list_transactions(case: Case) -> tuple[Message, int]:
    case.uncommitted_transaction()
    return t.ListTransactionsRequest(), 2


def initialize_state(case: Case) -> tuple[Message, int]:
    partition = s.InitializeShareGroupStateRequestPartitionData(partition=0, state_epoch=1, start_offset=0)
    return case.share_state(partition, s.InitializeShareGroupStateRequest, s.InitializeStateData), 0


def read_state(case: Case) -> tuple[Message, int]:
    partition = s.ReadShareGroupStateRequestPartitionData(partition=0)
    return case.share_state(partition, s.ReadShareGroupStateRequest, s.ReadStateData), 0


def write_state(case: Case) -> tuple[Message, int]:
    partition = s.WriteShareGroupStateRequestPartitionData(partition=0)
    return case.share_state(partition, s.WriteShareGroupStateRequest, s.WriteStateData), 0


def delete_state(case: Case) -> tuple[Message, int]:
    partition = s.DeleteShareGroupStateRequestPartitionData(partition=0)
    return case.share_state(partition, s.DeleteShareGroupStateRequest, s.DeleteStateData), 0


def read_summary(case: Case) -> tuple[Message, int]:
    partition = s.ReadShareGroupStateSummaryRequestPartitionData(partition=0)
    return case.share_state(partition, s.ReadShareGroupStateSummaryRequest, s.ReadStateSummaryData), 0


def describe_share_offsets(_: Case) -> tuple[Message, int]:
    topic = sg.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
    group = sg.DescribeShareGroupOffsetsRequestGroup(group_id="s", topics=[topic])
    return sg.DescribeShareGroupOffsetsRequest(groups=[group]), 0


def share_fetch(case: Case) -> tuple[Message, int]:
    topic = sg.ShareFetchRequestFetchTopic(
        topic_id=case.topic_id, partitions=[sg.ShareFetchRequestFetchPartition(partition_index=0)]
    )
    request = sg.ShareFetchRequest(
        group_id="s", member_id=MEMBER, max_wait_ms=1000, min_bytes=1, max_bytes=1000, max_records=1, topics=[topic]
    )
    return request, 1


def streams_heartbeat(_: Case) -> tuple[Message, int]:
    request = st.StreamsGroupHeartbeatRequest(
        group_id="streams",
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topology=st.StreamsGroupHeartbeatRequestTopology(
            subtopologies=[st.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=["t"])]
        ),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
        process_id="p",
    )
    return request, 0


CASES = [
    produce,
    produce_in_transaction,
    fetch_,
    join,
    leave,
    offset_commit,
    txn_offset_commit,
    offset_fetch,
    offset_delete,
    delete_groups,
    add_partitions,
    add_partitions_of_brokers,
    add_offsets,
    write_markers,
    describe_transactions,
    list_transactions,
    initialize_state,
    read_state,
    write_state,
    delete_state,
    read_summary,
    describe_share_offsets,
    share_fetch,
    streams_heartbeat,
]


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    memory = MemoryBroker(tmp_path / "data", SETS)
    yield Case(memory)
    memory.flushes.is_paused = False
    memory.close()


def _answers(case: Case, client: Client) -> list[Message]:
    """What the client has got after everything that it waits for has happened."""
    while case.memory.flushes.held:
        case.memory.run_flush()
    case.memory.advance(2)
    return client.answers()


def _codes(value: object) -> set[int]:
    """Every error code in a message."""
    if isinstance(value, list):
        return {code for item in value for code in _codes(item)}
    names = getattr(type(value), "__slots__", ())
    codes = {getattr(value, name) for name in names if name.endswith("error_code")}
    return codes.union(*(_codes(getattr(value, name, None)) for name in names))


@for_each(
    ("error", "code"),
    [
        (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR),
        (OSError(errno.EMFILE, "injected"), ErrorCode.KAFKA_STORAGE_ERROR),
    ],
    ids=["bug", "disk"],
)
@for_each("prepare", CASES, ids=lambda prepare_case: prepare_case.__name__)
def test_a_failure_before_the_answer_is_the_answer(
    case: Case,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[Case], tuple[Message, int]],
    error: Exception,
    code: ErrorCode,
) -> None:
    request, version = prepare(case)
    failed: list[object] = []
    complete = Future.complete

    def complete_failing(future: Future[Any], outcome: object = None) -> None:
        failed.append(outcome)
        complete(future, error)

    client = case.client
    with monkeypatch.context() as patch:
        patch.setattr(Future, "complete", complete_failing)
        client.send(request, version)
        (response,) = _answers(case, client)
    assert failed, "nothing of this request is called later"
    assert code in _codes(response)
    case.memory.flushes.is_paused = False
    assert case.memory.client().ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse).error_code == 0
