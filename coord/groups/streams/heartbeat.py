"""StreamsGroupHeartbeat: the steps of one request through a group (KIP-1071).

The steps: identify the member (fencing, static members); update it, and configure the topology over the topics, which
may bump the group epoch; compute a new target assignment if one is due; reconcile the member with its target. The group
is only read: each step adds its records, later steps work on the members and assignments as they are with these
records, and `Outcome` has whatever else the caller must keep.
Source: Kafka 4.4 `GroupMetadataManager.streamsGroupHeartbeat`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.coord.groups.modern.joining import Joining
from barnabas.coord.groups.modern.members import JOIN_EPOCH
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.coord.groups.modern.records import target_records
from barnabas.coord.groups.streams import records
from barnabas.coord.groups.streams.group import NO_TOPOLOGY_EPOCH, Configured, StreamsGroup, TaskOffsets
from barnabas.coord.groups.streams.internal_topics import ConfiguredTopology, Status, configure
from barnabas.coord.groups.streams.member import Endpoint, StreamsMember
from barnabas.coord.groups.streams.reconciliation import Holders, reconciled
from barnabas.coord.groups.streams.requests import check_owned, owned_tasks
from barnabas.coord.groups.streams.target import assign, assignment_configs
from barnabas.coord.groups.streams.tasks import Tasks, read_offsets
from barnabas.coord.groups.streams.topology import Topology
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coord.groups.context import ClientContext
    from barnabas.coord.groups.settings import GroupSettings
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord, Moment
    from barnabas.wire.messages.groups.streams_groups import StreamsGroupHeartbeatRequest

logger = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

CLIENT_TAGS_STATUS_SINCE = 1
"""Versions of the heartbeat from here on have the status MISSING_CLIENT_TAGS."""


@dataclass(slots=True, eq=False)
class Outcome:
    """The result of one heartbeat."""

    before: StreamsMember
    """The member before the heartbeat."""
    member: StreamsMember
    configured: Configured
    offsets: TaskOffsets
    """The offsets that the member has reported."""
    epoch: int = 0
    """The group epoch after the heartbeat."""
    is_delayed: bool = False
    """A new target assignment is due and is delayed."""
    begins_gathering: bool = False
    """This is the first member: tasks are assigned after the initial rebalance delay."""
    statuses: list[tuple[Status, str]] = field(default_factory=list)
    records: list[CoordinatorRecord] = field(default_factory=list)


class Heartbeat(Joining[StreamsMember, Tasks]):
    """One heartbeat of a member that is in the group or joins it."""

    assigned_things = "tasks"

    def __init__(
        self,
        group: StreamsGroup,
        request: StreamsGroupHeartbeatRequest,
        topics: Topics,
        settings: GroupSettings,
        at: Moment,
        *,
        is_gathering: bool,
    ) -> None:
        """`is_gathering`: the initial rebalance delay is not over."""
        super().__init__(group, request, records, Tasks())
        self._group = group
        self._request = request
        self._topics = topics
        self._settings = settings
        self._at = at
        self._is_gathering = is_gathering
        self._owned = owned_tasks(request)
        self._configs = assignment_configs(settings)

    def run(self, context: ClientContext) -> Outcome:
        """All steps. KafkaError when the request is refused."""
        before = self._known(self._request.member_id)
        is_new = before.member_id not in self._members
        if is_new and self._request.instance_id is None:
            group_id = self._group.group_id
            logger.info("[GroupId %s][MemberId %s] Member joins the streams group", group_id, before.member_id)
        member = self._updated(before, context)
        if is_new or not member.has_metadata_of(before):
            self.records.append(records.member_metadata(self._group.group_id, member))
        self._members = {**self._members, member.member_id: member}
        topology = self._topology()
        whole = self._configured(topology)
        configured = whole.over_topics
        if configured.is_ready and self._owned is not None:
            check_owned(self._owned, configured.subtopologies)
        outcome = Outcome(before, before, whole, self._reported_offsets(member.member_id))
        if member.topology_epoch < topology.epoch:
            detail = (
                f"The member's topology epoch {member.topology_epoch} is behind the group's "
                f"topology epoch {topology.epoch}."
            )
            outcome.statuses.append((Status.STALE_TOPOLOGY, detail))
        has_bump = is_new or not member.is_assigned_like(before)
        outcome.epoch = self._group_epoch(whole.metadata_hash, configured, has_bump=has_bump)
        target_epoch = self._target_assignment(outcome, member.member_id)
        outcome.member = self._reconciled(member, target_epoch)
        outcome.statuses += self._further_statuses(outcome.member, configured, context.api_version)
        outcome.records = self.records
        return outcome

    # ---- identity

    def _owns_only_assigned(self, member: StreamsMember) -> bool:
        owned, assigned = self._owned, member.assigned.tasks
        if owned is None:
            return False
        return owned.active <= assigned.active and owned.standby <= assigned.standby and owned.warmup <= assigned.warmup

    # ---- member and topology

    def _updated(self, member: StreamsMember, context: ClientContext) -> StreamsMember:
        """The member with what the request says; null means no change, except for the endpoint of a joining member."""
        request = self._request
        endpoint, tags = request.user_endpoint, request.client_tags
        fields: dict[str, Any] = {
            "instance_id": request.instance_id,
            "rack_id": request.rack_id,
            "rebalance_timeout_ms": None if request.rebalance_timeout_ms == -1 else request.rebalance_timeout_ms,
            "topology_epoch": None if request.topology is None else request.topology.epoch,
            "process_id": request.process_id,
            "user_endpoint": None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
            "client_tags": None if tags is None else {tag.key: tag.value for tag in tags},
        }
        changed = {name: value for name, value in fields.items() if value is not None}
        if request.member_epoch == JOIN_EPOCH:
            changed["user_endpoint"] = fields["user_endpoint"]
        return member._replace(**changed, client_id=context.client_id, client_host=context.client_host)

    def _topology(self) -> Topology:
        """The group's topology, which is the first member's. KafkaError INVALID_REQUEST for another one."""
        known, requested = self._group.topology, self._request.topology
        if requested is None:
            if known is None:  # only members that have joined get here, and the first one sent a topology
                raise KafkaError(ErrorCode.INVALID_REQUEST, "The group has no topology.")
            return known
        topology = Topology.from_request(requested)
        if known is None:
            self.records.append(records.topology(self._group.group_id, topology))
            return topology
        if known.epoch <= topology.epoch and known != topology:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
        return known

    def _configured(self, topology: Topology) -> Configured:
        """The topology over the present topics; computed again only when they may have changed."""
        known = self._group.passing.configured
        if known is not None and known.topology is topology:
            return known
        metadata_hash = group_hash(topology.required_topics, self._topics)
        return Configured(topology, metadata_hash, configure(topology, self._topics))

    def _reported_offsets(self, member_id: str) -> TaskOffsets:
        """The last offsets that the member has reported, of its tasks and of the ends of their changelogs."""
        request = self._request
        offsets, ends = self._group.passing.offsets.get(member_id, ({}, {}))
        return (
            offsets if request.task_offsets is None else read_offsets(request.task_offsets),
            ends if request.task_end_offsets is None else read_offsets(request.task_end_offsets),
        )

    # ---- epochs

    def _group_epoch(self, metadata_hash: int, configured: ConfiguredTopology, *, has_bump: bool) -> int:
        """Bump the group epoch when members, topology, topics or configs have changed; the new epoch."""
        group = self._group
        validated = configured.epoch if configured.is_ready else NO_TOPOLOGY_EPOCH
        if not has_bump and (metadata_hash, validated, self._configs) == (
            group.metadata_hash,
            group.validated_topology_epoch,
            group.assignment_configs,
        ):
            return group.epoch
        epoch = group.epoch + 1
        self.records.append(records.group_epoch(group.group_id, epoch, metadata_hash, validated, self._configs))
        return epoch

    def _target_assignment(self, outcome: Outcome, member_id: str) -> int:
        """Compute a new target assignment if it is due and not delayed; the epoch of the target assignment."""
        group = self._group
        if outcome.epoch <= group.assignment_epoch:
            return group.assignment_epoch
        delay_ms = self._settings.streams_initial_rebalance_delay_ms
        if self._is_gathering or (group.is_empty and delay_ms > 0):
            outcome.begins_gathering = not self._is_gathering
            return self._delayed(outcome, "initial rebalance delay")
        interval_ms = self._settings.streams_assignment_interval_ms
        since_ms = group.assignment_timestamp_ms
        if since_ms and since_ms <= self._at.now_ms < since_ms + interval_ms:
            return self._delayed(outcome, "assignment interval")
        offsets = {**group.passing.offsets, member_id: outcome.offsets}
        target = assign(self._members, self._target, outcome.configured.over_topics, offsets, self._settings)
        self.records += target_records(records, group.group_id, self._target, target, outcome.epoch, self._at)
        self._target = target
        return outcome.epoch

    def _delayed(self, outcome: Outcome, why: str) -> int:
        outcome.is_delayed = True
        detail = f"Assignment delayed due to the configured {why}."
        outcome.statuses.append((Status.ASSIGNMENT_DELAYED, detail))
        return self._group.assignment_epoch

    # ---- reconciliation

    def _reconciled(self, member: StreamsMember, epoch: int) -> StreamsMember:
        holders = Holders(self._group, member, replaced=self._replaced)
        target = self._target.get(member.member_id, Tasks())
        updated = reconciled(member, epoch, target, holders, self._owned)
        if updated != member:
            self.records.append(records.current_assignment(self._group.group_id, updated))
        return updated

    def _further_statuses(
        self, member: StreamsMember, configured: ConfiguredTopology, api_version: int
    ) -> list[tuple[Status, str]]:
        statuses = [] if configured.problem is None else [configured.problem]
        asker = self._group.passing.shutdown_requested_by
        if asker is None and self._request.shutdown_application:
            asker = member.member_id
        if asker is not None:
            detail = (
                f"Streams group member {asker} encountered a fatal error and requested a shutdown "
                "for the entire application."
            )
            statuses.append((Status.SHUTDOWN_APPLICATION, detail))
        lacking = [tag for tag in self._settings.streams_rack_aware_assignment_tags if tag not in member.client_tags]
        if lacking and api_version >= CLIENT_TAGS_STATUS_SINCE:
            detail = (
                f"Missing required client tags for rack-aware standby assignment: {', '.join(lacking)}. "
                "Configure them via 'client.tag.<tagKey>' in your Streams config."
            )
            statuses.append((Status.MISSING_CLIENT_TAGS, detail))
        return statuses
