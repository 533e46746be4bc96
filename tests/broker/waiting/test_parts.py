"""Requests of many items are handled part by part; an item that is named twice is answered once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.apis.fetch import fetch
from barnabas.broker.apis.fetch.plan import Attempt, FetchPlan
from barnabas.broker.apis.parts import Parts, divide, in_parts, join
from barnabas.broker.context import RequestContext
from barnabas.broker.event_loop.waiting import Future, outcome_of, start
from barnabas.broker.replicas.leader.fetch_sessions import FetchPartition
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResponse
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
)
from barnabas.wire.messages.groups.classic_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.wire.messages.groups.share_groups import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from barnabas.wire.messages.groups.streams_groups import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.wire.schema import Message
from tests.support.memory.broker import Client, MemoryBroker, R, batch
from tests.support.volume import seeds


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path, {"barnabas.log.sync": "os"})
    yield memory
    memory.close()


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    client = memory.client()
    client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4, FindCoordinatorResponse)
    return client


def _ask(client: Client, request: Message, version: int, response_class: type[R]) -> R:
    """Send a request whose response may be made in steps."""
    client.send(request, version)
    client.memory.advance(0)
    (response,) = client.answers()
    assert isinstance(response, response_class)
    return response


def _groups(shape: list[list[int]]) -> list[OffsetFetchRequestGroup]:
    """Groups with topics of the given numbers of partitions."""
    return [
        OffsetFetchRequestGroup(
            group_id=f"g{number}",
            topics=[
                OffsetFetchRequestTopics(name=f"t{index}", partition_indexes=list(range(count)))
                for index, count in enumerate(topics)
            ],
        )
        for number, topics in enumerate(shape)
    ]


def test_the_parts_have_the_items_of_the_whole_in_order() -> None:
    path = ("groups", "topics", "partition_indexes")
    for seed in seeds("BARNABAS_EXAMPLES", 60):
        choose = random.Random(seed)
        shape = [[choose.randrange(30) for _ in range(choose.randrange(6))] for _ in range(choose.randrange(1, 6))]
        size = choose.randrange(1, 40)
        parts = list(divide(OffsetFetchRequest(groups=_groups(shape)), path, size))
        whole, _ = parts[0]
        for part, joined in parts:
            items = sum([len(topic.partition_indexes) for group in part.groups for topic in group.topics])
            assert items <= size
            if part is not whole:
                join(whole, part, path, joined)
        assert whole.groups == _groups(shape), f"seed {seed}"


def test_a_long_commit_is_handled_in_parts_and_answered_in_its_order(client: Client, memory: MemoryBroker) -> None:
    memory.create_topic("wide", 300)
    memory.create_topic("other", 3)
    wide = [OffsetCommitRequestPartition(partition_index=index, committed_offset=index) for index in range(301)]
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[
            OffsetCommitRequestTopic(name="other", partitions=wide[:5]),
            OffsetCommitRequestTopic(name="wide", partitions=wide),
            OffsetCommitRequestTopic(name="other", partitions=wide[2:3]),
        ],
    )
    response = _ask(client, request, 9, OffsetCommitResponse)
    assert [topic.name for topic in response.topics] == ["other", "wide", "other"]
    unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert [partition.error_code for partition in response.topics[0].partitions] == [0, 0, 0, unknown, unknown]
    assert [partition.partition_index for partition in response.topics[1].partitions] == list(range(301))
    assert [partition.error_code for partition in response.topics[1].partitions] == [0] * 300 + [unknown]
    every = _ask(
        client, OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8, OffsetFetchResponse
    )
    offsets = {
        topic.name: {partition.partition_index: partition.committed_offset for partition in topic.partitions}
        for topic in every.groups[0].topics
    }
    assert offsets == {"wide": {index: index for index in range(300)}, "other": {0: 0, 1: 1, 2: 2}}
    topics = [OffsetFetchRequestTopics(name="wide", partition_indexes=list(range(300)))]
    some = _ask(
        client,
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]),
        8,
        OffsetFetchResponse,
    )
    (topic,) = some.groups[0].topics
    assert [partition.committed_offset for partition in topic.partitions] == list(range(300))
    old = _ask(client, OffsetFetchRequest(group_id="g", topics=topics), 5, OffsetFetchResponse)
    assert [partition.committed_offset for partition in old.topics[0].partitions] == list(range(300))


class _Handler:
    """Counts the parts that it gets, and the items in each."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.waiting: list[tuple[Future[OffsetCommitResponse], OffsetCommitResponse]] = []
        self.waits = False

    def __call__(self, _: RequestContext, request: OffsetCommitRequest) -> Any:
        self.sizes.append(sum([len(topic.partitions) for topic in request.topics]))
        if len(self.sizes) == 3:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        response = _answer(request, 0)
        if not self.waits:
            return response
        future: Future[OffsetCommitResponse] = Future()
        self.waiting.append((future, response))
        return _awaited(future)


