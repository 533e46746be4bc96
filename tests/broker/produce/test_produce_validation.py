"""Produced batches are validated as in Kafka, in slices if that takes long (L13)."""

from __future__ import annotations

import json
import zlib
from functools import cache
from pathlib import Path

import pytest

from barnabas.storage import batch_content
from barnabas.storage.batch_content import IN_PLACE_UNITS, MOST_RECORDS_TO_COMPACT, OPENED_UNITS
from barnabas.wire.batches import record_check
from barnabas.wire.batches.compression import compress
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import configs as c
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tests.support.accelerator import WAYS, checked_in
from tests.support.cases import for_each
from tests.support.logs.gzip_bombs import gzip_of_empty_members
from tests.support.logs.raw_batches import bomb, nonsense, raw_batch, record
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.world import START_MS

NONSENSE = nonsense(START_MS)
BY_HEADER = {
    "no body",
    "no compressed body",
    "count 2^31-1 with one byte",
    "count 2^31-1 with one zstd byte",
    "count 2^31-1 in a zstd frame",
    "a count that is not the last offset delta + 1",
}
"""Header and length are checked without opening a batch."""
MANY = 20 * IN_PLACE_UNITS  # records that are too many for one turn, also as a run of one size


@cache
def broken() -> bytes:
    """A batch of so many records, whose mistake is behind the last of them."""
    return bomb(4, MANY, base_ms=START_MS, rest=b"\x00")


def request(*data: tuple[int, bytes], acks: int = -1) -> ProduceRequest:
    partitions = [PartitionProduceData(index=index, records=records) for index, records in data]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=partitions)]
    )


def answers(client: Client) -> list[PartitionProduceResponse]:
    (response,) = client.answers()
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses


def end_offset(memory: MemoryBroker, partition: int = 0) -> int:
    return memory.broker.partitions.get("t", partition).log.log_end_offset


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 2)
    return memory.client()


