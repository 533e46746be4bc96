"""The controller of a cluster: brokers register, send heartbeats and are fenced; partitions follow them.

It adds to `LocalController` what needs more than one broker. As there, a method validates a request against the image
and returns records and a response; the image changes only when the records are replayed. State outside the image is
volatile: the sessions of the brokers (`broker_sessions`) and the times of the periodic elections. Methods named
`..._in_steps` are generators that yield after a step of a millisecond at most, during which the image must not change;
the method without that suffix does all steps at once. Source: Kafka 4.4 `QuorumController`. Rules R16-R19.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from barnabas.coord.cluster.broker_image import BrokerImage
from barnabas.coord.cluster.brokers.broker_heartbeat import BrokerState, fence_steps, heartbeat_steps
from barnabas.coord.cluster.brokers.broker_registration import check_registration, registration_steps
from barnabas.coord.cluster.brokers.broker_sessions import BrokerSession, BrokerSessions
from barnabas.coord.cluster.brokers.directories import assign_replicas_steps
from barnabas.coord.cluster.changes.config_schema import BrokerSettings, ConfigSchema
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.local_controller import LocalController, Outcome
from barnabas.coord.cluster.node_records import allocate_producer_ids
from barnabas.coord.cluster.partitions.alter_partition import alter_partition_steps
from barnabas.coord.cluster.partitions.leader_changes import LeaderChanges
from barnabas.coord.cluster.partitions.leader_elections import balance_steps, elect_leaders_steps, unclean_steps
from barnabas.coord.cluster.partitions.reassignment import alter_reassignments_steps, list_reassignments_steps
from barnabas.coord.machine import Moment
from barnabas.coord.timers import Timers
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from barnabas.wire.messages.log_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from barnabas.wire.messages.records.metadata_records import UnregisterBrokerRecord
from barnabas.wire.messages.replication import AlterPartitionRequest, AlterPartitionResponse
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

BALANCE: Final = "preferred leaders"
UNCLEAN: Final = "unclean elections"


class ControllerSettings(NamedTuple):
    """The configs of the controller itself, times in seconds."""

    session_timeout_s: float = 9.0
    """broker.session.timeout.ms."""
    rebalances_leaders: bool = True
    """auto.leader.rebalance.enable."""
    imbalance_check_s: float = 300.0
    """leader.imbalance.check.interval.seconds."""
    unclean_check_s: float = 300.0
    """unclean.leader.election.interval.ms."""
    cluster_id: str | None = None
    """Brokers of another cluster are refused; None: of any."""


class ClusterController(LocalController):
    """`LocalController` for brokers that are other processes. KafkaError is the error of a whole request."""

    any_broker = True

    def __init__(
        self,
        image: ClusterImage,
        schema: ConfigSchema,
        settings: BrokerSettings,
        node_id: int,
        new_uuid: Callable[[], Uuid],
        controller: ControllerSettings | None = None,
    ) -> None:
        super().__init__(image, schema, settings, node_id, new_uuid)
        self._controller = controller or ControllerSettings()
        self._sessions = BrokerSessions(self._controller.session_timeout_s)
        self._periodic = Timers()
        self._is_activated = False
        self.leaders = LeaderChanges(image, self._topic_settings)

    def activate(self, at: Moment) -> None:
        """Begin to lead: every broker that is not fenced gets a new session. The first event does it otherwise."""
        if self._is_activated:
            return
        self._is_activated = True
        for broker in self.image.brokers.values():
            self._reopen(broker, at)
        if self._controller.rebalances_leaders:
            self._periodic.set(BALANCE, at.now + self._controller.imbalance_check_s)
        self._periodic.set(UNCLEAN, at.now + self._controller.unclean_check_s)

    def end_session(self, broker_id: int) -> None:
        """The process of a broker is known to have ended: another incarnation may register at once."""
        self._sessions.close(broker_id)

    # Brokers

    def register_broker_in_steps(
        self, request: BrokerRegistrationRequest, at: Moment, *, next_offset: int
    ) -> Generator[None, None, Outcome[BrokerRegistrationResponse]]:
        """BrokerRegistration (62); `next_offset` is the offset that the first record will have."""
        self.activate(at)
        existing = self.image.brokers.get(request.broker_id)
        has_session = existing is not None and self._sessions.is_valid(existing.id, existing.epoch, at.now)
        check_registration(self.image, request, cluster_id=self._controller.cluster_id, has_session=has_session)
        records, epoch = yield from registration_steps(self.leaders, request, next_offset)
        fenced = epoch == next_offset or existing is None or existing.fenced
        self._sessions.open(request.broker_id, epoch, next_offset + len(records) - 1, at.now, fenced=fenced)
        return Outcome(records, BrokerRegistrationResponse(broker_epoch=epoch))

    def heartbeat_in_steps(
        self, request: BrokerHeartbeatRequest, at: Moment, *, committed_offset: int
    ) -> Generator[None, None, Outcome[BrokerHeartbeatResponse]]:
        """BrokerHeartbeat (63); `committed_offset` is the offset of the last record of the metadata log."""
        self.activate(at)
        broker = self._registered(request.broker_id, request.broker_epoch)
        session = self._sessions.get(broker.id, broker.epoch)
        if session is None:  # it was fenced when its session ended, and lives
            session = self._reopen(broker, at)
        records, state = yield from heartbeat_steps(self.leaders, self._sessions, session, request)
        self._sessions.has_read(broker.id, request.current_metadata_offset)
        self._sessions.touch(broker.id, session, at.now, fenced=state.is_fenced)
        if state is BrokerState.SHUTDOWN_NOW:
            self._sessions.close(broker.id)
        elif state is BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset is None:
            session.shutdown_offset = committed_offset + len(records)
        response = BrokerHeartbeatResponse(
            is_caught_up=request.current_metadata_offset >= session.registered_at,
            is_fenced=state.is_fenced,
            should_shut_down=state is BrokerState.SHUTDOWN_NOW,
        )
        return Outcome(records, response)

    def metadata_fetched(self, node_id: int, fetch_offset: int) -> None:
        """A node fetches the metadata from this offset, so it has all before: a controlled shutdown waits no longer.

        Its next heartbeat would say the same, up to broker.heartbeat.interval.ms later.
        """
        self._sessions.has_read(node_id, fetch_offset - 1)

    def _reopen(self, broker: BrokerImage, at: Moment) -> BrokerSession:
        """A new session of a broker in the image; a fenced one has to read as far as the image before it serves."""
        registered_at = self.image.offset if broker.fenced else broker.epoch
        return self._sessions.open(broker.id, broker.epoch, registered_at, at.now, fenced=broker.fenced)

    def _registered(self, broker_id: int, broker_epoch: int) -> BrokerImage:
        """The broker of a request; KafkaError(STALE_BROKER_EPOCH) unless this is its current incarnation."""
        broker = self.image.brokers.get(broker_id)
        if broker is None:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
        if broker.epoch != broker_epoch:
            raise KafkaError(
                ErrorCode.STALE_BROKER_EPOCH,
                f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}",
            )
        return broker

    def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> Outcome[AllocateProducerIdsResponse]:
        """AllocateProducerIds (67): a block of ids that were never used."""
        self._registered(request.broker_id, request.broker_epoch)
        records, block = allocate_producer_ids(self.image, request.broker_id)
        return Outcome(records, AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block)))

    def unregister_broker_in_steps(
        self, request: UnregisterBrokerRequest
    ) -> Generator[None, None, Outcome[UnregisterBrokerResponse]]:
        """UnregisterBroker (64): forget a broker, whose replicas stay assigned to it.

        A broker that registers with this id later is no longer eligible to lead the partitions for which this one was.
        """
        broker = self.image.brokers.get(request.broker_id)
        if broker is None:
            raise KafkaError(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {request.broker_id} is not currently registered"
            )
        records: list[Message] = []
        yield from self.leaders.without(broker.id, records, unclean=True)
        records.append(UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch))
        return Outcome(records, UnregisterBrokerResponse(error_message=None))

    def assign_replicas_to_dirs_in_steps(
        self, request: AssignReplicasToDirsRequest
    ) -> Generator[None, None, Outcome[AssignReplicasToDirsResponse]]:
        """AssignReplicasToDirs (73)."""
        broker = self._registered(request.broker_id, request.broker_epoch)
        return Outcome(*(yield from assign_replicas_steps(self.leaders, broker, request)))

    # Partitions

    def alter_partition_in_steps(
        self, request: AlterPartitionRequest, version: int
    ) -> Generator[None, None, Outcome[AlterPartitionResponse]]:
        """AlterPartition (56), version 2 and later."""
        self._registered(request.broker_id, request.broker_epoch)
        return Outcome(*(yield from alter_partition_steps(self.leaders, request, version)))

    def elect_leaders_in_steps(
        self, request: ElectLeadersRequest
    ) -> Generator[None, None, Outcome[ElectLeadersResponse]]:
        """ElectLeaders (43)."""
        return Outcome(*(yield from elect_leaders_steps(self.leaders, request)))

    def alter_partition_reassignments_in_steps(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Generator[None, None, Outcome[AlterPartitionReassignmentsResponse]]:
        """AlterPartitionReassignments (45)."""
        return Outcome(*(yield from alter_reassignments_steps(self.leaders, request)))

    def list_partition_reassignments_in_steps(
        self, request: ListPartitionReassignmentsRequest
    ) -> Generator[None, None, Outcome[ListPartitionReassignmentsResponse]]:
        """ListPartitionReassignments (46)."""
        return Outcome([], (yield from list_reassignments_steps(self.leaders, request)))

    # Time

    def next_deadline(self) -> float | None:
        """When `tick` is due (monotonic seconds); None before the first event."""
        deadlines = (self._sessions.next_deadline(), self._periodic.next_deadline())
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def tick_in_steps(self, at: Moment) -> Generator[None, None, Outcome[None]]:
        """Handle one deadline that has passed; call it again while `next_deadline` has passed.

        One broker is fenced at a time, so that the next elections see the effect.
        """
        self.activate(at)
        if self._sessions.extend_after_absence(at.now):
            return Outcome([], None)
        expired = self._sessions.expired(at.now)
        if expired is not None:
            return Outcome((yield from self._fence(expired, at)), None)
        due = self._periodic.pop_due(at.now)
        if due == BALANCE:
            records, has_more = yield from balance_steps(self.leaders)
            interval = self._controller.imbalance_check_s
        elif due == UNCLEAN:
            records, has_more = yield from unclean_steps(self.leaders)
            interval = self._controller.unclean_check_s
        else:
            return Outcome([], None)
        self._periodic.set(due, at.now if has_more else at.now + interval)
        return Outcome(records, None)

    def _fence(self, broker_id: int, at: Moment) -> Generator[None, None, list[Message]]:
        """The records that fence a broker whose session has ended."""
        records: list[Message] = []
        broker = self.image.brokers.get(broker_id)
        if broker is None or broker.fenced:
            self._sessions.close(broker_id)
            return records
        self._sessions.retry(broker_id, at.now)  # until the records are replayed, which may fail
        yield from fence_steps(self.leaders, broker, records)
        return records
