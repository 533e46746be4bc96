"""DescribeTopicPartitions (75): the partitions of topics, page by page with a cursor (KIP-966)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.apis.authorized_operations import topic_operations
from barnabas.broker.apis.metadata.missing_topics import missing_topic_error
from barnabas.broker.apis.metadata.replica_view import NO_BROKER, ReplicaView
from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import MAX_REQUEST_PARTITION_SIZE_LIMIT
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.coord.topic_names import INTERNAL_TOPICS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage


def _description_failed(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    """The error in each topic of the request."""
    return DescribeTopicPartitionsResponse(
        topics=[
            DescribeTopicPartitionsResponseTopic(error_code=int(error.code), name=topic.name)
            for topic in request.topics
        ]
    )


@api(DescribeTopicPartitionsRequest, on_error=_description_failed)
def describe_topic_partitions(
    ctx: RequestContext, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, from the cursor on, up to the limit of partitions."""
    image = ctx.broker.image
    names, first_index = _names_from_cursor(image.topics, request)
    remaining = min(max(request.response_partition_limit, 1), ctx.broker.config[MAX_REQUEST_PARTITION_SIZE_LIMIT])
    response = DescribeTopicPartitionsResponse()
    view = ReplicaView(ctx)
    for name in names:
        if not ctx.is_allowed(Operation.DESCRIBE, ResourceType.TOPIC, name):
            if request.topics:  # a description of all topics leaves out refused ones
                response.topics.append(_refused(name))
            continue
        if not remaining:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=first_index)
            break
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=int(missing_topic_error(name)),
                    name=name,
                    is_internal=name in INTERNAL_TOPICS,
                    topic_authorized_operations=topic_operations(ctx, name, True),
                )
            )
            continue
        indexes = sorted(index for index in topic.partitions if index >= first_index)
        response.topics.append(_describe_partitions(ctx, view, topic, indexes[:remaining]))
        if len(indexes) > remaining:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(
                topic_name=name, partition_index=indexes[remaining]
            )
            break
        remaining -= len(indexes)
        first_index = 0
    return response


def _names_from_cursor(existing: Iterable[str], request: DescribeTopicPartitionsRequest) -> tuple[list[str], int]:
    """The topics to describe, and the partition at which the first of them starts.

    KafkaError INVALID_REQUEST if the cursor's partition is negative, or its topic is not among those requested.
    """
    wants_all = not request.topics
    names = sorted(existing) if wants_all else sorted({topic.name for topic in request.topics})
    cursor = request.cursor
    if cursor is None:
        return names, 0
    if cursor.partition_index < 0:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition index of the cursor is negative.")
    if not wants_all and cursor.topic_name not in names:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
        )
    names = [name for name in names if name >= cursor.topic_name]
    return names, cursor.partition_index if names[:1] == [cursor.topic_name] else 0


def _refused(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=name)


def _describe_partitions(
    ctx: RequestContext, view: ReplicaView, topic: TopicImage, indexes: Iterable[int]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_describe_partition(view, topic.name, index, topic.partitions[index]) for index in indexes],
        topic_authorized_operations=topic_operations(ctx, topic.name, True),
    )


def _describe_partition(
    view: ReplicaView, topic: str, index: int, partition: PartitionImage
) -> DescribeTopicPartitionsResponsePartition:
    error = view.leader_error(topic, index, partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=int(error),
        partition_index=index,
        leader_id=NO_BROKER if error else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=view.offline_replicas(topic, index, partition),
    )
