"""Checks whether a request may do something to a resource, and Kafka's errors if it may not.

Each function raises or returns Kafka's error for the type of the resource, with Kafka's text. The cluster's is in
`registry`, where an API that needs nothing else declares it (`requires`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from barnabas.broker.context import RequestContext
    from barnabas.broker.security.authorizer import Authorizer
    from barnabas.wire.types import Uuid

TOPIC_TEXT: Final = "Topic authorization failed."
DESCRIBED_TEXT: Final = "The group has described topic(s) that the client is not authorized to describe."
GROUP_TEXT: Final = "Group authorization failed."
CLUSTER_TEXT: Final = "Cluster authorization failed."


def topic_error() -> KafkaError:
    """The error of a topic that may not be used."""
    return KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_TEXT)


def group_error() -> KafkaError:
    """The error of a group that may not be used."""
    return KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED, GROUP_TEXT)


def check_group(ctx: RequestContext, operation: Operation, group_id: str) -> None:
    """KafkaError(GROUP_AUTHORIZATION_FAILED) if the request may not do something to a group."""
    if ctx.broker.authorizer is not None and not ctx.is_allowed(operation, ResourceType.GROUP, group_id):
        raise group_error()


def check_transactional_id(ctx: RequestContext, operation: Operation, transactional_id: str) -> None:
    """KafkaError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED) if the request may not do something to the id."""
    if not ctx.is_allowed(operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id authorization failed.")


def check_topics(ctx: RequestContext, operation: Operation, names: Iterable[str], text: str = TOPIC_TEXT) -> None:
    """KafkaError(TOPIC_AUTHORIZATION_FAILED) if the request may not do something to one of the topics."""
    if ctx.broker.authorizer is not None and ctx.refused(operation, ResourceType.TOPIC, names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)


def refused_as_named(
    ctx: RequestContext, operation: Operation, topics: Sequence[str] | Sequence[Uuid] | Sequence[Uuid | str]
) -> Collection[bytes | str]:
    """The topics that the request may not do something to: by name if `topics` are names, by id if they are ids.

    Ids of topics that do not exist are left out.
    """
    authorizer = ctx.broker.authorizer
    if authorizer is None or not topics:
        return ()
    refused: Collection[bytes | str]
    granted = ctx.granted_topics.get(operation)
    if granted is not None and granted.issuperset(topics):
        return ()
    if isinstance(topics[0], str):
        refused = authorizer.refused(ctx, operation, ResourceType.TOPIC, topics)  # type: ignore[arg-type]
    else:
        refused = _refused_ids(ctx, authorizer, operation, topics)  # type: ignore[arg-type]
    ctx.granted_topics[operation] = authorizer.granted_topics(ctx, operation)
    return refused


def _refused_ids(
    ctx: RequestContext, authorizer: Authorizer, operation: Operation, ids: Sequence[Uuid]
) -> Collection[Uuid]:
    by_ids = ctx.broker.image.topics_by_id
    topics = [topic for topic_id in ids if (topic := by_ids.get(topic_id)) is not None]
    refused = authorizer.refused(ctx, operation, ResourceType.TOPIC, [topic.name for topic in topics])
    if refused:
        return {topic.topic_id for topic in topics if topic.name in refused}
    authorizer.grant_ids(ctx, operation, [(topic.name, topic.topic_id) for topic in topics])
    return ()


def refused_topics(ctx: RequestContext, operation: Operation, names: Iterable[str]) -> Collection[str]:
    """The topics of `names` that the request may not do something to."""
    return ctx.refused(operation, ResourceType.TOPIC, names)
