"""G2, T1: large logs of coordinators are loaded beside the serving loop; until then requests are rejected."""

from __future__ import annotations

from itertools import pairwise

import pytest

from barnabas.broker.coordinators import loading as coordinator_loading
from barnabas.broker.coordinators import runtime as coordinator_runtime
from barnabas.broker.coordinators.replay import (
    RECORD_COST,
    SHORT_RECORD_COST,
    STEP_COST,
    group_replay,
    replay_log,
)
from barnabas.broker.event_loop import slices
from barnabas.coord.groups import records
from barnabas.coord.groups.config import GroupConfig
from barnabas.coord.groups.coordinator import GroupCoordinator
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.records.coordinator_records import GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.groups import commit, fetch, find, heartbeat, join_request, stable
from tests.support.requests.transactions import FEW, TransactionalClient

SESSION_S = 10.0


@pytest.fixture
def data_dir(tmp_path, monkeypatch):
    """A directory whose coordinators are loaded beside the loop."""
    monkeypatch.setattr(coordinator_runtime, "SYNCHRONOUS_LOAD_BYTES", -1)
    return tmp_path / "data"


def broker(data_dir) -> MemoryBroker:
    return MemoryBroker(data_dir, FEW)


def filled(data_dir) -> g.JoinGroupResponse:
    """Write a group with a member and an offset, and an open transaction with another offset."""
    memory = broker(data_dir)
    memory.create_topic("t")
    client = memory.client()
    joined = stable(client)
    find(client, "other")
    assert commit(client, "t", 7, group_id="other") == {0}
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    assert producer.commit_offset(9, group="other") == 0
    memory.close()
    return joined


def groups_listed(client: Client) -> tuple[int, set[str]]:
    response = client.ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse)
    return response.error_code, {group.group_id for group in response.groups}


def transactions_listed(client: Client) -> tuple[int, set[str]]:
    response = client.ask(t.ListTransactionsRequest(), 2, t.ListTransactionsResponse)
    return response.error_code, {transaction.transactional_id for transaction in response.transaction_states}


def described(client: Client) -> int:
    request = t.DescribeTransactionsRequest(transactional_ids=["x"])
    return client.ask(request, 0, t.DescribeTransactionsResponse).transaction_states[0].error_code


def group_described(client: Client) -> tuple[int, str]:
    (group,) = client.ask(g.DescribeGroupsRequest(groups=["g"]), 6, g.DescribeGroupsResponse).groups
    return group.error_code, group.group_state


def test_requests_get_load_in_progress_until_the_log_is_loaded(data_dir) -> None:
    joined = filled(data_dir)
    memory = broker(data_dir)
    client = memory.client()
    loading = E.COORDINATOR_LOAD_IN_PROGRESS
    assert find(client).error_code == 0
    assert heartbeat(client, joined) == 0, "as Kafka: only the log can say who is a member"
    assert client.ask(join_request(), 9, g.JoinGroupResponse).error_code == loading
    assert commit(client, "t", group_id="other") == {loading}
    assert fetch(client, "t", "other") == loading
    assert group_described(client)[0] == loading
    assert groups_listed(client) == (loading, set())
    deletion = client.ask(g.DeleteGroupsRequest(groups_names=["g"]), 2, g.DeleteGroupsResponse).results[0]
    assert deletion.error_code == loading
    producer = TransactionalClient(memory)
    assert producer.find() == 0
    assert producer.start() == loading
    assert described(client) == loading
    assert transactions_listed(client) == (loading, set())
    memory.advance(0)
    assert heartbeat(client, joined) == 0
    assert fetch(client, "t", "other") == 7
    assert groups_listed(client) == (0, {"g", "other"})
    assert transactions_listed(client) == (0, {"x"})
    assert described(client) == 0
    memory.close()


def test_session_timeouts_start_when_the_coordinator_is_loaded(data_dir) -> None:
    filled(data_dir)
    memory = broker(data_dir)
    client = memory.client()
    memory.clock.advance(60)  # no timer fires, as if the loop had been busy
    memory.advance(0)
    memory.advance(SESSION_S - 1)
    assert group_described(client) == (0, "Stable")
    memory.advance(1)
    assert group_described(client) == (0, "Empty")
    memory.close()


