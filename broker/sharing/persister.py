"""Reads and writes the state of share partitions at the share coordinator (Kafka's `Persister`, KIP-932)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.share_state import (
    ReadShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestPartitionData,
    WriteShareGroupStateRequestStateBatch,
)

if TYPE_CHECKING:
    from barnabas.broker.coordinators.share_states import ShareStates
    from barnabas.coord.share_partitions.partition import SharePartition
    from barnabas.coord.share_state.batches import StateBatch
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.groups.share_state import (
        ReadShareGroupStateResponsePartitionResult,
        WriteShareGroupStateResponsePartitionResult,
    )

logger = logging.getLogger("kafka.server.share.SharePartition")

OnRead: TypeAlias = "Callable[[ReadShareGroupStateResponsePartitionResult], None]"

_MEMBER_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}

FENCED = frozenset(
    {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
)
"""Errors after which the state in memory is stale."""


def member_error(error: ErrorCode) -> ErrorCode:
    """The error that a member gets for an error of the share coordinator (Kafka's `fetchPersisterError`)."""
    return _MEMBER_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)


class Persister:
    """Sends requests about share partitions to their share coordinators."""

    def __init__(self, shares: ShareStates) -> None:
        self._shares = shares

    def read(self, key: SharePartitionKey, leader_epoch: int, on_read: OnRead) -> None:
        """Read the state of a share partition; `on_read` may be called immediately."""
        request = ReadShareGroupStateRequestPartitionData(partition=key.partition, leader_epoch=leader_epoch)
        self._shares.read(key, request, on_read)

    def write(
        self,
        key: SharePartitionKey,
        state: SharePartition,
        leader_epoch: int,
        batches: Sequence[StateBatch],
        then: Callable[[ErrorCode], None],
    ) -> None:
        """Write changed states; `then` gets the error for members, or NONE once they are committed."""

        def written(result: WriteShareGroupStateResponsePartitionResult) -> None:
            error = ErrorCode(result.error_code)
            if error:
                logger.warning(
                    "Cannot write the state of the share partition %s: %s", key, result.error_message or error.name
                )
                error = member_error(error)
            then(error)

        request = WriteShareGroupStateRequestPartitionData(
            partition=key.partition,
            state_epoch=state.state_epoch,
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            state_batches=[
                WriteShareGroupStateRequestStateBatch(
                    first_offset=first, last_offset=last, delivery_state=delivery_state, delivery_count=count
                )
                for first, last, delivery_state, count in batches
            ],
        )
        self._shares.write(key, request, written)
