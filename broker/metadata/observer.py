"""Follows the controllers' metadata log as an observer: fetches, applies committed records, publishes the changes.

It fetches or applies the fetched records, in steps, never both. So a broker that is slow to apply fetches less, and no
fetched records accumulate. A fetch waits at the controller until there is something new.

Rules (KIP-595, each from a trial with Kafka's controllers):
- LastFetchedEpoch and CurrentLeaderEpoch begin at 0, and the first is never above the second: else INVALID_REQUEST;
- the leader epoch is never lowered; answers of an older epoch are not used;
- `CurrentLeader` is followed whatever the error; without one, another controller is asked;
- only records below the leader's high watermark are applied (`metadata_copy`);
- a log that starts later than this copy ends is replaced by the snapshot that the leader names (`snapshot_fetch`).

Records that this broker does not understand stop it, with one sentence: its image would differ from the cluster's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.controller import (
    CONTROLLER_QUORUM_FETCH_MAX_BYTES,
    CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES,
    CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS,
    CONTROLLER_QUORUM_RETRY_BACKOFF_MS,
)
from barnabas.broker.event_loop.guarded import call_guarded, log_failure
from barnabas.broker.metadata.log.snapshot_fetch import SnapshotFetch
from barnabas.broker.metadata.quorum_leader import NO_LEADER
from barnabas.broker.net.client.network_client import NetworkClient
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
    FetchResponse,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
)
from barnabas.wire.types import ONE_UUID

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.metadata.loader import MetadataLoader
    from barnabas.broker.metadata.log.metadata_copy import MetadataCopy
    from barnabas.broker.metadata.quorum_leader import QuorumLeader
    from barnabas.broker.net.client.login import Login
    from barnabas.broker.net.client.outgoing import Connect

logger = logging.getLogger("kafka.raft.KafkaRaftClient")

MAX_WAIT_MS: Final = 500
"""How long a controller keeps a fetch that finds nothing new, as Kafka's observers ask."""
MAX_BACKOFF_S: Final = 0.2
"""The longest pause between two attempts: a failover of the controllers takes about a second."""
FAILURES_TOLD: Final = 5
"""The number of failures in a row after which they are logged: nodes that start together wait for each other."""
REPEAT_S: Final = 10.0
"""The shortest time between two log lines about a failure, seconds."""


