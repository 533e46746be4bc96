"""A coordinator that fails is loaded again from its log, and every waiting request is answered (G2, T1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.coordinators import runtime as coordinator_runtime
from barnabas.coord.groups.coordinator import GroupCoordinator
from barnabas.coord.groups.offsets import OffsetStore
from barnabas.coord.share_state.coordinator import ShareCoordinator
from barnabas.coord.transactions.coordinator import TransactionCoordinator
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import share_state as s
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.groups import commit, fetch, find, heartbeat, join_request, member_id_of, stable
from tests.support.requests.transactions import FEW, TransactionalClient

TOPIC_ID = bytes(range(16))


class Fails:
    """Replaces a method by one that raises for its next `times` calls, after `after` calls that work."""

    def __init__(self, patch: pytest.MonkeyPatch, owner: type, name: str, times: int = 1, after: int = 0) -> None:
        self.calls = 0
        self.times = times
        original: Callable[..., Any] = getattr(owner, name)

        def method(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if after < self.calls <= after + self.times:
                raise ZeroDivisionError("injected")
            return original(*args, **kwargs)

        patch.setattr(owner, name, method)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    broker = MemoryBroker(tmp_path / "data", FEW)
    broker.create_topic("t")
    yield broker
    broker.close()


class TestReplay:
    def test_a_group_coordinator_is_loaded_again(self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        client = memory.client()
        find(client)
        assert commit(client, "t", 5) == {0}
        with monkeypatch.context() as patch:
            Fails(patch, OffsetStore, "put_plain")
            assert commit(client, "t", 7) == {E.NOT_COORDINATOR}
        assert fetch(client, "t") == E.COORDINATOR_LOAD_IN_PROGRESS
        memory.advance(0)
        assert fetch(client, "t") == 7  # the record is in the log
        assert commit(client, "t", 8) == {0}

    def test_who_waits_in_the_coordinator_is_answered(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client, waiting = memory.client(), memory.client()
        joined = stable(client, "waits", rebalance_timeout_ms=300_000, session_timeout_ms=300_000)
        assert joined.error_code == 0
        waiting.send(join_request(member_id_of(waiting, group_id="waits"), group_id="waits"), 9)
        assert waiting.answers() == []
        shard = memory.broker.group_coordinators._shard_of("waits")
        with monkeypatch.context() as patch:
            Fails(patch, GroupCoordinator, "replay")
            assert commit(client, "t", 7, group_id=_group_of(memory, shard.partition.index)) == {E.NOT_COORDINATOR}
        (response,) = waiting.answers()
        assert isinstance(response, g.JoinGroupResponse)
        assert response.error_code == E.NOT_COORDINATOR

    def test_a_transaction_coordinator_is_loaded_again(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        producer = TransactionalClient(memory)
        assert producer.start() == 0
        with monkeypatch.context() as patch:
            Fails(patch, TransactionCoordinator, "replay")
            assert producer.start() == E.NOT_COORDINATOR
        assert producer.start() == E.COORDINATOR_LOAD_IN_PROGRESS
        memory.advance(0)
        assert producer.start() == 0

    def test_a_share_coordinator_is_loaded_again(self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        client = memory.client()
        assert _initialize(client, 3) == 0
        with monkeypatch.context() as patch:
            Fails(patch, ShareCoordinator, "replay")
            assert _initialize(client, 4) == E.NOT_COORDINATOR
        assert _initialize(client, 5) == E.COORDINATOR_LOAD_IN_PROGRESS
        memory.advance(0)
        assert _start_offset(client) == 4

    def test_a_coordinator_that_cannot_be_loaded_is_tried_again_with_growing_delays(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = memory.client()
        find(client)
        assert commit(client, "t", 5) == {0}
        with monkeypatch.context() as patch:
            failing = Fails(patch, OffsetStore, "put_plain", times=1000)
            assert commit(client, "t", 7) == {E.NOT_COORDINATOR}
            for _ in range(100):
                memory.advance(1)
                assert fetch(client, "t") == E.COORDINATOR_LOAD_IN_PROGRESS
            assert 5 <= failing.calls <= 10
            listed = client.ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse)
            assert listed.error_code == 0  # the other coordinators are listed
        memory.advance(60)
        assert fetch(client, "t") == 7

    def test_a_marker_whose_replay_fails_takes_effect(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        producer = TransactionalClient(memory)
        assert producer.start() == 0
        find(memory.client())
        assert producer.commit_offset(9, group="g") == 0
        with monkeypatch.context() as patch:
            Fails(patch, GroupCoordinator, "replay_end")
            assert producer.end() == 0
        memory.advance(0)
        assert fetch(memory.client(), "t") == 9

    def test_an_append_that_fails_in_between_leaves_memory_as_the_log(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = memory.client()
        find(client)
        original = coordinator_runtime.append_records

        def fails_afterwards(*args: Any) -> int:
            original(*args)
            raise ZeroDivisionError("injected")

        with monkeypatch.context() as patch:
            patch.setattr(coordinator_runtime, "append_records", fails_afterwards)
            assert commit(client, "t", 7) == {E.NOT_COORDINATOR}
        memory.advance(0)
        assert fetch(client, "t") == 7

    def test_a_broker_starts_although_a_coordinator_fails(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        memory = MemoryBroker(tmp_path / "data", FEW)
        memory.create_topic("t")
        find(memory.client())
        assert commit(memory.client(), "t", 5) == {0}
        memory.close()
        with monkeypatch.context() as patch:
            Fails(patch, GroupCoordinator, "replay", times=2)
            memory = MemoryBroker(tmp_path / "data", FEW)
        assert fetch(memory.client(), "t") == E.COORDINATOR_LOAD_IN_PROGRESS
        memory.advance(5)
        assert fetch(memory.client(), "t") == 5
        memory.close()


class TestTick:
    def test_its_timer_is_set_again(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = memory.client()
        joined = stable(client)
        assert heartbeat(client, joined) == 0
        with monkeypatch.context() as patch:
            Fails(patch, GroupCoordinator, "_due")
            memory.advance(10.5)
        assert heartbeat(client, joined) == 0  # the session has not expired yet, and begins again
        assert "injected" in caplog.text
        memory.advance(10.5)
        assert heartbeat(client, joined) == E.UNKNOWN_MEMBER_ID

    def test_the_failed_event_is_handled_again(self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        client = memory.client()
        joined = stable(client)
        with monkeypatch.context() as patch:
            failing = Fails(patch, GroupCoordinator, "_due", times=3)
            memory.advance(10)
            assert failing.calls == 1
            memory.advance(2)
            assert failing.calls == 3
            memory.advance(1)
        assert heartbeat(client, joined) == E.UNKNOWN_MEMBER_ID

    def test_a_failure_of_the_next_deadline_is_no_end(
        self, memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        client = memory.client()
        joined = stable(client)
        with monkeypatch.context() as patch:
            Fails(patch, GroupCoordinator, "next_deadline")
            assert heartbeat(client, joined) == 0
        memory.advance(11)
        assert heartbeat(client, joined) == E.UNKNOWN_MEMBER_ID


def test_an_event_of_all_coordinators_reaches_those_after_one_that_fails(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = memory.client()
    for group_id in ("g", "h", "i", "j", "k"):
        find(client, group_id)
        assert commit(client, "t", 5, group_id=group_id) == {0}
    count = sum(1 for _ in memory.broker.group_coordinators)
    assert count > 1
    with monkeypatch.context() as patch:
        changed = Fails(patch, GroupCoordinator, "metadata_changed")
        memory.create_topic("u")
    assert changed.calls == count
    assert fetch(client, "t") == 5


def _group_of(memory: MemoryBroker, index: int) -> str:
    """A group id whose coordinator is the one of this partition."""
    groups = memory.broker.group_coordinators
    return next(name for name in map(str, range(1000)) if groups.partition_of(name) == index)


def _initialize(client: Client, start_offset: int) -> int:
    partition = s.InitializeShareGroupStateRequestPartitionData(
        partition=0, state_epoch=start_offset, start_offset=start_offset
    )
    request = s.InitializeShareGroupStateRequest(
        group_id="g",
        topics=[s.InitializeStateData(topic_id=_t(client), partitions=[partition])],
    )
    response = client.ask(request, 0, s.InitializeShareGroupStateResponse)
    return response.results[0].partitions[0].error_code


def _start_offset(client: Client) -> int:
    request = s.ReadShareGroupStateSummaryRequest(
        group_id="g",
        topics=[
            s.ReadStateSummaryData(
                topic_id=_t(client),
                partitions=[s.ReadShareGroupStateSummaryRequestPartitionData(partition=0, leader_epoch=0)],
            )
        ],
    )
    response = client.ask(request, 0, s.ReadShareGroupStateSummaryResponse)
    return response.results[0].partitions[0].start_offset


def _t(client: Client) -> bytes:
    return client.memory.broker.image.topics["t"].topic_id


@pytest.mark.parametrize(
    ("error", "level"), [(E.NOT_ENOUGH_REPLICAS, "WARNING"), (E.MESSAGE_TOO_LARGE, "ERROR")], ids=str
)
def test_a_write_that_lacks_replicas_is_a_warning(
    memory: MemoryBroker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: E,
    level: str,
) -> None:
    """Clients repeat the request, so it is no error in the log; other errors have to be looked at."""
    client = memory.client()
    find(client)

    def refuse(*_: object) -> int:
        raise KafkaError(error)

    monkeypatch.setattr(coordinator_runtime, "append_records", refuse)
    with caplog.at_level("WARNING"):
        assert commit(client, "t", 5) != {0}
    assert [record.levelname for record in caplog.records if record.message.startswith("Cannot write to")] == [level]
