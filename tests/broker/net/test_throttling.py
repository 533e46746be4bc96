"""Clients that have used up a quota: their throttle time, and that their connections are not served until then.

The clock and the CPU clock are the test's. The quota.window.* keys have their defaults: 11 windows of a second, so a
client may use at once what it may in ten seconds.
"""

from __future__ import annotations

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import append, at, fetch, values
from tests.support.requests.produce import answers, produce, to
from tests.support.requests.quotas import alter

ONE = {"client-id": "one"}
ANYBODY = {"user": "ANONYMOUS"}


@pytest.fixture
def one(memory: MemoryBroker) -> Client:
    memory.create_topic("t")
    return memory.client(client_id="one")


def limit(memory: MemoryBroker, entity: dict[str, str | None], **settings: float) -> None:
    """Set quotas, by a client that has none."""
    assert alter(memory.client(client_id="admin"), entity, settings) == (0, None)


def is_served(client: Client) -> bool:
    """Whether a request is answered at once."""
    client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    return len(client.answers()) == 1


def used(memory: MemoryBroker, seconds: float) -> None:
    """Have every request take so much time of the thread: the clock is read when it begins and when it is answered."""
    quotas = memory.broker.client_quotas
    assert quotas is not None
    read = iter(range(10**6))
    quotas.cpu_time = lambda: next(read) * seconds


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_who_produces_too_much_is_told_and_not_served_until_then(
    memory: MemoryBroker, one: Client, version: int
) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    response = one.ask(produce(to(0, batch(bytes(500)))), version, ProduceResponse)
    assert (answers(response)[0].error_code, response.throttle_time_ms) == (0, 0)
    response = one.ask(produce(to(0, batch(bytes(2000)))), version, ProduceResponse)
    assert answers(response)[0].error_code == 0
    assert 15_000 < response.throttle_time_ms < 20_000
    assert not is_served(one)
    memory.advance(response.throttle_time_ms / 1000 - 0.001)
    assert one.answers() == []
    memory.advance(0.002)
    one.connection.resume(memory.clock.now)
    (late,) = one.answers()
    assert isinstance(late, ApiVersionsResponse)
    assert is_served(one)


