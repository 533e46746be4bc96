"""Partitioners: murmur2 as in the Java client, round-robin, sticky and load-aware (KIP-480, KIP-794)."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.clients.partitioners import LoadAware, Murmur2, RoundRobin, Sticky, murmur2, partition_for_key

LINES = (Path(__file__).parents[2] / "data" / "kafka-4.4.0-record-batches.jsonl").read_text().splitlines()
HASHES = json.loads(LINES[-1])["murmur2"]


def test_murmur2_equals_kafkas() -> None:
    assert len(HASHES) == 50
    for line in HASHES:
        key = bytes.fromhex(line["key"])
        assert murmur2(key) == line["murmur2"], line
        assert partition_for_key(key, 12) == line["partition_of_12"], line


@given(key=st.binary(max_size=64), count=st.integers(1, 1000))
def test_key_always_selects_the_same_partition(key: bytes, count: int) -> None:
    pick = random.Random(1).randrange
    chosen = {
        partitioner.choose(key, 10)
        for partitioner in (Murmur2(count, pick), Sticky(count, pick), LoadAware(count, pick))
        for _ in range(3)
    }
    assert chosen == {partition_for_key(key, count)}
    assert 0 <= chosen.pop() < count


def test_round_robin_ignores_the_key() -> None:
    partitioner = RoundRobin(3)
    assert [partitioner.choose(b"one key", 1) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_murmur2_sends_records_without_key_to_random_partitions() -> None:
    partitioner = Murmur2(4, random.Random(7).randrange)
    assert set(Counter(partitioner.choose(None, 1) for _ in range(200))) == {0, 1, 2, 3}


def test_sticky_changes_partition_after_a_batch() -> None:
    picks = iter([2, 0, 1])
    partitioner = Sticky(3, lambda n: next(picks), batch_size=100)
    assert [partitioner.choose(None, 40) for _ in range(7)] == [2, 2, 2, 0, 0, 0, 1]


def test_load_aware_prefers_short_queues() -> None:
    """KIP-794's example: queues of 0, 3, 1 have the weights 4, 1, 3."""
    bounds: set[int] = set()
    turns = iter(range(8))

    def draw(n: int) -> int:
        bounds.add(n)
        return next(turns)

    partitioner = LoadAware(3, draw, batch_size=1)
    partitioner.update([0, 3, 1])
    assert [partitioner.choose(None, 1) for _ in range(8)] == [0, 0, 0, 0, 1, 2, 2, 2]
    assert bounds == {8}


def test_load_aware_ignores_partitions_without_a_leader() -> None:
    partitioner = LoadAware(4, random.Random(3).randrange, batch_size=1)
    partitioner.update([5, 5], partitions=[1, 3])
    assert {partitioner.choose(None, 1) for _ in range(100)} == {1, 3}


def test_load_aware_is_uniform_for_equal_queues_and_before_an_update() -> None:
    bounds: list[int] = []
    partitioner = LoadAware(3, lambda n: bounds.append(n) or 0, batch_size=1)  # type: ignore[func-returns-value]
    partitioner.choose(None, 1)
    partitioner.update([7, 7, 7])
    partitioner.choose(None, 1)
    assert bounds == [3, 3]


def test_load_aware_requires_one_size_for_each_partition() -> None:
    with pytest.raises(ValueError, match="2 queue sizes for 3"):
        LoadAware(3, random.Random(1).randrange).update([1, 2])


def test_partitions_of_loaded_brokers_are_chosen_less_often() -> None:
    partitioner = LoadAware(2, random.Random(5).randrange, batch_size=1)
    partitioner.update([0, 0], loads=[0.2, 0.8])
    chosen = [partitioner.choose(None, 1) for _ in range(2000)]
    assert 0.15 < chosen.count(1) / 2000 < 0.25
    partitioner.update([0, 0], loads=[1.0, 1.0])
    chosen = [partitioner.choose(None, 1) for _ in range(2000)]
    assert 0.4 < chosen.count(1) / 2000 < 0.6


def test_keys_have_their_partition_whatever_the_load() -> None:
    partitioner = LoadAware(4, random.Random(5).randrange, batch_size=1)
    partitioner.update([0, 0, 0, 0], loads=[0.0, 1.0, 1.0, 1.0])
    assert {partitioner.choose(b"key", 1) for _ in range(50)} == {partition_for_key(b"key", 4)}
