"""Asks other brokers for the ends of partitions that they lead (Kafka's `PartitionMetadataClient`, KIP-1226)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.coordinators.node_queues import NodeQueues
from barnabas.broker.guarded import call_guarded
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.loop import Loop
    from barnabas.broker.net.network_client import NetworkClient

LATEST: Final = -1
CONSUMER: Final = -1
"""The replica id of a client, which sees only committed records."""

Then = Callable[["int | KafkaError"], None]


class _Asked(NamedTuple):
    topic: str
    partition: int
    then: Then


class LatestOffsets:
    """The requests to other brokers."""

    def __init__(self, loop: Loop, client: Callable[[int], NetworkClient], timeout_s: float) -> None:
        """`client` returns the connection to a broker."""
        self._queues: NodeQueues[_Asked] = NodeQueues(
            loop, client, timeout_s, build=_request, answer=_answer, key=lambda asked: asked[:2]
        )

    def ask(self, node_id: int, topic: str, partition: int, then: Then) -> None:
        """Ask the leader of a partition for its high watermark; `then` gets it, or the error."""
        self._queues.add(node_id, _Asked(topic, partition, then))


def _request(items: Sequence[_Asked]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for topic, partition, _ in items:
        wanted = ListOffsetsPartition(partition_index=partition, timestamp=LATEST)
        topics.setdefault(topic, []).append(wanted)
    return ListOffsetsRequest(
        replica_id=CONSUMER,
        topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _answer(items: Sequence[_Asked], response: ListOffsetsResponse | KafkaError) -> None:
    found: dict[tuple[str, int], int | KafkaError] = {}
    otherwise = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The leader of the partition does not tell its end.")
    if isinstance(response, KafkaError):
        otherwise = response
    else:
        found = {
            (topic.name, one.partition_index): KafkaError(ErrorCode(one.error_code)) if one.error_code else one.offset
            for topic in response.topics
            for one in topic.partitions
        }
    for asked in items:
        what = f"The end of {asked.topic}-{asked.partition}"
        call_guarded(what, asked.then, found.get((asked.topic, asked.partition), otherwise))
