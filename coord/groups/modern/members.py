"""Members of consumer and streams groups: epochs, and static members (KIP-848, KIP-1071).

Source: Kafka 4.4 `GroupMetadataManager`, which checks members of both protocols in the same way.
"""

from __future__ import annotations

from typing import Any, Protocol, Self

from barnabas.wire.errors import ErrorCode, KafkaError

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2
"""A static member leaves temporarily; its assignment is kept for it until its session expires."""


class Member(Protocol):
    """One member, an immutable value."""

    @property
    def member_id(self) -> str:
        """Made by the client or, in old versions, by the coordinator."""

    @property
    def instance_id(self) -> str | None:
        """The name of a static member."""

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long it may take to revoke partitions or tasks."""

    @property
    def epoch(self) -> int:
        """The epoch of the target assignment that it is reconciled with, or is being."""

    @property
    def previous_epoch(self) -> int:
        """The epoch before, which the member has if the last response was lost."""

    @property
    def revoking(self) -> Any:
        """The partitions or tasks that it has to revoke first."""

    @property
    def has_to_revoke(self) -> bool:
        """Whether it must confirm within its rebalance timeout that it has revoked partitions or tasks."""

    @property
    def speaks_classic(self) -> bool:
        """Whether it uses JoinGroup, SyncGroup and Heartbeat."""

    def is_reconciled_to(self, epoch: int, /) -> bool:
        """Whether it has all that the target assignment of this epoch gives it."""

    def back_as(self, member_id: str, /) -> Self:
        """This static member when it joins again, usually with a new member id."""

    def away(self) -> Self:
        """This static member when it has left temporarily."""


def check_static(owner: Member | None, member_id: str, instance_id: str) -> None:
    """KafkaError UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID unless this member id owns the instance id."""
    if owner is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if owner.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {owner.member_id}.",
        )
