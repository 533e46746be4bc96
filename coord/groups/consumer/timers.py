"""The timers of members of consumer groups (rules G3, G4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from barnabas.coord.groups.consumer.states import MemberState

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.consumer.member import ConsumerMember
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.machine import Moment
    from barnabas.coord.timers import Timers

MemberTimerKind = Literal["consumer-session", "consumer-rebalance", "consumer-join", "consumer-sync"]
TimerKind = Literal[MemberTimerKind, "consumer-regex", "consumer-regex-step"]

KINDS: tuple[MemberTimerKind, ...] = get_args(MemberTimerKind)


class ConsumerTimer(NamedTuple):
    """The key of a timer.

    Of a member: its session timeout, its time to revoke partitions, or, when it uses the classic protocol, its time to
    join or to sync. Of a group: the next refresh of its regular expressions. Of the coordinator: the next step of
    resolving expressions.
    """

    kind: TimerKind
    group_id: str = ""
    member_id: str = ""


class MemberTimers:
    """The timers of the members of all consumer groups of one coordinator."""

    def __init__(self, timers: Timers, group_configs: GroupConfigs) -> None:
        self._timers = timers
        self._settings = group_configs

    def renew_session(self, group_id: str, member: ConsumerMember, at: Moment) -> None:
        """Start the session timeout again; members of the classic protocol have one of their own."""
        if member.classic is None:
            timeout_ms = self._settings(group_id).consumer_session_timeout_ms
        else:
            timeout_ms = member.classic.session_timeout_ms
        self._timers.set(ConsumerTimer("consumer-session", group_id, member.member_id), at.now + timeout_ms / 1000)

    def time_revocation(self, group_id: str, before: ConsumerMember, member: ConsumerMember, at: Moment) -> None:
        """Give a member that has to revoke other partitions than `before` its rebalance timeout to do so."""
        key = ConsumerTimer("consumer-rebalance", group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED_PARTITIONS or member.speaks_classic:
            self._timers.cancel(key)
        elif member.revoking != before.revoking or self._timers.deadline(key) is None:
            self._timers.set(key, at.now + member.rebalance_timeout_ms / 1000)

    def end_revocation(self, group_id: str, member_id: str) -> None:
        """The member has no partitions to revoke any more."""
        self._timers.cancel(ConsumerTimer("consumer-rebalance", group_id, member_id))

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

    def start(self, group: ConsumerGroup, at: Moment) -> None:
        """Start the timers of all members."""
        for member in group.members.values():
            self.renew_session(group.group_id, member, at)
            self.time_revocation(group.group_id, member, member, at)

    def cancel(self, group_id: str, member_id: str) -> None:
        """Cancel the timers of a member."""
        for kind in KINDS:
            self._timers.cancel(ConsumerTimer(kind, group_id, member_id))

    def cancel_group(self, group: ConsumerGroup) -> None:
        """Cancel the timers of all members."""
        for member_id in group.members:
            self.cancel(group.group_id, member_id)
