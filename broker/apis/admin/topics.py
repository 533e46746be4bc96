"""CreateTopics (19), DeleteTopics (20) and CreatePartitions (37). KIP-4, KIP-195, KIP-464, KIP-516, KIP-525, KIP-599.

CreateTopics: v4 -1 requests the default, v5 the topic's configs in the response, v7 topic ids. DeleteTopics: v3
TOPIC_DELETION_DISABLED, v6 by topic id. When the response is sent the change is effective and the logs are open.

Topics that the client may not change are removed from the request when all earlier changes are in effect, so that a
topic that was created meanwhile is not changed without permission. Access to a topic that is named twice is not
checked: it is invalid anyway. Source: Kafka 4.4 `ControllerApis.createTopics`, `deleteTopics`, `createPartitions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.apis.access import refused_topics, topic_error
from barnabas.broker.apis.metadata_changes import change_metadata
from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import DELETE_TOPIC_ENABLE
from barnabas.coord.cluster.changes.topic_changes import NO_TOPIC_ID, duplicates
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
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
    DeleteTopicState,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.coord.cluster.local_controller import Outcome

FIRST_VERSION_WITH_DELETION_DISABLED = 3
FIRST_STRICT_CREATION = 6
FIRST_STRICT_DELETION = 5
FIRST_STRICT_EXTENSION = 3
"""The first versions that know THROTTLING_QUOTA_EXCEEDED."""
_REFUSED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


class ChargedRequest(NamedTuple):
    """The functions that charge partitions to the client's quota, and return the throttle time (KIP-599)."""

    charge: Callable[[int], None] | None = None
    """None: there is no such quota for the client."""
    throttle_ms: Callable[[], int] = int


def _mutation_quota(ctx: RequestContext, strict_since: int) -> ChargedRequest:
    """The quota of the client; from version `strict_since` on, changes above it are refused."""
    quotas = ctx.broker.client_quotas
    if quotas is None or quotas.mutation.is_empty:
        return ChargedRequest()
    from barnabas.broker.security.mutation_quota import MutationQuota

    quota = MutationQuota(quotas, ctx.principal.name, ctx.client_id, strict=ctx.api_version >= strict_since)
    return ChargedRequest(quota.charge, quota.remaining_throttle_ms)


def _creation_failed(request: CreateTopicsRequest, error: KafkaError) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )


def _check_descriptors(ctx: RequestContext) -> None:
    """POLICY_VIOLATION, which clients do not repeat, when no descriptors are left to make logs with.

    Kafka answers so for too many partitions. With KAFKA_STORAGE_ERROR clients would retry until their timeout, and
    report only the timeout.
    """
    if not ctx.broker.log_dirs.has_descriptors():
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "No partitions can be made: the broker has no file descriptors left. Raise its limit (ulimit -n).",
        )


