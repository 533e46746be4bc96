"""Registration, heartbeats, fencing and controlled shutdown: Kafka's ClusterControlManagerTest and
BrokerHeartbeatManagerTest, written anew, and what the partitions do meanwhile.
"""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.coord.cluster.brokers.broker_heartbeat import BrokerState, next_state
from barnabas.coord.cluster.node_records import SUPPORTED_FEATURES
from barnabas.coord.cluster.partitions.partition_change import RECOVERING
from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, NO_LEADER
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    UnregisterBrokerRequest,
)
from barnabas.wire.messages.records.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.support.cases import for_each
from tests.support.controller.brokers import SESSION_S, Brokers

# Registration


def test_a_registration_begins_fenced_with_the_next_offset_as_epoch() -> None:
    cluster = Brokers(1)
    offset = cluster.offset
    assert cluster.register(2, rack="a").broker_epoch == offset
    broker = cluster.image.brokers[2]
    assert (broker.fenced, broker.epoch, broker.rack) == (True, offset, "a")
    assert [endpoint.port for endpoint in broker.endpoints] == [9002]
    assert {feature.name: feature.max_supported_version for feature in broker.features} == {
        name: high for name, (_, high) in SUPPORTED_FEATURES.items()
    }


def test_the_same_incarnation_keeps_its_epoch_and_its_state() -> None:
    cluster = Brokers()
    epoch = cluster.register(1, incarnation=7).broker_epoch
    cluster.heartbeat(1)
    assert cluster.register(1, incarnation=7).broker_epoch == epoch
    assert not cluster.image.brokers[1].fenced


def test_a_second_incarnation_waits_for_the_end_of_the_session() -> None:
    cluster = Brokers(1, 2)
    cluster.pass_time(SESSION_S / 2)
    with pytest.raises(KafkaError) as raised:
        cluster.register(1)
    assert raised.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    cluster.pass_time(SESSION_S)
    assert cluster.register(1).broker_epoch > 0


def test_a_fenced_broker_that_lives_keeps_its_id() -> None:
    cluster = Brokers()
    cluster.register(1)
    cluster.pass_time(SESSION_S - 1)
    cluster.heartbeat(1, fence=True)
    cluster.pass_time(SESSION_S - 1)
    with pytest.raises(KafkaError, match="Another broker is registered with that broker id"):
        cluster.register(1)


@pytest.mark.parametrize("leads", [True, False])
def test_a_broker_that_has_stopped_may_come_back_at_once(leads: bool) -> None:
    cluster = Brokers(1, 2)
    cluster.create("orders", [1, 2] if leads else [2, 1])
    while not cluster.heartbeat(1, shut_down=True).should_shut_down:
        cluster.heartbeat(2)
    cluster.start(1)


@for_each(
    ("given", "code"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"directories": []}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": [bytes([9]) * 16] * 2}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": [LOST_DIRECTORY]}, ErrorCode.INVALID_REGISTRATION),
        ({"directories": [bytes([1]) * 16]}, ErrorCode.INVALID_REGISTRATION),  # the directory of broker 1
        ({"features": {"metadata.version": (1, 32)}}, ErrorCode.UNSUPPORTED_VERSION),
        ({"features": {}}, ErrorCode.INVALID_REGISTRATION),
        (
            {"features": {**SUPPORTED_FEATURES, "eligible.leader.replicas.version": (0, 0)}},
            ErrorCode.UNSUPPORTED_VERSION,
        ),
    ],
)
def test_registrations_that_are_refused(given: dict[str, Any], code: ErrorCode) -> None:
    cluster = Brokers(1)
    with pytest.raises(KafkaError) as raised:
        cluster.register(2, **given)
    assert raised.value.code == code
    assert 2 not in cluster.image.brokers


def test_a_broker_may_support_more_than_the_cluster_has() -> None:
    cluster = Brokers(elr=False)
    cluster.register(1, features={**SUPPORTED_FEATURES, "eligible.leader.replicas.version": (0, 0), "new": (1, 5)})
    assert 1 in cluster.image.brokers


# A broker that registers with PreviousBrokerEpoch stays eligible (cluster.md 1.5)


def crashed_cluster() -> Brokers:
    """All brokers of a topic with three replicas, two in sync, have died."""
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3], min_insync_replicas="2")
    cluster.fence(3)
    cluster.fence(2)
    assert cluster.state("orders") == (1, [1], [2])
    cluster.fence(1)
    assert cluster.state("orders") == (NO_LEADER, [], [1, 2])
    assert cluster.partition("orders").last_known_elr == (1,)
    return cluster


