"""Metadata (3), DescribeCluster (60) and DescribeTopicPartitions (75): who serves what.

Metadata: v0 an empty list asks for all topics, from v1 on null does; v4 lets the client forbid auto-creation; v8
authorized operations (KIP-430); v10 topic ids; v12 topics by id. A topic that the request creates is described in the
same response; with the profile `kafka` the response is UNKNOWN_TOPIC_OR_PARTITION first, as in Kafka, and the client
asks again. DescribeTopicPartitions pages through partitions by a cursor (KIP-966). The brokers' addresses are those
advertised for the client's listener; without advertised.listeners, the address that the client dialled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import AUTO_CREATE_TOPICS_ENABLE, MAX_REQUEST_PARTITION_SIZE_LIMIT
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.cluster.topic_names import INTERNAL_TOPICS, topic_name_error
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")

# Bit n stands for AclOperation n: what may be done to a resource of that type when nothing is forbidden.
TOPIC_OPERATIONS = sum(1 << n for n in (3, 4, 5, 6, 7, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << n for n in (5, 7, 8, 9, 10, 11, 12))
OPERATIONS_NOT_ASKED = -(2**31)
ENDPOINT_BROKERS = 1
ENDPOINT_CONTROLLERS = 2


def _whole_request_failed(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    """The error in each topic that was named."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=int(error.code), name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


@api(MetadataRequest, on_error=_whole_request_failed)
def metadata(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse | DelayedResponse:
    """The brokers, and the topics asked for."""
    image = ctx.broker.image
    if request.topics is None or (ctx.api_version == 0 and not request.topics):
        topics = [_describe(ctx, topic, request) for topic in image.topics.values()]
    else:
        topics = [_answer(ctx, request, asked) for asked in request.topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in ctx.broker.endpoints(ctx)
        ],
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.node_id,
        topics=topics,
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )


def _answer(ctx: RequestContext, request: MetadataRequest, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    """One topic by name or by id; made if it is missing and both sides allow that."""
    image = ctx.broker.image
    if asked.name is None or (asked.topic_id != ZERO_UUID and not asked.name):
        topic = image.topics_by_id.get(asked.topic_id)
        if topic is not None:
            return _describe(ctx, topic, request)
        name = None if ctx.api_version >= 12 else ""
        return MetadataResponseTopic(error_code=int(ErrorCode.UNKNOWN_TOPIC_ID), name=name, topic_id=asked.topic_id)
    topic = image.topics.get(asked.name)
    if topic is not None:
        return _describe(ctx, topic, request)
    error = _missing_topic_error(asked.name)
    if error is not ErrorCode.INVALID_TOPIC_EXCEPTION and request.allow_auto_topic_creation:
        created, error = _create(ctx, asked.name)
        if created is not None:
            return _describe(ctx, created, request)
    return MetadataResponseTopic(error_code=int(error), name=asked.name, is_internal=asked.name in INTERNAL_TOPICS)


def _missing_topic_error(name: str) -> ErrorCode:
    """The error of a topic that does not exist: INVALID_TOPIC_EXCEPTION when no topic may have this name."""
    if topic_name_error(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _create(ctx: RequestContext, name: str) -> tuple[TopicImage | None, ErrorCode]:
    """Create a missing topic if the broker may; the topic to describe, or None and the error to answer."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    config = ctx.broker.config
    if not config[AUTO_CREATE_TOPICS_ENABLE]:
        return None, unknown
    answers_as_kafka = config.profile == "kafka"
    try:
        ctx.broker.controller.auto_create_topic(name)
    except KafkaError as error:
        logger.warning("Auto topic creation failed for %s with error '%s': %s", name, error.code.name, error)
        return None, unknown if answers_as_kafka else error.code
    return None if answers_as_kafka else ctx.broker.image.topics.get(name), unknown


def _describe(ctx: RequestContext, topic: TopicImage, request: MetadataRequest) -> MetadataResponseTopic:
    offline = ctx.broker.partitions.offline
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _describe_offline(ctx, index, partition)
            if partition.leader < 0 or (topic.name, index) in offline
            else MetadataResponsePartition(
                error_code=0,
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            for index, partition in topic.partitions.items()
        ],
        topic_authorized_operations=TOPIC_OPERATIONS
        if request.include_topic_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )


def _describe_offline(ctx: RequestContext, index: int, partition: PartitionImage) -> MetadataResponsePartition:
    """A partition that nobody leads: its log cannot be served (v5 names the replicas that are down, KIP-112)."""
    return MetadataResponsePartition(
        error_code=int(ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=index,
        leader_id=-1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[ctx.broker.node_id] if ctx.broker.node_id in partition.replicas else [],
    )


@api(DescribeClusterRequest)
def describe_cluster(ctx: RequestContext, request: DescribeClusterRequest) -> DescribeClusterResponse:
    """The brokers; the controllers have no endpoint of their own here (KIP-919)."""
    if request.endpoint_type == ENDPOINT_CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER",
        )
    if request.endpoint_type != ENDPOINT_BROKERS:
        raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}")
    return DescribeClusterResponse(
        endpoint_type=ENDPOINT_BROKERS,
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.node_id,
        brokers=[
            DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in ctx.broker.endpoints(ctx)
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else OPERATIONS_NOT_ASKED,
    )


def _description_failed(request: DescribeTopicPartitionsRequest, error: KafkaError) -> DescribeTopicPartitionsResponse:
    """The error in each topic that was named."""
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
    """Topics in order of their names, from the cursor on, up to the limit of partitions.

    KafkaError INVALID_REQUEST when the cursor's partition is negative, or its topic is none of those named.
    """
    image = ctx.broker.image
    asks_for_all = not request.topics
    names = sorted(image.topics) if asks_for_all else sorted({topic.name for topic in request.topics})
    cursor = request.cursor
    first_index = 0
    if cursor is not None:
        if cursor.partition_index < 0:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "The partition index of the cursor is negative.")
        if not asks_for_all and cursor.topic_name not in names:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"DescribeTopicPartitionsRequest topic list should contain the cursor topic: {cursor.topic_name}",
            )
        names = [name for name in names if name >= cursor.topic_name]
        if names and names[0] == cursor.topic_name:
            first_index = cursor.partition_index
    left = min(max(request.response_partition_limit, 1), ctx.broker.config[MAX_REQUEST_PARTITION_SIZE_LIMIT])
    response = DescribeTopicPartitionsResponse()
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(
                DescribeTopicPartitionsResponseTopic(
                    error_code=int(_missing_topic_error(name)), name=name, is_internal=name in INTERNAL_TOPICS
                )
            )
            continue
        if not left:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=first_index)
            break
        wanted = sorted(index for index in topic.partitions if index >= first_index)
        response.topics.append(_describe_partitions(ctx, topic, wanted[:left]))
        if len(wanted) > left:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=wanted[left])
            break
        left -= len(wanted)
        first_index = 0
    return response


def _describe_partitions(
    ctx: RequestContext, topic: TopicImage, indexes: Iterable[int]
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            _describe_partition(
                index, topic.partitions[index], is_offline=(topic.name, index) in ctx.broker.partitions.offline
            )
            for index in indexes
        ],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _describe_partition(
    index: int, partition: PartitionImage, *, is_offline: bool
) -> DescribeTopicPartitionsResponsePartition:
    leader = -1 if is_offline else partition.leader
    return DescribeTopicPartitionsResponsePartition(
        error_code=0 if leader >= 0 else int(ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=index,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        eligible_leader_replicas=list(partition.elr),
        last_known_elr=list(partition.last_known_elr),
        offline_replicas=[partition.leader] if is_offline else [],
    )
