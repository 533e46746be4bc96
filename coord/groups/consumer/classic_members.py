"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup (rule G4; KIP-848).

JoinGroup is handled as a heartbeat of the consumer protocol: one step of the member towards its target assignment. The
member's generation is its member epoch, SyncGroup returns its assignment, and Heartbeat returns REBALANCE_IN_PROGRESS
while there is another step. The member then has its rebalance timeout to join, and after that to sync. No request is
parked.
Source: Kafka 4.4 `GroupMetadataManager.classicGroup*ToConsumerGroup`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.coord.groups.classic.member import MEMBER_ID_REQUIRED_SINCE, protocol_list, rebalance_timeout_ms
from barnabas.coord.groups.classic.responses import UNKNOWN_MEMBER_ID, join_error, member_response
from barnabas.coord.groups.classic.subscription import CONSUMER
from barnabas.coord.groups.config import MigrationPolicy
from barnabas.coord.groups.consumer.embedded_protocol import by_topic_id, read_subscription, write_assignment
from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.migration import classic_metadata
from barnabas.coord.groups.modern.members import JOIN_EPOCH, check_static
from barnabas.coord.groups.modern.partitions import as_list
from barnabas.coord.groups.modern.states import MemberState
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.messages.groups.classic_groups import (
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.consumer.membership import Membership
    from barnabas.coord.groups.consumer.migration import Migration
    from barnabas.coord.groups.consumer.timers import ConsumerTimers
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import Moment, Result
    from barnabas.wire.messages.groups.classic_groups import (
        HeartbeatRequest,
        JoinGroupRequest,
        LeaveGroupRequest,
        MemberIdentity,
        SyncGroupRequest,
    )
    from barnabas.wire.messages.records.coordinator_records import ClassicMemberMetadata, ClassicProtocol

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


class ClassicMembers:
    """Handles the requests of members of the classic protocol in the consumer groups of one coordinator."""

    def __init__(
        self,
        membership: Membership,
        migration: Migration,
        timers: ConsumerTimers,
        topics: Topics,
        config: GroupConfig,
        new_id: Callable[[], str],
    ) -> None:
        self._membership = membership
        self._migration = migration
        self._timers = timers
        self._topics = topics
        self._config = config
        self._new_id = new_id

    def join(
        self, group: ConsumerGroup, request: JoinGroupRequest, context: ClientContext, at: Moment, result: Result
    ) -> JoinGroupResponse:
        """One step of the member towards its target. KafkaError if it is refused; `result` is invalid then."""
        if self._config.consumer_migration_policy is MigrationPolicy.DISABLED:
            raise _inconsistent("Group migration is disabled.")
        self._membership.check_room(group, request.group_instance_id, request.member_id)
        check_join(group, request)
        member_id = request.member_id or self._new_id()
        if needs_member_id(request, context):
            return join_error(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        metadata = classic_metadata(request.session_timeout_ms, protocol_list(request.protocols))
        heartbeat = as_heartbeat(group, request, member_id, self._topics)
        owner = group.static_member(request.group_instance_id or "")
        if owner is not None:
            rejoined = _rejoined(owner, heartbeat, metadata, context)
            remaining = {key: member for key, member in group.members.items() if key != owner.member_id}
            remaining[member_id] = rejoined
            if not owner.speaks_classic and self._migration.may_downgrade(group, remaining):
                return self._downgrade(group, owner, rejoined, remaining, at, result)
        outcome = self._membership.advance(group, heartbeat, member_id, metadata, context, at, result)
        member = outcome.member
        self._timers.joined(group.group_id, member, at)
        return join_response(member)

    def _downgrade(
        self,
        group: ConsumerGroup,
        owner: ConsumerMember,
        rejoined: ConsumerMember,
        remaining: dict[str, ConsumerMember],
        at: Moment,
        result: Result,
    ) -> JoinGroupResponse:
        """The last member of the consumer protocol, a static one, joins with the classic one: convert the group.

        If all members are reconciled with their targets, they keep their assignments without a rebalance.
        """
        target = {**group.target, rejoined.member_id: group.target.get(owner.member_id, {})}
        others = [member for member in remaining.values() if member is not rejoined]
        is_settled = all(member.is_reconciled_to(group.epoch) for member in others)
        is_same = rejoined.subscribed_topics == owner.subscribed_topics and not owner.subscribed_regex
        classic = self._migration.downgrade(
            group, remaining, target, at, result, has_to_rebalance=not (is_settled and is_same)
        )
        return join_response(rejoined._replace(epoch=classic.generation))

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest, at: Moment) -> SyncGroupResponse:
        """SyncGroup: return the member's assignment."""
        member = sending_member(group, request)
        check_sync(member, request)
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED:
            self._timers.time_join(group.group_id, member, at)
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"Member {member.member_id} should join again.")
        self._timers.synced(group.group_id, member.member_id)
        self._timers.renew_session(group.group_id, member, at)
        return sync_response(member, request, self._topics)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest, at: Moment) -> HeartbeatResponse:
        """Renew the session; REBALANCE_IN_PROGRESS when the member has to join again for another step."""
        member = sending_member(group, request)
        self._timers.renew_session(group.group_id, member, at)
        if not must_join(group, member):
            return HeartbeatResponse()
        self._timers.time_join(group.group_id, member, at)
        return HeartbeatResponse(error_code=int(ErrorCode.REBALANCE_IN_PROGRESS))

    def leave(self, group: ConsumerGroup, request: LeaveGroupRequest, at: Moment, result: Result) -> LeaveGroupResponse:
        """Remove the members of the request."""
        leaving: dict[str, ConsumerMember] = {}
        responses = []
        for identity in request.members:
            try:
                member = leaving_member(group, identity)
            except KafkaError as refused:
                responses.append(member_response(identity, refused.code))
            else:
                leaving[member.member_id] = member
                responses.append(member_response(identity, ErrorCode.NONE))
        if leaving:
            logger.info("[GroupId %s] Members %s left by LeaveGroup", group.group_id, ", ".join(leaving))
            self._membership.remove(group, list(leaving.values()), at, result)
        return LeaveGroupResponse(members=responses)


