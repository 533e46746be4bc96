"""The groups of one type, consumer or streams, of a coordinator (KIP-848, KIP-1071)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.modern.group import ModernGroup
from barnabas.coord.groups.modern.members import JOIN_EPOCH, STATIC_LEAVE_EPOCH, Member, check_static
from barnabas.coord.groups.modern.pace import HeartbeatPace
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.modern.records import RecordTypes
    from barnabas.coord.groups.modern.replay import Replay
    from barnabas.coord.groups.modern.timers import MemberTimers
    from barnabas.coord.machine import CoordinatorRecord, Ticket
    from barnabas.wire.schema import Struct

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

G = TypeVar("G", bound=ModernGroup[Any, Any])
M = TypeVar("M", bound=Member)


class Request(Protocol):
    """The fields of a heartbeat that identify its sender."""

    group_id: str
    member_id: str
    instance_id: str | None
    member_epoch: int


class Refusal(Protocol):
    """Makes the response to a heartbeat that failed."""

    def __call__(self, error: ErrorCode, message: str | None = None, /) -> Struct:
        """The response with this error."""


class ModernGroups(Generic[G, M]):
    """All groups of one type (`G`, with members `M`), among the coordinator's of every type."""

    def __init__(
        self,
        groups: dict[str, Group],
        group_class: type[G],
        record_types: RecordTypes,
        replay: Replay[G],
        timers: MemberTimers[M],
    ) -> None:
        self._groups = groups
        self._class = group_class
        self._record_types = record_types
        self._replay = replay
        self._timers = timers
        self._pace = HeartbeatPace()

    # ---- what each type implements

    def _new_group(self, group_id: str) -> G:
        """A group of which no record has been replayed yet."""
        return self._class(group_id)

    def _converted(self, group: Group, result: Result) -> G:  # noqa: ARG002 - a type that can convert writes to it
        """The group that one of another type with members becomes. KafkaError GROUP_ID_NOT_FOUND when it may not."""
        kind = self._class.group_type
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a {kind} group.")

    def _assignment_record(self, group_id: str, member: M) -> CoordinatorRecord:
        """The record of a member's assignment."""
        raise NotImplementedError

    def _remove_member(self, group: G, member: M, at: Moment, result: Result) -> None:
        """Remove a member that leaves."""
        raise NotImplementedError

    def forget(self, group_id: str) -> None:
        """Cancel every timer of a group that is removed."""
        raise NotImplementedError

    # ---- groups

    def _mine(self) -> list[G]:
        return [mine for group in self._groups.values() if (mine := self._as_mine(group)) is not None]

    def _find(self, group_id: str) -> G | None:
        """The group of this id, if it is of this type."""
        return self._as_mine(self._groups.get(group_id))

    def _as_mine(self, group: Group | None) -> G | None:
        is_mine = group is not None and group.group_type == self._class.group_type
        return cast("G", group) if is_mine else None

    def _existing(self, group_id: str) -> G:
        """The group. KafkaError GROUP_ID_NOT_FOUND, also for groups of other types."""
        group = self._groups.get(group_id)
        mine = self._as_mine(group)
        if mine is not None:
            return mine
        kind = self._class.group_type
        reason = "not found" if group is None else f"is not a {kind} group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")

    # ---- heartbeats

    @staticmethod
    def _result_of(ticket: Ticket, handle: Callable[[Result], Struct], refuse: Refusal) -> Result:
        """The result of a heartbeat that `handle` answers; if it is refused, nothing but the error response."""
        result = Result()
        try:
            response = handle(result)
        except KafkaError as refused:
            result = Result()
            response = refuse(refused.code, refused.message)
        result.reply(ticket, response, refuse)
        return result

    def _joined_group(self, request: Request, result: Result) -> G:
        """The group of a heartbeat; a joining member's is created, or converted from an empty one of another type."""
        group_id, kind = request.group_id, self._class.group_type
        group = self._groups.get(group_id)
        mine = self._as_mine(group)
        if mine is not None:
            return mine
        if request.member_epoch != JOIN_EPOCH:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"{kind.capitalize()} group {group_id} not found.")
        if group is None:
            return self._class(group_id)
        if isinstance(group, ClassicGroup) and group.is_empty:
            logger.info("[GroupId %s] Converted the empty classic group to a %s group.", group_id, kind)
            result.records += group.tombstones()
            return self._class(group_id)
        return self._converted(group, result)

    def _leave(self, request: Request, at: Moment, result: Result) -> None:
        """A member leaves for good or, a static one, temporarily. KafkaError if it is not in the group."""
        group = self._existing(request.group_id)
        group_id, kind, member_id = group.group_id, group.group_type, request.member_id
        member = self._leaving(group, request)
        if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
            logger.info(
                "[GroupId %s][MemberId %s] Static member with instance id %s temporarily left the %s group.",
                group_id,
                member_id,
                request.instance_id,
                kind,
            )
            result.records.append(self._assignment_record(group_id, member.away()))
            self._timers.end_revocation(group_id, member_id)
        else:
            logger.info("[GroupId %s][MemberId %s] Member left the %s group.", group_id, member_id, kind)
            self._remove_member(group, member, at, result)

    @staticmethod
    def _leaving(group: G, request: Request) -> M:
        if request.instance_id is None:
            return cast("M", group.member(request.member_id))
        owner = group.static_member(request.instance_id)
        check_static(owner, request.member_id, request.instance_id)
        return cast("M", owner)

    # ---- replay

    def replay(self, record_type: int, key: bytes, value: bytes | None, at: Moment) -> None:  # noqa: ARG002 - as every group type
        """Apply a record of a group of this type. Any may be the first of its group in a log that was compacted."""
        if record_type not in self._record_types:
            return
        group_id, about = self._record_types.read_key(record_type, key)
        group = self._find(group_id)
        if group is None:
            other = self._groups.get(group_id)
            if value is None or (other is not None and not is_simple(other)):
                return
            group = self._new_group(group_id)
            self._groups[group_id] = cast("Group", group)
        if value is not None:
            self._replay.put(group, record_type, about, self._record_types.read_value(record_type, value))
            return
        self._replay.remove(group, record_type, about)
        if group.is_dead:
            self.forget(group_id)
            del self._groups[group_id]


def is_simple(group: Group) -> bool:
    """Whether it has only committed offsets, or is an empty group of an old log."""
    return isinstance(group, ClassicGroup) and group.is_empty and group.protocol_type is None