@for_each("way", WAYS)
@for_each("level", ["lengths", "full"])
@for_each("name", NONSENSE)
def test_nonsense_is_refused_and_leaves_no_trace(
    memory: MemoryBroker, client: Client, name: str, level: str, way: str
) -> None:
    memory.broker.partitions.get("t", 0).log.config.record_validation = level
    with checked_in(way):
        client.send(request((0, NONSENSE[name]), (1, batch(b"fine"))), 9)
    bad, good = answers(client)
    assert (bad.error_code, bad.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert bad.error_message
    assert good.error_code == 0
    assert (end_offset(memory), memory.broker.partitions.get("t", 0).log.size_bytes) == (0, 0)


@for_each("name", NONSENSE)
def test_without_validation_the_header_is_checked(tmp_path: Path, name: str) -> None:
    """barnabas.produce.validation=header: records are stored as they came."""
    memory = MemoryBroker(tmp_path, {"barnabas.produce.validation": "header"})
    memory.create_topic("t")
    client = memory.client()
    client.send(request((0, NONSENSE[name])), 9)
    (partition,) = answers(client)
    assert partition.error_code == (ErrorCode.INVALID_RECORD if name in BY_HEADER else 0)
    memory.close()


@for_each(("level", "code"), [("header", 0), ("lengths", 0), ("full", ErrorCode.INVALID_RECORD)])
@for_each("codec", [0, 4])
@for_each("way", WAYS)
def test_only_full_validation_reads_every_field(
    memory: MemoryBroker, client: Client, level: str, code: int, codec: int, way: str
) -> None:
    """With the level `lengths` records in the middle are skipped by their lengths."""
    memory.broker.partitions.get("t", 0).log.config.record_validation = level
    body = record(0) + record(5) + record(2)
    with checked_in(way):
        client.send(request((0, raw_batch(compress(codec, body), 3, codec=codec, base_ms=START_MS))), 9)
    assert answers(client)[0].error_code == code


def test_every_field_is_read_by_default(client: Client) -> None:
    """L13: as strictly as Kafka."""
    body = record(0) + record(5) + record(2)
    client.send(request((0, raw_batch(body, 3, base_ms=START_MS))), 9)
    assert answers(client)[0].error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("level", ["header", "lengths"])
def test_a_compacted_topic_reads_every_field_at_any_level(tmp_path: Path, level: str) -> None:
    """L10: its keys are needed."""
    memory = MemoryBroker(tmp_path, {"log.cleanup.policy": "compact", "barnabas.produce.validation": level})
    memory.create_topic("t")
    client = memory.client()
    for middle in (record(5, key=b"k"), record(1)):
        body = record(0, key=b"k") + middle + record(2, key=b"k")
        client.send(request((0, raw_batch(body, 3, base_ms=START_MS))), 9)
        assert answers(client)[0].error_code == ErrorCode.INVALID_RECORD
    memory.close()


@for_each("name", sorted(BY_HEADER))
def test_what_the_header_tells_opens_no_batch(client: Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []
    monkeypatch.setattr(record_check.RecordCheck, "steps", lambda self, pieces: opened.append(1) or iter(()))
    client.send(request((0, NONSENSE[name])), 9)
    assert answers(client)[0].error_code == ErrorCode.INVALID_RECORD
    assert opened == []


@for_each("codec", [1, 2, 3, 4])
@for_each("acks", [1, -1])
def test_a_large_batch_is_validated_between_the_turns(
    memory: MemoryBroker, client: Client, codec: int, acks: int
) -> None:
    records = bomb(codec, MANY, base_ms=START_MS)
    client.send(request((1, batch(b"small")), (0, records), acks=acks), 9)
    assert client.answers() == []
    assert (end_offset(memory, 0), end_offset(memory, 1)) == (0, 1)
    memory.advance(0)
    small, large = answers(client)
    assert (large.error_code, large.base_offset, small.error_code, small.base_offset) == (0, 0, 0, 0)
    assert end_offset(memory) == MANY
    read = memory.broker.partitions.get("t", 0).log.read(0, 1 << 20, limit_offset=MANY, min_one_batch=True)
    assert read.slice is not None
    assert read.slice.read()[16:] == records[16:], "bytes are stored as they came"


def test_a_large_batch_that_is_invalid_is_refused_later(memory: MemoryBroker, client: Client) -> None:
    client.send(request((0, broken()), (1, batch(b"small"))), 9)
    assert client.answers() == []
    memory.advance(0)
    large, small = answers(client)
    assert (large.error_code, large.base_offset, small.error_code) == (ErrorCode.INVALID_RECORD, -1, 0)
    assert end_offset(memory) == 0


def test_batches_of_a_connection_stay_in_order(memory: MemoryBroker, client: Client) -> None:
    """A request behind a large batch waits; other connections do not."""
    frames = [
        client.frame(request((0, bomb(4, MANY, base_ms=START_MS))), 9),
        client.frame(request((0, batch(b"b"))), 9),
    ]
    client.feed(b"".join(frames))
    other = memory.client()
    other.send(request((0, batch(b"other"))), 9)
    assert answers(other)[0].base_offset == 0
    memory.advance(0)
    first, second = client.answers()
    assert isinstance(first, ProduceResponse)
    assert isinstance(second, ProduceResponse)
    offsets = [response.responses[0].partition_responses[0].base_offset for response in (first, second)]
    assert offsets == [1, 1 + MANY]


def test_acks_0_stays_in_order_too(memory: MemoryBroker, client: Client) -> None:
    frames = [
        client.frame(request((0, bomb(4, MANY, base_ms=START_MS)), acks=0), 9),
        client.frame(request((0, batch(b"b")), acks=0), 9),
        client.frame(request((0, batch(b"c"))), 9),
    ]
    del client.sent[:2]
    client.feed(b"".join(frames))
    assert end_offset(memory) == 0
    memory.advance(0)
    assert client.outputs == 1, "the transport is called, although there is nothing to send"
    client.connection.resume(memory.clock.now)
    assert answers(client)[0].base_offset == MANY + 1
    assert not client.connection.is_closing


def test_a_large_invalid_batch_with_acks_0_closes_the_connection(memory: MemoryBroker, client: Client) -> None:
    """R13."""
    client.feed(client.frame(request((0, broken()), acks=0), 9))
    client.sent.clear()
    assert not client.connection.is_closing
    memory.advance(0)
    assert client.connection.is_closing
    assert client.answers() == []


def test_validation_stops_when_the_client_is_gone(
    memory: MemoryBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.send(request((0, bomb(4, MANY, base_ms=START_MS))), 9)
    checked: list[int] = []
    check = record_check.RecordCheck.check
    monkeypatch.setattr(
        record_check.RecordCheck, "check", lambda self, data, pos: checked.append(1) or check(self, data, pos)
    )
    client.connection.close()
    memory.advance(0)
    assert checked == []
    assert end_offset(memory) == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("level", "units"), [("lengths", IN_PLACE_UNITS), ("full", OPENED_UNITS)])
def test_the_budget_is_that_of_a_request(
    tmp_path: Path, level: str, units: int, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many partitions in one request do not make a turn longer: what exceeds the budget is done in slices."""
    memory = MemoryBroker(tmp_path, {"barnabas.produce.validation": level})
    memory.create_topic("t", 20)
    client = memory.client()
    values = [bytes(1 + index % 50) for index in range(units // 4)]  # not of one size
    if way == "C":
        monkeypatch.setattr(batch_content, "ACCELERATED_RECORDS_PER_UNIT", 4 if level == "lengths" else 1)
    with checked_in(way):
        client.send(request(*[(index, batch(*values)) for index in range(20)]), 9)
    assert client.answers() == []
    done = sum(end_offset(memory, index) > 0 for index in range(20))
    assert 2 <= done <= (14 if level == "lengths" or way == "C" else 4)
    memory.advance(0)
    assert [partition.error_code for partition in answers(client)] == [0] * 20
    assert all(end_offset(memory, index) == len(values) for index in range(20))
    memory.close()


def test_members_of_gzip_without_content_are_opened_between_the_turns(
    memory: MemoryBroker, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each needs a decompressor, so it counts as several records."""
    opened = 0
    decompressor = zlib.decompressobj

    def counted(bits: int) -> object:
        nonlocal opened
        opened += 1
        return decompressor(bits)

    monkeypatch.setattr(zlib, "decompressobj", counted)
    client.send(request((0, gzip_of_empty_members(5_000))), 9)
    assert 0 < opened <= OPENED_UNITS // 4
    memory.advance(0)
    assert answers(client)[0].error_code == ErrorCode.INVALID_RECORD
    assert opened >= 5_000


def test_a_partition_that_is_deleted_meanwhile_gets_nothing(memory: MemoryBroker, client: Client) -> None:
    client.send(request((0, bomb(4, MANY, base_ms=START_MS))), 9)
    memory.broker.partitions.get("t", 0).is_closed = True
    memory.advance(0)
    assert answers(client)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert end_offset(memory) == 0


@pytest.mark.parametrize(("limit", "code"), [(100, ErrorCode.INVALID_RECORD), (2000, 0)])
def test_the_size_of_a_decompressed_record_is_limited(tmp_path: Path, limit: int, code: int) -> None:
    """max.decompressed.message.bytes limits a record, as in Kafka, and only in compressed batches."""
    memory = MemoryBroker(tmp_path, {"max.decompressed.message.bytes": str(limit)})
    memory.create_topic("t")
    client = memory.client()
    for codec in (0, 1, 2, 3, 4):
        client.send(request((0, batch(bytes(1000), codec=codec))), 9)
        assert answers(client)[0].error_code == (code if codec else 0)
    memory.close()


def test_null_keys_of_a_large_batch_are_listed(tmp_path: Path) -> None:
    """L10: a few KB of zstd, and a bounded response."""
    memory = MemoryBroker(tmp_path, {"log.cleanup.policy": "compact"})
    memory.create_topic("t")
    client = memory.client()
    client.send(request((0, bomb(4, MANY, key=None, base_ms=START_MS))), 9)
    assert client.answers() == []
    memory.advance(0)
    (partition,) = answers(client)
    assert partition.error_code == ErrorCode.INVALID_RECORD
    assert f"due to {MANY} record errors" in str(partition.error_message)
    assert len(partition.record_errors) == 1000
    memory.close()


def test_validation_is_changed_without_a_restart(memory: MemoryBroker, client: Client) -> None:
    configs = [
        c.IncrementalAlterConfigsRequestAlterableConfig(
            name="barnabas.produce.validation", config_operation=0, value="header"
        )
    ]
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=4, resource_name="", configs=configs)
    response = client.ask(c.IncrementalAlterConfigsRequest(resources=[resource]), 1, c.IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0
    client.send(request((0, NONSENSE["an offset delta twice"])), 9)
    assert answers(client)[0].error_code == 0


def test_a_compacted_topic_takes_no_batch_that_the_cleaner_cannot_hold(tmp_path: Path) -> None:
    """A few KB with millions of keys; known from the header."""
    memory = MemoryBroker(tmp_path, {"log.cleanup.policy": "compact"})
    memory.create_topic("t")
    client = memory.client()
    body = compress(4, bytes(1000)) + bytes(1000)  # enough for so many records, if it could be decompressed
    count = MOST_RECORDS_TO_COMPACT + 1
    client.send(request((0, raw_batch(body, count, codec=4, base_ms=START_MS))), 9)
    (partition,) = answers(client)
    assert partition.error_code == ErrorCode.INVALID_RECORD
    assert f"has {count} records" in str(partition.error_message)
    memory.close()


def test_verdicts_are_those_of_kafka() -> None:
    """Every batch here is refused with INVALID_RECORD (see above). Kafka differs where its code has an accident.

    It answers UNKNOWN_SERVER_ERROR to data that cannot be decompressed, and to wrong offset deltas in compressed
    batches, which it tries to write again; it stores uncompressed batches with wrong deltas.
    """
    kafka = json.loads(Path("tests/data/kafka-4.4.0-batch-verdicts.json").read_text())
    assert kafka.keys() == NONSENSE.keys()
    assert {name: verdict for name, verdict in kafka.items() if verdict != "INVALID_RECORD"} == {
        "zstd that is garbage": "UNKNOWN_SERVER_ERROR",
        "gzip that is garbage": "UNKNOWN_SERVER_ERROR",
        "lz4 that is garbage": "UNKNOWN_SERVER_ERROR",
        "snappy that is garbage": "UNKNOWN_SERVER_ERROR",
        "count 2^31-1 with one zstd byte": "UNKNOWN_SERVER_ERROR",
        "a truncated frame": "UNKNOWN_SERVER_ERROR",
        "an offset delta twice": "NONE",
        "a compressed offset delta too high": "UNKNOWN_SERVER_ERROR",
    }