def test_the_transport_is_told_when_the_time_is_over(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.ask(produce(to(0, batch(bytes(1200)))), 9, ProduceResponse)
    assert not is_served(one)
    assert not one.connection.wants_data
    before = one.outputs
    memory.advance(60)
    assert one.outputs == before + 1
    assert one.connection.can_resume


def test_others_are_served_meanwhile(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.ask(produce(to(0, batch(bytes(3000)))), 9, ProduceResponse)
    other = memory.client(client_id="two")
    response = other.ask(produce(to(0, batch(bytes(3000)))), 9, ProduceResponse)
    assert response.throttle_time_ms == 0
    assert is_served(other)


def test_connections_of_one_client_share_its_quota(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.ask(produce(to(0, batch(bytes(900)))), 9, ProduceResponse)
    second = memory.client(client_id="one")
    assert second.ask(produce(to(0, batch(bytes(900)))), 9, ProduceResponse).throttle_time_ms > 0


def test_without_acknowledgements_a_client_is_muted_too(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.send(produce(to(0, batch(bytes(3000))), acks=0), 9)
    one.sent.pop()
    assert one.answers() == []
    assert not is_served(one)
    memory.advance(60)
    one.connection.resume(memory.clock.now)
    assert len(one.answers()) == 1


def test_who_waits_for_a_commit_is_throttled_when_it_is_answered(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    memory.flushes.is_paused = True
    one.send(produce(to(0, batch(bytes(3000))), acks=-1), 9)
    if not one.answers():
        memory.run_all()
    assert one.connection.delayed is not None
    assert not is_served(one)


def test_a_fetch_above_the_quota_is_answered_without_records(memory: MemoryBroker, one: Client) -> None:
    append(memory, "t", bytes(800))
    append(memory, "t", bytes(800))
    limit(memory, ONE, consumer_byte_rate=100)
    response = one.ask(fetch(at(0), max_bytes=1000), 12, FetchResponse)
    assert response.throttle_time_ms == 0
    assert [offset for offset, _ in values(response.responses[0].partitions[0])] == [0]
    response = one.ask(fetch(at(1)), 12, FetchResponse)
    assert 0 < response.throttle_time_ms < 15_000
    assert (response.error_code, response.responses) == (0, [])
    assert not is_served(one)
    memory.advance(30)
    one.connection.resume(memory.clock.now)
    assert len(one.answers()) == 1
    response = one.ask(fetch(at(1)), 12, FetchResponse)
    assert response.throttle_time_ms == 0
    assert [offset for offset, _ in values(response.responses[0].partitions[0])] == [1]


def test_a_session_goes_on_behind_a_throttled_fetch(memory: MemoryBroker, one: Client) -> None:
    append(memory, "t", bytes(800))
    limit(memory, ONE, consumer_byte_rate=100)
    first = one.ask(fetch(at(0), session_epoch=0), 12, FetchResponse)
    assert first.session_id
    append(memory, "t", bytes(800))
    moved = fetch(at(1), session_id=first.session_id, session_epoch=1)
    throttled = one.ask(moved, 12, FetchResponse)
    assert (throttled.session_id, throttled.error_code, throttled.responses) == (first.session_id, 0, [])
    memory.advance(60)
    again = one.ask(fetch(session_id=first.session_id, session_epoch=2), 12, FetchResponse)
    assert again.error_code == 0
    assert [offset for offset, _ in values(again.responses[0].partitions[0])] == [1]


def test_one_fetch_brings_no_more_than_the_quota_ever_allows(memory: MemoryBroker, one: Client) -> None:
    for _ in range(10):
        append(memory, "t", bytes(300))
    limit(memory, ONE, consumer_byte_rate=100)
    response = one.ask(fetch(at(0), max_bytes=1 << 20), 12, FetchResponse)
    assert response.throttle_time_ms == 0
    assert len(response.responses[0].partitions[0].records or b"") <= 1000


def test_requests_that_take_too_much_time_are_throttled_for_a_window_at_most(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ANYBODY, request_percentage=1)
    used(memory, 0.02)
    times = []
    for _ in range(10):
        times.append(one.ask(MetadataRequest(topics=[]), 12, MetadataResponse).throttle_time_ms)
        memory.advance(times[-1] / 1000)
    assert times[0] == 0
    assert max(times) == 1000


def test_cached_answers_tell_the_throttle_time_too(memory: MemoryBroker, one: Client) -> None:
    assert is_served(one)
    limit(memory, ANYBODY, request_percentage=1)
    used(memory, 1.0)
    one.send(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
    (response,) = one.answers()
    assert isinstance(response, ApiVersionsResponse)
    assert response.throttle_time_ms == 1000
    assert len(response.api_keys) > 10


def test_a_response_that_is_encoded_in_steps_tells_the_throttle_time(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ANYBODY, request_percentage=1)
    used(memory, 1.0)
    topics = [CreatableTopic(name=f"n{number}", num_partitions=1, replication_factor=1) for number in range(25)]
    one.send(CreateTopicsRequest(topics=topics), 7)
    responses = one.answers()
    while not responses:
        memory.advance(0.01)
        responses = one.answers()
    (response,) = responses
    assert isinstance(response, CreateTopicsResponse)
    assert response.throttle_time_ms == 1000
    assert {topic.error_code for topic in response.topics} == {0}


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)])


def test_new_versions_of_changes_are_refused_above_the_quota(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, controller_mutation_rate=1)
    response = one.ask(creation("burst", 20), 7, CreateTopicsResponse)
    assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)
    response = one.ask(creation("more", 1), 6, CreateTopicsResponse)
    assert response.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert response.topics[0].error_message == "The throttling quota has been exceeded."
    assert response.throttle_time_ms == 9000
    memory.advance(9)
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=4, assignments=None)])
    extended = one.ask(request, 3, CreatePartitionsResponse)
    assert (extended.results[0].error_code, extended.throttle_time_ms) == (0, 0)
    deleted = one.ask(DeleteTopicsRequest(topic_names=["burst"]), 5, DeleteTopicsResponse)
    assert deleted.responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert deleted.throttle_time_ms == 3000
    memory.advance(3)
    deleted = one.ask(DeleteTopicsRequest(topic_names=["burst"]), 5, DeleteTopicsResponse)
    assert (deleted.responses[0].error_code, deleted.throttle_time_ms) == (0, 0)


def test_old_versions_of_changes_are_made_and_wait_afterwards(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, controller_mutation_rate=1)
    response = one.ask(creation("burst", 20), 5, CreateTopicsResponse)
    assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 9000)
    assert not is_served(one)
    memory.advance(9)
    one.connection.resume(memory.clock.now)
    assert len(one.answers()) == 1


def test_a_connection_can_be_closed_while_it_is_muted(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.ask(produce(to(0, batch(bytes(3000)))), 9, ProduceResponse)
    assert not is_served(one)
    one.connection.close()
    before = one.outputs
    memory.advance(1000)
    assert (one.outputs, one.answers()) == (before, [])


def test_a_muted_connection_does_not_hold_back_a_stop(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.ask(produce(to(0, batch(bytes(3000)))), 9, ProduceResponse)
    one.connection.is_closing = True
    assert one.connection.is_finished


def test_idle_time_begins_when_the_client_has_waited(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    one.ask(produce(to(0, batch(bytes(3000)))), 9, ProduceResponse)
    assert one.connection.has_delayed_response
    memory.advance(100)
    assert not one.connection.has_delayed_response
    assert memory.clock.now - 100 < one.connection.last_active < memory.clock.now


def test_without_quotas_nothing_is_counted(memory: MemoryBroker, one: Client) -> None:
    limit(memory, ONE, producer_byte_rate=100)
    assert memory.broker.client_quotas is not None
    assert alter(memory.client(client_id="admin"), ONE, {"producer_byte_rate": None}) == (0, None)
    assert memory.broker.client_quotas is None
    response = one.ask(produce(to(0, batch(bytes(3000)))), 9, ProduceResponse)
    assert response.throttle_time_ms == 0
    assert is_served(one)