# ---- JoinGroup


def check_join(group: ConsumerGroup, request: JoinGroupRequest) -> None:
    """KafkaError INCONSISTENT_GROUP_PROTOCOL unless all classic members have one of the request's protocols."""
    names = {protocol.name for protocol in request.protocols}
    if request.protocol_type != CONSUMER or not names:
        raise _inconsistent("The member does not use the consumer protocol.")
    for member in group.members.values():
        if member.classic is not None:
            names &= {protocol.name for protocol in member.classic.supported_protocols}
    if not names:
        raise _inconsistent("The member's protocols are not supported by the other members.")


def as_heartbeat(
    group: ConsumerGroup, request: JoinGroupRequest, member_id: str, topics: Topics
) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat that a JoinGroup is handled as.

    KafkaError UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID for a static member that is not the owner of its instance id,
    INCONSISTENT_GROUP_PROTOCOL for metadata that cannot be read. A member that was removed and believes that it has
    partitions gets UNKNOWN_MEMBER_ID too, so that it revokes them; Kafka 4.4 accepts it and revokes them by SyncGroup.
    """
    instance_id = request.group_instance_id
    if instance_id is not None and request.member_id != UNKNOWN_MEMBER_ID:
        check_static(group.static_member(instance_id), request.member_id, instance_id)
    try:
        subscription = read_subscription(bytes(request.protocols[0].metadata))
    except ProtocolError:
        raise _inconsistent("The embedded consumer protocol is malformed.") from None
    owned = by_topic_id(subscription.owned_partitions, topics)
    if owned and instance_id is None and member_id not in group.members:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} has partitions and is not in the group.")
    return ConsumerGroupHeartbeatRequest(
        group_id=request.group_id,
        member_id=member_id,
        member_epoch=JOIN_EPOCH,
        instance_id=instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=rebalance_timeout_ms(request),
        subscribed_topic_names=subscription.topics,
        subscribed_topic_regex="",
        topic_partitions=as_list(owned, ConsumerGroupHeartbeatRequestTopicPartitions),
    )


def needs_member_id(request: JoinGroupRequest, context: ClientContext) -> bool:
    """Whether the member has to join again with a member id that it is sent first."""
    is_unknown = request.member_id == UNKNOWN_MEMBER_ID and request.group_instance_id is None
    return is_unknown and context.api_version >= MEMBER_ID_REQUIRED_SINCE


def _rejoined(
    owner: ConsumerMember,
    heartbeat: ConsumerGroupHeartbeatRequest,
    classic: ClassicMemberMetadata,
    context: ClientContext,
) -> ConsumerMember:
    """The static member that replaces `owner`."""
    return ConsumerMember(
        heartbeat.member_id,
        instance_id=owner.instance_id,
        rack_id=heartbeat.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        rebalance_timeout_ms=heartbeat.rebalance_timeout_ms,
        subscribed_topics=frozenset(heartbeat.subscribed_topic_names or ()),
        classic=classic,
    )


def join_response(member: ConsumerMember) -> JoinGroupResponse:
    """The response with the member's epoch as generation; it names no leader, since the coordinator assigns."""
    return JoinGroupResponse(
        member_id=member.member_id,
        generation_id=member.epoch,
        protocol_type=CONSUMER,
        protocol_name=_protocol(member).name,
    )


