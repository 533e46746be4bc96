"""What a request must be allowed to do before a handler does it, and the errors if it is not.

Each function raises or returns Kafka's error for the type of the resource, with Kafka's text. The cluster's is in
`registry`, where an API that needs nothing else declares it (`requires`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coord.security.acls import Operation, ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from barnabas.broker.context import RequestContext
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
    if not ctx.is_allowed(operation, ResourceType.GROUP, group_id):
        raise group_error()


def check_transactional_id(ctx: RequestContext, operation: Operation, transactional_id: str) -> None:
    """KafkaError(TRANSACTIONAL_ID_AUTHORIZATION_FAILED) if the request may not do something to the id."""
    if not ctx.is_allowed(operation, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "Transactional Id authorization failed.")


def check_topics(ctx: RequestContext, operation: Operation, names: Iterable[str], text: str = TOPIC_TEXT) -> None:
    """KafkaError(TOPIC_AUTHORIZATION_FAILED) if the request may not do something to one of the topics."""
    if ctx.refused(operation, ResourceType.TOPIC, names):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, text)


def refused_as_named(
    ctx: RequestContext, operation: Operation, topics: Iterable[tuple[str, Uuid]], *, by_id: bool
) -> Collection[bytes | str]:
    """Those of the topics that the request may not do something to, by id where it names them by id.

    An id that no topic has is not among them: nobody may use it.
    """
    if not by_id:
        return ctx.refused(operation, ResourceType.TOPIC, (name for name, _ in topics))
    by_ids = ctx.broker.image.topics_by_id
    names = {topic_id: by_ids[topic_id].name for _, topic_id in topics if topic_id in by_ids}
    refused = ctx.refused(operation, ResourceType.TOPIC, names.values())
    return {topic_id for topic_id, name in names.items() if name in refused}


def refused_topics(ctx: RequestContext, operation: Operation, names: Iterable[str]) -> Collection[str]:
    """Those of the topics that the request may not do something to."""
    return ctx.refused(operation, ResourceType.TOPIC, names)
