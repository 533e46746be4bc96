"""Asks other brokers for the ends of partitions that they lead (Kafka's `PartitionMetadataClient`, KIP-1226)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.coordinators.node_queues import NodeQueues
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.network_client import NetworkClient

LATEST: Final = -1
CONSUMER: Final = -1
"""The replica id of a client, which sees only committed records."""

Then = Callable[["int | KafkaError"], None]


class _Item(NamedTuple):
    topic: str
    partition: int
    then: Then


class LatestOffsets:
    """The requests to other brokers."""

    def __init__(self, loop: Loop, client: Callable[[int], NetworkClient], timeout_s: float) -> None:
        """`client` returns the connection to a broker."""
        self._queues: NodeQueues[_Item] = NodeQueues(
            loop, client, timeout_s, build=_request, on_response=_finish, key=lambda item: item[:2]
        )

    def ask(self, node_id: int, topic: str, partition: int, then: Then) -> None:
        """Ask the leader of a partition for its high watermark; `then` gets it, or the error."""
        self._queues.add(node_id, _Item(topic, partition, then))


def _request(items: Sequence[_Item]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition, _ in items:
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=partition, timestamp=LATEST))
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _finish(items: Sequence[_Item], response: ListOffsetsResponse | KafkaError) -> None:
    offsets: dict[tuple[str, int], int | KafkaError] = {}
    otherwise = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader of the partition does not tell its end.")
    if isinstance(response, KafkaError):
        otherwise = response
    else:
        for topic in response.topics:
            for result in topic.partitions:
                error = ErrorCode(result.error_code)
                offsets[topic.name, result.partition_index] = KafkaError(error) if error else result.offset
    for item in items:
        what = f"The end of {item.topic}-{item.partition}"
        call_guarded(what, item.then, offsets.get((item.topic, item.partition), otherwise))
