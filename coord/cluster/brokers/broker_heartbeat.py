"""BrokerHeartbeat: the next state of a broker from its offset, its requested changes and its current state.

A fenced broker that has read its own registration is unfenced when it wants to be; a broker that wants to stop first
gives up its leaderships, and may stop when the others have read that (R18). Source: Kafka 4.4
`BrokerHeartbeatManager.calculateNextBrokerState`, `ReplicationControlManager.processBrokerHeartbeat`. KIP-631, KIP-858
(offline log directories), KIP-1066 (cordoned ones). Rules R16, R18.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import Enum
from typing import Final

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.brokers.broker_sessions import BrokerSession, BrokerSessions
from barnabas.coord.cluster.node_records import FENCED, IN_CONTROLLED_SHUTDOWN
from barnabas.coord.cluster.partitions.leader_changes import LeaderChanges, Steps
from barnabas.wire.messages.cluster import BrokerHeartbeatRequest
from barnabas.wire.messages.records.metadata_records import BrokerRegistrationChangeRecord
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

UNFENCED: Final = -1
"""The value of `BrokerRegistrationChangeRecord.fenced` for a broker that is fenced no longer."""
CORDONED_DIRECTORIES_SINCE: Final = 30
"""The metadata.version from which on cordoned log directories are recorded (4.3-IV0)."""


class BrokerState(Enum):
    """The states of a broker, as its heartbeats see them."""

    FENCED = "it is not listed for clients, and leads nothing"
    UNFENCED = "it serves"
    CONTROLLED_SHUTDOWN = "it leads nothing new, and the others learn who leads now"
    SHUTDOWN_NOW = "it may stop"

    @property
    def is_fenced(self) -> bool:
        """`is_fenced` of the response."""
        return self in {BrokerState.FENCED, BrokerState.SHUTDOWN_NOW}


def current_state(broker: BrokerImage, session: BrokerSession) -> BrokerState:
    """The state before a heartbeat."""
    if session.shutdown_offset is not None:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED


def next_state(
    current: BrokerState,
    request: BrokerHeartbeatRequest,
    *,
    is_caught_up: bool,
    has_leaderships: bool,
    others_know: bool,
) -> BrokerState:
    """The state after a heartbeat; `others_know`: the active brokers have read what the shutdown changed."""
    if current is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        return BrokerState.UNFENCED if is_caught_up and not request.want_fence else BrokerState.FENCED
    if current is BrokerState.UNFENCED:
        if request.want_fence:
            return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
        if not request.want_shut_down:
            return BrokerState.UNFENCED
        return BrokerState.CONTROLLED_SHUTDOWN if has_leaderships else BrokerState.SHUTDOWN_NOW
    done = others_know and not has_leaderships
    return BrokerState.SHUTDOWN_NOW if done else BrokerState.CONTROLLED_SHUTDOWN


def leads_any(changes: LeaderChanges, broker_id: int) -> Generator[None, None, bool]:
    """Whether a broker leads a partition."""
    led = yield from changes.visit(lambda partition: partition.leader == broker_id)
    return bool(led)


def heartbeat_steps(
    changes: LeaderChanges, sessions: BrokerSessions, session: BrokerSession, request: BrokerHeartbeatRequest
) -> Generator[None, None, tuple[list[Message], BrokerState]]:
    """(records, new state) of a heartbeat of a registered broker. The session is not changed."""
    broker = changes.image.brokers[request.broker_id]
    current = current_state(broker, session)
    records = cordon_records(changes, request)
    offline = offline_directories(broker, request)
    if offline and offline == set(broker.directories):  # it has no log directory left
        if not broker.fenced:
            yield from fence_steps(changes, broker, records)
        return records, BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if offline:  # the state changes with the next heartbeat: elections among the remaining replicas come first
        yield from _lose_directories(changes, broker, offline, records)
        return records, current
    leads = False
    if current is BrokerState.CONTROLLED_SHUTDOWN or (current is BrokerState.UNFENCED and request.want_shut_down):
        leads = yield from leads_any(changes, broker.id)
    state = next_state(
        current,
        request,
        is_caught_up=request.current_metadata_offset >= session.registered_at,
        has_leaderships=leads,
        others_know=_others_know(changes, sessions, session),
    )
    if state is not current:
        yield from _enter(changes, broker, state, records)
    return records, state


def _others_know(changes: LeaderChanges, sessions: BrokerSessions, session: BrokerSession) -> bool:
    if session.shutdown_offset is None:
        return False
    lowest = sessions.lowest_offset(broker for broker in changes.image.brokers if changes.is_active(broker))
    return lowest is None or session.shutdown_offset <= lowest


def _enter(changes: LeaderChanges, broker: BrokerImage, state: BrokerState, records: list[Message]) -> Steps:
    if state is BrokerState.UNFENCED:
        records.append(_change(broker, fenced=UNFENCED))
        yield from changes.with_broker(broker.id, records)
    elif state is BrokerState.CONTROLLED_SHUTDOWN:
        if not broker.in_controlled_shutdown:
            records.append(_change(broker, in_controlled_shutdown=IN_CONTROLLED_SHUTDOWN))
        yield from changes.without(broker.id, records)
    elif not broker.fenced:
        yield from fence_steps(changes, broker, records)


def fence_steps(changes: LeaderChanges, broker: BrokerImage, records: list[Message]) -> Steps:
    """Take a broker out of every ISR, and fence it."""
    yield from changes.without(broker.id, records)
    records.append(_change(broker, fenced=FENCED))


def _change(broker: BrokerImage, *, fenced: int = 0, in_controlled_shutdown: int = 0) -> BrokerRegistrationChangeRecord:
    return BrokerRegistrationChangeRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, fenced=fenced, in_controlled_shutdown=in_controlled_shutdown
    )


def offline_directories(broker: BrokerImage, request: BrokerHeartbeatRequest) -> set[Uuid]:
    """The log directories that were online until this heartbeat."""
    return set(request.offline_log_dirs) & set(broker.directories)


def _lose_directories(changes: LeaderChanges, broker: BrokerImage, offline: set[Uuid], records: list[Message]) -> Steps:
    """Replicas in these directories leave the ISR; the broker has the other directories only."""
    affected = yield from changes.visit(
        lambda partition: (
            broker.id in partition.isr and partition.directories[partition.replicas.index(broker.id)] in offline
        )
    )
    yield from changes.update(affected, records, leaving=broker.id)
    change = _change(broker)
    change.log_dirs = [directory for directory in broker.directories if directory not in offline]
    records.append(change)


def cordon_records(changes: LeaderChanges, request: BrokerHeartbeatRequest) -> list[Message]:
    """The record of a new list of cordoned log directories, on which nothing is placed (KIP-1066)."""
    broker = changes.image.brokers[request.broker_id]
    cordoned = request.cordoned_log_dirs
    if cordoned is None or changes.image.metadata_version < CORDONED_DIRECTORIES_SINCE:
        return []
    if sorted(cordoned) == sorted(broker.cordoned_directories or ()):
        return []
    change = _change(broker)
    change.cordoned_log_dirs = sorted(cordoned)
    return [change]
