"""CreateTopics, CreatePartitions, DeleteTopics: validates requests against the image and returns records.

Each topic of a request succeeds or fails on its own. Error codes and messages are Kafka's. Source: Kafka 4.4
`ReplicationControlManager`, `ControllerApis`. KIP-4, KIP-195, KIP-516, KIP-525. Rule R22.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from barnabas.coord.cluster.changes.config_changes import ConfigChanges
from barnabas.coord.cluster.changes.config_describe import ConfigDescriber
from barnabas.coord.cluster.changes.placement import ReplicaPlacer, check_manual_assignment, usable_brokers
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.resources import TOPIC
from barnabas.coord.cluster.topic_image import TopicImage, default_directory
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC, MetricNames, check_topic_name
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsTopic,
    DeletableTopicResult,
    DeleteTopicState,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

MAX_PARTITIONS_PER_REQUEST: Final = 10_000
"""The maximum number of new partitions in one request, as in Kafka."""

PARTITIONS_PER_STEP: Final = 100
"""The number of partitions whose records are made in one step."""

USE_DEFAULT: Final = -1
NO_TOPIC_ID: Final = Uuid(16)

H = TypeVar("H", bound=Hashable)


class TopicDefaults(NamedTuple):
    """The partition count and replication factor of topics that are created without them."""

    num_partitions: int
    replication_factor: int
    clamps_replicas: bool = False
    """Whether a replication factor is reduced to the number of live brokers instead of refused."""
    ignores_case: bool = False
    """Whether the logs are on a file system where topics that differ only in case would share a directory."""


class TopicChanges:
    """Validates the topics of one request; `records` collects the records of the valid ones."""

    def __init__(
        self,
        image: ClusterImage,
        changes: ConfigChanges,
        describer: ConfigDescriber,
        defaults: TopicDefaults,
        new_uuid: Callable[[], Uuid],
        charge: Callable[[int], None] | None = None,
    ) -> None:
        """`charge` is called with the number of partitions that a valid topic adds or takes away; KafkaError if that
        is too much for the client's quota."""
        self._charge = charge
        self._image = image
        self._changes = changes
        self._describer = describer
        self._defaults = defaults
        self._new_uuid = new_uuid
        self._names: set[str] = set()  # of the new topics
        self._metric_names: MetricNames | None = None
        self._folded_names: dict[str, str] | None = None
        self._new_partitions = 0
        self._described: dict[tuple[tuple[str, str], ...], list[CreatableTopicConfigs]] = {}
        self.records: list[Message] = []

    def check_number_of_partitions(self, topics: Iterable[CreatableTopic]) -> None:
        """KafkaError POLICY_VIOLATION when all topics of a request together have too many partitions.

        The first check, before any work for a single topic, as in Kafka.
        """
        default = self._defaults.num_partitions
        for topic in topics:
            count = len(topic.assignments) or (default if topic.num_partitions == USE_DEFAULT else topic.num_partitions)
            self._count_new_partitions(max(0, count))

    def create(self, topic: CreatableTopic) -> Generator[None, None, CreatableTopicResult]:
        """Create one topic, in steps; KafkaError when it is invalid."""
        self._check_new_name(topic.name)
        configs = _configs_of(topic)
        self._changes.check_topic_configs(configs)
        assignments = yield from self._assignments(topic)
        topic_id = self._new_uuid()
        is_manual = bool(topic.assignments)
        partitions = yield from self._partitions(topic_id, 0, assignments, is_manual=is_manual)
        if self._charge is not None:
            self._charge(len(assignments))
        self._names.add(topic.name)
        self._names_of_metrics().add(topic.name)
        if self._folded_names is not None:
            self._folded_names[topic.name.casefold()] = topic.name
        self.records.append(TopicRecord(name=topic.name, topic_id=topic_id))
        self.records += [
            ConfigRecord(resource_type=TOPIC, resource_name=topic.name, name=name, value=value)
            for name, value in configs.items()
        ]
        self.records += partitions
        return CreatableTopicResult(
            name=topic.name,
            topic_id=topic_id,
            error_message=None,
            num_partitions=len(assignments),
            replication_factor=len(assignments[0]),
            configs=self._described_configs(configs),
        )

    def _described_configs(self, configs: dict[str, str]) -> list[CreatableTopicConfigs]:
        """The configs of a new topic in the response: one list for all topics of a request with the same."""
        key = tuple(sorted(configs.items()))
        described = self._described.get(key)
        if described is None:
            described = self._described[key] = [
                CreatableTopicConfigs(
                    name=entry.name,
                    value=entry.value,
                    read_only=entry.read_only,
                    config_source=entry.config_source,
                    is_sensitive=entry.is_sensitive,
                )
                for entry in self._describer.topic_entries(configs)
            ]
        return described

    def _check_new_name(self, name: str) -> None:
        if name == CLUSTER_METADATA_TOPIC:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        check_topic_name(name)
        if name in self._names or name in self._image.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        other = self._names_of_metrics().colliding(name)
        if other is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")
        if self._defaults.ignores_case:
            self._check_case(name)

    def _check_case(self, name: str) -> None:
        if self._folded_names is None:
            self._folded_names = {topic.casefold(): topic for topic in self._image.topics}
        other = self._folded_names.get(name.casefold())
        if other is not None:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' differs only in case from the existing topic {other}: the file system of the broker's "
                "data directory does not distinguish them",
            )

    def _names_of_metrics(self) -> MetricNames:
        if self._metric_names is None:  # only requests that create topics need it
            self._metric_names = MetricNames(self._image.topics)
        return self._metric_names

    def _count_new_partitions(self, partitions: int, what: str = "partitions") -> None:
        self._new_partitions += partitions
        if self._new_partitions > MAX_PARTITIONS_PER_REQUEST:
            raise KafkaError(ErrorCode.POLICY_VIOLATION, f"Excessively large number of {what} per request.")

    def _assignments(self, topic: CreatableTopic) -> Generator[None, None, Sequence[Sequence[int]]]:
        """Replicas by partition, from the manual assignment or placed."""
        if topic.assignments:
            return self._manual_assignments(topic)
        if topic.replication_factor < USE_DEFAULT or topic.replication_factor == 0:
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                "Replication factor must be larger than 0, or -1 to use the default value.",
            )
        if topic.num_partitions < USE_DEFAULT or topic.num_partitions == 0:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
            )
        partitions = self._defaults.num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions
        factor = topic.replication_factor
        if factor == USE_DEFAULT:
            factor = self._defaults.replication_factor
        if self._defaults.clamps_replicas:
            factor = min(factor, max(1, len(self._image.live_brokers())))
        return (yield from self._place(partitions, factor, len(self._image.topics) + len(self._names)))

    def _place(self, partitions: int, replication_factor: int, start: int) -> Generator[None, None, list[list[int]]]:
        placer = ReplicaPlacer(usable_brokers(self._image), start)
        placer.check(replication_factor)
        placed: list[list[int]] = []
        while len(placed) < partitions:
            placed.append(placer.place(replication_factor))
            if len(placed) % PARTITIONS_PER_STEP == 0:
                yield
        return placed

    def _manual_assignments(self, topic: CreatableTopic) -> Sequence[Sequence[int]]:
        for name, value in (("replication factor", topic.replication_factor), ("numPartitions", topic.num_partitions)):
            if value != USE_DEFAULT:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {name} was not set to -1.",
                )
        by_index: dict[int, CreatableReplicaAssignment] = {}
        factor: int | None = None
        for assignment in topic.assignments:
            index = assignment.partition_index
            if index in by_index:
                raise KafkaError(
                    ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                    f"Found multiple manual partition assignments for partition {index}",
                )
            check_manual_assignment(assignment.broker_ids, self._image.brokers, factor)
            factor = len(assignment.broker_ids)
            by_index[index] = assignment
        if sorted(by_index) != list(range(len(by_index))):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
            )
        return [by_index[index].broker_ids for index in range(len(by_index))]

    def _partitions(
        self, topic_id: Uuid, first: int, assignments: Sequence[Sequence[int]], *, is_manual: bool
    ) -> Generator[None, None, list[Message]]:
        """The records of new partitions, whose indexes begin with `first`; KafkaError if one of them is invalid."""
        active = {broker.id for broker in self._image.live_brokers() if not broker.in_controlled_shutdown}
        records: list[Message] = []
        for index, replicas in enumerate(assignments, first):
            if active.isdisjoint(replicas):
                raise _no_active_replica(index, len(replicas), is_manual=is_manual)
            records.append(self._partition(topic_id, index, replicas, active))
            if len(records) % PARTITIONS_PER_STEP == 0:
                yield
        return records

    def _partition(self, topic_id: Uuid, index: int, replicas: Sequence[int], active: set[int]) -> PartitionRecord:
        """A new partition: every active replica is in the ISR, and the first of them is the leader."""
        isr = [replica for replica in replicas if replica in active]
        return PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=list(replicas),
            isr=isr,
            leader=isr[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[self._default_directory(replica) for replica in replicas],
        )

    def _default_directory(self, broker_id: int) -> Uuid:
        """The log directory of a new replica: known if the broker has only one."""
        return default_directory(self._image.brokers[broker_id].directories)

    def extend(self, topic: CreatePartitionsTopic) -> Generator[None, None, None]:
        """Add partitions to a topic up to a count, in steps; KafkaError when that is not possible."""
        topic_image = self._image.topics.get(topic.name)
        if topic_image is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        existing = len(topic_image.partitions)
        if topic.count == existing:
            raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {existing} partition(s).")
        if topic.count < existing:
            raise KafkaError(
                ErrorCode.INVALID_PARTITIONS,
                f"The topic {topic.name} currently has {existing} partition(s); "
                f"{topic.count} would not be an increase.",
            )
        self._count_new_partitions(topic.count - existing, "additional partitions")
        factor = len(topic_image.partitions[0].replicas)
        replicas = yield from self._added_replicas(topic, topic.count - existing, existing, factor)
        if self._charge is not None:
            self._charge(topic.count - existing)
        is_manual = topic.assignments is not None
        self.records += yield from self._partitions(topic_image.topic_id, existing, replicas, is_manual=is_manual)

    def _added_replicas(
        self, topic: CreatePartitionsTopic, added: int, existing: int, factor: int
    ) -> Generator[None, None, Sequence[Sequence[int]]]:
        if topic.assignments is None:
            return (yield from self._place(added, factor, existing))
        if len(topic.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only {len(topic.assignments)} assignment(s) "
                "were specified.",
            )
        for assignment in topic.assignments:
            check_manual_assignment(assignment.broker_ids, self._image.brokers, factor)
        return [assignment.broker_ids for assignment in topic.assignments]

    def delete(self, state: DeleteTopicState) -> DeletableTopicResult:
        """Delete one topic by its name or its id; KafkaError when that is not possible."""
        topic = self._topic_to_delete(state)
        if self._charge is not None:
            self._charge(len(topic.partitions))
        self.records.append(RemoveTopicRecord(topic_id=topic.topic_id))
        return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)

    def _topic_to_delete(self, state: DeleteTopicState) -> TopicImage:
        if state.name is not None and state.topic_id != NO_TOPIC_ID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if state.name is not None:
            topic = self._image.topics.get(state.name)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif state.topic_id != NO_TOPIC_ID:
            topic = self._image.topics_by_id.get(state.topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if topic is None:
            raise KafkaError(missing)
        return topic


def _no_active_replica(index: int, replicas: int, *, is_manual: bool) -> KafkaError:
    if is_manual:
        return KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
            "controlled shutdown.",
        )
    return KafkaError(
        ErrorCode.INVALID_REPLICATION_FACTOR,
        f"Unable to replicate the partition {replicas} time(s): All brokers are currently fenced or in controlled "
        "shutdown.",
    )


def _configs_of(topic: CreatableTopic) -> dict[str, str]:
    """The configs of a new topic; KafkaError(INVALID_CONFIG) for null values."""
    nulls = [config.name for config in topic.configs if config.value is None]
    if nulls:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(sorted(nulls))}"
        )
    return {config.name: config.value for config in topic.configs if config.value is not None}


def duplicates(names: Iterable[H]) -> set[H]:
    """The names that occur more than once in a request; all of their entries are refused."""
    return {name for name, count in Counter(names).items() if count > 1}