class MetadataObserver:
    """Keeps the image of a broker up to date with the controllers' log."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        runner: StepRunner,
        quorum: QuorumLeader,
        copy: MetadataCopy,
        loader: MetadataLoader,
        connect: Connect,
        *,
        cluster_id: str,
        halt: Callable[[str], None],
        software_version: str = "unknown",
        login: Callable[[], Login] | None = None,
    ) -> None:
        """`halt` stops the broker, with the reason; `login` makes the log-in of each connection, None if none."""
        self._loop = loop
        self._config = config
        self._runner = runner
        self._quorum = quorum
        self._copy = copy
        self._loader = loader
        self._cluster_id = cluster_id
        self._halt = halt
        self._client = NetworkClient(
            loop,
            connect,
            quorum.address,
            client_id=f"raft-client-{config.node_id}",
            software_version=software_version,
            login=login,
        )
        self._timeout_s = config[CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS] / 1000
        self._backoff_s = config[CONTROLLER_QUORUM_RETRY_BACKOFF_MS] / 1000
        self._failures = 0
        self._retry: Timer | None = None
        self._is_closed = False
        self._is_busy = False
        self._is_applying = False
        self._is_publishing = False
        self._to_open: Callable[[], None] | None = None
        self._tell_again_at = 0.0
        self.is_caught_up = False
        """Whether everything that a controller had committed when it answered once has been applied."""
        self.on_caught_up: list[Callable[[], None]] = []
        """Called once, when `is_caught_up` becomes true."""
        self.on_applied: list[Callable[[], None]] = []
        """Called when records have been applied and the broker follows them."""

    def start(self) -> None:
        """Fetch from now on."""
        self._quorum.saw_epoch(self._copy.last_epoch)
        self._quorum.voters(self._copy.image.quorum.voters)
        self._loader.image = self._copy.image
        self._fetch()

    def publish_from(self, open_logs: Callable[[], None]) -> None:
        """Call `open_logs` between two changes: it uses the image as it is then, and later changes are published."""
        self._to_open = open_logs
        if not self._is_applying:
            self._open()

    def _open(self) -> None:
        to_open, self._to_open = self._to_open, None
        if to_open is not None:
            self._is_publishing = True
            self._loader.apply_dynamic_configs()
            call_guarded("Opening the logs", to_open)

    @property
    def applied_offset(self) -> int:
        """The offset of the last record in the image."""
        return self._copy.image.offset

    def close(self) -> None:
        """Fetch no more; records that are being applied are still applied."""
        self._is_closed = True
        if self._retry is not None:
            self._retry.cancel()
        self._client.close()

    # -- fetching

    def _fetch(self) -> None:
        self._retry = None
        if self._is_closed or self._is_busy:
            return
        copy, quorum = self._copy, self._quorum
        partition = FetchRequestFetchPartition(
            current_leader_epoch=quorum.epoch,
            fetch_offset=copy.end_offset,
            last_fetched_epoch=copy.last_epoch,
            partition_max_bytes=self._config[CONTROLLER_QUORUM_FETCH_MAX_BYTES],
            replica_directory_id=copy.directory_id,
            high_watermark=copy.high_watermark,
        )
        request = FetchRequest(
            cluster_id=self._cluster_id,
            replica_state=FetchRequestReplicaState(replica_id=self._config.node_id),
            max_wait_ms=MAX_WAIT_MS if self.is_caught_up and quorum.leader_id != NO_LEADER else 0,
            max_bytes=self._config[CONTROLLER_QUORUM_FETCH_MAX_BYTES],
            topics=[FetchRequestFetchTopic(topic=CLUSTER_METADATA_TOPIC, topic_id=ONE_UUID, partitions=[partition])],
        )
        self._is_busy = True
        self._client.send(request, self._fetched, timeout_s=self._timeout_s + MAX_WAIT_MS / 1000)

    def _fetched(self, response: FetchResponse | KafkaError) -> None:
        self._is_busy = False
        if self._is_closed:
            return
        if isinstance(response, KafkaError):
            self._report(response.message or response.code.name)
            self._quorum.failed()
            self._fetch_later()
            return
        if response.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            self._halt(f"the controllers belong to another cluster than this broker's data ({self._cluster_id})")
            return
        partitions = [partition for topic in response.responses for partition in topic.partitions]
        if response.error_code or not partitions:
            self._failed(response.error_code)
            return
        endpoints = [(node.node_id, node.host, node.port) for node in response.node_endpoints]
        self._received(partitions[0], endpoints)

    def _received(self, data: FetchResponsePartitionData, endpoints: list[tuple[int, str, int]]) -> None:
        leader, quorum = data.current_leader, self._quorum
        epoch, old_leader = quorum.epoch, quorum.leader_id
        is_current = leader.leader_epoch < 0 or quorum.learned(leader.leader_id, leader.leader_epoch, endpoints)
        if data.error_code or not is_current:
            if (quorum.epoch, quorum.leader_id) == (epoch, old_leader) or quorum.leader_address() is None:
                self._failed(data.error_code)  # it names no newer leader: ask another one
            else:
                self._fetch()
            return
        self._failures = 0
        if data.snapshot_id.end_offset >= 0:
            self._fetch_snapshot((data.snapshot_id.end_offset, data.snapshot_id.epoch))
            return
        try:
            if data.diverging_epoch.epoch < 0 and data.records:
                self._copy.add(data.records)
        except UnknownMetadataError as error:
            self._report(str(error))
            self._copy.forget_uncommitted()
            self._quorum.failed()
            self._fetch_later()
            return
        self._is_busy = self._is_applying = True
        self._runner.start(self._take(data.high_watermark, data.diverging_epoch), self._taken, self._cannot_apply)

    def _failed(self, code: int) -> None:
        if code not in {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.BROKER_NOT_AVAILABLE}:
            self._report(f"a controller answers {ErrorCode(code).name}")
        self._quorum.failed()
        self._fetch_later()

    def _fetch_later(self) -> None:
        pause_s = min(self._backoff_s * 2 ** min(self._failures, 10), MAX_BACKOFF_S)
        self._failures += 1
        if self._retry is None and not self._is_closed:
            self._retry = self._loop.timers.at(self._loop.now() + pause_s, self._fetch)

    def _report(self, reason: str) -> None:
        """Log why nothing is fetched, once in `REPEAT_S`."""
        now = self._loop.now()
        if self._failures >= FAILURES_TOLD and now >= self._tell_again_at:
            self._tell_again_at = now + REPEAT_S
            text = reason.rstrip(".")
            logger.warning("Cannot fetch the cluster's metadata: %s. Trying again", text)

    # -- applying

    def _take(self, high_watermark: int, diverging: FetchResponseEpochEndOffset) -> Steps[None]:
        """Truncate records that the leader does not have, or commit and apply those it has confirmed."""
        copy = self._copy
        if diverging.epoch >= 0:
            yield from copy.truncate(diverging.epoch, diverging.end_offset)
            return
        copy.commit(high_watermark)
        if copy.is_behind:
            delta = ClusterDelta()
            self._loader.replaying(delta)
            yield from copy.apply(delta)
            self._quorum.voters(copy.image.quorum.voters)
            if self._is_publishing:
                yield from self._loader.publish(delta)
            self._loader.replaying(None)
        yield from copy.snapshot_if_due()

    def _taken(self, _: None) -> None:
        self._is_applying = False
        copy = self._copy
        if copy.high_watermark > 0 and not copy.is_behind and copy.image.offset + 1 >= copy.high_watermark:
            self._caught_up()
        self._applied(None)

    def _applied(self, _: None) -> None:
        """Report that the image has changed, and fetch the next records."""
        self._is_busy = self._is_applying = False
        self._open()
        for follower in self.on_applied:
            call_guarded("A callback after a change of the metadata", follower)
        self._fetch()

    def _caught_up(self) -> None:
        if not self.is_caught_up:
            self.is_caught_up = True
            for follower in self.on_caught_up:
                call_guarded("A callback after the load of the metadata", follower)

    def _cannot_apply(self, error: Exception) -> None:
        """Stop: without records that it cannot understand or write, this broker would have other metadata."""
        if isinstance(error, UnknownMetadataError):
            self._halt(str(error))
        elif isinstance(error, (OSError, KafkaError)):
            self._halt(f"the cluster's metadata cannot be written: {error}")
        else:
            log_failure("Applying the cluster's metadata", error)
            self._halt("the cluster's metadata cannot be applied; the log says why")

    # -- snapshots

    def _fetch_snapshot(self, snapshot_id: tuple[int, int]) -> None:
        if snapshot_id[0] <= self._copy.image.offset + 1:
            self._report(f"a controller sends a snapshot of offset {snapshot_id[0]}, which this broker has passed")
            self._quorum.failed()
            self._fetch_later()
            return
        self._is_busy = True
        SnapshotFetch(
            self._client,
            self._runner,
            self._copy.log,
            snapshot_id=snapshot_id,
            identity=(self._cluster_id, self._config.node_id, self._copy.directory_id),
            leader_epoch=self._quorum.epoch,
            max_bytes=self._config[CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES],
            timeout_s=self._timeout_s,
            then=self._snapshot_fetched,
        ).start()

    def _snapshot_fetched(self, outcome: ClusterImage | Exception) -> None:
        if isinstance(outcome, ClusterImage):
            self._is_applying = True
            self._runner.start(self._replace(outcome), self._applied, self._cannot_apply)
        elif isinstance(outcome, KafkaError):
            self._is_busy = False
            self._report(outcome.message or outcome.code.name)
            self._quorum.failed()
            self._fetch_later()
        else:
            self._cannot_apply(outcome)

    def _replace(self, image: ClusterImage) -> Steps[None]:
        """Replace the image by the snapshot's, and publish the difference to the broker."""
        from barnabas.coord.cluster.metadata_log.image_diff import image_diff_steps

        delta = yield from image_diff_steps(self._copy.image, image)
        yield from self._copy.replace(image, image.offset + 1)
        self._loader.replaying(delta)
        self._loader.image = image
        self._quorum.voters(image.quorum.voters)
        if self._is_publishing:
            yield from self._loader.publish(delta)
        self._loader.replaying(None)
