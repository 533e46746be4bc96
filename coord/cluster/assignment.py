"""Placement of replicas on brokers, and validation of manual assignments.

Replicas are placed round robin. The first replica is the preferred leader and moves to the next broker with each
partition; the followers are shifted by one more with each round, so that they do not always follow the same leader.
Source: Kafka 4.4 `StripedReplicaPlacer`, which starts at a random broker, and `ReplicationControlManager`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from barnabas.wire.errors import ErrorCode, KafkaError


def place_partitions(
    brokers: Sequence[int], partitions: int, replication_factor: int, start: int = 0
) -> list[list[int]]:
    """Replica lists for new partitions; `start` is the index of the first broker, modulo their number.

    KafkaError(INVALID_REPLICATION_FACTOR) when there are too few brokers.
    """
    if replication_factor > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(brokers)} broker(s) are registered.",
        )
    return [_replicas(brokers, start + partition, replication_factor) for partition in range(partitions)]


def _replicas(brokers: Sequence[int], position: int, replication_factor: int) -> list[int]:
    count = len(brokers)
    shift = 1 + (position // count) % max(1, count - 1)
    chosen = [brokers[position % count]]
    step = 0
    while len(chosen) < replication_factor:
        broker = brokers[(position + shift + step) % count]
        if broker not in chosen:
            chosen.append(broker)
        step += 1
    return chosen


def check_manual_assignment(replicas: Sequence[int], brokers: Collection[int], replication_factor: int | None) -> None:
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
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
