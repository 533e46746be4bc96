"""When members send their next heartbeat: sooner while their group is moving (KIP-848, KIP-1071)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.coord.machine import Moment

MOVING_INTERVAL_MS = 500
"""Heartbeat interval in a moving group of up to 100 members."""
MOVING_INTERVAL_PER_MEMBER_MS = 5
"""In a larger one, for each member."""


class HeartbeatPace:
    """Heartbeat intervals of all groups of one type."""

    def __init__(self) -> None:
        self._moved_at: dict[str, float] = {}
        """When a group's epoch or target assignment last changed, monotonic seconds."""

    def moved(self, group_id: str, at: Moment) -> None:
        """The group's epoch or target assignment has changed."""
        self._moved_at[group_id] = at.now

    def forget(self, group_id: str) -> None:
        """The group is removed."""
        self._moved_at.pop(group_id, None)

    def interval_ms(self, group_id: str, members: int, usual_ms: int, at: Moment, *, is_moving: bool) -> int:
        """Time until the next heartbeat of a member of a group of so many members; `usual_ms` is the configured one."""
        moved_at = self._moved_at.get(group_id)
        if not is_moving and (moved_at is None or at.now - moved_at > usual_ms / 1000):
            return usual_ms
        return min(usual_ms, max(MOVING_INTERVAL_MS, MOVING_INTERVAL_PER_MEMBER_MS * members))
