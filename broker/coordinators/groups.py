"""Runs the group coordinators: one pure `GroupCoordinator` for each partition of `__consumer_offsets` (rule G2).

How they are run is in `broker.coordinators.runtime`.
"""

from __future__ import annotations

import logging
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.config.keys.groups import (
    GROUP_CONSUMER_ASSIGNORS,
    GROUP_CONSUMER_MAX_SIZE,
    GROUP_CONSUMER_MIGRATION_POLICY,
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
    OFFSETS_RETENTION_MINUTES,
    OFFSETS_TOPIC_COMPRESSION_CODEC,
)
from barnabas.broker.config.keys.share_and_streams import (
    GROUP_SHARE_ASSIGNORS,
    GROUP_SHARE_MAX_SIZE,
    GROUP_STREAMS_MAX_SIZE,
)
from barnabas.broker.coordinators import runtime as coordinator_runtime
from barnabas.broker.coordinators.runtime import CoordinatorRuntime, Shard, codec_of, release_replies
from barnabas.broker.coordinators.share_group_states import ShareGroupStates
from barnabas.coord.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.coord.groups.config import GroupConfig, MigrationPolicy
from barnabas.coord.groups.topics import Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.broker.context import Broker
    from barnabas.broker.coordinators.log import Take
    from barnabas.coord.cluster.image import ClusterDelta
    from barnabas.coord.cluster.partition_image import TopicImage
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.machine import Moment, Result
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

Event: TypeAlias = "coordinator_runtime.Event[GroupCoordinator]"


