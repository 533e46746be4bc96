"""The common part of consumer and streams groups: epochs, members, and checks of offset requests (KIP-848, KIP-1071).

Its state follows from its records; only replay changes it. Invariants: `epoch >= assignment_epoch`;
`static_members` maps each instance id to the one member id that owns it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from barnabas.coord.groups.modern.members import Member
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest

M = TypeVar("M", bound=Member)
T = TypeVar("T")

FIRST_EPOCH = 1
"""The epoch of a group before its first member, which makes it 2, as in Kafka 4.4; 0 is the epoch of joining."""
MEMBER_EPOCH_SINCE = 9
"""OffsetCommit versions from here on have a member epoch."""
STALE_EPOCH_IN_TRANSACTION_SINCE = 6
"""TxnOffsetCommit versions from here on know STALE_MEMBER_EPOCH."""
NO_EPOCH = -1


class ModernGroup(Generic[M, T]):
    """A group for which the coordinator makes the assignment; `M` is a member, `T` a target assignment."""

    group_type: ClassVar[str]

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        """Hash of the topics that the group subscribes to, as of `epoch`."""
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        """When the target assignment was computed; 0: the next one is not delayed."""
        self.members: dict[str, M] = {}
        self.static_members: dict[str, str] = {}
        self.target: dict[str, T] = {}
        """The target assignment of each member, as of `assignment_epoch`."""
        self.is_dead = False

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members

    def member(self, member_id: str) -> M:
        """The member of this id. KafkaError UNKNOWN_MEMBER_ID."""
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}."
            )
        return member

    def static_member(self, instance_id: str) -> M | None:
        """The member that owns this instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_room(self, instance_id: str | None, member_id: str, max_size: int) -> None:
        """KafkaError GROUP_MAX_SIZE_REACHED when a member would be one too many."""
        if instance_id in self.static_members or member_id in self.members:
            return
        if len(self.members) >= max_size:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The {self.group_type} group has reached its maximum capacity of {max_size} members.",
            )

    # ---- the interface of every group type, see `coord.groups.group`

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:
        """KafkaError unless a member commits in its epoch, or in one since which it has the partitions (KIP-1251)."""
        epoch = request.generation_id_or_member_epoch
        if epoch < 0 and (not self.members or (is_transactional and _has_no_member(request, epoch))):
            return
        member = self.member(request.member_id)
        if not is_transactional and not member.speaks_classic and api_version < MEMBER_EPOCH_SINCE:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Members of the {self.group_type} protocol commit with OffsetCommit {MEMBER_EPOCH_SINCE} or later.",
            )
        if epoch == member.epoch:
            return
        knows = not is_transactional or api_version >= STALE_EPOCH_IN_TRANSACTION_SINCE
        error = _stale(member, knows=knows)
        if epoch > member.epoch:
            raise KafkaError(error, f"Member epoch {epoch} is ahead of the member's, {member.epoch}.")
        self._validate_earlier_epoch(request, member, error)

    def _validate_earlier_epoch(self, request: OffsetCommitRequest, member: M, error: ErrorCode) -> None:
        """KafkaError with `error` when a partition was assigned to the member after the epoch of the commit."""
        raise NotImplementedError

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError unless a member fetches in its epoch, or the request has no member."""
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.epoch:
            error = _stale(member, knows=True)
            raise KafkaError(error, f"Member epoch {member_epoch} is not the member's, {member.epoch}.")

    def validate_offset_delete(self) -> None:
        """Always allowed, since subscriptions are known by topic."""

    def validate_delete(self) -> None:
        """KafkaError unless the group is empty."""
        if self.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    # ---- replay

    def put_member(self, member: M) -> None:
        """Apply the metadata or the assignment of a member."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._forget(before)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self._count(member)

    def remove_member(self, member_id: str) -> None:
        """Apply the tombstone of a member."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)
        self.target.pop(member_id, None)

    def _forget(self, member: M) -> None:
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        self._discount(member)

    def _count(self, member: M) -> None:
        """Add a member to the indexes of the group."""
        raise NotImplementedError

    def _discount(self, member: M) -> None:
        """Remove a member from the indexes of the group."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.group_id!r} epoch {self.epoch} {len(self.members)} members>"


def _has_no_member(request: OffsetCommitRequest, epoch: int) -> bool:
    return epoch == NO_EPOCH and not request.member_id and request.group_instance_id is None


def _stale(member: Member, *, knows: bool) -> ErrorCode:
    """The error for an epoch that is not the member's; `knows`: the request's version has STALE_MEMBER_EPOCH."""
    return ErrorCode.STALE_MEMBER_EPOCH if knows and not member.speaks_classic else ErrorCode.ILLEGAL_GENERATION
