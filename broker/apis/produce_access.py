"""What a Produce must be allowed to do: to write to its topics, and to use its transactional id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.apis.access import check_transactional_id, refused_as_named
from barnabas.broker.apis.produce_append import FIRST_VERSION_WITH_TOPIC_IDS, is_transactional
from barnabas.coord.security.acls import Operation

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.messages.produce import ProduceRequest

_WRITE: Final = int(Operation.WRITE)  # a plain number is found faster


def check_access(ctx: RequestContext, request: ProduceRequest) -> None:
    """Find the topics that may not be written to; KafkaError if the transactional id of the records may not be used.

    Transactional records without an id are refused partition by partition, when they are appended.
    """
    if request.transactional_id is not None and _has_transactional_records(request):
        check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    by_id = ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    topics = request.topic_data
    if len(topics) == 1:  # as most have: a small request should not be dearer than without an authorizer
        granted = ctx.connection.granted_topics.get(_WRITE)  # of the client: Produce is never forwarded
        if granted is not None and (topics[0].topic_id if by_id else topics[0].name) in granted:
            return
    named = [topic.topic_id for topic in topics] if by_id else [topic.name for topic in topics]
    ctx.refused_topics = refused_as_named(ctx, Operation.WRITE, named)


def _has_transactional_records(request: ProduceRequest) -> bool:
    return any(
        data.records is not None and is_transactional(data.records)  # type: ignore[arg-type]
        for topic in request.topic_data
        for data in topic.partition_data
    )
