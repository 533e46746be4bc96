"""The usual Fetch is read and answered without message objects, with the same result as the codec and the handler."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.apis.fetch.usual import KnownFetch, UsualFetches, usual_server
from barnabas.broker.apis.known_prefixes import Bound
from barnabas.broker.apis.registry import BROKER, ROUTES
from barnabas.storage.files import BytesFile, FileSlice
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolError
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestForgottenTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.types import chunk_bytes
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import append, at, fetch, values
from tests.support.requests.produce import produce, to

VERSIONS = range(7, FetchRequest.max_version + 1)
SEED = 4711
each_version = pytest.mark.parametrize("version", VERSIONS)


def request_of(version: int, draw: random.Random, *, partitions: int = 1, topics: int = 1) -> FetchRequest:
    """A consumer's request of random fields."""

    def topic() -> FetchRequestFetchTopic:
        requested = [
            FetchRequestFetchPartition(
                partition=draw.randrange(1000),
                current_leader_epoch=draw.randrange(-1, 100) if version >= 9 else -1,
                fetch_offset=draw.randrange(2**62),
                partition_max_bytes=draw.randrange(2**31),
            )
            for _ in range(partitions)
        ]
        name = "t" * draw.randrange(1, 127 if version == 12 else 250) if version < 13 else ""
        topic_id = draw.randbytes(16) if version >= 13 else bytes(16)
        return FetchRequestFetchTopic(topic=name, topic_id=topic_id, partitions=requested)

    return FetchRequest(
        max_wait_ms=draw.randrange(60_000),
        min_bytes=draw.randrange(100),
        max_bytes=draw.randrange(2**31),
        isolation_level=draw.randrange(2),
        session_id=draw.randrange(2**31),
        session_epoch=draw.randrange(-1, 2**31),
        topics=[topic() for _ in range(topics)],
        rack_id="r" * draw.randrange(100) if version >= 11 else "",
    )


def encoded(message: Any, version: int) -> bytes:
    return b"".join(bytes(chunk) for chunk in type(message).codec(version).build(message))


def frame_of(request: FetchRequest, version: int) -> memoryview:
    """The bytes from the end of the client id on."""
    return memoryview((b"\0" if version >= 12 else b"") + encoded(request, version))


def read(usual: UsualFetches, frame: memoryview) -> FetchRequest | None:
    """The request that the frame is read as."""
    known = usual.read(frame, 0)
    return None if known is None else known[0].request(*known[1:])


@each_version
def test_the_usual_request_has_the_fields_that_the_codec_reads(version: int) -> None:
    draw = random.Random(SEED + version)
    usual = UsualFetches(version, Bound())
    for _ in range(30):
        request = request_of(version, draw)
        assert read(usual, frame_of(request, version)) is None  # the first time
        for _ in range(3):  # learned, then known
            request.topics[0].partitions[0].fetch_offset = draw.randrange(2**62)
            request.session_epoch = draw.randrange(-1, 2**31)
            frame = frame_of(request, version)
            assert read(usual, frame) == request == FetchRequest.codec(version).parse(frame, int(version >= 12))[0]


@each_version
def test_the_response_is_the_one_that_the_codec_builds(version: int) -> None:
    draw = random.Random(SEED + version)
    for size in (1, 126, 127, 128, 16_382, 16_383, 16_384, 40_000, 2_097_151):
        request = request_of(version, draw)
        topic = request.topics[0]
        log: Any = SimpleNamespace(
            high_watermark=draw.randrange(2**62),
            last_stable_offset=draw.randrange(2**62),
            log_start_offset=draw.randrange(2**62),
        )
        records = draw.randbytes(size)
        data = FetchResponsePartitionData(
            partition_index=topic.partitions[0].partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=[] if request.isolation_level else None,
            records=records,
        )
        answers = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data])
        expected = encoded(FetchResponse(session_id=request.session_id, responses=[answers]), version)
        expected = (77).to_bytes(4, "big") + (b"\0" if version >= 12 else b"") + expected
        expected = len(expected).to_bytes(4, "big") + expected
        known = KnownFetch(request, version)
        for chunk in (memoryview(records), FileSlice(BytesFile("path", records, 7), 7, size)):
            connection: Any = SimpleNamespace(out=[], out_bytes=0)
            frame = known.answer(connection, 77, log, chunk)
            assert connection.out_bytes == (0 if frame else len(expected))
            assert frame + b"".join(map(chunk_bytes, connection.out)) == expected


