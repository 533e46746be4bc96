"""CreateTopics, DeleteTopics, CreatePartitions: Kafka's error codes and messages, and the resulting image."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.coord.cluster.changes.topic_changes import TopicDefaults
from barnabas.coord.cluster.local_controller import ITEMS_PER_STEP
from barnabas.coord.cluster.topic_image import TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.support.cases import for_each
from tests.support.controller.worlds import ControllerWorld
from tests.support.steps import counted


@pytest.fixture
def world() -> ControllerWorld:
    return ControllerWorld()


def test_a_topic_is_in_the_image_with_its_id_partitions_and_configs(world: ControllerWorld) -> None:
    result = world.create("orders", 3, retention_ms="1000")
    assert result.error_code == ErrorCode.NONE
    assert result.error_message is None
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    topic = world.image.topics["orders"]
    assert world.image.topics_by_id[result.topic_id] is topic
    assert list(topic.partitions) == [0, 1, 2]
    partition = topic.partitions[0]
    assert (partition.leader, partition.isr, partition.leader_epoch, partition.partition_epoch) == (1, (1,), 0, 0)
    assert partition.directories == (b"\x01" * 16,)
    assert world.image.config(2, "orders") == {"retention.ms": "1000"}


def test_the_response_has_every_config_with_its_source(world: ControllerWorld) -> None:
    """KIP-525."""
    result = world.create("orders", retention_ms="1000")
    configs = {config.name: config for config in result.configs or []}
    assert len(configs) == 37
    assert list(configs) == sorted(configs)
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("1000", 1)
    assert (configs["segment.bytes"].value, configs["segment.bytes"].config_source) == ("1073741824", 5)


def test_minus_one_means_the_brokers_defaults(world: ControllerWorld) -> None:
    """KIP-464."""
    result = world.create("orders", -1, -1)
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_validate_only_validates_and_changes_nothing(world: ControllerWorld) -> None:
    assert world.create("orders", validate_only=True).error_code == ErrorCode.NONE
    assert world.create("x y", validate_only=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert world.image.topics == {}


@for_each(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("a" * 250, "is longer than the max allowed length 249"),
        ("a b", "one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("käse", "one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        ("a/b", "one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
    ],
)
def test_invalid_names_are_refused(world: ControllerWorld, name: str, reason: str) -> None:
    result = world.create(name)
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message is not None
    assert result.error_message.startswith("Topic name is invalid: ")
    assert result.error_message.endswith(reason)


def test_a_name_of_249_characters_is_valid(world: ControllerWorld) -> None:
    assert world.create("a" * 249).error_code == ErrorCode.NONE


def test_names_that_differ_only_in_dot_and_underscore_collide(world: ControllerWorld) -> None:
    world.create("a.b")
    result = world.create("a_b")
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert result.error_message == "Topic 'a_b' collides with existing topic: a.b"


def test_the_metadata_topic_cannot_be_created(world: ControllerWorld) -> None:
    assert world.create("__cluster_metadata").error_code == ErrorCode.INVALID_REQUEST


def test_an_existing_name_is_refused(world: ControllerWorld) -> None:
    world.create("orders")
    result = world.create("orders")
    assert result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert result.error_message == "Topic 'orders' already exists."


def test_duplicate_names_are_refused_and_the_others_created(world: ControllerWorld) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("a", "b", "a")]
    results = {result.name: result for result in world.create_all(*topics)}
    assert results["a"].error_code == ErrorCode.INVALID_REQUEST
    assert results["a"].error_message == "Duplicate topic name."
    assert results["b"].error_code == ErrorCode.NONE
    assert list(world.image.topics) == ["b"]


@pytest.mark.parametrize(("partitions", "code"), [(0, 37), (-2, 37), (1, 0)])
def test_partition_counts(world: ControllerWorld, partitions: int, code: int) -> None:
    assert world.create("orders", partitions).error_code == code


@pytest.mark.parametrize(("factor", "code"), [(0, 38), (-2, 38), (2, 38), (1, 0)])
def test_replication_factors(world: ControllerWorld, factor: int, code: int) -> None:
    assert world.create("orders", 1, factor).error_code == code


def test_too_few_brokers_give_kafkas_message(world: ControllerWorld) -> None:
    assert world.create("orders", 1, 3).error_message == (
        "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because "
        "only 1 broker(s) are registered or some brokers have all their log directories cordoned."
    )


def test_a_replication_factor_may_be_reduced_to_the_number_of_brokers() -> None:
    """The dev profile: requests for three replicas work on one broker."""
    world = ControllerWorld(brokers=2)
    request = CreateTopicsRequest(topics=[CreatableTopic(name="orders", num_partitions=1, replication_factor=3)])
    (result,) = world.commit(world.controller.create_topics(request, TopicDefaults(1, 1, clamps_replicas=True))).topics
    assert (result.error_code, result.replication_factor) == (0, 2)
    assert len(world.image.topics["orders"].partitions[0].replicas) == 2


def test_topics_that_would_share_a_directory_are_refused() -> None:
    """macOS does not distinguish orders-0 from ORDERS-0, within one request and between two."""
    world = ControllerWorld()

    def create(*names: str) -> list[int]:
        request = CreateTopicsRequest(
            topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        )
        defaults = TopicDefaults(1, 1, ignores_case=True)
        return [topic.error_code for topic in world.commit(world.controller.create_topics(request, defaults)).topics]

    assert create("orders", "Orders", "jobs") == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    assert create("ORDERS", "jobs", "other") == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.TOPIC_ALREADY_EXISTS,
        0,
    ]
    assert world.create("Other").error_code == 0, "elsewhere such names are different"


def test_a_request_for_too_many_partitions_is_refused(world: ControllerWorld) -> None:
    for partitions in (10_001, 2**31 - 1):
        with pytest.raises(KafkaError) as refused:
            world.create("orders", partitions)
        assert refused.value.code == ErrorCode.POLICY_VIOLATION


def test_too_many_partitions_in_all_are_refused_before_a_single_topic_is_checked(world: ControllerWorld) -> None:
    """As in Kafka: the whole request fails, also topics whose names are wrong."""
    topics = [CreatableTopic(name=f"a.{index}", num_partitions=1, replication_factor=1) for index in range(9_999)]
    topics.append(CreatableTopic(name="?", num_partitions=2, replication_factor=1))
    with pytest.raises(KafkaError) as refused:
        world.controller.create_topics(CreateTopicsRequest(topics=topics), TopicDefaults(1, 1))
    assert refused.value.code == ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"retention.ms": "soon"}, "Invalid value soon for configuration retention.ms: Not a number of type LONG"),
        ({"retention.hours": "1"}, "Unknown topic config name: retention.hours"),
        (
            {"cleanup.policy": "shred"},
            "Invalid value shred for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        ({"retention.ms": None}, "Null value not supported for topic configs: retention.ms"),
    ],
)
def test_invalid_configs_are_refused(world: ControllerWorld, configs: dict[str, str | None], message: str) -> None:
    topic = CreatableTopic(
        name="orders",
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
    (result,) = world.create_all(topic)
    assert (result.error_code, result.error_message) == (ErrorCode.INVALID_CONFIG, message)
    assert world.image.topics == {}


def manual(
    *replicas: list[int], partitions: int = -1, factor: int = -1, indexes: list[int] | None = None
) -> CreatableTopic:
    return CreatableTopic(
        name="orders",
        num_partitions=partitions,
        replication_factor=factor,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=chosen)
            for index, chosen in zip(indexes or range(len(replicas)), replicas, strict=True)
        ],
    )


def test_replicas_may_be_assigned_manually() -> None:
    world = ControllerWorld(brokers=3)
    (result,) = world.create_all(manual([2, 3], [3, 1]))
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 2)
    partitions = world.image.topics["orders"].partitions
    assert [partition.replicas for partition in partitions.values()] == [(2, 3), (3, 1)]
    assert [partition.leader for partition in partitions.values()] == [2, 3]


@for_each(
    ("topic", "code"),
    [
        (manual([1], partitions=1), 42),
        (manual([1], factor=1), 42),
        (manual([]), 39),
        (manual([1, 1]), 39),
        (manual([9]), 39),
        (manual([1], [1, 2]), 39),
        (manual([1], [1], indexes=[0, 2]), 39),
        (manual([1], [1], indexes=[0, 0]), 39),
    ],
)
def test_invalid_assignments_are_refused(topic: CreatableTopic, code: int) -> None:
    (result,) = ControllerWorld(brokers=2).create_all(topic)
    assert result.error_code == code


# Deletion


def test_deleting_by_name_removes_topic_and_configs(world: ControllerWorld) -> None:
    created = world.create("orders", retention_ms="1")
    (result,) = world.delete(names=("orders",))
    assert (result.error_code, result.name, result.topic_id) == (0, "orders", created.topic_id)
    assert world.image.topics == {}
    assert world.image.topics_by_id == {}
    assert world.image.configs == {}


def test_deleting_by_id_returns_the_name(world: ControllerWorld) -> None:
    """KIP-516."""
    created = world.create("orders")
    (result,) = world.delete(DeleteTopicState(topic_id=created.topic_id))
    assert (result.error_code, result.name) == (0, "orders")


def test_a_topic_created_again_has_another_id_and_none_of_the_old_configs(world: ControllerWorld) -> None:
    """R22."""
    first = world.create("orders", retention_ms="1")
    world.delete(names=("orders",))
    second = world.create("orders")
    assert second.topic_id != first.topic_id
    assert world.image.config(2, "orders") == {}


def test_unknown_topics_cannot_be_deleted(world: ControllerWorld) -> None:
    by_name, by_id, by_both, by_nothing = world.delete(
        DeleteTopicState(name="orders"),
        DeleteTopicState(topic_id=b"\x07" * 16),
        DeleteTopicState(name="orders2", topic_id=b"\x08" * 16),
        DeleteTopicState(),
    )
    assert (by_name.error_code, by_name.error_message) == (3, "This server does not host this topic-partition.")
    assert (by_id.error_code, by_id.name) == (100, None)
    assert by_both.error_code == 42
    assert by_nothing.error_code == 42


def test_a_topic_named_twice_is_deleted_at_most_once(world: ControllerWorld) -> None:
    created = world.create("orders")
    twice = world.delete(names=("orders", "orders"))
    assert [(result.error_code, result.name) for result in twice] == [(42, "orders")]
    (both,) = world.delete(DeleteTopicState(name="orders"), DeleteTopicState(topic_id=created.topic_id))
    assert (both.error_code, both.name, both.topic_id) == (42, "orders", created.topic_id)
    wrong = DeleteTopicState(name="orders", topic_id=created.topic_id)
    assert [result.error_code for result in world.delete(wrong, wrong)] == [42, 42]
    assert "orders" in world.image.topics


# More partitions


def extend(
    world: ControllerWorld, name: str, count: int, assignments: list[list[int]] | None = None, **flags: bool
) -> tuple[int, str | None]:
    chosen = None if assignments is None else [CreatePartitionsAssignment(broker_ids=ids) for ids in assignments]
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=chosen)], **flags
    )
    (result,) = world.commit(world.controller.create_partitions(request)).results
    return result.error_code, result.error_message


def test_partitions_are_added_after_the_existing_ones(world: ControllerWorld) -> None:
    world.create("orders", 2)
    assert extend(world, "orders", 5) == (0, None)
    assert list(world.image.topics["orders"].partitions) == [0, 1, 2, 3, 4]


def test_validating_an_extension_changes_nothing(world: ControllerWorld) -> None:
    world.create("orders", 2)
    assert extend(world, "orders", 5, validate_only=True) == (0, None)
    assert len(world.image.topics["orders"].partitions) == 2


@for_each(
    ("name", "count", "assignments", "expected"),
    [
        ("other", 5, None, (3, None)),
        ("orders", 2, None, (37, "Topic already has 2 partition(s).")),
        ("orders", 1, None, (37, "The topic orders currently has 2 partition(s); 1 would not be an increase.")),
        (
            "orders",
            4,
            [[1]],
            (39, "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."),
        ),
        (
            "orders",
            3,
            [[9]],
            (39, "The manual partition assignment includes broker 9, but no such broker is registered."),
        ),
    ],
)
def test_invalid_extensions_are_refused(
    world: ControllerWorld, name: str, count: int, assignments: list[list[int]] | None, expected: tuple[int, str]
) -> None:
    world.create("orders", 2)
    assert extend(world, name, count, assignments) == expected


def test_added_partitions_may_be_assigned_manually() -> None:
    world = ControllerWorld(brokers=2)
    world.create_all(manual([1]))
    assert extend(world, "orders", 2, [[2]]) == (0, None)
    assert world.image.topics["orders"].partitions[1].replicas == (2,)


class _CountingTopics(dict[str, TopicImage]):
    """The topics of an image; counts how often all of them are looked at."""

    passes = 0

    def __iter__(self) -> Iterator[str]:
        self.passes += 1
        return super().__iter__()


def test_changes_of_many_topics_are_validated_in_steps(world: ControllerWorld) -> None:
    names = [f"t.{index}" for index in range(400)]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    controller = world.controller
    request = CreateTopicsRequest(topics=topics)
    outcome, yields = counted(controller.create_topics_in_steps(request, TopicDefaults(1, 1)))
    assert yields + 1 > 400 / ITEMS_PER_STEP
    world.commit(outcome)
    resources = [
        IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=2,
            resource_name=name,
            configs=[IncrementalAlterConfigsRequestAlterableConfig(name="retention.ms", value="1")],
        )
        for name in names
    ]
    more = [CreatePartitionsTopic(name=name, count=2) for name in names]
    for steps in (
        controller.incremental_alter_configs_in_steps(IncrementalAlterConfigsRequest(resources=resources)),
        controller.create_partitions_in_steps(CreatePartitionsRequest(topics=more)),
        controller.delete_topics_in_steps(DeleteTopicsRequest(topic_names=names)),
    ):
        outcome, yields = counted(steps)
        assert yields + 1 > 400 / ITEMS_PER_STEP
        world.commit(outcome)
    assert not world.image.topics


def test_new_topics_without_configs_share_those_of_the_response(world: ControllerWorld) -> None:
    topics = [CreatableTopic(name=f"t.{index}", num_partitions=1, replication_factor=1) for index in range(50)]
    topics[7].configs = [CreatableTopicConfig(name="retention.ms", value="1")]
    response = world.controller.create_topics(CreateTopicsRequest(topics=topics), TopicDefaults(1, 1)).response
    assert len({id(topic.configs) for topic in response.topics}) == 2


def test_the_existing_names_are_looked_at_once_for_all_new_topics(world: ControllerWorld) -> None:
    world.create("metrics.of_orders", 1)
    world.image.topics = counting = _CountingTopics(world.image.topics)
    names = [f"new.topic_{index}" for index in range(500)]
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in [*names, "new_topic_0"]]
    response = world.controller.create_topics(CreateTopicsRequest(topics=topics), TopicDefaults(1, 1)).response
    assert [result.error_code for result in response.topics[:500]] == [0] * 500
    assert response.topics[500].error_message == "Topic 'new_topic_0' collides with existing topic: new.topic_0"
    assert counting.passes == 1
