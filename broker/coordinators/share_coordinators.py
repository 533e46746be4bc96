"""Runs the share coordinators: one pure `ShareCoordinator` for each partition of `__share_group_state` (KIP-932).

How they are run is in `broker.coordinators.runtime`. Who keeps state here, in this process or over the wire, comes
through `ask_*`: one share partition at a time, and the answer is the partition's result, also for a failure. The topic
is created by the first who asks.

What is in the log before the oldest of the last snapshots is deleted from time to time, since the topic is not
compacted; only a log's start moves, segments go with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.broker.config.keys.share_and_streams import (
    SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT,
    SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC,
)
from barnabas.broker.coordinators.runtime import CoordinatorRuntime, Shard, codec_of, release_replies
from barnabas.coord.cluster.topic_names import SHARE_GROUP_STATE_TOPIC
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.coordinators.log import Take
    from barnabas.broker.coordinators.runtime import Event
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.image import ClusterDelta
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.share_state.coordinator import ShareCoordinator
    from barnabas.coord.share_state.key import SharePartitionKey
    from barnabas.wire.messages.share_state import (
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

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        self.codec = codec_of(broker.config, SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC)
        self.on_reset: list[Callable[[SharePartitionKey, int], None]] = []
        """Told when a share partition begins anew with a state epoch, or is forgotten, whereupon any epoch may follow.

        Whoever has its state must ask for it again, unless its older epoch keeps it from being written.
        """

    def apply(self, delta: ClusterDelta) -> None:
        """Follow a change of the metadata: the state of deleted topics goes."""
        deleted = set(delta.deleted_topics)
        if any(topic.name == SHARE_GROUP_STATE_TOPIC for topic in delta.deleted_topics.values()):
            self.stop()
        elif deleted:
            self.handle_all(lambda shares, _: shares.topics_deleted(deleted))

    # ---- state for those who share out records

    def ask_initialize(
        self,
        about: SharePartitionKey,
        asked: InitializeShareGroupStateRequestPartitionData,
        answer: Callable[[InitializeShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Begin a share partition at an offset, -1 for one that its leader finds out."""
        from barnabas.wire.messages.share_state import (
            InitializeShareGroupStateResponsePartitionResult as PartitionResult,
        )

        ticket = self._resetting(about, asked.state_epoch, answer)
        self._ask(about, PartitionResult, ticket, lambda shares, at: shares.initialize(about, asked, ticket, at))

    def ask_read(
        self,
        about: SharePartitionKey,
        asked: ReadShareGroupStateRequestPartitionData,
        answer: Callable[[ReadShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Everything that is kept of a share partition; older leaders are fenced off."""
        from barnabas.wire.messages.share_state import ReadShareGroupStateResponsePartitionResult as PartitionResult

        self._ask(about, PartitionResult, answer, lambda shares, at: shares.read(about, asked, answer, at))

    def ask_write(
        self,
        about: SharePartitionKey,
        asked: WriteShareGroupStateRequestPartitionData,
        answer: Callable[[WriteShareGroupStateResponsePartitionResult], None],
    ) -> None:
        """Keep what has become of records; answered when that is committed."""
        from barnabas.wire.messages.share_state import WriteShareGroupStateResponsePartitionResult as PartitionResult

        self._ask(about, PartitionResult, answer, lambda shares, at: shares.write(about, asked, answer, at))

    def ask_delete(
        self, about: SharePartitionKey, answer: Callable[[DeleteShareGroupStateResponsePartitionResult], None]
    ) -> None:
        """Forget a share partition."""
        from barnabas.wire.messages.share_state import DeleteShareGroupStateResponsePartitionResult as PartitionResult

        ticket = self._resetting(about, 0, answer)
        self._ask(about, PartitionResult, ticket, lambda shares, _: shares.delete(about, ticket))

    def ask_summary(
        self, about: SharePartitionKey, answer: Callable[[ReadShareGroupStateSummaryResponsePartitionResult], None]
    ) -> None:
        """A share partition's start offset and epochs."""
        from barnabas.wire.messages.share_state import (
            ReadShareGroupStateSummaryResponsePartitionResult as PartitionResult,
        )

        self._ask(about, PartitionResult, answer, lambda shares, _: shares.read_summary(about, answer))

    def _resetting(
        self, about: SharePartitionKey, state_epoch: int, answer: Callable[[P], None]
    ) -> Callable[[P], None]:
        """An answer that others are told of as well, before it goes out."""

        def told(result: P) -> None:
            for listener in self.on_reset:
                listener(about, state_epoch)
            answer(result)

        return told

    def _ask(
        self,
        about: SharePartitionKey,
        result_type: Callable[..., P],
        answer: Callable[[P], None],
        event: Event[ShareCoordinator],
    ) -> None:
        try:
            self.ensure_topic()
            self.handle(str(about), event)
        except KafkaError as error:
            answer(result_type(partition=about.partition, error_code=int(error.code), error_message=error.message))

    # ---- what is special about these coordinators

    def _new(self, at: Moment) -> tuple[ShareCoordinator, Take]:
        from barnabas.broker.coordinators.log import into_shares
        from barnabas.coord.share_state.config import ShareStateConfig
        from barnabas.coord.share_state.coordinator import ShareCoordinator

        config = ShareStateConfig(
            updates_per_snapshot=self._broker.config[SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT]
        )
        coordinator = ShareCoordinator(config, self._partition_count_of)
        return coordinator, into_shares(coordinator, at)

    def _contents(self, coordinator: ShareCoordinator) -> str:
        return f"{len(coordinator.states)} share partitions"

    def _partition_count_of(self, topic_id: Uuid) -> int:
        topic = self._broker.image.topic_by_id(topic_id)
        return 0 if topic is None else len(topic.partitions)

    def _replay(self, shard: Shard[ShareCoordinator], result: Result, first_offset: int, at: Moment) -> None:
        for offset, (key, value) in enumerate(result.records, first_offset):
            shard.coordinator.replay(key, value, at, offset)

    def _released(self, shard: Shard[ShareCoordinator], result: Result) -> None:
        release_replies(result)
        prune_to: Any = getattr(result, "prune_to", None)
        if prune_to is not None:
            self._prune(shard.partition, prune_to)

    def _prune(self, partition: Partition, offset: int) -> None:
        """Let a state partition begin at `offset`: no record before it says anything that still holds."""
        try:
            if not partition.is_gone and partition.log.advance_log_start_offset(offset):
                self._broker.partitions.persist_log_starts()
        except KafkaError as error:
            logger.warning("Cannot delete what is not needed of %r before offset %d: %s", partition, offset, error)
        except OSError as error:
            partition.note_failure("new log start", error)
