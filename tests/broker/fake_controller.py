"""Controllers that a test scripts: they answer as Apache Kafka's do, and check what Kafka's check.

`FakeController` has a metadata log of batches that the test writes and commits. Fetch follows the rules of
`KafkaRaftClient.handleFetchRequest`; registration and heartbeats follow `ClusterControlManager`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.context import Broker
from barnabas.broker.metadata.lifecycle import BrokerLifecycle
from barnabas.broker.net.client.outgoing import Connect, Outgoing
from barnabas.broker.start.builder import load_logs, open_member
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.checkpoint import build_checkpoint
from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponseLeaderIdAndEpoch,
    FetchResponseNodeEndpoint,
    FetchResponsePartitionData,
    FetchResponseSnapshotId,
)
from barnabas.wire.messages.raft import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseSnapshotId,
    FetchSnapshotResponseTopicSnapshot,
)
from barnabas.wire.messages.records.metadata_records import (
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import ONE_UUID
from tests.broker.scripted_nodes import Answers, ScriptedNode, Wire
from tests.support.world import START_MS

CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
FEATURES = [FeatureLevelRecord(name="metadata.version", feature_level=33)]


class FakeQuorum:
    """The log that the controllers share, and their leader."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int, bytes]] = []
        """(base offset, last offset, epoch, bytes)."""
        self.start_offset = 0
        self.high_watermark = 0
        self.epoch = 1
        self.leader_id = 3000
        self.snapshot: tuple[int, int, bytes] | None = None
        self.controllers: dict[int, FakeController] = {}
        self.epochs: dict[int, int] = {}
        """The broker epochs, by broker id."""
        self.refused: list[str] = []
        """Fetches that Kafka's controllers refuse with INVALID_REQUEST."""

    @property
    def end_offset(self) -> int:
        return self.batches[-1][1] + 1 if self.batches else self.start_offset

    def write(self, *records: Message, commit: bool = True) -> int:
        """Append a batch; returns its base offset."""
        base = self.end_offset
        data = build_metadata_batch(records, epoch=self.epoch, now_ms=START_MS, base_offset=base)
        self.batches.append((base, base + len(records) - 1, self.epoch, data))
        if commit:
            self.high_watermark = self.end_offset
        return base

    def write_bytes(self, data: bytes, count: int = 1) -> None:
        """Append a batch as it is."""
        base = self.end_offset
        self.batches.append((base, base + count - 1, self.epoch, data))
        self.high_watermark = self.end_offset

    def truncate(self, offset: int) -> None:
        """What another leader does not have is lost."""
        self.batches = [batch for batch in self.batches if batch[1] < offset]

    def elect(self, leader_id: int) -> None:
        """Another controller leads the next epoch."""
        self.epoch += 1
        self.leader_id = leader_id

    def take_snapshot(self, records: Sequence[Message]) -> None:
        """The log starts at its end; what was before is only in the snapshot."""
        end, epoch = self.end_offset, self.epoch
        batches = build_checkpoint(records, quorum=Quorum(), epoch=epoch, last_timestamp_ms=START_MS, now_ms=START_MS)
        self.snapshot = (end, epoch, b"".join(batches))
        self.batches, self.start_offset = [], end

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the newest epoch at or below this one."""
        ends = [(batch[2], batch[1] + 1) for batch in self.batches if batch[2] <= epoch]
        if ends:
            return ends[-1]
        return (self.snapshot[1], self.start_offset) if self.snapshot else (0, 0)


class FakeController:
    """One controller of the quorum."""

    def __init__(self, wire: Wire, quorum: FakeQuorum, node_id: int, port: int = 0) -> None:
        self.quorum = quorum
        self.node_id = node_id
        self._wire = wire
        self._waits_since: dict[int, float] = {}
        self.node: ScriptedNode = wire.node(port)
        self.node.asks_again = True
        quorum.controllers[node_id] = self
        self.node.on(FetchRequest, self.fetch)
        self.node.on(FetchSnapshotRequest, self.fetch_snapshot)
        self.node.on(BrokerRegistrationRequest, self.register)
        self.node.on(BrokerHeartbeatRequest, self.heartbeat)
        self.sessions: dict[int, bytes] = {}
        """The incarnations with a session, by broker id."""
        self.fetches: list[FetchRequest] = []
        self.registrations: list[BrokerRegistrationRequest] = []
        self.heartbeats: list[BrokerHeartbeatRequest] = []
        self.may_shut_down = True
        self.snapshot_bytes = 1 << 20

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.node.port}"

    @property
    def is_leader(self) -> bool:
        return self.quorum.leader_id == self.node_id

    # -- the metadata log

    def fetch(self, request: FetchRequest, _: int) -> FetchResponse | None:
        if id(request) not in self._waits_since:
            self.fetches.append(request)
        since = self._waits_since.setdefault(id(request), self._wire.now)
        quorum = self.quorum
        requested = request.topics[0].partitions[0]
        data = FetchResponsePartitionData(high_watermark=quorum.high_watermark)
        data.current_leader = FetchResponseLeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch)
        response = FetchResponse(
            responses=[FetchableTopicResponse(topic_id=ONE_UUID, partitions=[data])],
            node_endpoints=[
                FetchResponseNodeEndpoint(node_id=controller.node_id, host="127.0.0.1", port=controller.node.port)
                for controller in quorum.controllers.values()
            ],
        )
        if request.cluster_id != CLUSTER_ID:
            return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
        if requested.last_fetched_epoch < 0 or requested.last_fetched_epoch > requested.current_leader_epoch:
            quorum.refused.append(
                f"last epoch {requested.last_fetched_epoch}, leader epoch {requested.current_leader_epoch}"
            )
            data.error_code = ErrorCode.INVALID_REQUEST
        elif not self.is_leader:
            data.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        elif requested.current_leader_epoch < quorum.epoch:
            data.error_code = ErrorCode.FENCED_LEADER_EPOCH
        elif requested.current_leader_epoch > quorum.epoch:
            data.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
        else:
            self._read(requested.fetch_offset, requested.last_fetched_epoch, data)
            is_new = data.records or requested.high_watermark != quorum.high_watermark or self._is_special(data)
            if not is_new and self._wire.now - since < request.max_wait_ms / 1000:
                return None
        return response

    @staticmethod
    def _is_special(data: FetchResponsePartitionData) -> bool:
        return data.snapshot_id.end_offset >= 0 or data.diverging_epoch.epoch >= 0

    def _read(self, offset: int, last_epoch: int, data: FetchResponsePartitionData) -> None:
        quorum = self.quorum
        if quorum.snapshot is not None and offset < quorum.start_offset:
            data.snapshot_id = FetchResponseSnapshotId(end_offset=quorum.snapshot[0], epoch=quorum.snapshot[1])
            return
        epoch, end = quorum.end_of_epoch(last_epoch)
        if offset > 0 and (epoch < last_epoch or offset > end):
            data.diverging_epoch = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end)
            return
        data.records = b"".join(batch[3] for batch in quorum.batches if batch[1] >= offset)

    def fetch_snapshot(self, request: FetchSnapshotRequest, _: int) -> FetchSnapshotResponse:
        assert self.quorum.snapshot is not None
        end, epoch, content = self.quorum.snapshot
        requested = request.topics[0].partitions[0]
        piece = FetchSnapshotResponsePartitionSnapshot(
            snapshot_id=FetchSnapshotResponseSnapshotId(end_offset=end, epoch=epoch),
            size=len(content),
            position=requested.position,
            unaligned_records=content[requested.position : requested.position + self.snapshot_bytes],
        )
        if (requested.snapshot_id.end_offset, requested.snapshot_id.epoch) != (end, epoch):
            piece.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
        topic = FetchSnapshotResponseTopicSnapshot(name="__cluster_metadata", partitions=[piece])
        return FetchSnapshotResponse(topics=[topic])

    # -- brokers

    def register(self, request: BrokerRegistrationRequest, _: int) -> BrokerRegistrationResponse:
        if not self.is_leader:
            return BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER)
        self.registrations.append(request)
        known = self.sessions.get(request.broker_id)
        if known is not None and known != request.incarnation_id:
            return BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION)
        self.sessions[request.broker_id] = request.incarnation_id
        epoch = self.quorum.epochs[request.broker_id] = self.quorum.end_offset
        self.quorum.write(
            RegisterBrokerRecord(
                broker_id=request.broker_id,
                incarnation_id=request.incarnation_id,
                broker_epoch=epoch,
                end_points=[
                    BrokerEndpoint(name=listener.name, host=listener.host, port=listener.port)
                    for listener in request.listeners
                ],
                fenced=True,
                log_dirs=list(request.log_dirs),
            )
        )
        return BrokerRegistrationResponse(broker_epoch=epoch)

    def heartbeat(self, request: BrokerHeartbeatRequest, _: int) -> BrokerHeartbeatResponse:
        if not self.is_leader:
            return BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
        self.heartbeats.append(request)
        epoch = self.quorum.epochs.get(request.broker_id, -1)
        if epoch != request.broker_epoch:
            return BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH)
        is_caught_up = request.current_metadata_offset >= request.broker_epoch
        is_fenced = request.want_fence or not is_caught_up
        if not is_fenced:
            self.quorum.write(
                BrokerRegistrationChangeRecord(broker_id=request.broker_id, broker_epoch=epoch, fenced=-1)
            )
        return BrokerHeartbeatResponse(
            is_caught_up=is_caught_up,
            is_fenced=is_fenced,
            should_shut_down=request.want_shut_down and self.may_shut_down,
        )


class JoinedBroker:
    """A broker that has fake controllers, in this process."""

    def __init__(self, wire: Wire, directories: Sequence[Path], bootstrap: str, **sets: str) -> None:
        self.wire = wire
        self.outgoing: Outgoing | None = None
        self.joined = Answers()
        """Has None when the broker is unfenced."""

        def connect(broker: Broker) -> Connect:
            self.outgoing = Outgoing(broker.loop, wire.disk)
            self.outgoing.attach(wire.reactor.poller)
            wire.loops.append(broker.loop)
            wire.to_close.append(self.outgoing)
            return self.outgoing.connect

        keys = {
            "process.roles": "broker",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": bootstrap,
            **{key.replace("_", "."): value for key, value in sets.items()},
        }
        config = load(keys, {"CLUSTER_ID": CLUSTER_ID}, None, "dev")
        config.set_default_flush_policy(is_temporary=False)
        self.broker, self.member, self.remote = open_member(
            config,
            [str(path) for path in directories],
            wire.world,
            connect,
        )

    @property
    def lifecycle(self) -> BrokerLifecycle:
        return self.member.lifecycle

    @property
    def image(self) -> ClusterImage:
        return self.broker.image

    def follow(self) -> None:
        """Fetch the metadata, open the logs, and follow the changes."""
        observer = self.remote.observer
        observer.on_caught_up.append(lambda: observer.publish_from(lambda: load_logs(self.broker)))
        observer.start()

    def start(self) -> None:
        """Take the whole way: fetch the metadata, register, open the logs, be unfenced."""
        self.remote.observer.start()
        self.wire.until(lambda: self.remote.observer.is_caught_up)
        listeners = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
        self.member.begin_joining(listeners, lambda: load_logs(self.broker), self.joined)

    def stop(self, *, cleanly: bool = True) -> None:
        """Stop; without `cleanly` as a crash does."""
        self.remote.close()
        self.member.close()
        if self.outgoing is not None:
            self.outgoing.close()
        self.wire.loops.remove(self.broker.loop)
        if cleanly:
            self.broker.log_dirs.close(self.lifecycle.broker_epoch)
        else:
            self.broker.log_dirs.release()
