"""Asks a leader where its log begins and ends, for a follower whose offset is outside of it (R24).

- The leader's log ends below the follower's: an unclean election; the follower truncates to the leader's end. (With
  leader epochs in both logs the fetch says so itself, R5; this is for logs without any.)
- The leader's log begins above the follower's end: the records in between were deleted; the follower removes
  everything and begins there.
- Otherwise the leader's log has changed meanwhile, and the follower fetches again.

Source: Kafka's `AbstractFetcherThread.fetchOffsetAndTruncate`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.replicas.fetchers.receiving import Remedy, Truncate, Wait
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from barnabas.broker.replicas.fetchers.context import Client
    from barnabas.broker.replicas.fetchers.followed import Followed
    from barnabas.wire.messages.list_offsets import ListOffsetsResponse
    from barnabas.wire.schema import Message

EARLIEST: Final = -2
LATEST: Final = -1


def ask(
    client: Client, followed: Followed, node_id: int, timeout_s: float, then: Callable[[Remedy | None], None]
) -> None:
    """Ask the leader; `then` gets what to do before the next fetch."""

    def got_end(end: int | None) -> None:
        if end is None:
            then(Wait())
        elif end < followed.partition.log.log_end_offset:
            then(Truncate(end))
        else:
            _list(client, followed, node_id, EARLIEST, timeout_s, got_start)

    def got_start(start: int | None) -> None:
        if start is None:
            then(Wait())
        elif start > followed.partition.log.log_end_offset:
            then(Truncate(start, True))
        else:
            then(None)

    _list(client, followed, node_id, LATEST, timeout_s, got_end)


def _list(
    client: Client,
    followed: Followed,
    node_id: int,
    timestamp: int,
    timeout_s: float,
    then: Callable[[int | None], None],
) -> None:
    """Ask for one offset of a partition; `then` gets None after an error."""
    partition = followed.partition

    def answered(response: Message | KafkaError) -> None:
        then(None if isinstance(response, KafkaError) else _offset_in(response))  # type: ignore[arg-type]

    requested = ListOffsetsPartition(
        partition_index=partition.index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
    )
    request = ListOffsetsRequest(
        replica_id=node_id, topics=[ListOffsetsTopic(name=partition.topic, partitions=[requested])]
    )
    client.send(request, answered, timeout_s=timeout_s)


def _offset_in(response: ListOffsetsResponse) -> int | None:
    for topic in response.topics:
        for partition in topic.partitions:
            return partition.offset if not partition.error_code and partition.offset >= 0 else None
    return None