async def _awaited(future: Future[OffsetCommitResponse]) -> OffsetCommitResponse:
    return await future


def _answer(request: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@pytest.mark.parametrize("waits", [False, True])
def test_a_part_takes_a_bounded_number_of_items_and_has_its_own_error(memory: MemoryBroker, waits: bool) -> None:
    handler = _Handler()
    handler.waits = waits
    handle = in_parts(
        handler, [Parts("topics.partitions", size=10)], lambda part, error: _answer(part, int(error.code))
    )
    connection = memory.client().connection
    ctx = RequestContext(memory.broker, connection, ApiKey.OFFSET_COMMIT, 9, 1, None, memory.clock.now)
    partitions = [OffsetCommitRequestPartition(partition_index=index) for index in range(45)]
    request = OffsetCommitRequest(topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)])
    outcomes: list[Any] = []
    task = start(outcome_of(handle(ctx, request)), memory.broker.loop.slices, outcomes.append)
    assert task is not None
    assert handler.sizes == [10]  # the others between the next turns
    memory.advance(0)
    assert handler.sizes == [10, 10, 10, 10, 5]
    for future, response in reversed(handler.waiting):
        future.complete(response)
    memory.advance(0)
    assert task.has_paused  # so that the response is encoded between the turns too
    ((topic,),) = [outcome.topics for outcome in outcomes]
    assert [partition.partition_index for partition in topic.partitions] == list(range(45))
    error = int(ErrorCode.NOT_COORDINATOR)
    assert [partition.error_code for partition in topic.partitions] == [0] * 20 + [error] * 10 + [0] * 15


def test_a_client_that_disconnects_has_no_further_part_handled(memory: MemoryBroker) -> None:
    handler = _Handler()
    handle = in_parts(handler, [Parts("topics.partitions", size=1)], lambda *_: None)
    connection = memory.client().connection
    ctx = RequestContext(memory.broker, connection, ApiKey.OFFSET_COMMIT, 9, 1, None, memory.clock.now)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[OffsetCommitRequestPartition()])] * 10
    outcomes: list[Any] = []
    task = start(
        outcome_of(handle(ctx, OffsetCommitRequest(topics=topics))), memory.broker.loop.slices, outcomes.append
    )
    assert task is not None
    task.cancel()
    memory.advance(0)
    assert len(handler.sizes) == 1
    assert not outcomes