@each_version
def test_other_requests_are_left_to_the_codec(version: int) -> None:
    draw = random.Random(SEED)
    usual = UsualFetches(version, Bound())
    follower = request_of(version, draw)
    if version < 15:
        follower.replica_id = 1
    else:
        follower.replica_state.replica_id = 1
    forgets = request_of(version, draw)
    forgets.forgotten_topics_data = [FetchRequestForgottenTopic(topic="t" if version < 13 else "", partitions=[1])]
    others = [
        request_of(version, draw, topics=2),
        request_of(version, draw, topics=0),
        request_of(version, draw, partitions=2),
        request_of(version, draw, partitions=0),
        follower,
        forgets,
    ]
    if version >= 12:
        others += [request_of(version, draw), request_of(version, draw)]
        others[-1].cluster_id = "cluster"
        others[-2].topics[0].partitions[0].last_fetched_epoch = 3
    if version == 12:
        others.append(request_of(version, draw))
        others[-1].topics[0].topic = "t" * 200  # its length has two bytes
    for request in others * 3:
        assert read(usual, frame_of(request, version)) is None, request
    assert usual_server(6) is None


@each_version
def test_a_changed_frame_is_read_as_by_the_codec_or_not_at_all(version: int) -> None:
    """With any byte of the request changed, cut off or added, once the prefix is known."""
    draw = random.Random(SEED + version)
    usual = UsualFetches(version, Bound())
    frame = bytes(frame_of(request_of(version, draw), version))
    assert read(usual, memoryview(frame)) is None
    assert read(usual, memoryview(frame)) is not None
    changed = [frame[:end] for end in range(len(frame))]
    changed += [frame + bytes(count) for count in range(1, 4)]
    for position in range(len(frame)):
        changed += [frame[:position] + bytes([value]) + frame[position + 1 :] for value in draw.sample(range(256), 6)]
    for data in changed:
        request = read(usual, memoryview(data))
        if request is None:
            continue
        try:
            parsed, end = FetchRequest.codec(version).parse_within(memoryview(data), int(version >= 12), 1_000)
        except (ProtocolError, IndexError):
            pytest.fail(f"seed {SEED}: {data.hex()} is no request, but was read")
        assert (end, parsed) == (len(data), request)


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 2)
    return memory.client()


