"""Limits of the memory that clients may take in a group coordinator: groups, and the bytes of members and of groups.

They are checked when a request adds something, never in replay: records in the log are always loaded. Kafka has limits
of the number of members only (`group.max.size` and similar keys).

The bytes of a group are summed up only when they may have reached the limit, since the sum of all members takes long.
Until then `_at_most` has the last sum and everything that was admitted after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.wire.codec.fields import StructBase
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.group import Group


def held_bytes(value: Any) -> int:
    """About how many bytes a value of a request or of a member takes: its texts and its bytes."""
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, StructBase):
        return sum([held_bytes(getattr(value, field.name)) for field in value.declared])
    if isinstance(value, Mapping):
        return sum([held_bytes(key) + held_bytes(item) for key, item in value.items()])
    if isinstance(value, Iterable):
        return sum([held_bytes(item) for item in value])
    return 0


class GroupLimits:
    """The limits for the groups of one coordinator."""

    def __init__(self, groups: dict[str, Group], config: GroupConfig, group_count: Callable[[], int]) -> None:
        """`group_count` is the number of groups of all coordinators of the broker."""
        self._groups = groups
        self._config = config
        self._group_count = group_count
        self._at_most: dict[str, int] = {}

    def check_new_group(self, error: ErrorCode) -> None:
        """KafkaError with `error` if there may be no further group."""
        most = self._config.max_groups
        if self._group_count() >= most:
            raise KafkaError(error, f"There are {most} groups already, no more are allowed (barnabas.groups.max).")

    def admit(self, group_id: str, member_id: str, data: Iterable[Any]) -> None:
        """Check a request of a member before it is handled; `data` are the fields of it that the group would hold.

        KafkaError GROUP_MAX_SIZE_REACHED for a group or a member too many, or if the group would hold too much, and
        INVALID_REQUEST if the data alone are too large. Clients do not try again after either.
        """
        group: Any = self._groups.get(group_id)
        if group is None:
            self.check_new_group(ErrorCode.GROUP_MAX_SIZE_REACHED)
        else:
            self._check_new_member(group, member_id)
        size = held_bytes(data)
        if not size:
            return
        most = self._config.member_max_bytes
        if size > most:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"The data of the member have {size} bytes, {most} are allowed (barnabas.group.member.max.bytes).",
            )
        self._admit_to_group(group_id, member_id, size)

    def _check_new_member(self, group: Any, member_id: str) -> None:
        most = self._config.max_members
        if len(group.members) >= most and member_id not in group.members:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The group has {most} members already, no more are allowed (barnabas.group.members.max).",
            )

    def admit_assignments(self, group_id: str, assignments: Iterable[bytes]) -> None:
        """Check the assignments that the leader of a classic group brings; KafkaError as of `admit`."""
        total = 0
        most = self._config.member_max_bytes
        for assignment in assignments:
            if len(assignment) > most:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"An assignment has {len(assignment)} bytes, {most} are allowed (barnabas.group.member.max.bytes).",
                )
            total += len(assignment)
        if total:
            self._admit_to_group(group_id, "", total)

    def _admit_to_group(self, group_id: str, member_id: str, size: int) -> None:
        most = self._config.group_max_bytes
        at_most = self._at_most.get(group_id)
        if at_most is None or at_most + size > most:
            at_most = self._bytes_of(group_id, member_id)
        if at_most + size > most:
            raise KafkaError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f"The group {group_id!r} holds {at_most} bytes; with {size} more it would have more than the {most} "
                "that are allowed (barnabas.group.max.bytes).",
            )
        if len(self._at_most) > 2 * len(self._groups) + 100:
            self._at_most = {key: value for key, value in self._at_most.items() if key in self._groups}
        self._at_most[group_id] = at_most + size

    def _bytes_of(self, group_id: str, member_id: str) -> int:
        """The bytes of a group without one member, whose data are replaced."""
        group: Any = self._groups.get(group_id)
        if group is None:
            return 0
        members: Mapping[str, Any] = group.members
        held: int = sum([member.held_bytes for key, member in members.items() if key != member_id])
        return held + held_bytes(getattr(group, "topology", None))
