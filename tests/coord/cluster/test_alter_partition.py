"""AlterPartition: every check with its error code, as in Kafka's ReplicationControlManagerTest."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.replication import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.support.cases import for_each
from tests.support.controller.brokers import Brokers


@pytest.fixture
def cluster() -> Brokers:
    brokers = Brokers(1, 2, 3, 4)
    brokers.create("orders", [1, 2, 3], min_insync_replicas="2")
    return brokers


@for_each(
    ("isr", "given", "code"),
    [
        ([1, 2], {"leader_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"partition_epoch": 1}, ErrorCode.NOT_CONTROLLER),
        ([1, 2], {"leader_epoch": -1}, ErrorCode.FENCED_LEADER_EPOCH),
        ([1, 2], {"broker": 2}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"partition_epoch": -1}, ErrorCode.INVALID_UPDATE_VERSION),
        ([1, 4], {}, ErrorCode.INVALID_REQUEST),  # no replica
        ([1, 1], {}, ErrorCode.INVALID_REQUEST),
        ([2, 3], {}, ErrorCode.INVALID_REQUEST),  # without the leader
        ([], {}, ErrorCode.INVALID_REQUEST),
        ([1], {"recovery": 1}, ErrorCode.INVALID_REQUEST),  # it has recovered long ago
        ([1, 2], {"recovery": 7}, ErrorCode.INVALID_REQUEST),
        ([1, 2], {"epochs": {2: 3}}, ErrorCode.INELIGIBLE_REPLICA),  # the broker has restarted since
        ([1, 2], {"epochs": {2: -1}}, ErrorCode.NONE),
        ([1, 2], {"version": 2, "epochs": {2: 3}}, ErrorCode.NONE),  # KIP-903 came with version 3
        ([1, 2], {}, ErrorCode.NONE),
        ([3, 2, 1], {}, ErrorCode.NONE),
    ],
)
def test_checks(cluster: Brokers, isr: list[int], given: dict[str, Any], code: ErrorCode) -> None:
    before = cluster.partition("orders")
    response = cluster.alter("orders", isr, **given)
    assert response.error_code == code
    if code:
        assert cluster.partition("orders") == before
    else:
        after = cluster.partition("orders")
        assert after.isr == tuple(isr)
        assert (response.leader_id, response.leader_epoch, response.isr) == (1, before.leader_epoch, isr)
        assert response.partition_epoch == before.partition_epoch + 1


def test_a_repeated_request_has_an_old_partition_epoch(cluster: Brokers) -> None:
    assert cluster.alter("orders", [1, 2]).error_code == 0
    assert cluster.alter("orders", [1, 2], partition_epoch=-1).error_code == ErrorCode.INVALID_UPDATE_VERSION


def test_the_same_isr_is_no_change(cluster: Brokers) -> None:
    response = cluster.alter("orders", [1, 2, 3])
    assert (response.error_code, response.partition_epoch, cluster.records) == (0, 0, [])


def test_fenced_brokers_may_not_join(cluster: Brokers) -> None:
    cluster.fence(3)
    assert cluster.state("orders")[1] == [1, 2]
    assert cluster.alter("orders", [1, 2, 3]).error_code == ErrorCode.INELIGIBLE_REPLICA
    cluster.start(3, previous_epoch=cluster.image.brokers[3].epoch)
    assert cluster.alter("orders", [1, 2, 3], epochs={3: 6}).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert cluster.alter("orders", [1, 2, 3]).error_code == 0


def test_a_smaller_isr_fills_the_elr_and_a_larger_one_empties_it(cluster: Brokers) -> None:
    cluster.alter("orders", [1])
    assert cluster.state("orders") == (1, [1], [2, 3])
    cluster.alter("orders", [1, 3])
    assert cluster.state("orders") == (1, [1, 3], [])


def test_min_isr_is_at_most_the_number_of_replicas() -> None:
    cluster = Brokers(1, 2)
    cluster.create("orders", [1, 2], min_insync_replicas="5")
    cluster.alter("orders", [1])
    assert cluster.state("orders") == (1, [1], [2])


def ask(cluster: Brokers, topic_id: bytes, *indexes: int, epoch: int | None = None) -> AlterPartitionRequest:
    known = cluster.image.brokers[1].epoch
    data = [
        AlterPartitionRequestPartitionData(
            partition_index=index, new_isr_with_epochs=[BrokerState(broker_id=1, broker_epoch=known)]
        )
        for index in indexes
    ]
    topics = [AlterPartitionRequestTopicData(topic_id=topic_id, partitions=data)]
    return AlterPartitionRequest(broker_id=1, broker_epoch=known if epoch is None else epoch, topics=topics)


def test_unknown_topics_and_partitions_are_answered_each(cluster: Brokers) -> None:
    unknown = cluster.controller.alter_partition(ask(cluster, bytes(16), 0, 1), 3).response
    assert [part.error_code for part in unknown.topics[0].partitions] == [ErrorCode.UNKNOWN_TOPIC_ID] * 2
    topic_id = cluster.image.topics["orders"].topic_id
    missing = cluster.controller.alter_partition(ask(cluster, topic_id, 7, 0, 0), 3).response
    assert [part.error_code for part in missing.topics[0].partitions] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.INVALID_UPDATE_VERSION,  # the second time in one request
    ]


def test_another_incarnation_of_the_leader_is_refused(cluster: Brokers) -> None:
    with pytest.raises(KafkaError) as raised:
        cluster.controller.alter_partition(ask(cluster, bytes(16), epoch=77), 3)
    assert raised.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_leader_that_ends_a_reassignment_without_itself_is_told(cluster: Brokers) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=[2, 4])
    request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name="orders", partitions=[partition])])
    cluster.commit(cluster.controller.alter_partition_reassignments(request))
    response = cluster.alter("orders", [1, 2, 3, 4])
    assert response.error_code == ErrorCode.NEW_LEADER_ELECTED
    assert cluster.state("orders")[:2] == (2, [2, 4])
    assert cluster.partition("orders").replicas == (2, 4)


def test_the_leader_of_an_unclean_election_recovers_before_others_join() -> None:
    cluster = Brokers(1, 2, elr=False)
    cluster.create("orders", [1, 2], unclean_leader_election_enable="true")
    cluster.alter("orders", [1])
    cluster.fence(1)
    assert cluster.state("orders") == (2, [2], [])
    assert cluster.partition("orders").leader_recovery_state == 1
    cluster.start(1)
    assert cluster.alter("orders", [2, 1], recovery=1).error_code == ErrorCode.INVALID_REQUEST
    assert cluster.alter("orders", [2], recovery=1).error_code == 0
    assert cluster.records == []
    assert cluster.alter("orders", [2, 1]).leader_recovery_state == 0
    assert cluster.state("orders")[0] != NO_LEADER
