"""The first step of a heartbeat: identify the member and validate its epoch (KIP-848, KIP-1071).

The group is only read. A static member that returns adds the records by which it replaces the member that left, and
later steps work on members and target assignments as they are with these records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from barnabas.coord.groups.modern.members import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member, check_static
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.group import ModernGroup
    from barnabas.coord.groups.modern.records import GroupRecords
    from barnabas.coord.machine import CoordinatorRecord

M = TypeVar("M", bound=Member)
T = TypeVar("T")


class Request(Protocol):
    """The fields of a heartbeat that identify its sender."""

    member_epoch: int
    instance_id: str | None


class Joining(Generic[M, T]):
    """One heartbeat of a member that is in the group or joins it; each protocol has its own further steps."""

    assigned_things: ClassVar[str]
    """`partitions` or `tasks`, for error messages."""

    def __init__(
        self, group: ModernGroup[M, T], request: Request, member_records: GroupRecords[M, T], no_target: T
    ) -> None:
        """`no_target` is the target assignment of a member that has none."""
        self._from = request
        self._of = group
        self._member_records = member_records
        self._no_target = no_target
        self.records: list[CoordinatorRecord] = []
        self._members: Mapping[str, M] = group.members
        self._target: Mapping[str, T] = group.target
        self._replaced: str | None = None
        """The id of the static member that this one replaces."""

    # ---- what each protocol implements

    def _owns_only_assigned(self, member: M) -> bool:
        """Whether the request lists what the member owns, and all of it is assigned to the member."""
        raise NotImplementedError

    def _may_take_over(self, owner: M) -> bool:  # noqa: ARG002 - a protocol looks at it
        """Whether a joining member may take the instance id of a member that has not left."""
        return False

    # ---- identity

    def _known(self, member_id: str) -> M:
        """The member as the group has it, or a new one. KafkaError when the request is refused."""
        request, group = self._from, self._of
        is_joining = request.member_epoch == JOIN_EPOCH
        if request.instance_id is not None:
            return self._known_static(member_id, request.instance_id, is_joining=is_joining)
        if is_joining and member_id not in group.members:
            return self._member_records.new_member(member_id)
        member = group.member(member_id)
        self._check_epoch(member)
        return member

    def _known_static(self, member_id: str, instance_id: str, *, is_joining: bool) -> M:
        group = self._of
        owner = group.static_member(instance_id)
        if is_joining and owner is None:
            return group.members.get(member_id) or self._member_records.new_member(member_id)
        if is_joining and owner is not None:
            has_left = owner.epoch == STATIC_LEAVE_EPOCH
            if not has_left and not self._may_take_over(owner):  # its own member may not join again, either
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} cannot join the group because the "
                    f"instance id is owned by {owner.member_id} member.",
                )
            if has_left or owner.member_id != member_id:
                return self._replace(owner, member_id)
        check_static(owner, member_id, instance_id)
        assert owner is not None
        self._check_epoch(owner)
        return owner

    def _replace(self, owner: M, member_id: str) -> M:
        """A static member has returned, usually with a new member id: it takes over what `owner` had."""
        group_id, write = self._of.group_id, self._member_records
        member = owner.back_as(member_id)
        target = self._target.get(owner.member_id, self._no_target)
        self.records += [
            *write.member_tombstones(group_id, owner.member_id),
            write.member_metadata(group_id, member),
            write.target_assignment(group_id, member_id, target),
            write.current_assignment(group_id, member),
        ]
        members = {key: value for key, value in self._members.items() if key != owner.member_id}
        targets = {key: value for key, value in self._target.items() if key != owner.member_id}
        self._members = {**members, member_id: member}
        self._target = {**targets, member_id: target}
        self._replaced = owner.member_id
        return member

    def _check_epoch(self, member: M) -> None:
        """KafkaError FENCED_MEMBER_EPOCH unless the request has the member's epoch.

        The previous epoch is accepted too, because the last response may have been lost, if the member has no more
        than it was given.
        """
        epoch = self._from.member_epoch
        if epoch in (JOIN_EPOCH, member.epoch):
            return
        if epoch < member.epoch and epoch == member.previous_epoch and self._owns_only_assigned(member):
            return
        relation = "greater" if epoch > member.epoch else "smaller"
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The {self._of.group_type} group member has a {relation} member epoch ({epoch}) than the one known by the "
            f"group coordinator ({member.epoch}). The member must abandon all its {self.assigned_things} and rejoin.",
        )
