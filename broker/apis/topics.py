"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37). KIP-4, KIP-195, KIP-464, KIP-516, KIP-525, KIP-599.

CreateTopics: v4 -1 requests the default, v5 the topic's configs in the response, v7 topic ids. DeleteTopics: v3
TOPIC_DELETION_DISABLED, v6 by topic id. When the response is sent the change is effective and the logs are open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.mutation_quotas import mutation_quota
from barnabas.broker.apis.registry import api
from barnabas.broker.apis.topic_access import hide_configs, refused_creations, refused_deletions, refused_extensions
from barnabas.broker.config.keys.general import DELETE_TOPIC_ENABLE
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.broker.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

FIRST_VERSION_WITH_DELETION_DISABLED = 3
FIRST_STRICT_CREATION = 6
FIRST_STRICT_DELETION = 5
FIRST_STRICT_EXTENSION = 3
"""The first versions that know THROTTLING_QUOTA_EXCEEDED."""


def _creation_failed(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )


def _check_descriptors(ctx: RequestContext) -> None:
    """POLICY_VIOLATION, which clients do not repeat, when no descriptors are left to make logs with.

    As Kafka answers for a number of partitions that it cannot bear: with KAFKA_STORAGE_ERROR clients would try again
    until their timeout, and show nothing but that.
    """
    if not ctx.broker.log_dirs.has_descriptors():
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "No partitions can be made: the broker has no file descriptors left. Raise its limit (ulimit -n).",
        )


@api(CreateTopicsRequest, on_error=_creation_failed)
def create_topics(ctx: RequestContext, request: CreateTopicsRequest) -> DelayedResponse:
    """Create each topic of the request, or report its error."""
    if not request.validate_only:
        _check_descriptors(ctx)
    controller = ctx.broker.controller
    quota = mutation_quota(ctx, FIRST_STRICT_CREATION)

    def validate() -> Steps[Outcome[CreateTopicsResponse]]:
        failed = refused_creations(ctx, request)
        outcome = yield from controller.local.create_topics_in_steps(request, controller.topic_defaults(), quota.charge)
        hide_configs(ctx, outcome.response)
        outcome.response.topics += failed
        return outcome

    return change_metadata(ctx, validate, quota.told, items=len(request.topics))


def _deletion_failed(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    results = [
        DeletableTopicResult(name=name, error_code=error.code, error_message=error.message)
        for name in request.topic_names
    ]
    results += [
        DeletableTopicResult(
            name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=error.message
        )
        for topic in request.topics
    ]
    return DeleteTopicsResponse(responses=results)


@api(DeleteTopicsRequest, on_error=_deletion_failed)
def delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DelayedResponse:
    """Delete each topic of the request, or report its error."""
    if not ctx.broker.config[DELETE_TOPIC_ENABLE]:
        if ctx.api_version < FIRST_VERSION_WITH_DELETION_DISABLED:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    local = ctx.broker.controller.local
    quota = mutation_quota(ctx, FIRST_STRICT_DELETION)

    def validate() -> Steps[Outcome[DeleteTopicsResponse]]:
        failed = refused_deletions(ctx, request)
        outcome = yield from local.delete_topics_in_steps(request, quota.charge)
        outcome.response.responses += failed
        return outcome

    items = len(request.topic_names) + len(request.topics)
    return change_metadata(ctx, validate, quota.told, items=items)


def _extension_failed(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )


@api(CreatePartitionsRequest, on_error=_extension_failed)
def create_partitions(ctx: RequestContext, request: CreatePartitionsRequest) -> DelayedResponse:
    """Add partitions to each topic of the request, or report its error."""
    if not request.validate_only:
        _check_descriptors(ctx)
    local = ctx.broker.controller.local
    quota = mutation_quota(ctx, FIRST_STRICT_EXTENSION)

    def validate() -> Steps[Outcome[CreatePartitionsResponse]]:
        failed = refused_extensions(ctx, request)
        outcome = yield from local.create_partitions_in_steps(request, quota.charge)
        outcome.response.results += failed
        return outcome

    return change_metadata(ctx, validate, quota.told, items=len(request.topics))