def test_the_first_eligible_replica_leads_when_it_has_kept_its_log() -> None:
    cluster = crashed_cluster()
    cluster.start(2, previous_epoch=cluster.image.brokers[2].epoch)
    assert cluster.state("orders") == (2, [2], [1])
    assert cluster.partition("orders").leader_recovery_state != RECOVERING


def test_who_was_not_eligible_does_not_lead() -> None:
    cluster = crashed_cluster()
    cluster.start(3, previous_epoch=cluster.image.brokers[3].epoch)
    assert cluster.state("orders") == (NO_LEADER, [], [1, 2])


def test_unclean_replicas_leave_the_elr_until_the_last_known_leader_recovers() -> None:
    cluster = crashed_cluster()
    cluster.start(2)
    assert cluster.state("orders") == (NO_LEADER, [], [1])
    cluster.start(1)
    assert cluster.state("orders") == (1, [1], [])
    assert cluster.partition("orders").leader_recovery_state == RECOVERING
    response = cluster.alter("orders", [1])
    assert (response.error_code, response.leader_recovery_state) == (0, 0)
    assert cluster.alter("orders", [1, 2]).error_code == 0


def test_an_unclean_restart_before_the_fencing_leaves_the_isr() -> None:
    """The session has ended, but the broker is not fenced yet: the registration itself takes the replica out."""
    cluster = Brokers(1, 2)
    cluster.create("orders", [1, 2], min_insync_replicas="2")
    cluster.now += SESSION_S + 1
    cluster.register(1)
    assert cluster.state("orders") == (2, [2], [])
    assert isinstance(cluster.records[-1], RegisterBrokerRecord)


def test_without_elr_a_lone_replica_leads_again_after_any_restart() -> None:
    cluster = Brokers(1, elr=False)
    cluster.create("orders", [1])
    cluster.fence(1)
    assert cluster.state("orders") == (NO_LEADER, [1], [])
    cluster.start(1)
    assert cluster.state("orders") == (1, [1], [])
    assert cluster.partition("orders").leader_recovery_state != RECOVERING


# Heartbeats

FENCED, UNFENCED, STOPPING, STOPPED = BrokerState


@for_each(
    ("current", "wants", "facts", "expected"),
    [
        (FENCED, {}, {}, UNFENCED),
        (FENCED, {}, {"is_caught_up": False}, FENCED),
        (FENCED, {"want_fence": True}, {}, FENCED),
        (FENCED, {"want_shut_down": True}, {}, STOPPED),
        (FENCED, {"want_shut_down": True, "want_fence": True}, {"has_leaderships": True}, STOPPED),
        (UNFENCED, {}, {"is_caught_up": False}, UNFENCED),
        (UNFENCED, {"want_fence": True}, {}, FENCED),
        (UNFENCED, {"want_fence": True, "want_shut_down": True}, {"has_leaderships": True}, STOPPED),
        (UNFENCED, {"want_shut_down": True}, {"has_leaderships": True}, STOPPING),
        (UNFENCED, {"want_shut_down": True}, {}, STOPPED),
        (STOPPING, {"want_shut_down": True}, {}, STOPPING),
        (STOPPING, {"want_shut_down": True}, {"others_know": True}, STOPPED),
        (STOPPING, {"want_shut_down": True}, {"others_know": True, "has_leaderships": True}, STOPPING),
    ],
)
def test_next_state(
    current: BrokerState, wants: dict[str, bool], facts: dict[str, bool], expected: BrokerState
) -> None:
    known = {"is_caught_up": True, "has_leaderships": False, "others_know": False, **facts}
    assert next_state(current, BrokerHeartbeatRequest(**wants), **known) is expected


def test_a_broker_is_unfenced_when_it_has_read_its_registration() -> None:
    cluster = Brokers(2)
    cluster.register(1)
    behind = cluster.heartbeat(1, behind=1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    waits = cluster.heartbeat(1, fence=True)
    assert (waits.is_caught_up, waits.is_fenced) == (True, True)
    done = cluster.heartbeat(1)
    assert (done.is_caught_up, done.is_fenced, done.should_shut_down) == (True, False, False)
    assert not cluster.image.brokers[1].fenced
    assert cluster.heartbeat(1).is_fenced is False
    assert cluster.records == []


@pytest.mark.parametrize("epoch", [-1, 999])
def test_heartbeats_of_another_incarnation_are_refused(epoch: int) -> None:
    cluster = Brokers(1)
    with pytest.raises(KafkaError) as raised:
        cluster.heartbeat(1, epoch=epoch)
    assert raised.value.code == ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(KafkaError) as raised:
        cluster.heartbeat(5, epoch=epoch)
    assert raised.value.code == ErrorCode.STALE_BROKER_EPOCH


def test_a_broker_that_is_silent_is_fenced_and_its_partitions_have_new_leaders() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3], [2, 1, 3], [3, 2, 1], min_insync_replicas="2")
    cluster.fence(1)
    assert [cluster.state("orders", index)[:2] for index in range(3)] == [(2, [2, 3]), (2, [2, 3]), (3, [3, 2])]
    assert cluster.partition("orders", 0).leader_epoch == 1
    assert cluster.partition("orders", 1).leader_epoch == 0
    assert cluster.heartbeat(1).is_fenced is False  # it lives, and comes back
    assert cluster.state("orders") == (2, [2, 3], [])