@api(CreateTopicsRequest, on_error=_creation_failed, send_before_close=True)
async def create_topics(ctx: RequestContext, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """Create each topic of the request, or report its error."""
    controller = ctx.broker.controller
    quota = _mutation_quota(ctx, FIRST_STRICT_CREATION)

    def validate() -> Steps[Outcome[CreateTopicsResponse]]:
        if not request.validate_only:
            _check_descriptors(ctx)
        failed = _refused_creations(ctx, request)
        outcome = yield from controller.local.create_topics_in_steps(request, controller.topic_defaults(), quota.charge)
        _hide_configs(ctx, outcome.response)
        outcome.response.topics += failed
        return outcome

    response = await change_metadata(ctx, validate, items=len(request.topics))
    response.throttle_time_ms = quota.throttle_ms()
    return response


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


@api(DeleteTopicsRequest, on_error=_deletion_failed, send_before_close=True)
async def delete_topics(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Delete each topic of the request, or report its error."""
    if not ctx.broker.config[DELETE_TOPIC_ENABLE]:
        if ctx.api_version < FIRST_VERSION_WITH_DELETION_DISABLED:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "This version does not support topic deletion.")
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    local = ctx.broker.controller.local
    quota = _mutation_quota(ctx, FIRST_STRICT_DELETION)

    def validate() -> Steps[Outcome[DeleteTopicsResponse]]:
        failed = _refused_deletions(ctx, request)
        outcome = yield from local.delete_topics_in_steps(request, quota.charge)
        outcome.response.responses += failed
        return outcome

    items = len(request.topic_names) + len(request.topics)
    response = await change_metadata(ctx, validate, items=items)
    response.throttle_time_ms = quota.throttle_ms()
    return response


def _extension_failed(request: CreatePartitionsRequest, error: KafkaError) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
    )


@api(CreatePartitionsRequest, on_error=_extension_failed, send_before_close=True)
async def create_partitions(ctx: RequestContext, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    """Add partitions to each topic of the request, or report its error."""
    local = ctx.broker.controller.local
    quota = _mutation_quota(ctx, FIRST_STRICT_EXTENSION)

    def validate() -> Steps[Outcome[CreatePartitionsResponse]]:
        if not request.validate_only:
            _check_descriptors(ctx)
        failed = _refused_extensions(ctx, request)
        outcome = yield from local.create_partitions_in_steps(request, quota.charge)
        outcome.response.results += failed
        return outcome

    response = await change_metadata(ctx, validate, items=len(request.topics))
    response.throttle_time_ms = quota.throttle_ms()
    return response


# ---- access


def _refused_creations(ctx: RequestContext, request: CreateTopicsRequest) -> list[CreatableTopicResult]:
    """The topics that may not be created: creation requires CREATE on the cluster, or on the topic."""
    if ctx.is_allowed_on_cluster(Operation.CREATE, logs_denied=False):
        return []
    names = _named_once(topic.name for topic in request.topics)
    refused = refused_topics(ctx, Operation.CREATE, [name for name in names if name != CLUSTER_METADATA_TOPIC])
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    return [
        CreatableTopicResult(name=name, error_code=_REFUSED, error_message="Authorization failed.", configs=[])
        for name in names
        if name in refused
    ]


def _hide_configs(ctx: RequestContext, response: CreateTopicsResponse) -> None:
    """Remove the configs of new topics from the response if the client may not describe them."""
    created = [topic.name for topic in response.topics if not topic.error_code]
    hidden = ctx.refused(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, created, logs_denied=False)
    for topic in response.topics:
        if topic.name in hidden:
            topic.topic_config_error_code = _REFUSED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


def _refused_extensions(ctx: RequestContext, request: CreatePartitionsRequest) -> list[CreatePartitionsTopicResult]:
    """The topics that may not get partitions: that requires ALTER."""
    refused = refused_topics(ctx, Operation.ALTER, _named_once(topic.name for topic in request.topics))
    failed = [topic.name for topic in request.topics if topic.name in refused]
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    return [CreatePartitionsTopicResult(name=name, error_code=_REFUSED, error_message=None) for name in failed]


def _refused_deletions(ctx: RequestContext, request: DeleteTopicsRequest) -> list[DeletableTopicResult]:
    """The topics that may not be deleted: deletion requires DELETE on the cluster, or on the topic.

    If the client may not describe a topic, the error hides whether a topic of this name exists, or the name of an id.
    """
    if ctx.is_allowed_on_cluster(Operation.DELETE, logs_denied=False):
        return []
    image = ctx.broker.image
    by_ids = {
        state.topic_id: topic.name
        for state in request.topics
        if state.name is None and (topic := image.topic_by_id(state.topic_id)) is not None
    }
    by_names = [state.name for state in request.topics if state.name is not None and state.topic_id == NO_TOPIC_ID]
    names = {*_named_once([*request.topic_names, *by_names]), *by_ids.values()}
    hidden = refused_topics(ctx, Operation.DESCRIBE, names)
    refused = {name for name in refused_topics(ctx, Operation.DELETE, names) if name in image.topics}

    failed = []
    remaining = []
    for state in [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]:
        name = by_ids.get(state.topic_id) if state.name is None else state.name
        if name not in names or name not in refused | set(hidden):
            remaining.append(state)
            continue
        shown = None if state.name is None and name in hidden else name
        failed.append(_not_deleted(shown, state))
    request.topic_names, request.topics = [], remaining
    return failed


def _not_deleted(name: str | None, state: DeleteTopicState) -> DeletableTopicResult:
    error = topic_error()
    return DeletableTopicResult(
        name=name, topic_id=state.topic_id, error_code=int(error.code), error_message=error.message
    )


def _named_once(names: Iterable[str]) -> Collection[str]:
    """The names that occur once in a request, in its order."""
    listed = list(names)
    twice = duplicates(listed)
    return [name for name in listed if name not in twice]
