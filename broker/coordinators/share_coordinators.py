"""Runs the share coordinators: one `ShareCoordinator` for each partition of `__share_group_state` (KIP-932).

Share partition leaders and group coordinators, in this process or over the wire, send one request per share partition;
the reply is the partition's result, also for a failure. The first request creates the topic.

The topic is not compacted. Instead the log start is moved forward to the oldest snapshot that is still needed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.config.keys.share_and_streams import (
    SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT,
    SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC,
    SHARE_COORDINATOR_WRITE_TIMEOUT_MS,
)
from barnabas.broker.coordinators.append import codec_of
from barnabas.broker.coordinators.runtime import CoordinatorRuntime
from barnabas.broker.coordinators.shard import Shard
from barnabas.broker.event_loop.guarded import answer_for, call_guarded
from barnabas.coord.topic_names import SHARE_GROUP_STATE_TOPIC
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.coordinators.loading import Event
    from barnabas.broker.coordinators.replay import Replay
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.share_state.coordinator import ShareCoordinator
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.groups.share_state import (
        DeleteShareGroupStateResponsePartitionResult,
        InitializeShareGroupStateRequestPartitionData,
        InitializeShareGroupStateResponsePartitionResult,
        ReadShareGroupStateRequestPartitionData,
        ReadShareGroupStateResponsePartitionResult,
        ReadShareGroupStateSummaryResponsePartitionResult,
        WriteShareGroupStateRequestPartitionData,
        WriteShareGroupStateResponsePartitionResult,
    )
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.coordinator.share.ShareCoordinator")

P = TypeVar("P")


class ShareCoordinators(CoordinatorRuntime["ShareCoordinator"]):
    """All share coordinators of this broker."""

    topic = SHARE_GROUP_STATE_TOPIC

    def __init__(self, services: BrokerServices) -> None:
        super().__init__(services)
        self.codec = codec_of(services.config, SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC)
        self.write_timeout_s = services.config[SHARE_COORDINATOR_WRITE_TIMEOUT_MS] / 1000
        self.on_reset: list[Callable[[SharePartitionKey, int], None]] = []
        """Called when a share partition is initialized again with a state epoch, or deleted (then with epoch 0).

        Its leader must read the state again, unless an older epoch already fences it.
        """

    def apply(self, delta: ClusterDelta) -> Steps[None]:
        """Apply a metadata change, in steps: the state of deleted topics is removed."""
        deleted = set(delta.deleted_topics)
        if any(topic.name == SHARE_GROUP_STATE_TOPIC for topic in delta.deleted_topics.values()):
            self.stop()
        elif deleted:
            yield from self.handle_each(lambda shares, _: shares.topics_deleted(deleted))

    # ---- requests of share partition leaders and group coordinators

    def initialize(
        self,
        key: SharePartitionKey,
        request: InitializeShareGroupStateRequestPartitionData,
        reply: Callable[[InitializeShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Initialize a share partition at an offset; -1 lets its leader choose one."""
        ticket = self._resetting(key, request.state_epoch, reply)
        self._send("initialize", key, ticket, lambda shares, at: shares.initialize(key, request, ticket, at))

    def read(
        self,
        key: SharePartitionKey,
        request: ReadShareGroupStateRequestPartitionData,
        reply: Callable[[ReadShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Read the whole state of a share partition, and fence older leaders."""
        self._send("read", key, reply, lambda shares, at: shares.read(key, request, reply, at))

    def write(
        self,
        key: SharePartitionKey,
        request: WriteShareGroupStateRequestPartitionData,
        reply: Callable[[WriteShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Write delivery states of records; the reply is sent when they are committed."""
        self._send("write", key, reply, lambda shares, at: shares.write(key, request, reply, at))

    def delete(
        self, key: SharePartitionKey, reply: Callable[[DeleteShareGroupStateResponsePartitionResult], None]
    ) -> None:
        """Delete the state of a share partition."""
        ticket = self._resetting(key, 0, reply)
        self._send("delete", key, ticket, lambda shares, _: shares.delete(key, ticket))

    def read_summary(
        self, key: SharePartitionKey, reply: Callable[[ReadShareGroupStateSummaryResponsePartitionResult], None]
    ) -> None:
        """Read the start offset and the epochs of a share partition."""
        self._send("read_summary", key, reply, lambda shares, _: shares.read_summary(key, reply))

    def _resetting(self, key: SharePartitionKey, state_epoch: int, reply: Callable[[P], None]) -> Callable[[P], None]:
        """Wrap `reply` so that the `on_reset` listeners are called first."""

        def reset(result: P) -> None:
            for listener in self.on_reset:
                call_guarded(f"A listener for the reset of {key}", listener, key, state_epoch)
            reply(result)

        return reset

    def _send(
        self, name: str, key: SharePartitionKey, reply: Callable[[Any], None], event: Event[ShareCoordinator]
    ) -> None:
        """Let the coordinator handle a request, once the topic exists; `name` is the request's in `KINDS`."""

        def handle(missing: KafkaError | None) -> None:
            try:
                if missing is not None:
                    raise missing
                self.handle(str(key), event)
            except Exception as error:
                from barnabas.broker.coordinators.share_state_requests import KINDS

                known = answer_for(f"A request to the share coordinator of {key}", error)
                reply(KINDS[name].error(key, known.code, known.message))

        self.ensure_topic(handle)

    # ---- see CoordinatorRuntime

    def _new(self, at: Moment) -> tuple[ShareCoordinator, Replay]:
        from barnabas.broker.coordinators.replay import share_replay
        from barnabas.coord.share_state.config import ShareStateConfig
        from barnabas.coord.share_state.coordinator import ShareCoordinator

        config = ShareStateConfig(
            updates_per_snapshot=self._services.config[SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT]
        )
        coordinator = ShareCoordinator(config, self._partition_count_of)
        return coordinator, share_replay(coordinator, at)

    def _summary(self, coordinator: ShareCoordinator) -> str:
        return f"{len(coordinator.states)} share partitions"

    def _partition_count_of(self, topic_id: Uuid) -> int:
        topic = self._services.image().topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def _replay(self, shard: Shard[ShareCoordinator], result: Result, first_offset: int, at: Moment) -> None:
        for offset, (key, value) in enumerate(result.records, first_offset):
            shard.coordinator.replay(key, value, at, offset)

    def _committed(self, shard: Shard[ShareCoordinator], result: Result) -> None:
        prune_to: Any = getattr(result, "prune_to", None)
        if prune_to is not None:
            self._prune(shard.partition, prune_to)

    def _prune(self, partition: Partition, offset: int) -> None:
        """Move the log start of a state partition to `offset`: earlier records are superseded."""
        try:
            if not partition.is_closed and partition.log.advance_log_start_offset(offset):
                self._services.partitions.persist_log_starts()
        except KafkaError as error:
            logger.warning("Cannot delete superseded records of %r before offset %d: %s", partition, offset, error)
        except OSError as error:
            partition.report_failure("new log start", error)
