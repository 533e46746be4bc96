"""Applies the records that consumer and streams groups have in common (KIP-848, KIP-1071).

Compaction leaves the last record of each key, so a record of any type may come first, also of a member. Source: Kafka
4.4 `GroupMetadataManager.replay`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.coord.groups.modern.group import ModernGroup

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.records import GroupRecords

G = TypeVar("G", bound=ModernGroup[Any, Any])


class Replay(Generic[G]):
    """Applies the records of one group type; the only place where the durable state of its groups changes."""

    def __init__(
        self,
        records: GroupRecords[Any, Any],
        *,
        put: Mapping[int, Callable[[G, str, Any], None]],
        remove: Mapping[int, Callable[[G, str], None]],
    ) -> None:
        """`put` and `remove` apply values and tombstones of the types that only one protocol has, or has otherwise."""
        self._records = records
        self._put: dict[int, Callable[[G, str, Any], None]] = {
            records.MEMBER_METADATA: self._put_member,
            records.TARGET_ASSIGNMENT_METADATA: self._put_target_epoch,
            records.TARGET_ASSIGNMENT_MEMBER: self._put_target,
            records.CURRENT_ASSIGNMENT: self._put_assignment,
            **put,
        }
        self._remove: dict[int, Callable[[G, str], None]] = {
            records.GROUP_METADATA: self._remove_group,
            records.MEMBER_METADATA: self._remove_member,
            records.TARGET_ASSIGNMENT_MEMBER: self._remove_target,
            records.CURRENT_ASSIGNMENT: self._remove_assignment,
            **remove,
        }

    def put(self, group: G, record_type: int, about: str, value: Any) -> None:
        """Apply a record with a value; `about` is the member or regular expression that its key names."""
        self._put[record_type](group, about, value)

    def remove(self, group: G, record_type: int, about: str) -> None:
        """Apply a tombstone."""
        self._remove[record_type](group, about)

    def _put_member(self, group: G, member_id: str, value: Any) -> None:
        known = group.members.get(member_id) or self._records.new_member(member_id)
        group.put_member(self._records.with_metadata(known, value))

    def _put_assignment(self, group: G, member_id: str, value: Any) -> None:
        known = group.members.get(member_id) or self._records.new_member(member_id)
        group.put_member(self._records.with_assignment(known, value))

    def _put_target(self, group: G, member_id: str, value: Any) -> None:
        group.target[member_id] = self._records.read_target(value)

    @staticmethod
    def _put_target_epoch(group: G, _: str, value: Any) -> None:
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp

    @staticmethod
    def _remove_group(group: G, _: str) -> None:
        group.is_dead = True

    @staticmethod
    def _remove_member(group: G, member_id: str) -> None:
        group.remove_member(member_id)

    @staticmethod
    def _remove_target(group: G, member_id: str) -> None:
        group.target.pop(member_id, None)

    def _remove_assignment(self, group: G, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is not None:
            group.put_member(self._records.without_assignment(member))