def test_brokers_are_fenced_one_after_the_other() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3], min_insync_replicas="2")
    cluster.now += SESSION_S + 1
    seen = []
    while (due := cluster.controller.next_deadline()) is not None and due <= cluster.now:
        cluster.commit(cluster.controller.tick(cluster.at))
        seen.append(cluster.state("orders"))
    assert seen == [(2, [2, 3], []), (3, [3], [2]), (NO_LEADER, [], [2, 3])]


def test_a_heartbeat_moves_the_deadline() -> None:
    cluster = Brokers(1, 2)
    cluster.pass_time(SESSION_S - 1)
    cluster.heartbeat(1)
    cluster.pass_time(2)
    assert [broker.id for broker in cluster.image.live_brokers()] == [1]
    cluster.pass_time(1.1)  # then the controller looks whether broker 2 is fenced indeed
    assert cluster.controller.next_deadline() == pytest.approx(1000 + 2 * SESSION_S - 1)


def test_a_fencing_that_could_not_be_written_is_tried_again() -> None:
    cluster = Brokers(1)
    cluster.now += SESSION_S + 1
    assert cluster.controller.tick(cluster.at).records  # and the disk is full
    assert not cluster.controller.tick(cluster.at).records
    cluster.pass_time(1.1)
    assert cluster.image.brokers[1].fenced


def test_a_controller_that_was_stopped_blames_no_broker() -> None:
    """SIGSTOP: the heartbeats of all brokers wait in its sockets, and its deadlines have passed."""
    cluster = Brokers(1, 2)
    cluster.now += SESSION_S + 3
    cluster.pass_time(0)
    assert len(cluster.image.live_brokers()) == 2
    cluster.heartbeat(1)
    cluster.pass_time(1.4)
    assert len(cluster.image.live_brokers()) == 2
    cluster.pass_time(1)
    assert [broker.id for broker in cluster.image.live_brokers()] == [1]


def test_a_new_controller_gives_every_broker_a_session() -> None:
    cluster = Brokers(1, 2)
    cluster.fence(2)
    cluster.now += 100 * SESSION_S
    cluster.new_controller().activate(cluster.at)
    cluster.pass_time(SESSION_S - 1)
    assert not cluster.image.brokers[1].fenced
    assert cluster.heartbeat(2, behind=1).is_fenced
    assert not cluster.heartbeat(2).is_fenced
    cluster.pass_time(2)
    assert cluster.image.brokers[1].fenced


# Controlled shutdown


def test_a_controlled_shutdown_moves_leaders_and_waits_for_the_others() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3], [2, 1, 3])
    response = cluster.heartbeat(1, shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (False, False)
    assert [cluster.state("orders", index)[:2] for index in (0, 1)] == [(2, [2, 3]), (2, [2, 3])]
    assert cluster.image.brokers[1].in_controlled_shutdown
    assert isinstance(cluster.records[0], BrokerRegistrationChangeRecord)
    cluster.heartbeat(2)
    assert not cluster.heartbeat(1, shut_down=True).should_shut_down  # broker 3 has not read it
    cluster.heartbeat(3)
    response = cluster.heartbeat(1, shut_down=True)
    assert (response.is_fenced, response.should_shut_down) == (True, True)
    assert cluster.image.brokers[1].fenced
    assert cluster.heartbeat(1, shut_down=True).should_shut_down  # the answer was lost, and it asks again
    assert cluster.records == []


def test_a_controlled_shutdown_waits_for_no_heartbeats_of_those_who_fetch_the_metadata() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3])
    assert not cluster.heartbeat(1, shut_down=True).should_shut_down
    cluster.controller.metadata_fetched(2, cluster.offset)
    cluster.controller.metadata_fetched(3, cluster.offset - 1)
    cluster.controller.metadata_fetched(77, cluster.offset)
    assert not cluster.heartbeat(1, shut_down=True).should_shut_down
    cluster.controller.metadata_fetched(3, cluster.offset)
    assert cluster.heartbeat(1, shut_down=True).should_shut_down