# ---- SyncGroup and Heartbeat


def sending_member(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerMember:
    """The classic member that sent the request, in its generation.

    KafkaError UNKNOWN_MEMBER_ID, also for members of the consumer protocol, FENCED_INSTANCE_ID or ILLEGAL_GENERATION.
    """
    instance_id = request.group_instance_id
    if instance_id is not None:
        check_static(group.static_member(instance_id), request.member_id, instance_id)
    member = group.member(request.member_id)
    if member.classic is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    if request.generation_id != member.epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request's generation {request.generation_id} is not the member's epoch {member.epoch}.",
        )
    return member


def check_sync(member: ConsumerMember, request: SyncGroupRequest) -> None:
    """KafkaError INCONSISTENT_GROUP_PROTOCOL unless the protocol is the one of the JoinGroup response."""
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, _protocol(member).name):
        raise _inconsistent("The request's protocol is not the one of the JoinGroup response.")


def sync_response(member: ConsumerMember, request: SyncGroupRequest, topics: Topics) -> SyncGroupResponse:
    """The response with the member's assignment."""
    return SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(member.assigned, topics, bytes(_protocol(member).metadata)),
    )


def must_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether the member has another step to take, which needs a JoinGroup."""
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED:
        return True
    return member.state is MemberState.UNRELEASED and not _awaits_partitions(group, member)


def _awaits_partitions(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether another member still has a partition of this member's target."""
    for topic_id, partitions in group.target.get(member.member_id, {}).items():
        has = member.assigned.get(topic_id, {})
        if any(index not in has and not group.is_free(topic_id, index, member.member_id) for index in partitions):
            return True
    return False


# ---- LeaveGroup


def leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    """The member that leaves; administrators identify a static one by its instance id alone.

    KafkaError UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID.
    """
    instance_id = identity.group_instance_id
    if instance_id is None:
        return group.member(identity.member_id)
    owner = group.static_member(instance_id)
    member_id = identity.member_id
    if owner is not None and member_id == UNKNOWN_MEMBER_ID:
        return owner
    check_static(owner, member_id, instance_id)
    assert owner is not None
    return owner


def _protocol(member: ConsumerMember) -> ClassicProtocol:
    """The protocol that the member prefers; the coordinator assigns by it."""
    assert member.classic is not None
    return member.classic.supported_protocols[0]


def _inconsistent(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
