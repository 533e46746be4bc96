"""Reconciles a member with its target assignment (rule G3; KIP-848).

First the member revokes partitions that are not in its target; it stays in its epoch until a heartbeat confirms that.
Then it enters the epoch of the target assignment and gets the partitions that are free; the others follow when the
heartbeats of their owners have revoked them. So a partition never has two owners. Source: Kafka 4.4
`CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.coord.groups.modern.states import MemberState
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.member import ConsumerMember, OwnedPartitions
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.wire.types import Uuid

IsFree = Callable[["Uuid", int], bool]
"""Whether the member may have a partition: no other member has it assigned or has to revoke it."""


def reconciled(
    member: ConsumerMember,
    epoch: int,
    target: Partitions,
    is_free: IsFree,
    *,
    subscribed: frozenset[Uuid],
    owned: Partitions | None,
) -> ConsumerMember:
    """The member after one heartbeat; equal to `member` if nothing can be changed.

    `epoch` and `target` are the target assignment, which may be older than the subscription: topics that are not in
    `subscribed` are not assigned. `owned` are the partitions that the heartbeat lists; None: no change.
    KafkaError FENCED_MEMBER_EPOCH when the record of the member is from a release that knows more states.
    """
    if member.state is MemberState.UNKNOWN:
        if owned is None or owned:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The member is in an unknown state. The member must abandon all its partitions and rejoin.",
            )
        return _advanced(member, epoch, target, is_free, subscribed, owned)
    if member.state is MemberState.UNREVOKED and _still_owns(member.revoking, owned):
        return _without_unsubscribed(member, subscribed, owned)
    if member.is_reconciled_to(epoch):
        return _without_unsubscribed(member, subscribed, owned)
    return _advanced(member, epoch, target, is_free, subscribed, owned)


def _still_owns(revoked: OwnedPartitions, owned: Partitions | None) -> bool:
    """Whether the member may still have any of these: the heartbeat lists one of them, or no partitions at all."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(revoked.get(topic_id, ())) for topic_id, partitions in owned.items())


def _without_unsubscribed(
    member: ConsumerMember, subscribed: frozenset[Uuid], owned: Partitions | None
) -> ConsumerMember:
    """Revoke partitions of topics that the member does not subscribe to any more, before there is a new target."""
    lost = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id not in subscribed}
    if not lost:
        return member
    retained = {topic_id: partitions for topic_id, partitions in member.assigned.items() if topic_id in subscribed}
    revoking = dict(member.revoking)
    for topic_id, partitions in lost.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **partitions}
    if _still_owns(lost, owned):
        return member.entered(member.epoch)._replace(state=MemberState.UNREVOKED, assigned=retained, revoking=revoking)
    return member.entered(member.epoch)._replace(assigned=retained)


def _advanced(
    member: ConsumerMember,
    epoch: int,
    target: Partitions,
    is_free: IsFree,
    subscribed: frozenset[Uuid],
    owned: Partitions | None,
) -> ConsumerMember:
    """The next step towards the target assignment."""
    retained: OwnedPartitions = {}
    revoked: OwnedPartitions = {}
    added: OwnedPartitions = {}
    waits = False
    for topic_id in {**target, **member.assigned}:
        target_partitions = target.get(topic_id, frozenset()) if topic_id in subscribed else frozenset()
        has = member.assigned.get(topic_id, {})
        _put(retained, topic_id, {index: since for index, since in has.items() if index in target_partitions})
        _put(revoked, topic_id, {index: since for index, since in has.items() if index not in target_partitions})
        missing = target_partitions.difference(has)
        free = [index for index in missing if is_free(topic_id, index)]
        waits |= len(free) < len(missing)
        _put(added, topic_id, dict.fromkeys(free, epoch))
    if revoked and _still_owns(revoked, owned):
        old_epoch = epoch if member.state is MemberState.UNKNOWN else member.epoch
        return member.entered(old_epoch)._replace(state=MemberState.UNREVOKED, assigned=retained, revoking=revoked)
    assigned = retained
    for topic_id, partitions in added.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **partitions}
    state = MemberState.UNRELEASED if waits else MemberState.STABLE
    return member.entered(epoch)._replace(state=state, assigned=assigned, revoking={})


def _put(owned: OwnedPartitions, topic_id: Uuid, partitions: dict[int, int]) -> None:
    if partitions:
        owned[topic_id] = partitions
