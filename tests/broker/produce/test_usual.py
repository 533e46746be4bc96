"""The usual Produce is read and answered without message objects, with the same result as the codec."""

from __future__ import annotations

import random

import pytest

from barnabas.broker.apis.known_prefixes import ENTRY_BYTES, MOST_SEEN, Bound, KnownPrefixes
from barnabas.broker.apis.produce.usual import Known, Usual, UsualProduce
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

VERSIONS = range(ProduceRequest.min_version, ProduceRequest.max_version + 1)
SEED = 4711


def request_of(version: int, draw: random.Random, *, size: int, acks: int = -1, topics: int = 1) -> ProduceRequest:
    """A request of random topics and records."""

    def topic() -> TopicProduceData:
        data = [PartitionProduceData(index=draw.randrange(1000), records=draw.randbytes(size))]
        name = "t" * draw.randrange(1, 127) if version < 13 else ""
        return TopicProduceData(
            name=name, topic_id=draw.randbytes(16) if version >= 13 else bytes(16), partition_data=data
        )

    return ProduceRequest(acks=acks, timeout_ms=draw.randrange(60_000), topic_data=[topic() for _ in range(topics)])


def frame_of(request: ProduceRequest, version: int) -> memoryview:
    """The bytes from the end of the client id on."""
    tags = b"\0" if version >= 9 else b""
    return memoryview(tags + b"".join(bytes(chunk) for chunk in ProduceRequest.codec(version).build(request)))  # type: ignore[arg-type]


def fields(request: ProduceRequest | UsualProduce) -> list[object]:
    """All that a handler can see of a request."""
    topics = [
        (topic.name, topic.topic_id, [(data.index, bytes(data.records or b"")) for data in topic.partition_data])  # type: ignore[arg-type]
        for topic in request.topic_data
    ]
    return [request.transactional_id, request.acks, request.timeout_ms, topics]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_usual_request_has_the_fields_that_the_codec_reads(version: int) -> None:
    draw = random.Random(SEED + version)
    usual = Usual(version)
    for size in (62, 100, 126, 127, 128, 8_000, 16_382, 16_383, 16_384, 100_000, 2_097_150):
        for acks in (-1, 0, 1):
            request = request_of(version, draw, size=size, acks=acks)
            frame = frame_of(request, version)
            assert usual.read(frame, 0) is None  # the first time
            for _ in range(2):  # learned, then known
                read = usual.read(frame, 0)
                assert read is not None, (size, acks)
                assert fields(read) == fields(request)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_response_is_the_one_that_the_codec_builds(version: int) -> None:
    draw = random.Random(SEED + version)
    for _ in range(50):
        request = request_of(version, draw, size=100)
        offset, append_time_ms, log_start_offset = (draw.randrange(-1, 2**62) for _ in range(3))
        topic = request.topic_data[0]
        partition = PartitionProduceResponse(
            index=topic.partition_data[0].index,
            base_offset=offset,
            log_append_time_ms=append_time_ms,
            log_start_offset=log_start_offset,
        )
        answers = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[partition])
        body = b"".join(
            bytes(chunk) for chunk in ProduceResponse.codec(version).build(ProduceResponse(responses=[answers]))
        )  # type: ignore[arg-type]
        body = (77).to_bytes(4, "big") + (b"\0" if version >= 9 else b"") + body
        assert (
            Known(request, version).response(77, offset, append_time_ms, log_start_offset)
            == len(body).to_bytes(4, "big") + body
        )


@pytest.mark.parametrize("version", VERSIONS)
def test_other_requests_are_left_to_the_codec(version: int) -> None:
    draw = random.Random(SEED)
    usual = Usual(version)
    several = request_of(version, draw, size=100, topics=2)
    transactional = request_of(version, draw, size=100)
    transactional.transactional_id = "t"
    empty = request_of(version, draw, size=0)
    empty.topic_data[0].partition_data[0].records = None
    no_topics = ProduceRequest(acks=1, topic_data=[])
    wrong_acks = request_of(version, draw, size=100, acks=2)
    others = [several, transactional, empty, no_topics, wrong_acks]
    if version in range(9, 13):
        others.append(request_of(version, draw, size=100))
        others[-1].topic_data[0].name = "t" * 200  # its length has two bytes
    for request in others * 3:
        assert usual.read(frame_of(request, version), 0) is None
    for size in range(40):
        assert usual.read(frame_of(several, version)[:size], 0) is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_frame_is_read_as_by_the_codec_or_not_at_all(version: int) -> None:
    """With any byte of the request changed, cut off or added, once the prefix is known."""
    draw = random.Random(SEED + version)
    usual = Usual(version)
    request = request_of(version, draw, size=70)
    frame = bytes(frame_of(request, version))
    assert usual.read(memoryview(frame), 0) is None
    assert usual.read(memoryview(frame), 0) is not None
    records_at = frame.index(bytes(request.topic_data[0].partition_data[0].records))  # type: ignore[arg-type]
    codec = ProduceRequest.codec(version)
    body = 1 if version >= 9 else 0
    changed = [frame[:end] for end in range(len(frame))]
    changed += [frame + bytes(count) for count in range(1, 4)]
    for at in [*range(records_at + 3), *range(len(frame) - 3, len(frame))]:
        changed += [frame[:at] + bytes([value]) + frame[at + 1 :] for value in draw.sample(range(256), 12)]
    for data in changed:
        read = usual.read(memoryview(data), 0)
        if read is None:
            continue
        try:
            parsed, end = codec.parse_within(memoryview(data), body, 1_000)
        except (ProtocolError, IndexError):
            pytest.fail(f"seed {SEED}: {data.hex()} is no request, but was read")
        assert end == len(data)
        assert fields(read) == fields(parsed)


def test_all_versions_together_keep_a_bounded_number_of_bytes() -> None:
    draw = random.Random(SEED)
    bound = Bound(most_bytes=100_000)
    usuals = {version: Usual(version, bound) for version in (7, 9, 13)}
    request = request_of(9, draw, size=70)
    topic_id = draw.randbytes(16)
    for index in range(300):
        for version, usual in usuals.items():
            topic = request.topic_data[0]
            topic.partition_data[0].index = index
            topic.topic_id = topic_id if version >= 13 else bytes(16)
            frame = frame_of(request, version)
            assert usual.read(frame, 0) is None
            read = usual.read(frame, 0)
            assert read is not None
            assert fields(read)[3][0][2][0][0] == index  # type: ignore[index]
            assert bound.used_bytes <= 100_000
    assert bound.entry_count * ENTRY_BYTES <= 100_000


def test_a_prefix_that_comes_once_is_not_parsed_and_not_kept() -> None:
    draw = random.Random(SEED)
    bound = Bound()
    usual = Usual(9, bound)
    request = request_of(9, draw, size=70)
    for timeout_ms in range(MOST_SEEN + 100):
        request.timeout_ms = timeout_ms
        assert usual.read(frame_of(request, 9), 0) is None
    assert bound.entry_count == bound.used_bytes == 0
    assert len(bound.seen) <= MOST_SEEN


def test_an_unusual_request_that_is_repeated_is_parsed_once() -> None:
    parsed = []
    prefixes: KnownPrefixes[str] = KnownPrefixes(lambda frame, position: parsed.append(bytes(frame)), Bound())
    for _ in range(10):
        assert prefixes.learned(b"prefix", memoryview(b"frame"), 0) is None
    assert parsed == [b"frame"]
