"""Reassignments (KIP-455) and elections (KIP-460), as in Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

import pytest

from barnabas.coord.cluster.topic_image import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    NO_LEADER,
    UNASSIGNED_DIRECTORY,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.support.cases import for_each
from tests.support.controller.brokers import Brokers

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def reassign(
    cluster: Brokers, topic: str, replicas: list[int] | None, index: int = 0, *, any_factor: bool = True
) -> tuple[int, str | None]:
    """(error code, message) of one partition."""
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=any_factor, topics=[ReassignableTopic(name=topic, partitions=[partition])]
    )
    response = cluster.commit(cluster.controller.alter_partition_reassignments(request)).responses[0].partitions[0]
    return response.error_code, response.error_message


def ongoing(cluster: Brokers, *topics: tuple[str, list[int]]) -> list[tuple[str, int, list[int], list[int], list[int]]]:
    """(topic, partition, replicas, adding, removing) of reassignments in progress; of all topics without `topics`."""
    requested = [ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in topics]
    request = ListPartitionReassignmentsRequest(topics=requested or None)
    response = cluster.controller.list_partition_reassignments(request).response
    return [
        (
            topic.name,
            partition.partition_index,
            partition.replicas,
            partition.adding_replicas,
            partition.removing_replicas,
        )
        for topic in response.topics
        for partition in topic.partitions
    ]


@pytest.fixture
def cluster() -> Brokers:
    brokers = Brokers(1, 2, 3, 4, 5)
    brokers.create("orders", [1, 2, 3], [2, 3, 1])
    return brokers


def test_a_reassignment_ends_when_all_new_replicas_are_in_sync(cluster: Brokers) -> None:
    assert reassign(cluster, "orders", [4, 5, 1]) == (0, None)
    assert ongoing(cluster) == [("orders", 0, [4, 5, 1, 2, 3], [4, 5], [2, 3])]
    assert cluster.state("orders")[:2] == (1, [1, 2, 3])
    cluster.alter("orders", [1, 2, 3, 4])
    assert ongoing(cluster, ("orders", [0, 1, 9]), ("unknown", [0])) == [("orders", 0, [4, 5, 1, 2, 3], [4, 5], [2, 3])]
    cluster.alter("orders", [1, 2, 3, 4, 5])
    assert ongoing(cluster) == []
    assert cluster.partition("orders").replicas == (4, 5, 1)
    assert cluster.state("orders")[:2] == (1, [1, 4, 5])
    assert cluster.partition("orders").leader_epoch == 1


def test_another_order_and_fewer_replicas_need_no_second_step(cluster: Brokers) -> None:
    assert reassign(cluster, "orders", [3, 2, 1]) == (0, None)
    assert (cluster.partition("orders").replicas, ongoing(cluster)) == ((3, 2, 1), [])
    assert reassign(cluster, "orders", [3]) == (0, None)
    assert (cluster.partition("orders").replicas, ongoing(cluster)) == ((3,), [])
    assert cluster.state("orders") == (3, [3], [])
    assert reassign(cluster, "orders", [3]) == (0, None)
    assert cluster.records == []


def test_a_cancelled_reassignment_leaves_the_old_replicas(cluster: Brokers) -> None:
    reassign(cluster, "orders", [1, 4, 5])
    cluster.alter("orders", [1, 2, 3, 4])
    assert reassign(cluster, "orders", None) == (0, None)
    assert cluster.partition("orders").replicas == (1, 2, 3)
    assert cluster.state("orders")[:2] == (1, [1, 2, 3])
    code, message = reassign(cluster, "orders", None)
    assert (code, message) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None)


def test_a_reassignment_replaces_another(cluster: Brokers) -> None:
    reassign(cluster, "orders", [1, 2, 4])
    reassign(cluster, "orders", [1, 2, 5])
    assert ongoing(cluster) == [("orders", 0, [1, 2, 5, 3, 4], [5], [3, 4])]
    reassign(cluster, "orders", [1, 2, 3])  # back to where it began
    assert ongoing(cluster) == []
    assert cluster.partition("orders").replicas == (1, 2, 3)


def test_a_replacement_has_the_lists_of_its_own_target() -> None:
    """Kafka 4.4.0 would remove 1 in the end, as the first reassignment was to do."""
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1])
    reassign(cluster, "orders", [3])
    reassign(cluster, "orders", [1, 3, 2])
    assert ongoing(cluster) == [("orders", 0, [1, 3, 2], [2, 3], [])]
    cluster.alter("orders", [1, 2, 3])
    assert (cluster.partition("orders").replicas, ongoing(cluster)) == ((1, 3, 2), [])


def test_what_replaced_reassignments_added_goes_with_a_cancellation(cluster: Brokers) -> None:
    reassign(cluster, "orders", [1, 2, 4])
    reassign(cluster, "orders", [1, 4, 5])
    assert ongoing(cluster) == [("orders", 0, [1, 4, 5, 2, 3], [4, 5], [2, 3])]
    assert reassign(cluster, "orders", None) == (0, None)
    assert (cluster.partition("orders").replicas, ongoing(cluster)) == ((1, 2, 3), [])


def test_a_replica_that_a_replaced_reassignment_added_leaves_again(cluster: Brokers) -> None:
    reassign(cluster, "orders", [1, 2, 4])
    reassign(cluster, "orders", [1, 2, 5])
    cluster.alter("orders", [1, 2, 3, 4])
    assert ongoing(cluster) == [("orders", 0, [1, 2, 5, 3, 4], [5], [3, 4])]
    cluster.alter("orders", [1, 2, 3, 4, 5])
    assert (cluster.partition("orders").replicas, ongoing(cluster)) == ((1, 2, 5), [])
    assert cluster.state("orders")[:2] == (1, [1, 2, 5])


def test_a_cancellation_that_needs_an_unclean_election() -> None:
    """The only replica in sync is one that was added."""
    cluster = Brokers(1, 2, 3, elr=False)
    cluster.create("orders", [1])
    cluster.create("unclean", [1], unclean_leader_election_enable="true")
    for topic in ("orders", "unclean"):
        reassign(cluster, topic, [2, 3])
        cluster.alter(topic, [1, 2])
    cluster.fence(1)
    assert cluster.state("orders")[:2] == (2, [2])
    assert reassign(cluster, "orders", None) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unable to revert partition assignment for orders:0 because it would require an unclean leader election.",
    )
    assert reassign(cluster, "unclean", None) == (0, None)
    assert cluster.state("unclean")[:2] == (NO_LEADER, [1])
    assert cluster.partition("unclean").replicas == (1,)


@for_each(
    ("topic", "index", "replicas", "code", "message"),
    [
        ("unknown", 0, [1], UNKNOWN, "Unable to find a topic named unknown."),
        ("orders", 9, [1], UNKNOWN, "Unable to find partition orders:9."),
        ("orders", 0, [], 39, "The manual partition assignment includes an empty replica list."),
        ("orders", 0, [1, 1], 39, "The manual partition assignment includes the broker 1 more than once."),
        (
            "orders",
            0,
            [1, 9],
            39,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
)
def test_what_cannot_be_reassigned(
    cluster: Brokers, topic: str, index: int, replicas: list[int], code: int, message: str
) -> None:
    assert reassign(cluster, topic, replicas, index) == (code, message)


def test_a_client_may_require_the_same_replication_factor(cluster: Brokers) -> None:
    assert reassign(cluster, "orders", [1, 2], any_factor=False) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "The replication factor is changed from 3 to 2",
    )
    assert reassign(cluster, "orders", [1, 2, 4], any_factor=False) == (0, None)
    assert reassign(cluster, "orders", [1, 2, 5], any_factor=False) == (0, None)  # four replicas now, three to be


def test_a_partition_twice_in_a_request_is_refused_if_its_replicas_differ(cluster: Brokers) -> None:
    parts = [ReassignablePartition(partition_index=0, replicas=[1, 2, last]) for last in (4, 4, 3)]
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=parts)])
    answers = cluster.commit(cluster.controller.alter_partition_reassignments(request)).responses[0].partitions
    assert [response.error_code for response in answers] == [0, 0, ErrorCode.INVALID_REQUEST]


def test_a_request_without_topics_has_kafkas_default_text(cluster: Brokers) -> None:
    request = AlterPartitionReassignmentsRequest(topics=[])
    assert cluster.commit(cluster.controller.alter_partition_reassignments(request)).error_message == ""


# ElectLeaders


def elect(cluster: Brokers, kind: int, *partitions: tuple[str, int]) -> list[tuple[str, int, int, str | None]]:
    """(topic, partition, error code, message); of all partitions without `partitions`."""
    topics = [ElectLeadersRequestTopicPartitions(topic=topic, partitions=[index]) for topic, index in partitions]
    request = ElectLeadersRequest(election_type=kind, topic_partitions=topics or None)
    response = cluster.commit(cluster.controller.elect_leaders(request))
    return [
        (topic.topic, result.partition_id, result.error_code, result.error_message)
        for topic in response.replica_election_results
        for result in topic.partition_result
    ]


def test_preferred_leaders(cluster: Brokers) -> None:
    cluster.fence(1)
    cluster.start(1)
    not_available = (80, "The preferred leader was not available.")
    assert elect(cluster, 0, ("orders", 0)) == [("orders", 0, *not_available)]  # not in the ISR yet
    cluster.alter("orders", [1, 2, 3])
    assert elect(cluster, 0) == [("orders", 0, 0, None)]
    assert cluster.state("orders")[0] == 1
    not_needed = (84, "Leader election not needed for topic partition.")
    assert elect(cluster, 0, ("orders", 0), ("orders", 1)) == [
        ("orders", 0, *not_needed),
        ("orders", 1, *not_needed),
    ]
    assert elect(cluster, 0) == []


def test_unclean_elections_on_request() -> None:
    cluster = Brokers(1, 2, elr=False)
    cluster.create("orders", [1, 2])
    cluster.alter("orders", [1])
    assert elect(cluster, 1, ("orders", 0))[0][2] == ErrorCode.ELECTION_NOT_NEEDED
    cluster.fence(1)
    assert cluster.state("orders")[0] == NO_LEADER
    cluster.fence(2)
    assert elect(cluster, 1, ("orders", 0)) == [
        ("orders", 0, 83, "Eligible topic partition leaders are not available.")
    ]
    cluster.start(2)
    assert cluster.state("orders")[0] == NO_LEADER
    assert elect(cluster, 1, ("orders", 0)) == [("orders", 0, 0, None)]
    assert cluster.state("orders") == (2, [2], [])


def test_elections_of_what_does_not_exist(cluster: Brokers) -> None:
    assert elect(cluster, 0, ("unknown", 0), ("orders", 7)) == [
        ("unknown", 0, UNKNOWN, "No such topic as unknown"),
        ("orders", 7, UNKNOWN, "No such partition as orders-7"),
    ]
    with pytest.raises(KafkaError, match="Unknown election type 5"):
        elect(cluster, 5)
    nothing = ElectLeadersRequest(election_type=5, topic_partitions=[])
    assert cluster.commit(cluster.controller.elect_leaders(nothing)).error_code == 0


def test_a_partition_twice_in_an_election_has_one_record(cluster: Brokers) -> None:
    cluster.fence(1)
    cluster.start(1)
    cluster.alter("orders", [1, 2, 3])
    answers = elect(cluster, 0, ("orders", 0), ("orders", 0))
    assert [response[2] for response in answers] == [0, ErrorCode.ELECTION_NOT_NEEDED]
    assert cluster.partition("orders").leader_epoch == 2


# Elections that the controller makes by itself


def test_leaders_are_balanced_periodically(cluster: Brokers) -> None:
    cluster.fence(1)
    cluster.start(1)
    cluster.alter("orders", [1, 2, 3])
    assert cluster.state("orders")[0] == 2
    cluster.keep_alive(310)
    assert cluster.state("orders")[0] == 1


def test_leaders_are_not_balanced_when_that_is_off(cluster: Brokers) -> None:
    cluster.new_controller(rebalances_leaders=False)
    cluster.fence(1)
    cluster.start(1)
    cluster.alter("orders", [1, 2, 3])
    cluster.keep_alive(310)
    assert cluster.state("orders")[0] == 2


def test_an_unclean_election_follows_the_change_of_the_config() -> None:
    cluster = Brokers(1, 2, elr=False)
    cluster.create("orders", [1, 2])
    cluster.create("others", [1, 2])
    for topic in ("orders", "others"):
        cluster.alter(topic, [1])
    cluster.fence(1)
    cluster.keep_alive(310)
    assert cluster.state("orders")[0] == NO_LEADER
    cluster.configure(2, "orders", unclean_leader_election_enable="true")
    cluster.keep_alive(310)
    assert cluster.state("orders") == (2, [2], [])
    assert cluster.state("others")[0] == NO_LEADER
    cluster.configure(4, "", unclean_leader_election_enable="true")
    cluster.keep_alive(310)
    assert cluster.state("others") == (2, [2], [])


# AssignReplicasToDirs (KIP-858)


def test_replicas_are_assigned_to_directories() -> None:
    cluster = Brokers(2)
    first, second, unknown = b"a" * 16, b"b" * 16, b"c" * 16
    cluster.register(1, directories=[first, second])
    cluster.heartbeat(1)
    cluster.create("orders", [1, 2], [2, 1])
    cluster.create("other", [2])
    assert cluster.partition("orders").directories == (UNASSIGNED_DIRECTORY, bytes([2]) * 16)
    assert cluster.assign(1, second, ("orders", 0), ("orders", 9), ("none", 0), ("other", 0)) == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ]
    assert cluster.partition("orders").directories == (second, bytes([2]) * 16)
    assert cluster.state("orders")[0] == 1
    assert cluster.assign(1, second, ("orders", 0)) == [0]
    assert cluster.records == []
    assert cluster.assign(1, unknown, ("orders", 0)) == [0]  # it has failed meanwhile
    assert cluster.state("orders")[:2] == (2, [2])
    assert cluster.assign(1, LOST_DIRECTORY, ("orders", 1)) == [0]
    assert cluster.state("orders", 1)[:2] == (2, [2])
    assert cluster.partition("orders", 1).directories == (bytes([2]) * 16, LOST_DIRECTORY)


def test_reserved_directories_have_the_ids_of_kafkas_class() -> None:
    """`DirectoryId` of Kafka 4.4.0: its controllers take a replica for lost, or online, by these."""
    reserved = [MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY]
    assert [int.from_bytes(directory, "big") for directory in reserved] == [0, 1, 2]


def test_cordoned_brokers_take_no_replicas_by_hand(cluster: Brokers) -> None:
    cluster.heartbeat(5, cordoned=[bytes([5]) * 16])
    message = "The manual partition assignment includes broker 5, but all its log directories are cordoned."
    assert reassign(cluster, "orders", [1, 2, 5]) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    assert cluster.create("more", [5]).error_message == message


def test_fewer_replicas_wait_until_all_that_stay_are_in_sync(cluster: Brokers) -> None:
    cluster.alter("orders", [1, 3])
    assert reassign(cluster, "orders", [1, 2]) == (0, None)
    assert ongoing(cluster) == [("orders", 0, [1, 2, 3], [], [3])]
    cluster.alter("orders", [1, 2, 3])
    assert cluster.partition("orders").replicas == (1, 2)
