"""The five requests to share coordinators of other brokers, and how they are made of items (KIP-932).

InitializeShareGroupState (83), ReadShareGroupState (84), WriteShareGroupState (85), DeleteShareGroupState (86),
ReadShareGroupStateSummary (87).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.wire.messages import share_state as s

if TYPE_CHECKING:
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.schema import Message


class Kind(NamedTuple):
    """One of the requests: the method of `ShareCoordinators` that serves it, and the parts of its messages."""

    name: str
    request: Callable[..., Message]
    topic: Callable[..., Any]
    partition: Callable[..., Any]
    """Makes the partition of a request that has only the index."""
    partition_result: Callable[..., Any]


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


class Asked(NamedTuple):
    """One request about one share partition."""

    kind: Kind
    key: SharePartitionKey
    data: Any
    """The partition of the request, None if it has only the index."""
    answer: Callable[[Any], None]
    """Gets the partition's result, whose error code may be set."""


def build(items: Sequence[Asked]) -> Message:
    """The request of items of one kind and one group."""
    kind, group_id = items[0].kind, items[0].key.group_id
    topics: dict[Any, list[Any]] = {}
    for asked in items:
        data = kind.partition(partition=asked.key.partition) if asked.data is None else asked.data
        topics.setdefault(asked.key.topic_id, []).append(data)
    return kind.request(
        group_id=group_id,
        topics=[kind.topic(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()],
    )
