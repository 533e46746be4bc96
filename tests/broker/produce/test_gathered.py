"""Produce requests of several connections in one turn are written together, with the guarantees of single ones."""

from __future__ import annotations

import pytest

from barnabas.broker.replicas.gathered_batches import GATHERED_BYTES
from barnabas.storage.files import Files
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceRequest
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.produce import answers, init, produce, to

VERSION = 9
CLIENTS = 5


class CountedWrites:
    """Counts the writes of the broker, and lets them fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.errno = 0
        write_at = Files.write_at

        def counted(files: Files, *rest: object) -> None:
            if self.errno:
                raise OSError(self.errno, "injected")
            self.count += 1
            write_at(files, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(Files, "write_at", counted)


@pytest.fixture
def clients(memory: MemoryBroker) -> list[Client]:
    """Clients whose requests for partition 0 of `t` are known already."""
    memory.create_topic("t")
    connected = [memory.client() for _ in range(CLIENTS)]
    for _ in range(2):
        for acks in (-1, 0, 1):
            connected[0].send(request(b"known", acks=acks), VERSION)
    connected[0].sent = [sent for sent in connected[0].sent if sent[2] % 3 != 2]  # no response to acks=0
    assert len(connected[0].answers()) == 4
    return connected


def request(*values: bytes, acks: int = -1, **options: int) -> ProduceRequest:
    return produce(to(0, batch(*values, **options)), acks=acks)


def gather(memory: MemoryBroker, clients: list[Client], *requests: ProduceRequest) -> None:
    """Serve a request of each client in one turn, up to the write."""
    loop = memory.broker.loop
    loop.is_gathering = True
    for client, sent in zip(clients, requests, strict=True):
        frame = client.frame(sent, VERSION)
        client.connection.receive(memoryview(bytearray(frame)), memory.clock.now)
    loop.is_gathering = False


def outcome(client: Client) -> tuple[int, int]:
    """Error and offset in the only response."""
    (response,) = client.answers()
    (partition,) = answers(response)  # type: ignore[arg-type]
    assert isinstance(partition, PartitionProduceResponse)
    return partition.error_code, partition.base_offset


def test_the_batches_of_a_turn_are_written_at_once(memory, clients, monkeypatch) -> None:
    log = memory.broker.partitions.get("t", 0).log
    start, writes = log.log_end_offset, CountedWrites(monkeypatch)
    gather(memory, clients, *(request(*[b"x"] * count) for count in range(1, CLIENTS + 1)))
    assert (writes.count, log.log_end_offset) == (0, start)
    memory.broker.loop.write_gathered()
    assert (writes.count, log.log_end_offset) == (1, start + 15)
    assert log.high_watermark == log.log_end_offset
    assert [outcome(client) for client in clients] == [(0, start + at) for at in (0, 1, 3, 6, 10)]
    for offset in range(start, start + 15):
        assert log.read(offset, 1, limit_offset=start + 15, min_one_batch=True).slice is not None
    size = sum(header.size for header in log.segments.active.scan(0))
    assert size == log.segments.active.size


def test_a_failed_write_fails_exactly_these_requests(memory, clients, monkeypatch) -> None:
    log = memory.broker.partitions.get("t", 0).log
    start, writes = log.log_end_offset, CountedWrites(monkeypatch)
    gather(memory, clients[:2], request(b"a"), request(b"b"))
    memory.broker.loop.write_gathered()
    writes.errno = 28
    gather(memory, clients[2:], request(b"c"), request(b"d", acks=1), request(b"e", acks=0))
    memory.broker.loop.write_gathered()
    writes.errno = 0
    assert [outcome(client) for client in clients[:2]] == [(0, start), (0, start + 1)]
    failed = int(ErrorCode.KAFKA_STORAGE_ERROR)
    assert [outcome(client) for client in clients[2:4]] == [(failed, -1)] * 2
    assert clients[4].connection.is_closing
    assert log.log_end_offset == start + 2
    assert clients[2].ask(request(b"c"), VERSION, type(answers_of(clients[3]))) is not None
    assert log.log_end_offset == start + 4


def answers_of(client: Client) -> object:
    """The response to one more batch."""
    client.send(request(b"more"), VERSION)
    (response,) = client.answers()
    return response


def test_any_other_request_sees_what_was_sent_before(memory, clients, monkeypatch) -> None:
    end = memory.broker.partitions.get("t", 0).log.log_end_offset
    loop = memory.broker.loop
    loop.is_gathering = True
    for client in clients[:2]:
        client.connection.receive(memoryview(bytearray(client.frame(request(b"x"), VERSION))), memory.clock.now)
    latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
    asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[latest])])
    response = clients[2].ask(asked, 7, ListOffsetsResponse)
    loop.is_gathering = False
    assert response.topics[0].partitions[0].offset == end + 2
    assert [outcome(client)[0] for client in clients[:2]] == [0, 0]


def test_pipelined_requests_of_a_connection_are_answered_in_order(memory, clients) -> None:
    client, loop = clients[0], memory.broker.loop
    start = memory.broker.partitions.get("t", 0).log.log_end_offset
    loop.is_gathering = True
    large = produce(to(0, batch(b"x" * GATHERED_BYTES)))
    frames = [client.frame(sent, VERSION) for sent in (request(b"a"), request(b"b"), large, request(b"c"))]
    client.connection.receive(memoryview(bytearray(b"".join(frames))), memory.clock.now)
    loop.is_gathering = False
    loop.write_gathered()
    responses = client.answers()  # which checks the order of the correlation ids
    assert [answers(response)[0].base_offset for response in responses] == [start, start + 1, start + 2, start + 3]  # type: ignore[arg-type]


def test_a_producer_is_checked_against_its_batch_before(memory, clients) -> None:
    """I1: a repetition in the same turn is answered with the first one's offset, a gap is refused."""
    start = memory.broker.partitions.get("t", 0).log.log_end_offset
    allocated = init(memory.client())
    producer = {"producer_id": allocated.producer_id, "producer_epoch": allocated.producer_epoch}
    first, second, late = (request(b"x", base_sequence=sequence, **producer) for sequence in (0, 1, 7))
    gather(memory, clients, first, second, first, late, request(b"other"))
    memory.broker.loop.write_gathered()
    out_of_order = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
    assert [outcome(client) for client in clients] == [
        (0, start),
        (0, start + 1),
        (0, start),
        (out_of_order, -1),
        (0, start + 2),
    ]


