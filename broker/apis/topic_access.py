"""Which topics of a request that changes the metadata its sender may change, and the answers for the others.

Each function takes what is refused out of the request and returns its answers. It is called when all earlier changes
are in effect, so that nobody changes a topic that has come meanwhile. What is named twice is not asked for: it is
invalid anyway. Source: Kafka 4.4 `ControllerApis.createTopics`, `deleteTopics`, `createPartitions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.broker.apis.access import refused_topics, topic_error
from barnabas.coord.cluster.changes.topic_changes import NO_TOPIC_ID, duplicates
from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import (
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from barnabas.broker.context import RequestContext

_REFUSED = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def refused_creations(ctx: RequestContext, request: CreateTopicsRequest) -> list[CreatableTopicResult]:
    """The topics that may not be created: that takes CREATE on the cluster, or on the topic."""
    if ctx.is_allowed_on_cluster(Operation.CREATE, logs_denied=False):
        return []
    names = _named_once(topic.name for topic in request.topics)
    refused = refused_topics(ctx, Operation.CREATE, [name for name in names if name != CLUSTER_METADATA_TOPIC])
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    return [
        CreatableTopicResult(name=name, error_code=_REFUSED, error_message="Authorization failed.", configs=None)
        for name in names
        if name in refused
    ]


def hide_configs(ctx: RequestContext, response: CreateTopicsResponse) -> None:
    """Take the configs of new topics out of the response whose configs the client may not describe."""
    created = [topic.name for topic in response.topics if not topic.error_code]
    hidden = ctx.refused(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, created, logs_denied=False)
    for topic in response.topics:
        if topic.name in hidden:
            topic.topic_config_error_code = _REFUSED
            topic.num_partitions = topic.replication_factor = -1
            topic.configs = []


def refused_extensions(ctx: RequestContext, request: CreatePartitionsRequest) -> list[CreatePartitionsTopicResult]:
    """The topics that may not get partitions: that takes ALTER."""
    refused = refused_topics(ctx, Operation.ALTER, _named_once(topic.name for topic in request.topics))
    failed = [topic.name for topic in request.topics if topic.name in refused]
    request.topics = [topic for topic in request.topics if topic.name not in refused]
    return [CreatePartitionsTopicResult(name=name, error_code=_REFUSED, error_message=None) for name in failed]


def refused_deletions(ctx: RequestContext, request: DeleteTopicsRequest) -> list[DeletableTopicResult]:
    """The topics that may not be deleted: that takes DELETE on the cluster, or on the topic.

    Who may not describe a topic does not hear whether there is one of this name, or what the name of an id is.
    """
    if ctx.is_allowed_on_cluster(Operation.DELETE, logs_denied=False):
        return []
    image = ctx.broker.image
    by_ids = {
        state.topic_id: found.name
        for state in request.topics
        if state.name is None and (found := image.topic_by_id(state.topic_id)) is not None
    }
    by_names = [state.name for state in request.topics if state.name is not None and state.topic_id == NO_TOPIC_ID]
    names = {*_named_once([*request.topic_names, *by_names]), *by_ids.values()}
    hidden = refused_topics(ctx, Operation.DESCRIBE, names)
    kept = {name for name in refused_topics(ctx, Operation.DELETE, names) if name in image.topics}

    failed = []
    remaining = []
    for state in [*(DeleteTopicState(name=name) for name in request.topic_names), *request.topics]:
        name = by_ids.get(state.topic_id) if state.name is None else state.name
        if name not in names or name not in kept | set(hidden):
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
    """The names that a request has once, in its order."""
    listed = list(names)
    twice = duplicates(listed)
    return [name for name in listed if name not in twice]
