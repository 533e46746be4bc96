"""Writes a new target assignment of a consumer or streams group (KIP-848, KIP-1071)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.coord.machine import CoordinatorRecord, Moment

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


class TargetRecords(Protocol[T_contra]):
    """Makes the records of target assignments: the module `records` of a group type."""

    def target_assignment(self, group_id: str, member_id: str, target: T_contra, /) -> CoordinatorRecord:
        """The target assignment of a member."""

    def target_epoch(self, group_id: str, epoch: int, timestamp_ms: int, /) -> CoordinatorRecord:
        """All target assignments of this epoch are written."""


def target_records(
    write: TargetRecords[T], group_id: str, before: Mapping[str, T], after: Mapping[str, T], epoch: int, at: Moment
) -> list[CoordinatorRecord]:
    """The records that replace the target assignments `before` by `after`, in `epoch`."""
    changed = [
        write.target_assignment(group_id, member_id, target)
        for member_id, target in after.items()
        if before.get(member_id) != target
    ]
    return [*changed, write.target_epoch(group_id, epoch, at.now_ms)]