def new_id(random_bytes: Callable[[int], bytes] = urandom) -> str:
    """A random uuid in the usual text form: member ids end in it."""
    text = random_bytes(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def _assignor_names(configured: Sequence[str]) -> tuple[str, ...]:
    """The server-side assignors by their names; Kafka's own may be given by class name as well."""
    names = []
    for item in configured:
        name = _KAFKAS_ASSIGNORS.get(item, item)
        if name in _KAFKAS_ASSIGNORS.values():
            names.append(name)
        else:
            logger.error("group.consumer.assignors: there is no assignor %s here, it is left out", item)
    return tuple(names) or tuple(_KAFKAS_ASSIGNORS.values())


def _check_share_assignors(configured: Sequence[str]) -> None:
    """There is one assignor of share groups, and it is what they get."""
    for item in configured:
        if item not in _SHARE_ASSIGNORS:
            logger.error("group.share.assignors: there is no assignor %s here, share groups get simple", item)


_SHARE_ASSIGNORS = {"simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"}
_KAFKAS_ASSIGNORS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


class ClusterTopics:
    """The topics of the cluster's image, as groups see them (`coord.groups.topics.Topics`)."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def by_name(self, name: str, /) -> Topic | None:
        """The topic of this name, if it exists."""
        return self._topic(self._broker.image.topic(name))

    def by_id(self, topic_id: Uuid, /) -> Topic | None:
        """The topic of this id, if it exists."""
        return self._topic(self._broker.image.topic_by_id(topic_id))

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._broker.image.topics

    def _topic(self, found: TopicImage | None) -> Topic | None:
        if found is None:
            return None
        racks = {broker.id: broker.rack for broker in self._broker.image.brokers.values() if broker.rack}
        if not racks:
            return Topic(found.topic_id, found.name, len(found.partitions))
        replicas = (found.partitions[index].replicas for index in sorted(found.partitions))
        of_partitions = tuple(frozenset(racks[node] for node in nodes if node in racks) for nodes in replicas)
        return Topic(found.topic_id, found.name, len(found.partitions), of_partitions)


class Coordinators(CoordinatorRuntime["GroupCoordinator"]):
    """All group coordinators of this broker."""

    topic = GROUP_METADATA_TOPIC

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker)
        config = broker.config
        self._config = GroupConfig(
            min_session_timeout_ms=config[GROUP_MIN_SESSION_TIMEOUT_MS],
            max_session_timeout_ms=config[GROUP_MAX_SESSION_TIMEOUT_MS],
            initial_rebalance_delay_ms=config[GROUP_INITIAL_REBALANCE_DELAY_MS],
            max_size=config[GROUP_MAX_SIZE],
            consumer_max_size=config[GROUP_CONSUMER_MAX_SIZE],
            share_max_size=config[GROUP_SHARE_MAX_SIZE],
            streams_max_size=config[GROUP_STREAMS_MAX_SIZE],
            consumer_assignors=_assignor_names(config[GROUP_CONSUMER_ASSIGNORS]),
            consumer_migration_policy=MigrationPolicy(config[GROUP_CONSUMER_MIGRATION_POLICY].lower()),
            offset_metadata_max_bytes=config[OFFSET_METADATA_MAX_BYTES],
            offsets_retention_ms=config[OFFSETS_RETENTION_MINUTES] * 60_000,
        )
        self.codec = codec_of(config, OFFSETS_TOPIC_COMPRESSION_CODEC)
        _check_share_assignors(config[GROUP_SHARE_ASSIGNORS])
        self._topics = ClusterTopics(broker)
        self.share_states = ShareGroupStates(broker)

    def of_group(self, group_id: str) -> GroupCoordinator:
        """The coordinator of a group, to look at. KafkaError NOT_COORDINATOR before anybody asked for one."""
        return self.of(group_id)

    def transaction_ended(self, index: int, producer_id: int, *, commit: bool) -> None:
        """The marker of a producer's transaction is in this partition: its offsets count, or are dropped (T5)."""
        shard = self._shards.get(index)
        if shard is not None:  # else it is found in the log, when somebody asks for the coordinator
            shard.coordinator.replay_end(producer_id, self._moment(), commit=commit)

    def apply(self, delta: ClusterDelta) -> None:
        """Follow a change of the metadata: the offsets of deleted topics go."""
        for topic in delta.deleted_topics.values():
            if topic.name == GROUP_METADATA_TOPIC:
                self.stop()
            else:
                self._forget_topic(topic)
        changed = {topic.name for topic in delta.deleted_topics.values()}
        changed.update(topic.name for topic in delta.new_partitions.values())
        changed.update(topic.name for topic in delta.changed_partitions.values())
        if changed:
            self.handle_all(lambda groups, at: groups.metadata_changed(changed, at))

    def _forget_topic(self, topic: TopicImage) -> None:
        self.handle_all(lambda groups, _: groups.topic_deleted(topic.name, topic.topic_id))

    def expire_offsets(self) -> None:
        """Remove the offsets that were kept for `offsets.retention.minutes`, and groups that are empty without them."""
        self.handle_all(lambda groups, at: groups.expire_offsets(at))

    def _new(self, at: Moment) -> tuple[GroupCoordinator, Take]:
        from barnabas.broker.coordinators.log import into_groups
        from barnabas.coord.groups.coordinator import GroupCoordinator  # 20 ms that a start without groups does not pay

        coordinator = GroupCoordinator(
            self._config, partial(new_id, self._broker.random_bytes), self._topics, self._broker.group_configs
        )
        return coordinator, into_groups(coordinator, at)

    def _contents(self, coordinator: GroupCoordinator) -> str:
        return f"{len(coordinator.groups)} groups"

    def _replay(self, shard: Shard[GroupCoordinator], result: Result, first_offset: int, at: Moment) -> None:
        coordinator = shard.coordinator
        for offset, (key, value) in enumerate(result.records, first_offset):
            if result.producer is None:
                coordinator.replay(key, value, at, offset)
            else:
                coordinator.replay_pending(result.producer[0], key, value, offset)

    def _released(self, shard: Shard[GroupCoordinator], result: Result) -> None:  # noqa: ARG002 - whoever it is
        release_replies(result)
        self.share_states.follow(result)
