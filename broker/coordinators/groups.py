"""Runs the group coordinators: one `GroupCoordinator` for each partition of `__consumer_offsets` (rule G2)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from os import urandom
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.config.keys.general import AUTHORIZER_CLASS_NAME
from barnabas.broker.config.keys.groups import (
    GROUP_CONSUMER_ASSIGNORS,
    GROUP_CONSUMER_MAX_SIZE,
    GROUP_CONSUMER_MIGRATION_POLICY,
    GROUP_INITIAL_REBALANCE_DELAY_MS,
    GROUP_MAX_SESSION_TIMEOUT_MS,
    GROUP_MAX_SIZE,
    GROUP_MIN_SESSION_TIMEOUT_MS,
    OFFSET_METADATA_MAX_BYTES,
    OFFSETS_COMMIT_TIMEOUT_MS,
    OFFSETS_RETENTION_MINUTES,
    OFFSETS_TOPIC_COMPRESSION_CODEC,
)
from barnabas.broker.config.keys.own import GROUP_MAX_BYTES, GROUP_MEMBER_MAX_BYTES, GROUP_MEMBERS_MAX, GROUPS_MAX
from barnabas.broker.config.keys.share_and_streams import (
    GROUP_SHARE_ASSIGNORS,
    GROUP_SHARE_MAX_SIZE,
    GROUP_STREAMS_MAX_SIZE,
)
from barnabas.broker.coordinators.append import codec_of
from barnabas.broker.coordinators.runtime import CoordinatorRuntime
from barnabas.broker.coordinators.shard import Shard
from barnabas.broker.coordinators.share_group_states import ShareGroupStates
from barnabas.broker.event_loop.limited_log import LimitedLog
from barnabas.coord.groups.config import GroupConfig, MigrationPolicy
from barnabas.coord.groups.topics import Topic
from barnabas.coord.topic_names import GROUP_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.coordinators.gathered_commits import GatheredCommits, UsualCommit
    from barnabas.broker.coordinators.loading import Event
    from barnabas.broker.coordinators.replay import Replay
    from barnabas.broker.coordinators.services import BrokerServices
    from barnabas.broker.coordinators.share_states import ShareStates
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.net.connection import Connection
    from barnabas.coord.cluster.delta import ClusterDelta
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import TopicImage
    from barnabas.coord.groups.coordinator import GroupCoordinator
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.machine import Moment, Result
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.coordinator.group.GroupCoordinator")

GroupEvent: TypeAlias = "Event[GroupCoordinator]"


_SHARE_ASSIGNORS = {"simple", "org.apache.kafka.coordinator.group.assignor.SimpleAssignor"}
_KAFKAS_ASSIGNORS = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


def new_id(random_bytes: Callable[[int], bytes] = urandom) -> str:
    """A random UUID in text form, for member ids."""
    text = random_bytes(16).hex()
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-{'89ab'[int(text[16], 16) & 3]}{text[17:20]}-{text[20:]}"


def _assignor_names(configured: Sequence[str]) -> tuple[str, ...]:
    """The names of the configured server-side assignors; Kafka's own may also be given by class name."""
    names = []
    for item in configured:
        name = _KAFKAS_ASSIGNORS.get(item, item)
        if name in _KAFKAS_ASSIGNORS.values():
            names.append(name)
        else:
            logger.error("group.consumer.assignors: unknown assignor %s is ignored", item)
    return tuple(names) or tuple(_KAFKAS_ASSIGNORS.values())


def _check_share_assignors(configured: Sequence[str]) -> None:
    """Log an error for unknown assignors: share groups always use `simple`."""
    for item in configured:
        if item not in _SHARE_ASSIGNORS:
            logger.error("group.share.assignors: unknown assignor %s, share groups use simple", item)


def _group_config(config: ServerConfig) -> GroupConfig:
    return GroupConfig(
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
        max_groups=config[GROUPS_MAX],
        max_members=config[GROUP_MEMBERS_MAX],
        member_max_bytes=config[GROUP_MEMBER_MAX_BYTES],
        group_max_bytes=config[GROUP_MAX_BYTES],
        hides_topics=bool(config[AUTHORIZER_CLASS_NAME]),
    )


