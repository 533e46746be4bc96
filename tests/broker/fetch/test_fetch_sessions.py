"""Fetch sessions (KIP-227, R20): incremental responses, lost sessions, eviction."""

from __future__ import annotations

import itertools

import pytest

from barnabas.broker.replicas.leader.fetch_sessions import EVICTION_S, FetchPartition, FetchSessions
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestForgottenTopic, FetchResponse
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.support.memory.broker import Client, MemoryBroker
from tests.support.requests.fetch import append, at, fetch, values


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 3)
    return memory.client()


def start(client: Client, *partitions, **options) -> FetchResponse:
    response = client.ask(fetch(*partitions, session_epoch=0, **options), 12, FetchResponse)
    assert response.error_code == 0
    return response


def next_fetch(session_id: int, epoch: int, *partitions, **options) -> FetchRequest:
    options.setdefault("max_wait_ms", 0)
    return fetch(*partitions, session_id=session_id, session_epoch=epoch, **options)


def partitions_of(response: FetchResponse) -> list[int]:
    return [partition.partition_index for topic in response.responses for partition in topic.partitions]


def test_an_incremental_response_has_only_changes(memory: MemoryBroker, client: Client) -> None:
    first = start(client, at(0), at(0, partition=1), at(0, partition=2))
    assert first.session_id > 0
    assert partitions_of(first) == [0, 1, 2]
    nothing = client.ask(next_fetch(first.session_id, 1), 12, FetchResponse)
    assert (nothing.error_code, nothing.session_id, partitions_of(nothing)) == (0, first.session_id, [])
    append(memory, "t", b"a", partition=1)
    response = client.ask(next_fetch(first.session_id, 2), 12, FetchResponse)
    assert partitions_of(response) == [1]
    assert values(response.responses[0].partitions[0]) == [(0, b"a")]
    after = client.ask(next_fetch(first.session_id, 3, at(1, partition=1)), 12, FetchResponse)
    assert partitions_of(after) == []


def test_a_waiting_session_is_woken_by_any_of_its_partitions(memory: MemoryBroker, client: Client) -> None:
    first = start(client, at(0), at(0, partition=1))
    client.send(next_fetch(first.session_id, 1, max_wait_ms=60_000), 12)
    assert client.answers() == []
    append(memory, "t", b"a", partition=1)
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    assert partitions_of(response) == [1]


def test_forgotten_partitions_are_not_read_any_more(memory: MemoryBroker, client: Client) -> None:
    first = start(client, at(0), at(0, partition=1))
    append(memory, "t", b"a")
    append(memory, "t", b"a", partition=1)
    request = next_fetch(first.session_id, 1)
    request.topics = []
    request.forgotten_topics_data = [FetchRequestForgottenTopic(topic="t", partitions=[0])]
    assert partitions_of(client.ask(request, 12, FetchResponse)) == [1]


def test_a_session_without_partitions_is_closed(memory: MemoryBroker, client: Client) -> None:
    first = start(client, at(0))
    request = next_fetch(first.session_id, 1)
    request.topics = []
    request.forgotten_topics_data = [FetchRequestForgottenTopic(topic="t", partitions=[0])]
    assert client.ask(request, 12, FetchResponse).session_id == 0
    assert len(memory.broker.fetch_sessions) == 0


def test_epoch_minus_one_closes_the_session(memory: MemoryBroker, client: Client) -> None:
    """Spark closes its sessions this way when it returns a consumer to its pool."""
    first = start(client, at(0))
    assert len(memory.broker.fetch_sessions) == 1
    response = client.ask(fetch(session_id=first.session_id, session_epoch=-1), 12, FetchResponse)
    assert (response.error_code, response.session_id) == (0, 0)
    assert len(memory.broker.fetch_sessions) == 0


def test_epoch_zero_with_an_id_replaces_the_session(memory: MemoryBroker, client: Client) -> None:
    first = start(client, at(0))
    second = start(client, at(0), session_id=first.session_id)
    assert second.session_id not in (0, first.session_id)
    assert len(memory.broker.fetch_sessions) == 1


def test_an_unknown_session_and_a_wrong_epoch_are_errors(client: Client) -> None:
    first = start(client, at(0))
    unknown = client.ask(next_fetch(first.session_id ^ 1, 1), 12, FetchResponse)
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    early = client.ask(next_fetch(first.session_id, 2), 12, FetchResponse)
    assert early.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert client.ask(next_fetch(first.session_id, 1), 12, FetchResponse).error_code == 0


@pytest.mark.parametrize("other", [2, -2])
def test_a_session_is_that_of_one_reader(client: Client, other: int) -> None:
    first = start(client, at(0))
    taken = client.ask(next_fetch(first.session_id, 1, replica_id=other), 12, FetchResponse)
    assert taken.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert client.ask(next_fetch(first.session_id, 1), 12, FetchResponse).error_code == 0


