"""Operations on topics: creation, offsets, records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from barnabas.broker.config.keys.general import AUTO_CREATE_TOPICS_ENABLE
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.operations.records import RecordAt, TopicReader, matches, offsets
from barnabas.kit.operations.registry import operation
from barnabas.kit.values import Values
from barnabas.wire.batches.records import Header, build_batch
from barnabas.wire.clients.partitioners import partition_for_key
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.wire.types import Uuid

_COMING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
"""The error codes of a topic while it is being created."""
FILTER: Final = ("topic", "partition", "positions", "key", "value", "headers", "committed")
PASSING: Final = {
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The error codes of a partition while it is opened or moves."""
RETRY_S: Final = 0.005
HIGH_WATERMARK: Final = -1
"""The offset in DeleteRecords that deletes all committed records."""


@operation("create_topic", "topic", "partitions", "configs")
async def create_topic(cluster: VirtualCluster, values: Values) -> object:
    """Create a topic; {"created": false} if there is one with this name."""
    topic = CreatableTopic(
        name=values.text("topic"),
        num_partitions=values.integer("partitions", -1),
        replication_factor=-1,
        configs=[CreatableTopicConfig(name=key, value=str(value)) for key, value in values.mapping("configs").items()],
    )
    response = await cluster.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), CreateTopicsResponse)
    result = response.topics[0]
    if result.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
        raise ControlError(f"{ErrorCode(result.error_code).name}: {result.error_message or result.name}")
    await cluster.until_led(topic.name, is_new=True)
    return {"created": result.error_code == ErrorCode.NONE}


@operation("topic", "topic")
async def describe_topic(cluster: VirtualCluster, values: Values) -> object:
    """The offsets of a topic's partitions."""
    name = values.text("topic")
    await cluster.until_led(name)
    partitions = TopicReader(cluster, name, {}, committed=True).partitions
    if not partitions:
        raise NotFoundError(f"There is no topic {name!r}")
    return {"partitions": list(offsets(partitions))}


@operation("records", *FILTER)
async def records(cluster: VirtualCluster, values: Values) -> object:
    """The records of a topic that are there now and match; none of a topic that does not exist."""
    search = _Search(cluster, values)
    await cluster.until_led(search.topic)
    await search.read()
    return search.answer()


@operation("wait_for_records", *FILTER, "count", "timeout_s")
async def wait_for_records(cluster: VirtualCluster, values: Values) -> object:
    """The records of a topic that match, once there are `count`, or when the time is up: "enough" says which."""
    search = _Search(cluster, values)
    count = values.integer("count")
    with trio.move_on_after(values.number("timeout_s", 10.0)):
        await search.read()
        while len(search.matching) < count:
            await search.reader.wait()
            await search.read()
    return search.answer() | {"enough": len(search.matching) >= count}


@operation("produce", "topic", "partition", "records", "timeout_s")
async def produce(cluster: VirtualCluster, values: Values) -> object:
    """Write records, each an object with key, value, headers and timestamp; their partitions and offsets.

    The topic is created if the cluster creates topics by itself. Without a partition a key chooses it, as in every
    client; records without a key go to the partitions in turn.
    """
    topic = values.text("topic")
    deadline = trio.current_time() + values.number("timeout_s", 10.0)
    described = await _described(cluster, topic, deadline)
    count = len(described.partitions)
    ends = sum(partition["end"] for partition in offsets(TopicReader(cluster, topic, {}, committed=False).partitions))
    batches: dict[int, list[tuple[int, bytes | None, bytes | None, list[Header]]]] = {}
    order: list[tuple[int, int]] = []
    for number, record in enumerate(values.objects("records")):
        key = record.data("key")
        by_key = ends + number if key is None else partition_for_key(key, count)
        partition = record.integer("partition", values.integer("partition", by_key % count))
        headers = list(record.data_by_name("headers").items())
        timestamp = record.integer("timestamp", cluster.broker.loop.now_ms())
        batch = batches.setdefault(partition, [])
        order.append((partition, len(batch)))
        batch.append((timestamp, key, record.data("value"), headers))
    for index in batches:
        if not 0 <= index < count:
            raise ControlError(f"There is no partition {topic}-{index}; it has {count}")
    first = {}
    for index, lines in batches.items():
        first[index] = await _append(cluster, described.topic_id, index, build_batch(lines), deadline)
    return {"offsets": [[partition, first[partition] + place] for partition, place in order]}