class GroupCoordinators(CoordinatorRuntime["GroupCoordinator"]):
    """All group coordinators of this broker."""

    topic = GROUP_METADATA_TOPIC
    _gathered_commits: type[GatheredCommits]
    """Imported with the first coordinator."""

    def __init__(
        self,
        services: BrokerServices,
        shares: ShareStates,
        group_configs: Callable[[], GroupConfigs],
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """`group_configs` is called with the first coordinator; `random_bytes` is the source of member ids."""
        super().__init__(services)
        config = services.config
        self._config = _group_config(config)
        self.codec = codec_of(config, OFFSETS_TOPIC_COMPRESSION_CODEC)
        self.write_timeout_s = config[OFFSETS_COMMIT_TIMEOUT_MS] / 1000
        _check_share_assignors(config[GROUP_SHARE_ASSIGNORS])
        self._topics = ClusterTopics(services.image)
        self._group_configs = group_configs
        self._random_bytes = random_bytes
        self._refusals = LimitedLog(services.loop, logger, logging.WARNING, "refused requests of groups")
        self.share_states = ShareGroupStates(services.loop, self.handle, shares)

    def _count(self) -> int:
        return sum([len(coordinator.groups) for coordinator in self])

    def admit(self, group_id: str, member_id: str, *data: object) -> None:
        """Check the limits for a request of a member; `data` are its fields that the group would keep.

        KafkaError as of `GroupLimits.admit`, or because there is no coordinator.
        """
        try:
            self.coordinator_of(group_id).limits.admit(group_id, member_id, data)
        except KafkaError as error:
            self._log_refusal(group_id, error)
            raise

    def admit_assignments(self, group_id: str, assignments: Iterable[bytes]) -> None:
        """Check the limits for the assignments that the leader of a classic group sends; KafkaError as of `admit`."""
        try:
            self.coordinator_of(group_id).limits.admit_assignments(group_id, assignments)
        except KafkaError as error:
            self._log_refusal(group_id, error)
            raise

    def commit(
        self,
        commit: UsualCommit,
        topic: TopicImage,
        offset: int,
        leader_epoch: int,
        connection: Connection,
        correlation_id: int,
    ) -> bytes | None:
        """Commit an offset; the frame of the response, for which the request does not wait.

        It is written now, or with other commits of this turn before the response is sent. None, and nothing is done,
        if the commit is refused or its partition has followers or a flush policy, for which it would have to wait.
        """
        try:
            shard = self._shard_of(commit.request.group_id)
        except KafkaError:
            return None
        partition, coordinator = shard.partition, shard.coordinator
        if not partition.leads_alone or partition.flush_policy is not None or self.codec:
            return None
        loop, at = self._loop, self._moment()
        try:
            coordinator.offsets.check_usual(commit.request, commit.api_version, at)
        except KafkaError:
            return None
        gathered: GatheredCommits | None = shard.gathered  # type: ignore[assignment]
        if gathered is not None and not gathered.has_room_for(commit):
            loop.write_gathered()
            gathered = None
        if gathered is None:
            gathered = shard.gathered = self._gathered_commits(self, shard, at)
            if loop.is_gathering:
                loop.gathered.append(gathered)
        response = gathered.add(commit, topic, offset, leader_epoch, at, connection, correlation_id)
        if not loop.is_gathering:
            error = gathered.append()
            if error:
                return commit.failed(correlation_id, error)
        self._follow_deadlines(shard, at)
        return response

    def _log_refusal(self, group_id: str, error: KafkaError) -> None:
        if error.code in (ErrorCode.GROUP_MAX_SIZE_REACHED, ErrorCode.INVALID_REQUEST):
            text = "A request of group %.100r is refused with %s: %s"
            self._refusals.line(group_id, text, group_id, error.code.name, error)

    def transaction_ended(self, index: int, producer_id: int, *, commit: bool) -> None:
        """Commit or drop a producer's pending offsets: its marker is in this partition (T5)."""
        shard = self._shards.get(index)
        if shard is not None:  # otherwise the marker is replayed from the log when the coordinator is loaded
            try:
                shard.coordinator.replay_end(producer_id, self._moment(), commit=commit)
            except Exception as error:
                self.fail(shard, f"The end of a transaction of producer {producer_id}", error)

    def apply(self, delta: ClusterDelta) -> Steps[None]:
        """Apply a metadata change, in steps: remove the offsets of deleted topics, notify groups of changed topics."""
        deleted = {topic.name: topic.topic_id for topic in delta.deleted_topics.values()}
        if GROUP_METADATA_TOPIC in deleted:
            self.stop()
        elif deleted:
            yield from self.handle_each(
                lambda groups, _: groups.offsets.topics_deleted(deleted),
                lambda groups: groups.offsets.topics_deleted_in_parts(deleted),
            )
        changed = set(deleted)
        changed.update(topic.name for topic in delta.new_partitions.values())
        changed.update(topic.name for topic in delta.changed_partitions.values())
        if changed:
            yield from self.handle_each(lambda groups, at: groups.metadata_changed(changed, at))

    def expire_offsets(self) -> Steps[None]:
        """Remove offsets older than `offsets.retention.minutes`, and groups that are empty without them, in steps.

        A coordinator that is being loaded does a first part; the next check does the others.
        """
        yield from self.handle_each(
            lambda groups, at: next(groups.offsets.expire_in_parts(at)),
            lambda groups: groups.offsets.expire_in_parts(self._moment()),
        )

    def _new(self, at: Moment) -> tuple[GroupCoordinator, Replay]:
        from barnabas.broker.coordinators.gathered_commits import GatheredCommits
        from barnabas.broker.coordinators.replay import group_replay
        from barnabas.coord.groups.coordinator import (
            GroupCoordinator,  # takes 20 ms, which a start without groups saves
        )

        self._gathered_commits = GatheredCommits
        coordinator = GroupCoordinator(
            self._config, partial(new_id, self._random_bytes), self._topics, self._group_configs(), self._count
        )
        return coordinator, group_replay(coordinator, at)

    def _summary(self, coordinator: GroupCoordinator) -> str:
        return f"{len(coordinator.groups)} groups"

    def _replay(self, shard: Shard[GroupCoordinator], result: Result, first_offset: int, at: Moment) -> None:
        coordinator = shard.coordinator
        for offset, (key, value) in enumerate(result.records, first_offset):
            if result.producer is None:
                coordinator.replay(key, value, at, offset)
            else:
                coordinator.replay_pending(result.producer[0], key, value, at, offset)

    def _committed(self, shard: Shard[GroupCoordinator], result: Result) -> None:  # noqa: ARG002 - the same for each
        self.share_states.committed(result)


class ClusterTopics:
    """Implements `coord.groups.topics.Topics` on the current metadata image."""

    def __init__(self, image: Callable[[], ClusterImage]) -> None:
        self._image = image

    def by_name(self, name: str, /) -> Topic | None:
        """The topic of this name, or None."""
        image = self._image()
        return _with_racks(image, image.topic(name))

    def by_id(self, topic_id: Uuid, /) -> Topic | None:
        """The topic of this id, or None."""
        image = self._image()
        return _with_racks(image, image.topic_by_id(topic_id))

    def names(self) -> Iterable[str]:
        """The names of all topics."""
        return self._image().topics


def _with_racks(image: ClusterImage, topic: TopicImage | None) -> Topic | None:
    if topic is None:
        return None
    racks = {broker.id: broker.rack for broker in image.brokers.values() if broker.rack}
    if not racks:
        return Topic(topic.topic_id, topic.name, len(topic.partitions))
    replicas = (topic.partitions[index].replicas for index in sorted(topic.partitions))
    of_partitions = tuple(frozenset(racks[node] for node in nodes if node in racks) for nodes in replicas)
    return Topic(topic.topic_id, topic.name, len(topic.partitions), of_partitions)
