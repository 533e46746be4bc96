"""Metadata (3).

v0 an empty list requests all topics, from v1 on null does; v4 the client can forbid auto-creation; v8 authorized
operations (KIP-430); v10 topic ids; v12 topics by id. A topic that the request creates is described in the same
response; with the profile `kafka` the response is UNKNOWN_TOPIC_OR_PARTITION first, as in Kafka, and the client asks
again. The brokers' addresses are those advertised for the client's listener; without advertised.listeners, the address
that the client dialled.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.apis.authorized_operations import cluster_operations, topic_operations
from barnabas.broker.apis.missing_topics import missing_topic_error
from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import AUTO_CREATE_TOPICS_ENABLE
from barnabas.coord.topic_names import INTERNAL_TOPICS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")


def _whole_request_failed(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    """The error in each topic of the request."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=int(error.code), name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


@api(MetadataRequest, on_error=_whole_request_failed)
def metadata(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse | DelayedResponse:
    """Describe the brokers and the requested topics."""
    image = ctx.broker.image
    if request.topics is None or (ctx.api_version == 0 and not request.topics):
        topics = [_describe(ctx, topic, request) for topic in image.topics.values()]
    else:
        topics = [_answer(ctx, request, requested) for requested in request.topics]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in ctx.broker.endpoints(ctx)
        ],
        cluster_id=ctx.broker.cluster_id,
        controller_id=ctx.broker.node_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations(request.include_cluster_authorized_operations),
    )


def _answer(ctx: RequestContext, request: MetadataRequest, wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    """Describe one topic by name or id; it is created if it does not exist and both sides allow that."""
    image = ctx.broker.image
    if wanted.name is None or (wanted.topic_id != ZERO_UUID and not wanted.name):
        topic = image.topics_by_id.get(wanted.topic_id)
        if topic is not None:
            return _describe(ctx, topic, request)
        name = None if ctx.api_version >= 12 else ""
        return MetadataResponseTopic(error_code=int(ErrorCode.UNKNOWN_TOPIC_ID), name=name, topic_id=wanted.topic_id)
    topic = image.topics.get(wanted.name)
    if topic is not None:
        return _describe(ctx, topic, request)
    error = missing_topic_error(wanted.name)
    if error is not ErrorCode.INVALID_TOPIC_EXCEPTION and request.allow_auto_topic_creation:
        created, error = _create(ctx, wanted.name)
        if created is not None:
            return _describe(ctx, created, request)
    return MetadataResponseTopic(error_code=int(error), name=wanted.name, is_internal=wanted.name in INTERNAL_TOPICS)


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
        topic_authorized_operations=topic_operations(request.include_topic_authorized_operations),
    )


def _describe_offline(ctx: RequestContext, index: int, partition: PartitionImage) -> MetadataResponsePartition:
    """Describe a partition without leader: its log is offline (v5 lists offline replicas, KIP-112)."""
    return MetadataResponsePartition(
        error_code=int(ErrorCode.LEADER_NOT_AVAILABLE),
        partition_index=index,
        leader_id=-1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=[ctx.broker.node_id] if ctx.broker.node_id in partition.replicas else [],
    )