def test_nobody_takes_a_stopping_broker_into_an_isr_or_places_replicas_on_it() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2])
    cluster.heartbeat(1, shut_down=True)
    assert cluster.alter("orders", [2, 1]).error_code == ErrorCode.INELIGIBLE_REPLICA
    assert cluster.place("more", 1, 3).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert cluster.place("two", 4, 2).error_code == 0
    assert all(1 not in part.replicas for part in cluster.image.topics["two"].partitions.values())


def test_the_last_broker_stops_without_waiting() -> None:
    cluster = Brokers(1)
    cluster.create("orders", [1])
    assert not cluster.heartbeat(1, shut_down=True).should_shut_down
    assert cluster.state("orders")[0] == NO_LEADER
    assert cluster.heartbeat(1, shut_down=True).should_shut_down
    cluster.start(1, previous_epoch=cluster.image.brokers[1].epoch)
    assert cluster.state("orders") == (1, [1], [])


# Log directories


def test_a_directory_that_fails_takes_its_replicas_out() -> None:
    cluster = Brokers(2, 3)
    online, lost = b"k" * 16, b"l" * 16
    cluster.register(1, directories=[online, lost])
    cluster.heartbeat(1)
    cluster.create("orders", [1, 2], [1, 3])
    for index, directory in enumerate((online, lost)):
        cluster.assign(1, directory, ("orders", index))
    cluster.heartbeat(1, offline=[lost])
    assert [cluster.state("orders", index)[:2] for index in (0, 1)] == [(1, [1, 2]), (3, [3])]
    assert cluster.image.brokers[1].directories == (online,)
    cluster.heartbeat(1, offline=[lost])
    assert cluster.records == []


def test_a_broker_without_a_directory_is_fenced() -> None:
    cluster = Brokers(1, 2)
    cluster.create("orders", [1, 2])
    assert cluster.heartbeat(1, offline=[bytes([1]) * 16]).is_fenced
    assert cluster.state("orders")[0] == 2
    assert cluster.heartbeat(1, offline=[bytes([1]) * 16]).is_fenced
    assert cluster.heartbeat(1, offline=[bytes([1]) * 16], shut_down=True).should_shut_down


def test_a_broker_whose_directories_are_cordoned_gets_no_replicas() -> None:
    cluster = Brokers(1, 2)
    cluster.heartbeat(1, cordoned=[bytes([1]) * 16])
    assert cluster.image.brokers[1].cordoned_directories == (bytes([1]) * 16,)
    cluster.place("orders", 3, 1)
    assert {part.replicas for part in cluster.image.topics["orders"].partitions.values()} == {(2,)}
    assert cluster.place("more", 1, 2).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.heartbeat(1, cordoned=[])
    assert cluster.place("more", 1, 2).error_code == 0


# Other requests of brokers


def test_unregister_broker() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3], min_insync_replicas="3")
    cluster.fence(3)
    assert cluster.state("orders") == (1, [1, 2], [3])
    cluster.commit(cluster.controller.unregister_broker(UnregisterBrokerRequest(broker_id=3)))
    assert cluster.state("orders") == (1, [1, 2], [])
    assert isinstance(cluster.records[-1], UnregisterBrokerRecord)
    assert 3 not in cluster.image.brokers
    with pytest.raises(KafkaError) as raised:
        cluster.controller.unregister_broker(UnregisterBrokerRequest(broker_id=3))
    assert (raised.value.code, raised.value.message) == (
        ErrorCode.BROKER_ID_NOT_REGISTERED,
        "Broker ID 3 is not currently registered",
    )


def test_producer_ids_are_given_in_blocks() -> None:
    cluster = Brokers(1, 2)
    blocks = []
    for broker in (1, 2, 1):
        request = AllocateProducerIdsRequest(broker_id=broker, broker_epoch=cluster.image.brokers[broker].epoch)
        response = cluster.commit(cluster.controller.allocate_producer_ids(request))
        blocks.append((response.producer_id_start, response.producer_id_len))
    assert blocks == [(0, 1000), (1000, 1000), (2000, 1000)]
    with pytest.raises(KafkaError) as raised:
        cluster.controller.allocate_producer_ids(AllocateProducerIdsRequest(broker_id=1, broker_epoch=-1))
    assert raised.value.code == ErrorCode.STALE_BROKER_EPOCH


# Bounded


def test_a_fencing_is_done_in_steps() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.place("large", 3000, 3)
    cluster.now += SESSION_S / 2
    cluster.heartbeat(2)
    cluster.heartbeat(3)
    cluster.now += SESSION_S / 2 + 1
    steps = cluster.controller.tick_in_steps(cluster.at)
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            outcome = end.value
            break
        count += 1
    changes = [record for record in outcome.records if isinstance(record, PartitionChangeRecord)]
    assert len(changes) == 3000
    assert count >= 60
