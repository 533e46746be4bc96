"""Acts as the broker of a GroupCoordinator; `Driver.member()` acts as a client of the classic protocol."""

from __future__ import annotations

from itertools import count

from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.config import GroupConfig
from barnabas.coord.groups.context import ClientContext
from barnabas.coord.groups.coordinator import GroupCoordinator
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from tests.coord.coordinator_driver import CoordinatorDriver

LATEST = ClientContext("client", "/127.0.0.1", 9)
OLD = ClientContext("client", "/127.0.0.1", 3)


def protocols(*names, metadata=b"meta"):
    return [g.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names]


class Driver(CoordinatorDriver):
    def __init__(self, **config):
        config.setdefault("initial_rebalance_delay_ms", 0)
        super().__init__()
        self.config = GroupConfig(**config)
        self.ids = count(1)
        self.log = []
        self.has_failed = False
        self.coordinator = self.fresh()
        self.coordinator.loaded(self.at)

    def fresh(self):
        return GroupCoordinator(self.config, lambda: f"id{next(self.ids)}")

    def append(self, key, value):
        self.log.append((key, value))
        self.coordinator.replay(key, value, self.at)

    def settle(self):
        """Handle the timers that have expired."""
        while (deadline := self.coordinator.next_deadline()) is not None and deadline <= self.now:
            self.handle(self.coordinator.tick(self.at))

    def restart(self):
        """Load a new coordinator from the log."""
        self.coordinator = self.fresh()
        for key, value in self.log:
            self.coordinator.replay(key, value, self.at)
        self.handle(self.coordinator.loaded(self.at))

    def group(self, group_id="g"):
        return self.coordinator.groups.get(group_id)

    def state(self, group_id="g"):
        group = self.group(group_id)
        return None if group is None else group.state

    # ---- requests; each returns its ticket

    def join(
        self,
        member_id="",
        *,
        instance_id=None,
        names=("range",),
        metadata=b"meta",
        group_id="g",
        context=LATEST,
        session_ms=10_000,
        rebalance_ms=60_000,
        protocol_type="consumer",
        settle=True,
    ):
        ticket = f"join{next(self.tickets)}"
        request = g.JoinGroupRequest(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=protocols(*names, metadata=metadata),
        )
        self.handle(self.coordinator.classic.join(request, ticket, context, self.at))
        if settle:
            self.settle()
        return ticket

    def new_member(self, **options):
        """Get a member id, then join with it; returns (member id, ticket of the second JoinGroup)."""
        settle = options.pop("settle", True)
        response = self.answers[self.join(settle=settle, **options)]
        assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return response.member_id, self.join(response.member_id, settle=settle, **options)

    def sync(self, member_id, generation, assignments=None, *, instance_id=None, group_id="g", **names):
        ticket = f"sync{next(self.tickets)}"
        request = g.SyncGroupRequest(
            group_id=group_id,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            assignments=[
                g.SyncGroupRequestAssignment(member_id=key, assignment=value)
                for key, value in (assignments or {}).items()
            ],
            **names,
        )
        self.handle(self.coordinator.classic.sync(request, ticket, self.at))
        self.settle()
        return ticket

    def heartbeat(self, member_id, generation, *, instance_id=None, group_id="g"):
        ticket = f"heartbeat{next(self.tickets)}"
        request = g.HeartbeatRequest(
            group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=instance_id
        )
        self.handle(self.coordinator.classic.heartbeat(request, ticket, self.at))
        return self.answers[ticket].error_code

    def leave(self, *identities, group_id="g"):
        """Leave; each identity is a member id or (member id, instance id). Returns the response."""
        ticket = f"leave{next(self.tickets)}"
        members = []
        for identity in identities:
            member_id, instance_id = identity if isinstance(identity, tuple) else (identity, None)
            members.append(g.MemberIdentity(member_id=member_id, group_instance_id=instance_id))
        request = g.LeaveGroupRequest(group_id=group_id, members=members)
        self.handle(self.coordinator.classic.leave(request, ticket, self.at))
        self.settle()
        return self.answers[ticket]

    def commit(
        self,
        offset=10,
        *,
        member_id="",
        generation=-1,
        instance_id=None,
        group_id="g",
        topic="t",
        topic_id=bytes(16),
        partition=0,
        metadata="",
        version=9,
        leader_epoch=-1,
        retention_ms=-1,
    ):
        """Commit one offset; returns its error code."""
        ticket = f"commit{next(self.tickets)}"
        committed = o.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=leader_epoch,
        )
        request = o.OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance_id,
            retention_time_ms=retention_ms,
            topics=[o.OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[committed])],
        )
        context = ClientContext("client", "/127.0.0.1", version)
        self.handle(self.coordinator.offsets.commit(request, ticket, context, self.at))
        return self.answers[ticket].topics[0].partitions[0].error_code

    def fetch(self, topic="t", partition=0, *, group_id="g", topic_id=bytes(16)):
        """The committed offset of one partition, with its leader epoch and metadata."""
        topics = [o.OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[partition])]
        response = self.coordinator.offsets.fetch(o.OffsetFetchRequestGroup(group_id=group_id, topics=topics))
        assert response.error_code == 0
        fetched = response.topics[0].partitions[0]
        assert fetched.error_code == 0
        return fetched.committed_offset, fetched.committed_leader_epoch, fetched.metadata

    def fetch_all(self, group_id="g", *, member_id=None, epoch=-1):
        """All offsets of a group, for a member of it or for another client, as in one response."""
        request = o.OffsetFetchRequestGroup(group_id=group_id, member_id=member_id, member_epoch=epoch, topics=None)
        try:
            self.coordinator.offsets.check_fetch(request)
        except KafkaError as error:
            return o.OffsetFetchResponseGroup(group_id=group_id, error_code=int(error.code))
        steps = self.coordinator.offsets.fetch_all(group_id, require_stable=False)
        return o.OffsetFetchResponseGroup(group_id=group_id, topics=[topic for topic in steps if topic is not None])

    def delete_offsets(self, topic="t", partition=0, *, group_id="g"):
        """OffsetDelete of one partition; (top-level error, partition's error or None)."""
        ticket = f"delete{next(self.tickets)}"
        partitions = [o.OffsetDeleteRequestPartition(partition_index=partition)]
        topics = [o.OffsetDeleteRequestTopic(name=topic, partitions=partitions)]
        request = o.OffsetDeleteRequest(group_id=group_id, topics=topics)
        self.handle(self.coordinator.offsets.delete(request, ticket))
        response = self.answers[ticket]
        return response.error_code, response.topics[0].partitions[0].error_code if response.topics else None

    def delete_group(self, group_id="g"):
        ticket = f"remove{next(self.tickets)}"
        self.handle(self.coordinator.delete_group(group_id, ticket))
        return self.answers[ticket].error_code

    # ---- shortcuts to a state

    def stable(self, size=1, **options):
        """A Stable group of `size` dynamic members; returns their ids, the leader first."""
        members = self.joined(size, **options)
        group = self.group(options.get("group_id", "g"))
        assignments = {member: f"for {member}".encode() for member in members}
        for member in members[1:]:
            self.sync(member, group.generation, group_id=group.group_id)
        self.sync(members[0], group.generation, assignments, group_id=group.group_id)
        assert group.state is GroupState.STABLE
        return members

    def joined(self, size=1, **options):
        """A group in CompletingRebalance with `size` members; returns their ids, the leader first."""
        group_id = options.get("group_id", "g")
        members = [self.new_member(settle=False, **options)[0] for _ in range(size)]
        self.settle()
        group = self.group(group_id)
        assert group.state is GroupState.COMPLETING_REBALANCE
        assert group.leader == members[0]
        return members

    def code(self, ticket):
        """The error code of the response to `ticket`, or None while it is parked."""
        response = self.answers.get(ticket)
        return None if response is None else ErrorCode(response.error_code)
