"""Converts groups with members from the classic to the consumer protocol and back (rule G4; KIP-848).

Upgrade: the first member that joins with the consumer protocol converts the group. Its other members continue with
JoinGroup, SyncGroup and Heartbeat (`classic_members.py`); generation and assignment become epoch and target.
Downgrade: when the last member of the consumer protocol leaves, the group becomes a classic group, which then
rebalances. Both are one write: tombstones of the old group, then the records of the new one.
Source: Kafka 4.4 `ConsumerGroup.fromClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.coord.groups import records as group_records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.member import ClassicMember
from barnabas.coord.groups.classic.responses import join_error, sync_error
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.classic.subscription import CONSUMER
from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.embedded_protocol import (
    by_topic_id,
    read_assignment,
    read_subscription,
    write_assignment,
)
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.records.coordinator_records import ClassicMemberMetadata, ClassicProtocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from barnabas.coord.groups.classic.rebalance import Rebalance
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.consumer.timers import ConsumerTimers
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord
    from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


class Migration:
    """Converts the groups of one coordinator."""

    def __init__(
        self,
        groups: dict[str, Group],
        topics: Topics,
        config: GroupConfig,
        rebalance: Rebalance,
        timers: ConsumerTimers,
        forget: Callable[[str], None],
    ) -> None:
        """`rebalance` serves the groups that become classic ones; `forget` cancels all timers of a consumer group."""
        self._groups = groups
        self._topics = topics
        self._config = config
        self._rebalance = rebalance
        self._timers = timers
        self._forget = forget

    def upgraded(self, group: ClassicGroup, result: Result) -> ConsumerGroup:
        """Convert a classic group with members: the consumer group, whose records are added to `result`.

        KafkaError GROUP_ID_NOT_FOUND when it may not.
        """
        check_upgrade(group, self._config)
        consumer = upgraded(group, self._topics)
        result.records += [*group.tombstones(), *founding_records(consumer)]
        return consumer

    def finish_upgrade(self, group: ClassicGroup, consumer: ConsumerGroup, at: Moment, result: Result) -> None:
        """The upgrade is certain: members with parked requests to the classic group have to join again."""
        logger.info("[GroupId %s] Converted the classic group to a consumer group.", group.group_id)
        error = ErrorCode.REBALANCE_IN_PROGRESS
        for member in group.members.values():
            self._rebalance.answer_join(member, join_error(member.member_id, error), result)
            self._rebalance.answer_sync(member, sync_error(error), result)
        self._timers.start(consumer, at)

    def may_downgrade(self, group: ConsumerGroup, staying: Mapping[str, ConsumerMember]) -> bool:
        """Whether a group with these remaining members becomes a classic group."""
        return may_downgrade(group, staying, self._config)

    def downgrade(
        self,
        group: ConsumerGroup,
        staying: Mapping[str, ConsumerMember],
        target: Mapping[str, Partitions],
        at: Moment,
        result: Result,
        *,
        has_to_rebalance: bool,
    ) -> ClassicGroup:
        """Replace the group by a classic group of these members, immediately.

        It is Stable with the target assignments. If it `has_to_rebalance`, members keep their present assignments, and
        the record has no leader, so that the group rebalances after a restart, too.
        KafkaError GROUP_ID_NOT_FOUND when a member's metadata cannot be read.
        """
        group_id = group.group_id
        if has_to_rebalance:
            # Members keep their partitions until they join: the group may be upgraded again before that.
            target = {member_id: member.holds for member_id, member in staying.items()}
        try:
            classic = downgraded(group, staying, target, self._topics, at)
        except ProtocolError as error:
            logger.warning("Cannot downgrade the consumer group %s: %s", group_id, error)
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Cannot downgrade the group {group_id}: {error}.") from None
        logger.info("[GroupId %s] Converted the consumer group to a classic group.", group_id)
        assignments = {member.member_id: member.assignment for member in classic.members.values()}
        value = classic.to_record(assignments)
        if has_to_rebalance:
            value.leader = None
        result.records += [*group.tombstones(), group_records.group_metadata(group_id, value)]
        self._forget(group_id)
        self._groups[group_id] = classic
        for member in classic.members.values():
            self._rebalance.renew_session(classic, member, at)

        def undo(later: Moment) -> Result:
            self._rebalance.forget(classic)
            classic.become(GroupState.DEAD, later)
            self._groups[group_id] = group
            self._timers.start(group, later)
            return Result()

        result.on_failure(undo)
        if has_to_rebalance:
            self._rebalance.prepare(classic, at, result)
        return classic


# ---- classic to consumer


def check_upgrade(group: ClassicGroup, config: GroupConfig) -> None:
    """KafkaError GROUP_ID_NOT_FOUND unless this group, which has members, may become a consumer group."""
    if not config.consumer_migration_policy.allows_upgrade:
        raise _no_upgrade(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _no_upgrade(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > config.consumer_max_size:
        raise _no_upgrade(group, "the group size exceeds the consumer group maximum size")


def upgraded(group: ClassicGroup, topics: Topics) -> ConsumerGroup:
    """The consumer group with these members, epochs and assignments.

    A cooperative member still has to revoke the partitions that it owns and was not assigned again (KIP-429); no other
    member gets them before that. Kafka 4.4 considers them free. If the leader's assignment left partitions out, the
    group gets the hash of no topics, so that a new assignment is due. KafkaError GROUP_ID_NOT_FOUND when metadata of
    members cannot be read or would get lost.
    """
    consumer = ConsumerGroup(group.group_id)
    consumer.epoch = consumer.assignment_epoch = group.generation
    try:
        subscriptions = {
            member.member_id: read_subscription(member.metadata(group.protocol or member.protocols[0][0]))
            for member in group.members.values()
        }
        for member in group.members.values():
            consumer.target[member.member_id] = _assigned(member, group, topics)
    except ProtocolError:
        raise _no_upgrade(group, "the embedded consumer protocol is malformed") from None
    for member in group.members.values():
        consumer.put_member(
            _converted_member(member, group, consumer.target[member.member_id], subscriptions[member.member_id])
        )
    for member_id, subscription in subscriptions.items():
        _revoke_unassigned(consumer, consumer.members[member_id], by_topic_id(subscription.owned_partitions, topics))
    if _is_whole(consumer, topics):
        consumer.metadata_hash = group_hash(consumer.subscribed_topics(), topics)
    return consumer


def _assigned(member: ClassicMember, group: ClassicGroup, topics: Topics) -> Partitions:
    """The leader's assignment of a member."""
    assignment = read_assignment(member.assignment)
    if assignment.user_data:
        raise _no_upgrade(group, "userData from a custom assignor would be lost")
    return by_topic_id(assignment.assigned_partitions, topics)


