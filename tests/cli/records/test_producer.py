"""The client's producer against a broker that loses requests, responses and leadership."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.client import cluster as cluster_module
from barnabas.client import producer as producer_module
from barnabas.client.accumulator import Identity, PartitionQueue
from barnabas.client.cluster import Cluster
from barnabas.client.errors import TimedOut
from barnabas.client.producer import Producer
from barnabas.wire.clients.partitioners import LoadAware, RoundRobin
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.cli.scripted_broker import ScriptedBroker

EXAMPLES = int(os.environ.get("BARNABAS_EXAMPLES", "30"))
FAULTS = ("ok", "refuse", "lose-request", "lose-answer")


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_module, "RETRY_PAUSE_S", 0.001)
    monkeypatch.setattr(cluster_module, "FIRST_PAUSE_S", 0.001)


def _produce(broker: ScriptedBroker, values: list[bytes], *, timeout_s: float = 30.0, **options: object) -> Producer:
    """Produce the values, a few per batch; None in the list closes the batch."""
    with Cluster(broker.bootstrap, timeout_s=timeout_s) as cluster:
        producer = Producer(cluster, RoundRobin, batch_bytes=100, **options)
        for value in values:
            producer.send("t", value)
        producer.flush()
    return producer


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(faults=st.lists(st.sampled_from(FAULTS), max_size=12), count=st.integers(1, 40))
def test_idempotent_producer_appends_each_record_once_and_in_order(faults: list[str], count: int) -> None:
    """I1, I2: if requests or responses are lost, retries neither lose, duplicate nor reorder records."""
    values = [b"%d" % number for number in range(count)]
    with ScriptedBroker(faults) as broker:
        producer = _produce(broker, values)
        assert broker.log == values
    assert producer.acknowledged_records == count


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(faults=st.lists(st.sampled_from(FAULTS), max_size=8), count=st.integers(1, 30))
def test_without_idempotence_every_record_arrives_and_order_is_kept(faults: list[str], count: int) -> None:
    """A lost response may duplicate a batch, but never reorder batches."""
    values = [b"%d" % number for number in range(count)]
    with ScriptedBroker(faults) as broker:
        _produce(broker, values, idempotent=False)
        first_seen = list(dict.fromkeys(broker.log))
    assert first_seen == values


def test_refused_for_good_raises_what_the_broker_said() -> None:
    with ScriptedBroker(["fail"]) as broker, pytest.raises(KafkaError) as caught:
        _produce(broker, [b"x"])
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    assert "t-0 refused a batch: MESSAGE_TOO_LARGE" in str(caught.value)


def test_leader_that_never_accepts_is_a_timeout_that_says_why() -> None:
    with (
        ScriptedBroker(["refuse"] * 100_000) as broker,
        pytest.raises(TimedOut, match=r"NOT_LEADER_OR_FOLLOWER|has not accepted a batch"),
    ):
        _produce(broker, [b"x"], timeout_s=0.2)


def test_several_batches_are_in_flight_at_once() -> None:
    """I1: a producer has up to five batches in flight."""
    queue = PartitionQueue("t", 0, Identity(1, 0), 0, None)
    for number in range(7):
        queue.append(number, 0, None, b"x", ())
        queue.seal(0.0)
    taken = 0
    while queue.is_ready(0.0, 5):
        queue.take()
        taken += 1
    assert taken == 5


def test_batch_that_comes_back_goes_first_and_alone() -> None:
    queue = PartitionQueue("t", 0, Identity(1, 0), 0, None)
    for number in range(4):
        queue.append(number, 0, None, b"x", ())
        queue.seal(0.0)
    first, second, third = queue.take(), queue.take(), queue.take()
    queue.put_back(second, 1.0)
    assert not queue.is_ready(0.5, 5), "not before its pause is over"
    assert not queue.is_ready(2.0, 5), "not while a later one is in flight"
    queue.acknowledge(first)
    assert not queue.has_earlier(second)
    assert queue.has_earlier(third), "so that its out-of-order answer is an echo"
    queue.put_back(third, 1.0)
    assert [queue.take().order for _ in range(3)] == [1, 2, 3]


def test_sequences_count_records() -> None:
    """I2: sequence numbers continue from batch to batch, and wrap from 2^31-1 to 0."""
    queue = PartitionQueue("t", 0, Identity(1, 0), 0, None)
    queue.next_sequence = 2**31 - 2
    for number, size in enumerate((1, 3, 1)):
        for _ in range(size):
            queue.append(number, 0, None, b"x", ())
        queue.seal(0.0)
    assert [batch.builder.base_sequence for batch in queue.sealed] == [2**31 - 2, 2**31 - 1, 2]


def test_load_aware_partitioner_sees_the_bytes_that_wait() -> None:
    """KIP-794: a partition with a long queue is chosen less often."""
    chosen = {0: 0, 1: 0}
    target = producer_module.TopicQueues(
        [PartitionQueue("t", index, Identity(), 0, None) for index in range(2)],
        LoadAware(2, Random(7).randrange, batch_size=1),
    )
    slow = target.queues[0]
    slow.append(1, 0, None, b"x" * 10_000, ())
    slow.seal(0.0)
    slow.take()
    assert slow.bytes_waiting > 10_000
    target.look_at_loads([1, 1])
    for _ in range(1000):
        chosen[target.partitioner.choose(None, 1)] += 1
    assert chosen[0] < 10


def test_partition_without_a_leader_is_not_chosen_by_load() -> None:
    """KIP-794: queues of partitions without a leader do not count."""
    target = producer_module.TopicQueues(
        [PartitionQueue("t", index, Identity(), 0, None) for index in range(3)],
        LoadAware(3, Random(7).randrange, batch_size=1),
    )
    target.look_at_loads([1, -1, 1])
    assert {target.partitioner.choose(None, 1) for _ in range(200)} == {0, 2}
