"""DescribeProducers (61): the active producers of partitions (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.access import refused_topics, topic_error
from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext


def _distinct(topics: list[DescribeProducersRequestTopicRequest]) -> list[DescribeProducersRequestTopicRequest]:
    """Each topic and each of its partitions once: a partition may have many producers."""
    indexes: dict[str, dict[int, None]] = {}
    for topic in topics:
        indexes.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return [
        DescribeProducersRequestTopicRequest(name=name, partition_indexes=list(partitions))
        for name, partitions in indexes.items()
    ]


@api(
    DescribeProducersRequest,
    parts=Parts("topics.partition_indexes", "topics.partitions", size=20, distinct=_distinct),
)
def describe_producers(ctx: RequestContext, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Describe the active producers of each partition."""
    ctx.refused_topics = refused_topics(ctx, Operation.READ, [topic.name for topic in request.topics])
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(ctx, topic.name, index) for index in dict.fromkeys(topic.partition_indexes)],
            )
            for topic in request.topics
        ]
    )


def _describe(ctx: RequestContext, topic: str, index: int) -> PartitionResponse:
    try:
        if topic in ctx.refused_topics:
            raise topic_error()
        partition = ctx.broker.partitions.get(topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=int(error.code), error_message=error.message)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                last_sequence=producer.last_sequence,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                current_txn_start_offset=producer.current_txn_first_offset,
            )
            for producer in partition.log.active_producers()
        ],
    )
