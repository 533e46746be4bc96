"""The share coordinator over the wire (KIP-932): InitializeShareGroupState (83), ReadShareGroupState (84),
WriteShareGroupState (85), DeleteShareGroupState (86), ReadShareGroupStateSummary (87).

Brokers send these requests; the parts of this broker call `broker.coordinators.share_coordinators` directly. Each
partition of a request is handled on its own, by the coordinator that it has then. As in Kafka, a request without a
group, topics or partitions gets an empty response. Write v1 and Summary v1 have the number of delivered records
(KIP-1226).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.apis.parts import Parts
from barnabas.broker.apis.registry import api
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.security.acls import Operation
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.messages.groups.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteShareGroupStateResponsePartitionResult,
    DeleteStateResult,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeShareGroupStateResponsePartitionResult,
    InitializeStateResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateResponsePartitionResult,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadShareGroupStateSummaryResponsePartitionResult,
    ReadStateResult,
    ReadStateSummaryResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteShareGroupStateResponsePartitionResult,
    WriteStateResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.wire.errors import KafkaError
    from barnabas.wire.schema import Message
    from barnabas.wire.types import Uuid

_PARTS = Parts("topics.partitions", "results.partitions", size=30)

Then = Callable[[Any], None]
Send = Callable[[SharePartitionKey, Any, Then], None]


class _Topic(Protocol):
    topic_id: Uuid
    partitions: list[Any]


class _Request(Protocol):
    group_id: str

    @property
    def topics(self) -> Sequence[_Topic]: ...


def _state_api(
    request_class: type[Message],
    response_class: type[Message],
    topic_result: Callable[..., Any],
    partition_result: Callable[..., Any],
) -> Callable[[Any], Any]:
    """Register the handler of one of the five requests: of brokers, in parts, with the errors in each partition."""

    def failed(request: _Request, error: KafkaError) -> Message:
        code, message = int(error.code), error.message
        response = response_class()
        response.results = [  # type: ignore[attr-defined]  # each of the five has it
            topic_result(
                topic_id=topic.topic_id,
                partitions=[
                    partition_result(partition=partition.partition, error_code=code, error_message=message)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return response

    return api(request_class, parts=_PARTS, requires=Operation.CLUSTER_ACTION, on_error=failed)


@_state_api(
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    InitializeShareGroupStateResponsePartitionResult,
)
def initialize_state(ctx: RequestContext, request: InitializeShareGroupStateRequest) -> Waiting[Message]:
    """Initialize share partitions."""
    response = InitializeShareGroupStateResponse()
    return _gather(request, response, InitializeStateResult, ctx.broker.share_coordinators.initialize)


@_state_api(
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadStateResult,
    ReadShareGroupStateResponsePartitionResult,
)
def read_state(ctx: RequestContext, request: ReadShareGroupStateRequest) -> Waiting[Message]:
    """Read the whole state of share partitions."""
    return _gather(request, ReadShareGroupStateResponse(), ReadStateResult, ctx.broker.share_coordinators.read)


@_state_api(
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
    WriteShareGroupStateResponsePartitionResult,
)
def write_state(ctx: RequestContext, request: WriteShareGroupStateRequest) -> Waiting[Message]:
    """Write delivery states of records."""
    return _gather(request, WriteShareGroupStateResponse(), WriteStateResult, ctx.broker.share_coordinators.write)


@_state_api(
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    DeleteShareGroupStateResponsePartitionResult,
)
def delete_state(ctx: RequestContext, request: DeleteShareGroupStateRequest) -> Waiting[Message]:
    """Delete the state of share partitions."""
    shares = ctx.broker.share_coordinators
    response = DeleteShareGroupStateResponse()
    return _gather(request, response, DeleteStateResult, lambda key, _, then: shares.delete(key, then))


@_state_api(
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateSummaryResult,
    ReadShareGroupStateSummaryResponsePartitionResult,
)
def read_summary(ctx: RequestContext, request: ReadShareGroupStateSummaryRequest) -> Waiting[Message]:
    """Read the start offsets and epochs of share partitions."""
    shares = ctx.broker.share_coordinators
    response = ReadShareGroupStateSummaryResponse()
    return _gather(request, response, ReadStateSummaryResult, lambda key, _, then: shares.read_summary(key, then))


async def _gather(request: _Request, response: Message, topic_result: Callable[..., Any], send: Send) -> Message:
    """Send a request for each partition; the response has the results in the order of the request."""
    topics = request.topics
    if not request.group_id or not topics or not all(topic.partitions for topic in topics):
        return response
    missing = sum(len(topic.partitions) for topic in topics)
    results = [topic_result(topic_id=topic.topic_id, partitions=[None] * len(topic.partitions)) for topic in topics]
    response.results = results  # type: ignore[attr-defined]  # each of the five has it
    done: Future[None] = Future()

    def decided(partitions: list[Any], index: int, result: Any) -> None:
        nonlocal missing
        partitions[index] = result
        missing -= 1
        if not missing:
            done.complete()

    for topic, result in zip(topics, results, strict=True):
        for index, partition in enumerate(topic.partitions):
            key = SharePartitionKey(request.group_id, topic.topic_id, partition.partition)
            send(key, partition, partial(decided, result.partitions, index))
    await done
    return response