async def _described(cluster: VirtualCluster, topic: str, deadline: float) -> MetadataResponseTopic:
    """A topic, which is created if the cluster creates topics by itself."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    while True:
        described = (await cluster.client.ask(request, MetadataResponse)).topics[0]
        is_coming = described.error_code in _COMING and cluster.broker.config[AUTO_CREATE_TOPICS_ENABLE]
        if not is_coming or trio.current_time() >= deadline:
            break
        await trio.sleep(RETRY_S)  # several brokers learn of a new topic one after the other
    if described.error_code:
        raise ControlError(f"{topic}: {ErrorCode(described.error_code).name}")
    await cluster.until_led(topic)
    return described


@operation("trim", "topic", "partition", "offset")
async def trim(cluster: VirtualCluster, values: Values) -> object:
    """Delete the records of a partition, or of all, before an offset, by default all; the first offset that is left."""
    name, index = values.text("topic"), values.integer("partition", None)
    partitions = [partition for partition in cluster.partitions_of(name) if index in {None, partition.index}]
    if not partitions:
        raise NotFoundError(f"There is no topic {name!r}" if index is None else f"There is no partition {name}-{index}")
    starts = {}
    offset = values.integer("offset", HIGH_WATERMARK)
    for partition in partitions:
        trimmed = DeleteRecordsPartition(partition_index=partition.index, offset=offset)
        topic = DeleteRecordsTopic(name=name, partitions=[trimmed])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=10_000)
        client = cluster.client_of(partition.topic_id, partition.index)
        result = (await client.ask(request, DeleteRecordsResponse)).topics[0].partitions[0]
        if result.error_code:
            raise ControlError(f"Partition {name}-{partition.index}: {ErrorCode(result.error_code).name}")
        starts[str(partition.index)] = result.low_watermark
    return {"starts": starts}


async def _append(cluster: VirtualCluster, topic_id: Uuid, index: int, batch: bytes, deadline: float) -> int:
    """Write a batch to a partition; the offset of its first record.

    It tries again, as clients do, while the partition is being opened (other brokers see it later than the one that
    created it) or gets another leader.
    """
    data = TopicProduceData(
        topic_id=topic_id, partition_data=[PartitionProduceData(index=index, records=memoryview(batch))]
    )
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
    while True:
        response = await cluster.client_of(topic_id, index).ask(request, ProduceResponse)
        partition = response.responses[0].partition_responses[0]
        if not partition.error_code:
            return partition.base_offset
        if partition.error_code not in PASSING or trio.current_time() >= deadline:
            name = ErrorCode(partition.error_code).name
            raise ControlError(f"Partition {partition.index}: {name}: {partition.error_message or ''}".rstrip(": "))
        await trio.sleep(RETRY_S)  # no event says when a partition is open


class _Search:
    """The search of one request, and the records that match so far."""

    def __init__(self, cluster: VirtualCluster, values: Values) -> None:
        self.topic = values.text("topic")
        self._partition = values.integer("partition", None)
        positions = values.numbered("positions")
        self.reader = TopicReader(cluster, self.topic, positions, committed=values.flag("committed", default=True))
        self._key, self._value = values.data("key"), values.data("value")
        self._headers = values.data_by_name("headers")
        self.matching: list[RecordAt] = []
        self.seen = 0

    async def read(self) -> None:
        """Read on."""
        async for step in self.reader.read():
            self.seen += len(step)
            self.matching += [
                read
                for read in step
                if (self._partition is None or read.partition == self._partition)
                and matches(read.record, self._key, self._value, self._headers)
            ]

    def answer(self) -> dict[str, Any]:
        """The matching records, how many were read, and the positions behind them."""
        return {
            "records": [record.to_json(self.topic) for record in self.matching],
            "seen": self.seen,
            "positions": {str(partition): offset for partition, offset in self.reader.positions.items()},
        }
