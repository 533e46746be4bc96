"""The first part of a heartbeat: which member it comes from, and whether that one may go on (KIP-848, KIP-1071).

Nothing durable is changed here: a static member that is back adds its records, and what follows looks at the group as
it will be with these in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from barnabas.coord.groups.modern.members import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member, check_static
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.group import ModernGroup
    from barnabas.coord.machine import CoordinatorRecord

M = TypeVar("M", bound=Member)
T = TypeVar("T")


class Request(Protocol):
    """The part of a heartbeat that says who sends it."""

    member_epoch: int
    instance_id: str | None


class Joining(Generic[M, T]):
    """One heartbeat of a member that is in the group or joins it; each protocol goes on from here in its own way."""

    what_members_have: ClassVar[str]
    """Partitions or tasks, for the sentence to a member that is fenced."""

    def __init__(self, group: ModernGroup[M, T], request: Request) -> None:
        self._from = request
        self._of = group
        self.records: list[CoordinatorRecord] = []
        self._members: Mapping[str, M] = group.members
        self._target: Mapping[str, T] = group.target
        self._replaced: str | None = None

    # ---- what a protocol does in its own way

    def _new_member(self, member_id: str) -> M:
        """A member that the group does not know yet."""
        raise NotImplementedError

    def _has_no_more_than_given(self, member: M) -> bool:
        """Whether the request tells all that the member has, and that is no more than it was given."""
        raise NotImplementedError

    def _may_take_over(self, owner: M) -> bool:  # noqa: ARG002 - a protocol looks at it
        """Whether a joining member may have the instance id of one that has not left."""
        return False

    def _take_over(self, owner: M, member_id: str) -> tuple[M, T]:
        """Add the records by which a member takes the place of `owner`: the member, and what it shall have."""
        raise NotImplementedError

    # ---- who

    def _known(self, member_id: str) -> M:
        """The member as the group knows it, or a new one; KafkaError for one that is sent away."""
        request, group = self._from, self._of
        is_joining = request.member_epoch == JOIN_EPOCH
        if request.instance_id is not None:
            return self._known_static(member_id, request.instance_id, is_joining=is_joining)
        if is_joining and member_id not in group.members:
            return self._new_member(member_id)
        member = group.member(member_id)
        self._check_epoch(member)
        return member

    def _known_static(self, member_id: str, instance_id: str, *, is_joining: bool) -> M:
        group = self._of
        owner = group.static_member(instance_id)
        if is_joining and owner is None:
            return group.members.get(member_id) or self._new_member(member_id)
        if is_joining and owner is not None and (owner.member_id != member_id or owner.epoch == STATIC_LEAVE_EPOCH):
            if owner.epoch != STATIC_LEAVE_EPOCH and not self._may_take_over(owner):
                raise KafkaError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f"Static member {member_id} with instance id {instance_id} cannot join, because the instance id is "
                    f"owned by member {owner.member_id}.",
                )
            return self._replace(owner, member_id)
        check_static(owner, member_id, instance_id)
        assert owner is not None
        self._check_epoch(owner)
        return owner

    def _replace(self, owner: M, member_id: str) -> M:
        """A static member is back, as a rule under a new member id: it takes over what waits for it."""
        member, target = self._take_over(owner, member_id)
        members = {key: value for key, value in self._members.items() if key != owner.member_id}
        targets = {key: value for key, value in self._target.items() if key != owner.member_id}
        self._members = {**members, member_id: member}
        self._target = {**targets, member_id: target}
        self._replaced = owner.member_id
        return member

    def _check_epoch(self, member: M) -> None:
        """The member's epoch; or the one before, when our answer was lost: then it has no more than it was given."""
        epoch = self._from.member_epoch
        if epoch in (JOIN_EPOCH, member.epoch):
            return
        if epoch < member.epoch and epoch == member.previous_epoch and self._has_no_more_than_given(member):
            return
        relation = "greater" if epoch > member.epoch else "smaller"
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The {self._of.group_type} group member has a {relation} member epoch ({epoch}) than the one known by the "
            f"group coordinator ({member.epoch}). The member must abandon all its {self.what_members_have} and rejoin.",
        )
