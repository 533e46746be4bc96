"""What happens to the members of consumer groups, whichever protocol they use (rules G3, G4; KIP-848).

A member takes a step towards its target assignment with each ConsumerGroupHeartbeat or, using the classic protocol,
with each JoinGroup. A member is removed when it leaves, when its session expires, and when it has not revoked
partitions, joined or synced within its rebalance timeout.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.heartbeat import Heartbeat, Outcome
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.machine import Moment, Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.consumer.member import ConsumerMember
    from barnabas.coord.groups.consumer.migration import Migration
    from barnabas.coord.groups.consumer.regex_resolution import RegexResolver
    from barnabas.coord.groups.consumer.timers import ConsumerTimer, ConsumerTimers
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.modern.pace import HeartbeatPace
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.topics import Topics
    from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest
    from barnabas.wire.messages.records.coordinator_records import ClassicMemberMetadata

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

_MISSED = {"consumer-rebalance": "revoke its partitions", "consumer-join": "join again", "consumer-sync": "sync"}
"""By timer: what the member has not done in time."""


class Membership:
    """Members of all consumer groups of one coordinator."""

    def __init__(
        self,
        topics: Topics,
        config: GroupConfig,
        group_configs: GroupConfigs,
        timers: ConsumerTimers,
        resolver: RegexResolver,
        migration: Migration,
        pace: HeartbeatPace,
    ) -> None:
        self._topics = topics
        self._config = config
        self._settings = group_configs
        self._timers = timers
        self._resolver = resolver
        self._migration = migration
        self._pace = pace

    def advance(
        self,
        group: ConsumerGroup,
        request: ConsumerGroupHeartbeatRequest,
        member_id: str,
        classic: ClassicMemberMetadata | None,
        context: ClientContext,
        at: Moment,
        result: Result,
    ) -> Outcome:
        """Update a member by its request and let it take a step towards its target; `member_id` may be a new one.

        KafkaError when the request is refused.
        """
        settings = self._settings(group.group_id)
        default_assignor = self._config.consumer_assignors[0]
        heartbeat = Heartbeat(group, request, self._topics, settings, default_assignor, at, classic)
        outcome = heartbeat.run(member_id, context)
        result.records += outcome.records
        if outcome.has_fresh_metadata:
            group.is_metadata_stale = False
        self._resolver.seen(group, context.may_describe, at)
        if outcome.needs_resolving:
            self._resolver.request(group.group_id, at)
        self._timers.renew_session(group.group_id, outcome.member, at)
        self._timers.time_revocation(group.group_id, outcome.before, outcome.member, at)
        if outcome.epoch != group.epoch:
            self._pace.moved(group.group_id, at)
        return outcome

    def check_room(self, group: ConsumerGroup, instance_id: str | None, member_id: str) -> None:
        """KafkaError GROUP_MAX_SIZE_REACHED when a member would be one too many."""
        group.check_room(instance_id, member_id, self._config.consumer_max_size)

    def remove(self, group: ConsumerGroup, leaving: Sequence[ConsumerMember], at: Moment, result: Result) -> None:
        """Remove members: their partitions are free, and the group gets a new epoch or becomes a classic group."""
        group_id = group.group_id
        leaving_ids = {member.member_id for member in leaving}
        remaining = {member_id: member for member_id, member in group.members.items() if member_id not in leaving_ids}
        if self._migration.may_downgrade(group, remaining):
            self._migration.downgrade(group, remaining, group.target, at, result, has_to_rebalance=True)
            return
        for member in leaving:
            result.records += records.member_tombstones(group_id, member.member_id)
            self._timers.cancel(group_id, member.member_id)
        expressions = {member.subscribed_regex for member in remaining.values()}
        regexes = {regex: resolved for regex, resolved in group.regexes.items() if regex in expressions}
        result.records += [
            records.regex_tombstone(group_id, regex) for regex in group.regexes if regex not in expressions
        ]
        names: set[str] = set().union(*(other.subscribed_topics for other in remaining.values()))
        names.update(*(resolved.topics for resolved in regexes.values()))
        metadata_hash = group_hash(names, self._topics)
        result.records.append(records.group_epoch(group_id, group.epoch + 1, metadata_hash))
        if not remaining:  # the next member need not wait for the assignment interval
            result.records.append(records.target_epoch(group_id, group.epoch + 1, 0))

        def undo(later: Moment) -> Result:
            for member in leaving:
                self._timers.renew_session(group_id, member, later)
            return Result()

        result.on_failure(undo)

    def due(self, key: ConsumerTimer, group: ConsumerGroup, at: Moment, result: Result) -> None:
        """A timer of a member has expired: remove the member."""
        member = group.members.get(key.member_id)
        if member is None:
            return
        if key.kind == "consumer-session":
            self._fence(group, member, "its session expired", at, result)
        elif key.kind != "consumer-rebalance" or member.state is MemberState.UNREVOKED:
            reason = f"it did not {_MISSED[key.kind]} within {member.rebalance_timeout_ms} ms"
            self._fence(group, member, reason, at, result)

    def _fence(self, group: ConsumerGroup, member: ConsumerMember, reason: str, at: Moment, result: Result) -> None:
        logger.info("[GroupId %s] Member %s fenced from the group because %s", group.group_id, member.member_id, reason)
        self.remove(group, [member], at, result)
        self._pace.moved(group.group_id, at)