def test_batches_for_a_partition_that_has_gone_are_refused(memory, clients) -> None:
    partition = memory.broker.partitions.get("t", 0)
    gather(memory, clients[:1], request(b"x"))
    partition.leader_epoch += 1  # as by new metadata
    end = partition.log.log_end_offset
    memory.broker.loop.write_gathered()
    assert outcome(clients[0]) == (int(ErrorCode.NOT_LEADER_OR_FOLLOWER), -1)
    assert partition.log.log_end_offset == end


def test_the_gathered_bytes_are_bounded_by_a_segment(tmp_path, monkeypatch) -> None:
    memory = MemoryBroker(tmp_path / "data", {"log.segment.bytes": "1048576"})
    memory.create_topic("t")
    log = memory.broker.partitions.get("t", 0).log
    log.config.segment_bytes = 3_000
    client = memory.client()
    for _ in range(2):
        client.send(request(b"x"), VERSION)
    client.answers()
    writes, loop = CountedWrites(monkeypatch), memory.broker.loop
    loop.is_gathering = True
    for _ in range(10):
        client.connection.receive(memoryview(bytearray(client.frame(request(b"x" * 1_000), VERSION))), memory.clock.now)
    loop.is_gathering = False
    loop.write_gathered()
    assert [answers(response)[0].error_code for response in client.answers()] == [0] * 10  # type: ignore[arg-type]
    assert writes.count >= 5
    assert all(segment.size <= 3_000 for segment in log.segments)
    memory.close()