def test_a_name_that_is_repeated_is_answered_once(client: Client, memory: MemoryBroker) -> None:
    memory.create_topic("t", 3)
    names = ["", "a", "", "a"] * 200
    described = _ask(client, DescribeGroupsRequest(groups=names), 5, DescribeGroupsResponse)
    assert [group.group_id for group in described.groups] == ["", "a"]
    deleted = _ask(client, DeleteGroupsRequest(groups_names=names), 2, DeleteGroupsResponse)
    assert sorted([result.group_id for result in deleted.results]) == ["", "a"]
    consumer = _ask(client, ConsumerGroupDescribeRequest(group_ids=names), 1, ConsumerGroupDescribeResponse)
    assert [group.group_id for group in consumer.groups] == ["", "a"]
    share = _ask(client, ShareGroupDescribeRequest(group_ids=names), 1, ShareGroupDescribeResponse)
    assert [group.group_id for group in share.groups] == ["", "a"]
    streams = _ask(client, StreamsGroupDescribeRequest(group_ids=names), 0, StreamsGroupDescribeResponse)
    assert [group.group_id for group in streams.groups] == ["", "a"]
    response = _ask(client, FindCoordinatorRequest(coordinator_keys=names), 4, FindCoordinatorResponse)
    assert [item.key for item in response.coordinators] == ["", "a"]
    transactions = _ask(client, DescribeTransactionsRequest(transactional_ids=names), 0, DescribeTransactionsResponse)
    assert [item.transactional_id for item in transactions.transaction_states] == ["", "a"]
    groups = [OffsetFetchRequestGroup(group_id="g", topics=None)] * 500
    assert len(_ask(client, OffsetFetchRequest(groups=groups), 8, OffsetFetchResponse).groups) == 1


def test_a_topic_that_is_repeated_is_described_once(client: Client, memory: MemoryBroker) -> None:
    memory.create_topic("t", 3)
    requested = [MetadataRequestTopic(name="t"), MetadataRequestTopic(name="missing")] * 500
    request = MetadataRequest(topics=requested, allow_auto_topic_creation=False)
    metadata = _ask(client, request, 12, MetadataResponse)
    assert [(topic.name, len(topic.partitions)) for topic in metadata.topics] == [("t", 3), ("missing", 0)]
    topics = [DescribeProducersRequestTopicRequest(name="t", partition_indexes=[0, 1, 0, 5])] * 500
    producers = _ask(client, DescribeProducersRequest(topics=topics), 0, DescribeProducersResponse)
    assert [[partition.partition_index for partition in topic.partitions] for topic in producers.topics] == [[0, 1, 5]]


def test_a_resource_that_is_repeated_is_described_once_with_all_its_keys(client: Client, memory: MemoryBroker) -> None:
    memory.create_topic("t")

    def resource(*keys: str) -> DescribeConfigsResource:
        return DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=list(keys) or None)

    some = DescribeConfigsRequest(resources=[resource("retention.ms"), resource("segment.ms")] * 300)
    (result,) = _ask(client, some, 4, DescribeConfigsResponse).results
    assert [config.name for config in result.configs] == ["retention.ms", "segment.ms"]
    every = DescribeConfigsRequest(resources=[resource("retention.ms"), resource(), resource("segment.ms")])
    (result,) = _ask(client, every, 4, DescribeConfigsResponse).results
    assert len(result.configs) > 20


def test_a_fetch_of_many_partitions_reads_them_in_steps(
    client: Client, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.create_topic("wide", 30)
    produced = PartitionProduceData(index=17, records=batch(b"value"))
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="wide", partition_data=[produced])])
    client.ask(request, 9, ProduceResponse)
    monkeypatch.setattr(fetch, "PARTITIONS_OF_A_STEP", 10)
    read: list[int] = []
    read_into = FetchPlan.read_into

    def counted(plan: FetchPlan, attempt: Attempt, key: Any, requested: FetchPartition) -> None:
        read.append(requested.index)
        read_into(plan, attempt, key, requested)

    monkeypatch.setattr(FetchPlan, "read_into", counted)
    partitions = [FetchRequestFetchPartition(partition=index, partition_max_bytes=1000) for index in range(31)]
    requested = FetchRequest(
        max_wait_ms=0, max_bytes=10_000, topics=[FetchRequestFetchTopic(topic="wide", partitions=partitions)]
    )
    client.send(requested, 12)
    assert len(read) == 10  # the others are read between the next turns
    memory.advance(0)
    assert read == list(range(31))
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    records = {partition.partition_index: partition for partition in response.responses[0].partitions}
    assert len(records[17].records or b"") == len(batch(b"value"))
    assert records[30].error_code == int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
