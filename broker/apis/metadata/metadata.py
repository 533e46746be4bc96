"""Metadata (3).

v0 an empty list requests all topics, from v1 on null does; v4 the client can forbid auto-creation; v8 authorized
operations (KIP-430); v10 topic ids; v12 topics by id. A topic that the request creates is described in the same
response; with the profile `kafka` the response is UNKNOWN_TOPIC_OR_PARTITION first, as in Kafka, and the client asks
again. The brokers are the live ones, with the addresses advertised for the client's listener; without
advertised.listeners, this broker's is the address that the client dialled. The controller is any live broker, since
each forwards requests to the controller, as with Kafka's KRaft.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.authorized_operations import cluster_operations, topic_operations
from barnabas.broker.apis.metadata.missing_topics import missing_topic_error
from barnabas.broker.apis.metadata.replica_view import NO_BROKER, ReplicaView
from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import AUTO_CREATE_TOPICS_ENABLE
from barnabas.broker.event_loop.waiting import Future, pause
from barnabas.coord.security.acls import Operation, ResourceType
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
    from barnabas.coord.cluster.topic_image import PartitionImage, TopicImage

logger = logging.getLogger("kafka.server.DefaultAutoTopicCreationManager")

ERRORS_LOGGED = 10
"""How many topics of one request that cannot be created have a line in the log."""
PARTITIONS_OF_A_STEP = 1000
FIRST_VERSION_WITH_LISTENER_ERRORS = 6
TOPIC_IN_PARTITIONS = 5
"""A topic takes as long as this number of its partitions, which take about a microsecond each."""


def _whole_request_failed(request: MetadataRequest, error: KafkaError) -> MetadataResponse:
    """The error in each topic of the request."""
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=int(error.code), name=topic.name or "", topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
    )


@api(MetadataRequest, on_error=_whole_request_failed, send_before_close=True)
async def metadata(ctx: RequestContext, request: MetadataRequest) -> MetadataResponse:
    """Describe the brokers and the requested topics; missing ones are created first if both sides allow that."""
    if request.topics and len(request.topics) > 1:  # a topic that is named twice is described once, as in Kafka
        request.topics = list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())
    to_create, errors = _to_create(ctx, request)
    if to_create:
        errors = {**await _create(ctx, to_create), **errors}
    # The image and ACLs are read from here on, and again after each pause: both may have changed meanwhile.
    topics: list[MetadataResponseTopic] = []
    broker = ctx.broker
    view = ReplicaView(ctx, lists_listener_errors=ctx.api_version >= FIRST_VERSION_WITH_LISTENER_ERRORS)
    describes_all = request.topics is None or (ctx.api_version == 0 and not request.topics)
    requested: list[Any] = list(broker.image.topics) if describes_all else request.topics  # type: ignore[assignment]
    budget = PARTITIONS_OF_A_STEP
    for topic in requested:
        if budget <= 0:
            budget = PARTITIONS_OF_A_STEP
            await pause()
            view = ReplicaView(ctx, lists_listener_errors=ctx.api_version >= FIRST_VERSION_WITH_LISTENER_ERRORS)
        budget -= TOPIC_IN_PARTITIONS
        if describes_all:
            described = _describe_if_allowed(ctx, view, topic, request)
        else:
            described = _answer(ctx, view, request, topic, errors)
        if described is not None:
            topics.append(described)
            budget -= len(described.partitions)
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in view.brokers or broker.endpoints(ctx, with_fenced=True)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.any_live_broker(),
        topics=topics,
        cluster_authorized_operations=cluster_operations(ctx, request.include_cluster_authorized_operations),
    )


async def _create(ctx: RequestContext, names: list[str]) -> Mapping[str, KafkaError]:
    """Create topics, and wait until they are in effect here; the errors by name."""
    created: Future[Mapping[str, KafkaError]] = Future()
    ctx.broker.metadata.auto_create(names, created.complete)
    errors = await created
    for name, error in islice(errors.items(), ERRORS_LOGGED):
        logger.warning("Auto topic creation failed for %s with error '%s': %s", name, error.code.name, error)
    if len(errors) > ERRORS_LOGGED:
        logger.warning("Auto topic creation failed for %d more topics", len(errors) - ERRORS_LOGGED)
    if ctx.broker.config.profile == "kafka":
        return dict.fromkeys(names, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    return errors


def _to_create(ctx: RequestContext, request: MetadataRequest) -> tuple[list[str], dict[str, KafkaError]]:
    """The names of the missing topics to create, and the errors of topics that the client may not create."""
    if not request.topics or not request.allow_auto_topic_creation:
        return [], {}
    topics = ctx.broker.image.topics
    missing = [topic.name for topic in request.topics if topic.name and topic.name not in topics]
    if not missing or not ctx.broker.config[AUTO_CREATE_TOPICS_ENABLE]:
        return [], {}
    refused = _refused_creations(ctx, missing)
    return [
        name
        for name in missing
        if name not in refused and missing_topic_error(name) is not ErrorCode.INVALID_TOPIC_EXCEPTION
    ], refused


def _refused_creations(ctx: RequestContext, names: list[str]) -> dict[str, KafkaError]:
    """The errors of missing topics that the client may not create; whether it may describe them is found later."""
    if ctx.broker.authorizer is None:
        return {}
    hidden = ctx.refused(Operation.DESCRIBE, ResourceType.TOPIC, names, logs_allowed=False, logs_denied=False)
    refused = set(hidden)
    if not ctx.is_allowed_on_cluster(Operation.CREATE, logs_denied=False):
        refused.update(
            ctx.refused(Operation.CREATE, ResourceType.TOPIC, [name for name in names if name not in hidden])
        )
    return {name: KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED) for name in refused}


def _answer(
    ctx: RequestContext,
    view: ReplicaView,
    request: MetadataRequest,
    requested: MetadataRequestTopic,
    errors: Mapping[str, KafkaError],
) -> MetadataResponseTopic:
    """Describe one topic by name or id."""
    image = ctx.broker.image
    if requested.name is None or requested.topic_id != ZERO_UUID:
        topic = image.topics_by_id.get(requested.topic_id)
        code = ErrorCode.UNKNOWN_TOPIC_ID
        if topic is not None:
            if ctx.is_allowed(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                return _describe(ctx, view, topic, request)
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        name = None if ctx.api_version >= 12 else ""
        return MetadataResponseTopic(error_code=int(code), name=name, topic_id=requested.topic_id)
    if not ctx.is_allowed(Operation.DESCRIBE, ResourceType.TOPIC, requested.name):
        return MetadataResponseTopic(error_code=int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), name=requested.name)
    failed = errors.get(requested.name)
    topic = image.topics.get(requested.name)
    if topic is not None and failed is None:
        return _describe(ctx, view, topic, request)
    error = missing_topic_error(requested.name) if failed is None else failed.code
    return MetadataResponseTopic(
        error_code=int(error),
        name=requested.name,
        is_internal=requested.name in INTERNAL_TOPICS,
        topic_authorized_operations=topic_operations(ctx, requested.name, request.include_topic_authorized_operations),
    )


def _describe_if_allowed(
    ctx: RequestContext, view: ReplicaView, name: str, request: MetadataRequest
) -> MetadataResponseTopic | None:
    """Describe a topic that the request does not name; None if the client may not describe it, or it was deleted."""
    topic = ctx.broker.image.topics.get(name)
    if topic is None or not ctx.is_allowed(Operation.DESCRIBE, ResourceType.TOPIC, name, logs_denied=False):
        return None
    return _describe(ctx, view, topic, request)


def _describe(
    ctx: RequestContext, view: ReplicaView, topic: TopicImage, request: MetadataRequest
) -> MetadataResponseTopic:
    describe = _describe_partition if ctx.api_version else _describe_reachable
    shows_all = view.shows_all  # most requests of a single node: nothing to look up for each partition
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=partition.leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
            )
            if shows_all and partition.leader >= 0
            else describe(view, topic.name, index, partition)
            for index, partition in topic.partitions.items()
        ],
        topic_authorized_operations=topic_operations(ctx, topic.name, request.include_topic_authorized_operations),
    )


def _describe_partition(
    view: ReplicaView, topic: str, index: int, partition: PartitionImage
) -> MetadataResponsePartition:
    error = view.leader_error(topic, index, partition)
    return MetadataResponsePartition(
        error_code=int(error),
        partition_index=index,
        leader_id=NO_BROKER if error else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=list(partition.replicas),
        isr_nodes=list(partition.isr),
        offline_replicas=view.offline_replicas(topic, index, partition),
    )


def _describe_reachable(
    view: ReplicaView, topic: str, index: int, partition: PartitionImage
) -> MetadataResponsePartition:
    """As version 0 has it: only replicas that can be reached, with REPLICA_NOT_AVAILABLE if that leaves some out."""
    described = _describe_partition(view, topic, index, partition)
    described.replica_nodes = view.reachable(partition.replicas)
    described.isr_nodes = view.reachable(partition.isr)
    left_out = len(partition.replicas) - len(described.replica_nodes) + len(partition.isr) - len(described.isr_nodes)
    if not described.error_code and left_out:
        described.error_code = int(ErrorCode.REPLICA_NOT_AVAILABLE)
    return described
