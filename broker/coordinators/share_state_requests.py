"""The five requests to share coordinators of other brokers, and how they are made of items (KIP-932).

InitializeShareGroupState (83), ReadShareGroupState (84), WriteShareGroupState (85), DeleteShareGroupState (86),
ReadShareGroupStateSummary (87).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.wire.messages.groups import share_state as s

if TYPE_CHECKING:
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.errors import ErrorCode
    from barnabas.wire.schema import Message


class Kind(NamedTuple):
    """One of the requests: the method of `ShareCoordinators` that serves it, and the parts of its messages."""

    name: str
    request: Callable[..., Message]
    topic: Callable[..., Any]
    partition: Callable[..., Any]
    """Makes the partition of a request that has only the index."""
    partition_result: Callable[..., Any]

    def error(self, key: SharePartitionKey, error: ErrorCode, message: str | None) -> Any:
        """The result of a request about this share partition that failed."""
        return self.partition_result(partition=key.partition, error_code=int(error), error_message=message)


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(
            "initialize",
            s.InitializeShareGroupStateRequest,
            s.InitializeStateData,
            s.InitializeShareGroupStateRequestPartitionData,
            s.InitializeShareGroupStateResponsePartitionResult,
        ),
        Kind(
            "read",
            s.ReadShareGroupStateRequest,
            s.ReadStateData,
            s.ReadShareGroupStateRequestPartitionData,
            s.ReadShareGroupStateResponsePartitionResult,
        ),
        Kind(
            "write",
            s.WriteShareGroupStateRequest,
            s.WriteStateData,
            s.WriteShareGroupStateRequestPartitionData,
            s.WriteShareGroupStateResponsePartitionResult,
        ),
        Kind(
            "delete",
            s.DeleteShareGroupStateRequest,
            s.DeleteStateData,
            s.DeleteShareGroupStateRequestPartitionData,
            s.DeleteShareGroupStateResponsePartitionResult,
        ),
        Kind(
            "read_summary",
            s.ReadShareGroupStateSummaryRequest,
            s.ReadStateSummaryData,
            s.ReadShareGroupStateSummaryRequestPartitionData,
            s.ReadShareGroupStateSummaryResponsePartitionResult,
        ),
    )
}


class StateRequest(NamedTuple):
    """One request about one share partition."""

    kind: Kind
    key: SharePartitionKey
    data: Any
    """The partition of the request, None if it has only the index."""
    reply: Callable[[Any], None]
    """Gets the partition's result, whose error code may be set."""


def build(requests: Sequence[StateRequest]) -> Message:
    """One message for requests of one kind and one group."""
    kind, group_id = requests[0].kind, requests[0].key.group_id
    topics: dict[Any, list[Any]] = {}
    for request in requests:
        partition = kind.partition(partition=request.key.partition) if request.data is None else request.data
        topics.setdefault(request.key.topic_id, []).append(partition)
    return kind.request(
        group_id=group_id,
        topics=[kind.topic(topic_id=topic_id, partitions=partitions) for topic_id, partitions in topics.items()],
    )