class Handled:
    """Counts the requests that reach the handler."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
        self.count = 0
        route = ROUTES[BROKER].find(ApiKey.FETCH, version)
        handler = route.handler

        def counted(*args: Any) -> Any:
            self.count += 1
            return handler(*args)

        monkeypatch.setattr(route, "handler", counted)


@pytest.mark.parametrize("version", [7, 11, 12])
def test_what_can_be_returned_at_once_is_returned_without_the_handler(
    memory: MemoryBroker, client: Client, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    for value in (b"a", b"b", b"c" * 30_000):
        append(memory, "t", value)
    handled = Handled(monkeypatch, version)
    for isolation_level in (0, 1):
        handled.count = 0
        responses = [
            client.ask(fetch(at(0), isolation_level=isolation_level, max_bytes=1 << 20), version, FetchResponse)
            for _ in range(4)
        ]
        assert handled.count == 1
        assert responses == [responses[0]] * 4
        assert [offset for offset, _ in values(responses[0].responses[0].partitions[0])] == [0, 1, 2]
    partition = memory.broker.partitions.get("t", 0)
    assert partition.fetches == 8


def test_errors_limits_and_empty_answers_are_the_handler_s(memory: MemoryBroker, client: Client) -> None:
    """Each request comes four times: the first is parsed, the second learned."""
    for value in (b"a", b"b", b"c"):
        append(memory, "t", value)
    requests = [
        (fetch(at(3)), 0, []),
        (fetch(at(1), min_bytes=1000), 0, [1, 2]),
        (fetch(at(1), max_bytes=1), 0, [1]),
        (fetch(at(1, max_bytes=1)), 0, [1]),
        (fetch(at(0, max_bytes=100)), 0, [0]),
        (fetch(at(1), min_bytes=0), 0, [1, 2]),
        (fetch(at(4)), ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (fetch(at(-1)), ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (fetch(at(0, partition=5)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        (fetch(at(0), topic="unknown"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, []),
        (fetch(at(0, current_leader_epoch=0)), 0, [0, 1, 2]),
        (fetch(at(0, current_leader_epoch=5)), ErrorCode.UNKNOWN_LEADER_EPOCH, []),
        (fetch(at(0), rack_id="rack"), 0, [0, 1, 2]),
    ]
    for request, code, offsets in requests:
        for _ in range(4):
            data = client.ask(request, 12, FetchResponse).responses[0].partitions[0]
            assert (data.error_code, [offset for offset, _ in values(data)]) == (code, offsets), request


def test_a_known_fetch_that_waits_is_ended_by_records(memory: MemoryBroker, client: Client) -> None:
    for offset in range(5):
        client.send(fetch(at(offset), max_wait_ms=60_000), 12)
        assert client.answers() == []
        append(memory, "t", b"a")
        (response,) = client.answers()
        assert isinstance(response, FetchResponse)
        assert values(response.responses[0].partitions[0]) == [(offset, b"a")]


def test_a_session_goes_on_with_and_without_the_handler(
    memory: MemoryBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for value in (b"a", b"b", b"c", b"d"):
        append(memory, "t", value)
    session_id = client.ask(fetch(at(0), session_epoch=0), 12, FetchResponse).session_id
    handled = Handled(monkeypatch, 12)

    def ask(epoch: int, *partitions: FetchRequestFetchPartition) -> FetchResponse:
        return client.ask(fetch(*partitions, session_id=session_id, session_epoch=epoch), 12, FetchResponse)

    def offsets(response: FetchResponse) -> list[list[int]]:
        return [[offset for offset, _ in values(data)] for data in response.responses[0].partitions]

    for epoch in (1, 2, 3):
        assert offsets(ask(epoch, at(epoch))) == [list(range(epoch, 4))]
    assert handled.count == 1
    for epoch in (3, 5, 0x7FFFFFFF):
        assert ask(epoch, at(1)).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    empty = ask(4, at(4))
    assert (empty.error_code, empty.responses) == (0, [])  # nothing has changed since the last response
    append(memory, "t", b"e")
    assert offsets(ask(5, at(4))) == [[4]]
    assert offsets(ask(6)) == [[4]]
    append(memory, "t", b"f", partition=1)
    epoch = memory.broker.fetch_sessions.find(session_id).epoch  # type: ignore[union-attr]
    assert offsets(ask(epoch, at(0, partition=1))) == [[4], [0]]  # it has two partitions now
    both = ask(epoch + 1, at(0))
    assert sorted(offsets(both)) == [[0], [0, 1, 2, 3, 4]]
    session = memory.broker.fetch_sessions.find(session_id)
    assert session is not None
    session.epoch = 2**31 - 1
    session.partitions.pop(("t", 1))
    handled.count = 0
    assert offsets(ask(2**31 - 1, at(0))) == [[0, 1, 2, 3, 4]]
    assert session.epoch == 1
    assert handled.count == 0
    memory.broker.fetch_sessions.close(session_id)
    assert ask(1, at(0)).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_of_another_reader_is_not_touched(memory: MemoryBroker, client: Client) -> None:
    append(memory, "t", b"a")
    session_id = client.ask(fetch(at(0), session_epoch=0), 12, FetchResponse).session_id
    session = memory.broker.fetch_sessions.find(session_id)
    assert session is not None
    request = fetch(at(0), session_id=session_id, session_epoch=1)
    for _ in range(3):
        session.epoch = 1
        assert client.ask(request, 12, FetchResponse).error_code == 0
    session.epoch, session.replica_id = 1, 3
    assert client.ask(request, 12, FetchResponse).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert session.epoch == 1


def test_a_fetch_sees_what_was_gathered_before_it(memory: MemoryBroker, client: Client) -> None:
    append(memory, "t", b"a")
    for _ in range(3):
        client.ask(fetch(at(0)), 12, FetchResponse)
    producer = memory.client()
    for value in (b"b", b"c", b"d"):
        memory.broker.loop.is_gathering = True
        frame = producer.frame(produce(to(0, batch(value)), acks=1), 9)
        producer.connection.receive(memoryview(bytearray(frame)), memory.clock.now)
        read_values = values(client.ask(fetch(at(0)), 12, FetchResponse).responses[0].partitions[0])
        memory.broker.loop.is_gathering = False
        assert read_values[-1][1] == value
