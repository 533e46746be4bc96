"""Sends transaction markers to the brokers that lead the partitions (WriteTxnMarkers, rules T4 and T5).

The markers that wait for a broker go in one request. Every partition is decided: its marker is written, it needs none,
or it must be tried again, at the leader that the metadata has by then. Source: Kafka 4.4
`TransactionMarkerRequestCompletionHandler`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.coordinators.node_queues import NodeQueues
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transactions import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.client.network_client import NetworkClient
    from barnabas.coord.transactions.markers import Markers
    from barnabas.coord.transactions.transaction import TopicPartition

logger = logging.getLogger("kafka.coordinator.transaction.TransactionMarkerChannelManager")

_NEVER: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        ErrorCode.UNSUPPORTED_VERSION,
    }
)
"""The partition has no open transaction that this marker could end."""
_EXPECTED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)

Decided = Callable[[list["TopicPartition"], list["TopicPartition"]], None]
"""Called once with the partitions that are done, and with the partitions that must be tried again."""


class _Sent(NamedTuple):
    """The markers of one transaction for partitions that one broker leads."""

    markers: Markers
    coordinator_epoch: int
    targets: Sequence[TopicPartition]
    decided: Decided


class RemoteMarkers:
    """The markers on their way to other brokers."""

    def __init__(self, loop: Loop, client: Callable[[int], NetworkClient], timeout_s: float) -> None:
        """`client` returns the connection to a broker."""
        self._queues: NodeQueues[_Sent] = NodeQueues(
            loop, client, timeout_s, build=_request, on_response=_finish, key=lambda sent: sent.markers.producer_id
        )

    def write(
        self,
        node_id: int,
        markers: Markers,
        coordinator_epoch: int,
        targets: Sequence[TopicPartition],
        decided: Decided,
    ) -> None:
        """Have a broker write markers into partitions."""
        self._queues.add(node_id, _Sent(markers, coordinator_epoch, targets, decided))


def _request(items: Sequence[_Sent]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=markers.producer_id,
                producer_epoch=markers.producer_epoch,
                transaction_result=markers.is_commit,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in _by_topic(targets).items()
                ],
                coordinator_epoch=coordinator_epoch,
                transaction_version=markers.transaction_version,
            )
            for markers, coordinator_epoch, targets, _ in items
        ]
    )


def _by_topic(targets: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in targets:
        topics.setdefault(name, []).append(index)
    return topics


def _finish(items: Sequence[_Sent], response: WriteTxnMarkersResponse | KafkaError) -> None:
    if isinstance(response, KafkaError):
        for sent in items:
            sent.decided([], list(sent.targets))
        return
    errors = {
        (result.producer_id, topic.name, partition.partition_index): partition.error_code
        for result in response.markers
        for topic in result.topics
        for partition in topic.partitions
    }
    for sent in items:
        done: list[TopicPartition] = []
        again: list[TopicPartition] = []
        for target in sent.targets:
            code = ErrorCode(errors.get((sent.markers.producer_id, *target), ErrorCode.UNKNOWN_SERVER_ERROR))
            (done if _is_done(sent.markers, target, code) else again).append(target)
        sent.decided(done, again)


def _is_done(markers: Markers, target: TopicPartition, error: ErrorCode) -> bool:
    """Whether a partition needs no further attempt: its marker is written, or it will never take one."""
    if not error:
        return True
    if error not in _EXPECTED:
        logger.error("%s-%d answers the marker of %r with %s", *target, markers.transactional_id, error.name)
    return error in _NEVER
