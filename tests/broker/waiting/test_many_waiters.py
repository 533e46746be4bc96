"""However many requests wait for one thing, no piece of work answers more than a few: others are served in between.

The clock advances by `LOOK_S` each time it is read, as if the work before had taken so long. The tests count the
responses between two ends of a turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.event_loop.waking import FEW
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.wire.schema import Message
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import at, fetch
from tests.support.world import Clock

MANY = 200
LOOK_S = 0.0001
MOST_AT_ONCE = 4 * FEW
"""Some callbacks run without a look at the clock, and a turn may have several that each take their millisecond."""
ONE_PARTITION = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "3000"}


class BusyClock(Clock):
    """A clock that goes on with each look."""

    is_busy = False
    _now = 1000.0

    @property
    def now(self) -> float:  # type: ignore[override]
        if self.is_busy:
            self._now += LOOK_S
        return self._now

    @now.setter
    def now(self, value: float) -> None:
        self._now = value


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    broker = MemoryBroker(tmp_path, ONE_PARTITION)
    broker.create_topic("t")
    yield broker
    broker.close()


def produce(acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=batch(b"x"))]
    return ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[TopicProduceData(name="t", partition_data=data)])


def most_answered_at_once(memory: MemoryBroker, clients: list[Client], begin: Callable[[], object]) -> int:
    """Call `begin`, then go on until nothing is left to do; the most responses that came in one piece of work."""
    before = memory.clock
    clock = memory.clock = BusyClock()
    clock.now, clock.now_ms = before.now, before.now_ms
    loop, most, seen = memory.broker.loop, 0, 0

    def look() -> None:
        nonlocal most, seen
        answered = sum(client.outputs for client in clients)
        most, seen = max(most, answered - seen), answered

    clock.is_busy = True
    begin()
    look()
    while True:
        loop.end_turn()
        look()
        fired = loop.timers.fire(clock._now)
        look()
        if not fired and loop.is_idle:
            clock.is_busy = False
            assert all(client.answers() for client in clients)
            return most


def send_all(memory: MemoryBroker, request: Callable[[int], Message], version: int) -> list[Client]:
    clients = [memory.client() for _ in range(MANY)]
    for number, client in enumerate(clients):
        client.send(request(number), version)
        assert client.answers() == []
    return clients


def test_consumers_that_wait_for_one_record(memory: MemoryBroker) -> None:
    clients = send_all(memory, lambda _: fetch(at(0), max_wait_ms=60_000), 12)
    most = most_answered_at_once(memory, clients, lambda: memory.client().send(produce(), 9))
    assert most <= MOST_AT_ONCE


def test_consumers_that_wait_for_a_partition_that_goes_offline(memory: MemoryBroker) -> None:
    clients = send_all(memory, lambda _: fetch(at(0), max_wait_ms=60_000), 12)
    most = most_answered_at_once(memory, clients, lambda: memory.broker.partitions.get("t", 0).fail("on purpose"))
    assert most <= MOST_AT_ONCE


def test_consumers_whose_time_is_up_together(memory: MemoryBroker) -> None:
    clients = send_all(memory, lambda _: fetch(at(0), max_wait_ms=1000), 12)
    memory.clock.advance(2)
    assert most_answered_at_once(memory, clients, lambda: None) <= MOST_AT_ONCE


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[MemoryBroker]:
    """A broker that acknowledges flushed records only, with flushes paused."""
    broker = MemoryBroker(tmp_path / "synced", {"barnabas.log.sync": "always"})
    broker.create_topic("t")
    broker.flushes.is_paused = True
    yield broker
    broker.close()


def test_producers_that_wait_for_one_flush(synced: MemoryBroker) -> None:
    clients = send_all(synced, lambda _: produce(), 9)
    synced.run_flush()  # of the first of them
    clients = [client for client in clients if not client.answers()]
    assert len(clients) > MANY // 2
    assert most_answered_at_once(synced, clients, synced.flushes.run) <= MOST_AT_ONCE


def test_producers_that_wait_when_a_partition_goes_offline(synced: MemoryBroker) -> None:
    clients = send_all(synced, lambda _: produce(), 9)
    partition = synced.broker.partitions.get("t", 0)
    assert most_answered_at_once(synced, clients, lambda: partition.fail("on purpose")) <= MOST_AT_ONCE


def join(group: str, instance: str) -> g.JoinGroupRequest:
    return g.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=3000,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[g.JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")],
    )


@pytest.fixture
def coordinator(memory: MemoryBroker) -> MemoryBroker:
    """The coordinator of all groups."""
    find = g.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    memory.client().send(find, 4)
    memory.advance(1)
    response = memory.client().ask(find, 4, g.FindCoordinatorResponse)
    assert response.coordinators[0].error_code == E.NONE
    return memory


def test_groups_that_all_begin_together(coordinator: MemoryBroker) -> None:
    clients = send_all(coordinator, lambda number: join(f"g{number}", "i"), 9)
    coordinator.clock.advance(4)
    assert most_answered_at_once(coordinator, clients, lambda: None) <= MOST_AT_ONCE


def test_members_of_one_group(coordinator: MemoryBroker) -> None:
    clients = send_all(coordinator, lambda number: join("g", f"i{number}"), 9)
    coordinator.clock.advance(4)
    assert most_answered_at_once(coordinator, clients, lambda: None) <= MOST_AT_ONCE