def _converted_member(
    member: ClassicMember, group: ClassicGroup, assigned: Partitions, subscription: ConsumerProtocolSubscription
) -> ConsumerMember:
    return ConsumerMember(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        subscribed_topics=frozenset(subscription.topics),
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
        epoch=group.generation,
        previous_epoch=group.generation,
        assigned={topic: dict.fromkeys(indexes, group.generation) for topic, indexes in assigned.items()},
    )


def _is_whole(consumer: ConsumerGroup, topics: Topics) -> bool:
    """Whether each partition of the subscribed topics is in a target assignment."""
    existing = [topic for topic in map(topics.by_name, consumer.subscribed_topics()) if topic is not None]
    return all(
        sum(len(assigned.get(topic.topic_id, ())) for assigned in consumer.target.values()) >= topic.partitions
        for topic in existing
    )


def _revoke_unassigned(consumer: ConsumerGroup, member: ConsumerMember, owned: Partitions) -> None:
    """Make the member revoke what it owns and no member was assigned."""
    revoking = {}
    for topic_id, partitions in owned.items():
        unassigned = partitions.difference(consumer.owners.get(topic_id, ()))
        if unassigned:
            revoking[topic_id] = dict.fromkeys(unassigned, member.epoch)
    if revoking:
        consumer.put_member(member._replace(state=MemberState.UNREVOKED, revoking=revoking))


def classic_metadata(session_timeout_ms: int, protocols: Iterable[tuple[str, bytes]]) -> ClassicMemberMetadata:
    """The JoinGroup metadata of a classic member of a consumer group."""
    supported = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols]
    return ClassicMemberMetadata(session_timeout_ms=session_timeout_ms, supported_protocols=supported)


def founding_records(group: ConsumerGroup) -> list[CoordinatorRecord]:
    """All records of a new group, in Kafka's order."""
    group_id, members = group.group_id, group.members.values()
    return [
        *(records.member_metadata(group_id, member) for member in members),
        records.group_epoch(group_id, group.epoch, group.metadata_hash),
        *(records.target_assignment(group_id, member.member_id, group.target[member.member_id]) for member in members),
        records.target_epoch(group_id, group.assignment_epoch, group.assignment_timestamp_ms),
        *(records.current_assignment(group_id, member) for member in members),
    ]


def _no_upgrade(group: ClassicGroup, reason: str) -> KafkaError:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {reason}."
    logger.info(message)
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


# ---- consumer to classic


def may_downgrade(group: ConsumerGroup, staying: Mapping[str, ConsumerMember], config: GroupConfig) -> bool:
    """Whether a group with these remaining members becomes classic: all of them use the classic protocol."""
    if not staying or not all(member.speaks_classic for member in staying.values()):
        return False
    if not config.consumer_migration_policy.allows_downgrade:
        reason = "the online downgrade is disabled"
    elif len(staying) > config.max_size:
        reason = "its group size is greater than classic group max size"
    else:
        return True
    logger.info("Cannot downgrade consumer group %s to classic group because %s.", group.group_id, reason)
    return False


def downgraded(
    group: ConsumerGroup,
    staying: Mapping[str, ConsumerMember],
    target: Mapping[str, Partitions],
    topics: Topics,
    at: Moment,
) -> ClassicGroup:
    """The classic group of these members, Stable in the generation of the group's epoch.

    Raises ProtocolError when a member's metadata cannot be read.
    """
    classic = ClassicGroup(group.group_id)
    classic.state, classic.state_since_ms = GroupState.STABLE, at.now_ms
    classic.generation = group.epoch
    classic.protocol_type = CONSUMER
    for member in staying.values():
        classic.add(_classic_member(member), None)
    classic.protocol = classic.select_protocol()
    for classic_member in classic.members.values():
        partitions = target.get(classic_member.member_id, {})
        classic_member.assignment = write_assignment(partitions, topics, classic_member.metadata(classic.protocol))
    classic.read_subscriptions()
    return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None, "only members of the classic protocol make a classic group"
    return ClassicMember(
        member.member_id,
        member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in member.classic.supported_protocols],
    )
