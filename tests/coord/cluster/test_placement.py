"""Placement of replicas: the cases of Kafka's StripedReplicaPlacerTest, and properties over random clusters."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.cluster.changes.placement import ReplicaPlacer, UsableBroker
from barnabas.wire.errors import ErrorCode, KafkaError

CANNOT_BE_REACHED = (
    "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)


def place(brokers: list[UsableBroker], partitions: int, factor: int, start: int = 0) -> list[list[int]]:
    placer = ReplicaPlacer(brokers, start)
    placer.check(factor)
    return [placer.place(factor) for _ in range(partitions)]


@given(st.integers(1, 7), st.integers(1, 40), st.integers(1, 7), st.integers(0, 50))
def test_replicas_are_distinct_and_leaders_and_replicas_are_spread(
    brokers: int, partitions: int, factor: int, start: int
) -> None:
    ring = list(range(10, 10 + brokers))
    usable = [UsableBroker(broker) for broker in ring]
    if factor > brokers:
        with pytest.raises(KafkaError) as raised:
            place(usable, partitions, factor, start)
        assert raised.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
        return
    placed = place(usable, partitions, factor, start)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor and set(replicas) <= set(ring) for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[broker] for broker in ring) <= 1


@given(st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9), st.data())
def test_fenced_brokers_never_lead_and_racks_share(brokers: list[tuple[str | None, bool]], data: st.DataObject) -> None:
    usable = [UsableBroker(number, rack, fenced) for number, (rack, fenced) in enumerate(brokers)]
    racks = {broker.id: broker.rack for broker in usable}
    fenced = {broker.id for broker in usable if broker.fenced}
    factor = data.draw(st.integers(1, len(usable)))
    if len(fenced) == len(usable):
        with pytest.raises(KafkaError, match="All brokers are currently fenced"):
            place(usable, 1, factor)
        return
    for replicas in place(usable, data.draw(st.integers(1, 20)), factor, data.draw(st.integers(0, 20))):
        assert len(set(replicas)) == factor
        assert replicas[0] not in fenced
        assert len({racks[replica] for replica in replicas}) == min(factor, len(set(racks.values())))


def test_followers_of_one_leader_differ() -> None:
    placed = place([UsableBroker(broker) for broker in (1, 2, 3)], 30, 2)
    assert placed[:3] == [[1, 2], [2, 3], [3, 1]]
    assert {tuple(replicas) for replicas in placed} == {(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)}


def test_each_replica_is_in_another_rack() -> None:
    brokers = [UsableBroker(broker, f"rack {broker % 3}") for broker in range(6)]
    for replicas in place(brokers, 12, 3):
        assert {replica % 3 for replica in replicas} == {0, 1, 2}


def test_a_fenced_broker_is_used_when_its_rack_has_no_other() -> None:
    brokers = [UsableBroker(1, "a"), UsableBroker(2, "b", fenced=True), UsableBroker(3, "b"), UsableBroker(4, "a")]
    assert {frozenset(replicas) for replicas in place(brokers, 8, 3)} >= {frozenset({1, 3, 4})}
    assert all(2 in replicas for replicas in place(brokers, 8, 4))
    assert all(replicas[0] != 2 for replicas in place(brokers, 8, 4))


def test_topics_of_one_partition_are_spread() -> None:
    flat = [UsableBroker(broker) for broker in (1, 2, 3)]
    racks = [UsableBroker(broker, f"rack {broker % 3}") for broker in range(6)]
    for brokers in (flat, racks):
        leaders = Counter(place(brokers, 1, 2, start)[0][0] for start in range(len(brokers) * 5))
        assert set(leaders.values()) == {5}


@pytest.mark.parametrize(
    ("brokers", "factor", "message"),
    [
        (
            [UsableBroker(1), UsableBroker(2)],
            3,
            CANNOT_BE_REACHED,
        ),
        ([], 1, "All brokers are currently fenced, or have all their log directories cordoned."),
    ],
)
def test_what_cannot_be_placed(brokers: list[UsableBroker], factor: int, message: str) -> None:
    with pytest.raises(KafkaError) as raised:
        place(brokers, 1, factor)
    assert raised.value.message == f"Unable to replicate the partition {factor} time(s): {message}"