def test_a_session_uses_either_names_or_ids(memory: MemoryBroker, client: Client) -> None:
    first = start(client, at(0))
    topic_id = memory.broker.image.topics["t"].topic_id
    response = client.ask(next_fetch(first.session_id, 1, at(0), topic_id=topic_id), 13, FetchResponse)
    assert response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_an_error_is_reported_each_time_and_so_is_its_end(memory: MemoryBroker, client: Client) -> None:
    topic_id = memory.broker.image.topics["t"].topic_id
    first = client.ask(fetch(at(0), topic_id=topic_id, session_epoch=0), 13, FetchResponse)
    memory.client().ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 3, DeleteTopicsResponse)
    for epoch in (1, 2):
        request = FetchRequest(session_id=first.session_id, session_epoch=epoch, max_wait_ms=60_000, min_bytes=1)
        response = client.ask(request, 13, FetchResponse)
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_that_had_records_are_read_last_next_time(memory: MemoryBroker, client: Client) -> None:
    size = 1000
    for partition in range(3):
        for _ in range(2):
            append(memory, "t", bytes(size), partition=partition)
    first = start(client, *[at(0, partition=partition, max_bytes=10) for partition in range(3)], max_bytes=10)
    assert [bool(partition.records) for partition in first.responses[0].partitions] == [True, False, False]
    orders = []
    for epoch in range(1, 6):
        response = client.ask(next_fetch(first.session_id, epoch, max_bytes=10), 12, FetchResponse)
        orders.append(partitions_of(response)[0])
    assert set(orders[:3]) == {0, 1, 2}


def sessions(slots: int) -> FetchSessions:
    return FetchSessions(slots, itertools.count(1).__next__, lambda _topic_id: "t")


def partitions(count: int) -> dict:
    return {("t", index): FetchPartition("t", bytes(16), at(0, partition=index)) for index in range(count)}


def create(cache: FetchSessions, size: int, now: float, *, replica_id: int = -1) -> int:
    return cache.create(partitions(size), uses_topic_ids=False, replica_id=replica_id, now=now)


def test_a_full_cache_rejects_new_sessions_while_its_own_are_young() -> None:
    cache = sessions(1)
    assert create(cache, 1, now=0)
    assert create(cache, 9, now=1) == 0


def test_an_idle_session_is_evicted() -> None:
    cache = sessions(1)
    first = create(cache, 9, now=0)
    second = create(cache, 1, now=EVICTION_S + 1)
    assert second not in (0, first)
    assert len(cache) == 1


def test_a_larger_session_evicts_a_smaller_one_that_is_old_enough() -> None:
    cache = sessions(1)
    first = create(cache, 5, now=0)
    cache._sessions[first].last_used = EVICTION_S
    assert create(cache, 4, now=EVICTION_S + 1) == 0
    assert create(cache, 6, now=EVICTION_S + 1)


def test_a_follower_evicts_a_consumer_but_not_vice_versa() -> None:
    cache = sessions(1)
    consumer = create(cache, 9, now=0)
    cache._sessions[consumer].last_used = EVICTION_S
    follower = create(cache, 1, now=EVICTION_S + 1, replica_id=2)
    assert follower
    cache._sessions[follower].last_used = 2 * EVICTION_S
    assert create(cache, 99, now=2 * EVICTION_S + 2) == 0


def test_without_slots_there_are_no_sessions() -> None:
    assert create(sessions(0), 1, now=0) == 0


def test_the_epoch_wraps_to_one() -> None:
    cache = sessions(1)
    session_id = create(cache, 1, now=0)
    cache._sessions[session_id].epoch = 2**31 - 1
    request = FetchRequest(session_id=session_id, session_epoch=2**31 - 1)
    session = cache.resume(request, uses_topic_ids=False, now=1)
    assert session is not None
    assert session.epoch == 1


class Crowd:
    """Sessions of many clients."""

    def __init__(self, slots: int) -> None:
        self.sessions = FetchSessions(slots, itertools.count(1).__next__, lambda _topic_id: "t")
        self.now = 0.0

    def create(self, size: int, replica_id: int = -1) -> int:
        partitions = {("t", index): FetchPartition("t", bytes(16), at(0, partition=index)) for index in range(size)}
        return self.sessions.create(partitions, uses_topic_ids=False, replica_id=replica_id, now=self.now)

    def use(self, session_id: int, *, forgotten: int = 0) -> None:
        session = self.sessions.find(session_id)
        assert session is not None
        request = FetchRequest(session_id=session_id, session_epoch=session.epoch, replica_id=session.replica_id)
        gone = list(session.partitions)[:forgotten]
        request.forgotten_topics_data = [FetchRequestForgottenTopic(topic="t", partitions=[i for _, i in gone])]
        self.sessions.resume(request, uses_topic_ids=False, now=self.now)

    def open(self) -> set[int]:
        return {number for number in range(1, 400) if self.sessions.find(number) is not None}


def test_the_smallest_session_of_a_consumer_is_evicted_first_and_the_least_recently_used_before_it() -> None:
    crowd = Crowd(40)
    sizes = {crowd.create(size): size for size in [*range(2, 40), 50]}
    follower = crowd.create(1, replica_id=2)
    assert crowd.create(9) == 0, "none is old enough"
    crowd.now = EVICTION_S + 1
    idle = min(sizes, key=lambda number: sizes[number] != 20)
    for number in [*sizes, follower]:
        if number != idle:
            crowd.use(number)
    crowd.now += 1
    assert crowd.create(100)
    assert idle not in crowd.open()
    del sizes[idle]
    shrunk = max(sizes, key=lambda number: sizes[number])
    crowd.use(shrunk, forgotten=49)
    sizes[shrunk] = 1
    for _ in range(3):
        smallest = min(sizes, key=lambda number: sizes[number])
        del sizes[smallest]
        assert crowd.create(100)
        assert smallest not in crowd.open()
    assert follower in crowd.open()


def test_sessions_that_were_closed_take_no_memory() -> None:
    crowd = Crowd(1000)
    stays = crowd.create(1)
    for _ in range(300):
        crowd.now += EVICTION_S
        crowd.use(stays)
        crowd.sessions.close(crowd.create(1))
    ranking = crowd.sessions._ranking
    assert len(ranking._young) + len(ranking._ranked) < 100
