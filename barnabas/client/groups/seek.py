"""Moves the committed offsets of a group without members, or the start offsets of a share group.

First the offset of each partition is computed (`resolve_goals`), so that it can be shown; then `move_group` sets them.
Errors: `KafkaError` from the broker, `NotFound`, `TimedOut`, `Unreachable`, `HasMembers`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.client.groups.consumer_groups import commit_offsets, committed_offsets
from barnabas.client.groups.share_groups import move_share_group, share_offsets
from barnabas.client.offsets import TopicPartition
from barnabas.client.positions import OffsetSpec, resolve_offset_specs
from barnabas.wire.errors import ErrorCode, KafkaError


class HasMembers(ClientError):  # noqa: N818 (a condition, named as such)
    """The group has members, which would overwrite the offsets."""


class Goal(NamedTuple):
    """A position in a partition, or a distance from the committed offset (`spec` is None)."""

    spec: OffsetSpec | None
    shift: int = 0


def current_offsets(cluster: Cluster, group: str, *, is_share: bool) -> dict[TopicPartition, int]:
    """The committed offsets, none for a group that does not exist; of a share group the start offsets, -1 without."""
    if not is_share:
        return committed_offsets(cluster, group)
    return {partition: offset.start_offset for partition, offset in share_offsets(cluster, group).items()}


def resolve_goals(
    cluster: Cluster,
    goals: Mapping[TopicPartition, Goal],
    committed: Mapping[TopicPartition, int],
    note: Callable[[str], None],
) -> dict[TopicPartition, int]:
    """The offset of each goal; `note` gets a sentence for each one outside its partition, which moves to its end."""
    specs: dict[TopicPartition, OffsetSpec] = {}
    for (name, index), goal in goals.items():
        if goal.spec is None and (name, index) not in committed:
            raise ClientError(f"there is no committed offset in {name}-{index} to move from")
        specs[name, index] = goal.spec or OffsetSpec("offset", committed[name, index] + goal.shift)

    def moved(partition: TopicPartition, offset: int, why: str) -> None:
        reason = {
            "beyond": f"{specs[partition].value} is after the end",
            "before": f"{specs[partition].value} is before the first record",
            "late": "no record is that new",
        }[why]
        note(f"{partition[0]}-{partition[1]}: {reason}; {offset} is used")

    return resolve_offset_specs(cluster, specs, on_moved=moved)


def move_group(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int], *, is_share: bool) -> None:
    """Set the offsets of a group without members; `HasMembers` if it has some."""
    try:
        (move_share_group if is_share else commit_offsets)(cluster, group, offsets)
    except KafkaError as error:
        if error.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.REBALANCE_IN_PROGRESS,
            ErrorCode.NON_EMPTY_GROUP,
        ):
            raise HasMembers(f"group {group!r} has members; stop them before changing its offsets") from None
        raise
