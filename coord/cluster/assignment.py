"""Validation of manual assignments. Source: Kafka 4.4 `ReplicationControlManager.validateManualPartitionAssignment`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.wire.errors import ErrorCode, KafkaError


def check_manual_assignment(
    replicas: Sequence[int], brokers: Mapping[int, BrokerImage], replication_factor: int | None
) -> None:
    """Validate one partition of a manual assignment; KafkaError(INVALID_REPLICA_ASSIGNMENT) when it is invalid.

    `replication_factor` is that of the earlier partitions, None for the first.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    for position, replica in enumerate(replicas):
        if replica in replicas[:position]:
            raise _invalid(f"The manual partition assignment includes the broker {replica} more than once.")
        if replica not in brokers:
            raise _invalid(
                f"The manual partition assignment includes broker {replica}, but no such broker is registered."
            )
        if not brokers[replica].has_uncordoned_directories:
            raise _invalid(
                f"The manual partition assignment includes broker {replica}, but all its log directories are cordoned."
            )
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
