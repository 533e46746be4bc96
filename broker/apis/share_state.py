"""InitializeShareGroupState (83), ReadShareGroupState (84), WriteShareGroupState (85), DeleteShareGroupState (86),
ReadShareGroupStateSummary (87): the share coordinator over the wire (KIP-932).

Leaders of partitions and group coordinators send these; in this broker they ask
`broker.coordinators.share_coordinators` directly.
Each partition of a request is judged by itself. As in Kafka a request without a group, a topic or a partition gets an
empty answer. Write v1 and Summary v1 carry how many records are finished (KIP-1226).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.apis.registry import api
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.messages.share_state import (
    DeleteShareGroupStateRequest,
    DeleteShareGroupStateResponse,
    DeleteStateResult,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    InitializeStateResult,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
    ReadStateResult,
    ReadStateSummaryResult,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
    WriteStateResult,
)

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message
    from barnabas.wire.types import Uuid

Answer = Callable[[Any], None]
Ask = Callable[[SharePartitionKey, Any, Answer], None]


class _Topic(Protocol):
    topic_id: Uuid
    partitions: list[Any]


class _Request(Protocol):
    group_id: str

    @property
    def topics(self) -> Sequence[_Topic]: ...


@api(InitializeShareGroupStateRequest)
def initialize_state(ctx: RequestContext, request: InitializeShareGroupStateRequest) -> DelayedResponse:
    """Begin share partitions."""
    response = InitializeShareGroupStateResponse()
    return _gather(request, response, InitializeStateResult, ctx.broker.shares.initialize)


@api(ReadShareGroupStateRequest)
def read_state(ctx: RequestContext, request: ReadShareGroupStateRequest) -> DelayedResponse:
    """Everything that is kept of share partitions."""
    return _gather(request, ReadShareGroupStateResponse(), ReadStateResult, ctx.broker.shares.read)


@api(WriteShareGroupStateRequest)
def write_state(ctx: RequestContext, request: WriteShareGroupStateRequest) -> DelayedResponse:
    """Keep what has become of records."""
    return _gather(request, WriteShareGroupStateResponse(), WriteStateResult, ctx.broker.shares.write)


@api(DeleteShareGroupStateRequest)
def delete_state(ctx: RequestContext, request: DeleteShareGroupStateRequest) -> DelayedResponse:
    """Forget share partitions."""
    shares = ctx.broker.shares

    def ask(about: SharePartitionKey, _asked: Any, answer: Answer) -> None:
        shares.delete(about, answer)

    return _gather(request, DeleteShareGroupStateResponse(), DeleteStateResult, ask)


@api(ReadShareGroupStateSummaryRequest)
def read_summary(ctx: RequestContext, request: ReadShareGroupStateSummaryRequest) -> DelayedResponse:
    """Start offsets and epochs of share partitions."""
    shares = ctx.broker.shares

    def ask(about: SharePartitionKey, _asked: Any, answer: Answer) -> None:
        shares.read_summary(about, answer)

    return _gather(request, ReadShareGroupStateSummaryResponse(), ReadStateSummaryResult, ask)


def _gather(request: _Request, response: Message, topic_result: Callable[..., Any], ask: Ask) -> DelayedResponse:
    """Ask about each partition; answer when all answers are there, in the order of the request."""
    delayed = DelayedResponse(send_before_close=True)
    topics = request.topics
    if not request.group_id or not topics or not all(topic.partitions for topic in topics):
        delayed.resolve(response)
        return delayed
    missing = sum(len(topic.partitions) for topic in topics)
    results = [topic_result(topic_id=topic.topic_id, partitions=[None] * len(topic.partitions)) for topic in topics]
    response.results = results  # type: ignore[attr-defined]  # each of the five has it

    def answer_into(place: list[Any], index: int) -> Answer:
        def answer(result: Any) -> None:
            nonlocal missing
            place[index] = result
            missing -= 1
            if not missing:
                delayed.resolve(response)

        return answer

    for topic, result in zip(topics, results, strict=True):
        for index, asked in enumerate(topic.partitions):
            about = SharePartitionKey(request.group_id, topic.topic_id, asked.partition)
            ask(about, asked, answer_into(result.partitions, index))
    return delayed
