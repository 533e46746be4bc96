"""What members of consumer and streams groups have in common: epochs, and static members (KIP-848, KIP-1071).

Source: Kafka 4.4 `GroupMetadataManager`, where both protocols check members alike.
"""

from __future__ import annotations

from typing import Protocol

from barnabas.wire.errors import ErrorCode, KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""A static member is away for a while; what it had waits for it until its session is over."""


class Member(Protocol):
    """One member, an immutable value."""

    @property
    def member_id(self) -> str:
        """Made by the client or, in old versions, by the coordinator."""

    @property
    def instance_id(self) -> str | None:
        """The name of a static member."""

    @property
    def epoch(self) -> int:
        """The epoch of the target assignment that it is on its way to."""

    @property
    def previous_epoch(self) -> int:
        """The epoch before: what the member knows when our last answer was lost."""

    @property
    def speaks_classic(self) -> bool:
        """Whether it uses JoinGroup, SyncGroup and Heartbeat."""

    def is_reconciled_to(self, epoch: int, /) -> bool:
        """Whether it has all that the target assignment of this epoch gives it."""


def check_static(owner: Member | None, member_id: str, instance_id: str) -> None:
    """KafkaError unless this member id owns the instance id."""
    if owner is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {owner.member_id}.",
        )
