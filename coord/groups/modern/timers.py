"""The timers of the members of consumer and streams groups (KIP-848, KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.coord.groups.modern.members import Member

if TYPE_CHECKING:
    from barnabas.coord.groups.modern.group import ModernGroup
    from barnabas.coord.machine import Moment
    from barnabas.coord.timers import Timers

M = TypeVar("M", bound=Member)


class MemberTimers(Generic[M]):
    """The timers of the members of all groups of one type: their sessions, and their time to revoke."""

    def __init__(
        self,
        timers: Timers,
        session_key: Callable[[str, str], Hashable],
        rebalance_key: Callable[[str, str], Hashable],
        session_timeout_ms: Callable[[str, M], int],
    ) -> None:
        """The keys and the session timeout are given for a group id and a member (id)."""
        self._timers = timers
        self._session_key = session_key
        self._rebalance_key = rebalance_key
        self._session_timeout_ms = session_timeout_ms

    def renew_session(self, group_id: str, member: M, at: Moment) -> None:
        """Start the session timeout again."""
        timeout_ms = self._session_timeout_ms(group_id, member)
        self._timers.set(self._session_key(group_id, member.member_id), at.now + timeout_ms / 1000)

    def time_revocation(self, group_id: str, before: M, member: M, at: Moment) -> None:
        """Give a member that has more or others to revoke than `before` its rebalance timeout to do so."""
        key = self._rebalance_key(group_id, member.member_id)
        if not member.has_to_revoke:
            self._timers.cancel(key)
        elif member.revoking != before.revoking or self._timers.deadline(key) is None:
            self._timers.set(key, at.now + member.rebalance_timeout_ms / 1000)

    def end_revocation(self, group_id: str, member_id: str) -> None:
        """The member has nothing to revoke any more."""
        self._timers.cancel(self._rebalance_key(group_id, member_id))

    def start(self, group: ModernGroup[M, Any], at: Moment) -> None:
        """Start the timers of all members."""
        for member in group.members.values():
            self.renew_session(group.group_id, member, at)
            self.time_revocation(group.group_id, member, member, at)

    def cancel(self, group_id: str, member_id: str) -> None:
        """Cancel the timers of a member."""
        self._timers.cancel(self._session_key(group_id, member_id))
        self._timers.cancel(self._rebalance_key(group_id, member_id))

    def cancel_group(self, group: ModernGroup[M, Any]) -> None:
        """Cancel the timers of all members."""
        for member_id in group.members:
            self.cancel(group.group_id, member_id)