def test_loading_runs_in_slices_and_requests_are_served_in_between(data_dir, monkeypatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    filled(data_dir)
    memory = broker(data_dir)
    client = memory.client()
    rounds = 0
    while groups_listed(client)[0]:
        rounds += 1
        deadline = memory.broker.loop.timers.next_deadline()
        memory.clock.now = max(memory.clock.now, deadline)
        loop = memory.broker.loop
        monkeypatch.setattr(loop.slices, "_now", lambda: memory.clock.now + 0.001)
        loop.timers.fire(memory.clock.now)
        memory.clock.advance(0.002)
        assert rounds < 100
    assert rounds > 3
    assert fetch(client, "t", "other") == 7
    memory.close()


def test_a_marker_written_during_loading_is_read_from_the_log(data_dir) -> None:
    filled(data_dir)
    memory = broker(data_dir)
    client = memory.client()
    for loading in memory.broker.group_coordinators._loading._unfinished.values():
        loading.work.step()  # started, with the current log
    for loading in list(memory.broker.transaction_coordinators._loading._unfinished.values()):
        while loading.work.step():
            pass
    producer = TransactionalClient(memory)
    assert producer.start() == E.CONCURRENT_TRANSACTIONS  # the open transaction is aborted first
    assert fetch(client, "t", "other") == E.COORDINATOR_LOAD_IN_PROGRESS
    memory.advance(0)
    request = o.OffsetFetchRequest(
        require_stable=True,
        groups=[
            o.OffsetFetchRequestGroup(
                group_id="other", topics=[o.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
            )
        ],
    )
    partition = client.ask(request, 9, o.OffsetFetchResponse).groups[0].topics[0].partitions[0]
    assert (partition.error_code, partition.committed_offset) == (0, 7)
    memory.close()


def test_offsets_of_a_topic_deleted_during_loading_are_deleted(data_dir) -> None:
    filled(data_dir)
    memory = broker(data_dir)
    client = memory.client()
    topics = [DeleteTopicState(name="t")]
    response = client.ask(DeleteTopicsRequest(topics=topics), 6, DeleteTopicsResponse)
    assert response.responses[0].error_code == 0
    memory.advance(0)
    request = o.OffsetFetchRequest(groups=[o.OffsetFetchRequestGroup(group_id="other", topics=None)])
    assert client.ask(request, 9, o.OffsetFetchResponse).groups[0].topics == []
    memory.close()


def test_a_stop_during_loading_loses_nothing(data_dir) -> None:
    joined = filled(data_dir)
    memory = broker(data_dir)
    memory.broker.group_coordinators.stop()
    memory.broker.transaction_coordinators.stop()
    memory.close()
    again = broker(data_dir)
    again.advance(0)
    assert heartbeat(again.client(), joined) == 0
    again.close()


def test_small_logs_are_read_before_the_broker_serves(tmp_path) -> None:
    assert coordinator_loading.SYNCHRONOUS_LOAD_BYTES > 100_000
    joined = filled(tmp_path / "data")
    memory = broker(tmp_path / "data")
    assert heartbeat(memory.client(), joined) == 0
    memory.close()


def test_steps_of_a_load_are_bounded_by_what_records_cost(tmp_path) -> None:
    """G7: also within a batch of thousands of records; more of them fit into a step if they are short work."""
    memory = broker(tmp_path / "data")
    find(memory.client(), "g")
    result = Result()
    for partition in range(3000):
        key = OffsetCommitKey(group="g", topic="t", partition=partition)
        result.records.append(records.offset_commit(key, OffsetCommitValue(offset=1)))
    for member in range(100):
        result.records.append(records.group_metadata(f"g{member}", GroupMetadataValue(protocol_type="consumer")))
    memory.broker.group_coordinators.handle("g", lambda _groups, _at: result)
    (partition,) = [
        candidate
        for candidate in memory.broker.partitions.of_topic("__consumer_offsets")
        if candidate.log.log_end_offset
    ]
    loaded = GroupCoordinator(GroupConfig(), str)
    counts = [0, *replay_log(partition, group_replay(loaded, Moment(0.0, 0)))]
    steps = [after - before for before, after in pairwise(counts)]
    assert sum(steps) == 3100
    assert max(steps) <= STEP_COST // SHORT_RECORD_COST
    assert len(steps) >= (3000 * SHORT_RECORD_COST + 100 * RECORD_COST) // STEP_COST
    assert loaded.offsets.store == memory.broker.group_coordinators.coordinator_of("g").offsets.store
    memory.close()
