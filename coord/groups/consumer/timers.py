"""The timers of consumer groups (rules G3, G4)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.modern.timers import MemberTimers

if TYPE_CHECKING:
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.machine import Moment
    from barnabas.coord.timers import Timers

TimerKind = Literal[
    "consumer-session", "consumer-rebalance", "consumer-join", "consumer-sync", "consumer-regex", "consumer-regex-step"
]


class ConsumerTimer(NamedTuple):
    """The key of a timer.

    Of a member: its session timeout, its time to revoke partitions, or, when it uses the classic protocol, its time to
    join or to sync. Of a group: the next refresh of its regular expressions. Of the coordinator: the next step of
    resolving expressions.
    """

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


class ConsumerTimers(MemberTimers[ConsumerMember]):
    """The timers of the members of all consumer groups of one coordinator."""

    def __init__(self, timers: Timers, group_configs: GroupConfigs) -> None:
        super().__init__(
            timers,
            partial(ConsumerTimer, "consumer-session"),
            partial(ConsumerTimer, "consumer-rebalance"),
            partial(_session_timeout_ms, group_configs),
        )

    def time_join(self, group_id: str, member: ConsumerMember, at: Moment) -> None:
        """Give a classic member its rebalance timeout to join, from the first request for it on."""
        key = ConsumerTimer("consumer-join", group_id, member.member_id)
        self._timers.set_if_unset(key, at.now + member.rebalance_timeout_ms / 1000)

    def joined(self, group_id: str, member: ConsumerMember, at: Moment) -> None:
        """A classic member has joined: give it its rebalance timeout to sync."""
        self._timers.cancel(ConsumerTimer("consumer-join", group_id, member.member_id))
        key = ConsumerTimer("consumer-sync", group_id, member.member_id)
        self._timers.set(key, at.now + member.rebalance_timeout_ms / 1000)

    def synced(self, group_id: str, member_id: str) -> None:
        """A classic member has synced."""
        self._timers.cancel(ConsumerTimer("consumer-sync", group_id, member_id))

    def cancel(self, group_id: str, member_id: str) -> None:
        """Cancel the timers of a member."""
        super().cancel(group_id, member_id)
        self._timers.cancel(ConsumerTimer("consumer-join", group_id, member_id))
        self._timers.cancel(ConsumerTimer("consumer-sync", group_id, member_id))


def _session_timeout_ms(group_configs: GroupConfigs, group_id: str, member: ConsumerMember) -> int:
    """A member of the classic protocol has chosen its session timeout itself."""
    if member.classic is not None:
        return member.classic.session_timeout_ms
    return group_configs(group_id).consumer_session_timeout_ms
