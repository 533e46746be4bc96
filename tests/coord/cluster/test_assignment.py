"""Placement of replicas."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.cluster.assignment import place_partitions
from barnabas.wire.errors import ErrorCode, KafkaError


@given(st.integers(1, 7), st.integers(1, 40), st.integers(1, 7), st.integers(0, 50))
def test_replicas_are_distinct_and_leaders_and_replicas_are_spread(
    brokers: int, partitions: int, factor: int, start: int
) -> None:
    ring = list(range(10, 10 + brokers))
    if factor > brokers:
        with pytest.raises(KafkaError) as raised:
            place_partitions(ring, partitions, factor, start)
        assert raised.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
        return
    placed = place_partitions(ring, partitions, factor, start)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == factor and set(replicas) <= set(ring) for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders[broker] for broker in ring) <= 1


def test_followers_of_one_leader_differ() -> None:
    placed = place_partitions([1, 2, 3], 6, 2)
    assert placed == [[1, 2], [2, 3], [3, 1], [1, 3], [2, 1], [3, 2]]
