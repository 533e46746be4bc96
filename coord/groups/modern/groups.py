"""What the consumer and the streams protocol's sides of a coordinator have in common (KIP-848, KIP-1071)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.modern.group import ModernGroup
from barnabas.coord.groups.modern.members import JOIN_EPOCH, check_static
from barnabas.coord.groups.modern.pace import HeartbeatPace
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.group import Group
    from barnabas.coord.machine import Result

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

G = TypeVar("G", bound=ModernGroup[Any, Any])


class Request(Protocol):
    """The part of a heartbeat that says who sends it."""

    group_id: str
    member_id: str
    instance_id: str | None
    member_epoch: int


class ModernGroups(Generic[G]):
    """All groups of one type, among the coordinator's of every type."""

    def __init__(self, groups: dict[str, Group], group_class: type[G]) -> None:
        self._groups = groups
        self._class = group_class
        self._pace = HeartbeatPace()

    def _mine(self) -> list[G]:
        return [mine for group in self._groups.values() if (mine := self._as_mine(group)) is not None]

    def _as_mine(self, group: Group | None) -> G | None:
        is_mine = group is not None and group.group_type == self._class.group_type
        return cast("G", group) if is_mine else None

    def _existing(self, group_id: str) -> G:
        """The group; KafkaError GROUP_ID_NOT_FOUND, also for groups of other types."""
        group = self._groups.get(group_id)
        mine = self._as_mine(group)
        if mine is not None:
            return mine
        kind = self._class.group_type
        reason = "not found" if group is None else f"is not a {kind} group"
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")

    def _joined_group(self, request: Request, result: Result) -> G:
        """The group, an empty one that a first member is about to begin, or what another type's is about to become."""
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
            logger.info("[GroupId %s] The empty classic group becomes a %s group", group_id, kind)
            result.records += group.tombstones()
            return self._class(group_id)
        return self._converted(group, result)

    def _converted(self, group: Group, result: Result) -> G:  # noqa: ARG002 - a type that can convert writes to it
        """What a group of another type with members becomes; KafkaError GROUP_ID_NOT_FOUND when it stays what it is."""
        kind = self._class.group_type
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a {kind} group.")

    @staticmethod
    def _leaving(group: ModernGroup[Any, Any], request: Request) -> Any:
        """The member that says goodbye; KafkaError for one that is not there, or not the owner of its instance id."""
        if request.instance_id is None:
            return group.member(request.member_id)
        owner = group.static_member(request.instance_id)
        check_static(owner, request.member_id, request.instance_id)
        return owner


def is_simple(group: Group) -> bool:
    """Whether it is one that only has committed offsets, or an empty one that the log has left behind."""
    return isinstance(group, ClassicGroup) and group.is_empty and group.protocol_type is None
