"""What a Produce has read before it waits is read again after it: leader, epoch, ISR, topic id, access, transaction.

Each test changes one of them while a request waits: for the validation of a large batch, for the coordinator of its
transaction, or for the next of its steps. (A transaction that ends during a validation:
`test_large_transactional_batches`.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.produce.produce import PARTITIONS_OF_A_STEP
from barnabas.broker.apis.sliced_response import FEW_ELEMENTS
from barnabas.storage.batch_content import IN_PLACE_UNITS
from barnabas.wire.batches.records import BatchView
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from barnabas.wire.messages.transactions import EndTxnRequest, EndTxnResponse
from barnabas.wire.types import chunk_bytes
from tests.broker.replicas.replicated_broker import ME, SECOND, THIRD, ReplicatedBroker
from tests.broker.security.acl_requests import as_alice, create, delete
from tests.support.logs.raw_batches import bomb
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.access_cases import acl_creation
from tests.support.requests.transactions import FEW, TransactionalClient
from tests.support.world import START_MS

MANY = FEW_ELEMENTS + PARTITIONS_OF_A_STEP
LARGE = bomb(4, 20 * IN_PLACE_UNITS, base_ms=START_MS)
"""A batch whose validation takes many turns."""
ACLS = {"authorizer.class.name": "barnabas", "super.users": "User:ANONYMOUS"}
WRITE, TOPIC, TRANSACTIONAL_ID = 4, 2, 5


def request(*records: bytes, topic_id: bytes = bytes(16), acks: int = -1) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=content) for index, content in enumerate(records)]
    topic = TopicProduceData(name="t", topic_id=topic_id, partition_data=data)
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[topic])


def codes(client: Client) -> list[int]:
    (response,) = client.answers()
    assert isinstance(response, ProduceResponse)
    return [partition.error_code for partition in response.responses[0].partition_responses]


def end_offset(memory: MemoryBroker, partition: int = 0) -> int:
    return memory.broker.partitions.get("t", partition).log.log_end_offset


def remove(memory: MemoryBroker) -> None:
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])
    assert memory.client().ask(deletion, 6, DeleteTopicsResponse).responses[0].error_code == 0
    memory.run_all()


def allow(memory: MemoryBroker, resource_type: int, name: str) -> None:
    acl = acl_creation(resource_type=resource_type, resource_name=name, principal="User:alice", operation=WRITE)
    assert create(memory.client(), acl) == [(0, None)]


# ---- the validation of a large batch


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[ReplicatedBroker]:
    broker = ReplicatedBroker(tmp_path, {"min.insync.replicas": "2"})
    broker.lead()
    yield broker
    broker.close()


@pytest.fixture
def waiting(replicated: ReplicatedBroker) -> Client:
    """A client whose batch is being validated."""
    client = replicated.client()
    client.send(request(LARGE), 9)
    assert client.answers() == []
    return client


def test_another_broker_leads_after_the_validation(replicated: ReplicatedBroker, waiting: Client) -> None:
    replicated.change(leader=SECOND)
    replicated.advance(0)
    assert codes(waiting) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert end_offset(replicated) == 0


def test_the_epoch_is_that_of_the_append(replicated: ReplicatedBroker, waiting: Client) -> None:
    partition = replicated.broker.partitions.get("t", 0)
    before = partition.leader_epoch
    replicated.change(leader=SECOND)
    replicated.change(leader=ME)
    assert partition.leader_epoch > before
    replicated.advance(0)
    read = partition.log.read(0, 1 << 20, limit_offset=end_offset(replicated), min_one_batch=True)
    assert read.slice is not None, codes(waiting)
    assert BatchView(memoryview(chunk_bytes(read.slice))).partition_leader_epoch == partition.leader_epoch


def test_too_few_replicas_are_in_sync_after_the_validation(replicated: ReplicatedBroker, waiting: Client) -> None:
    replicated.change(isr=[ME])
    replicated.advance(0)
    assert codes(waiting) == [ErrorCode.NOT_ENOUGH_REPLICAS]
    assert end_offset(replicated) == 0


def test_the_timeout_runs_from_the_append(replicated: ReplicatedBroker, waiting: Client) -> None:
    replicated.change(isr=[ME, THIRD])
    replicated.advance(0)
    assert end_offset(replicated) == 20 * IN_PLACE_UNITS
    replicated.advance(0.9)
    assert waiting.answers() == []
    replicated.advance(0.2)
    assert codes(waiting) == [ErrorCode.REQUEST_TIMED_OUT]


@pytest.mark.parametrize(("version", "code"), [(9, ErrorCode.NOT_LEADER_OR_FOLLOWER), (13, ErrorCode.UNKNOWN_TOPIC_ID)])
def test_another_topic_has_the_name_after_the_validation(memory: MemoryBroker, version: int, code: ErrorCode) -> None:
    """Its configs may differ from the ones that the batch was validated with."""
    topic_id = memory.create_topic("t")
    client = memory.client()
    client.send(request(LARGE, topic_id=topic_id), version)
    remove(memory)
    memory.create_topic("t")
    memory.advance(0)
    assert codes(client) == [code]
    assert end_offset(memory) == 0


@pytest.mark.parametrize("version", [9, 13])
def test_access_is_taken_away_during_the_validation(tmp_path: Path, version: int) -> None:
    memory = MemoryBroker(tmp_path, ACLS)
    topic_id = memory.create_topic("t")
    allow(memory, TOPIC, "t")
    alice = as_alice(memory)
    alice.send(request(LARGE, topic_id=topic_id), version)
    delete(memory.client())
    memory.advance(0)
    assert codes(alice) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert end_offset(memory) == 0
    memory.close()


# ---- the coordinator of a transaction


class Verification:
    """A producer whose batch waits until the coordinator has its partition in the log."""

    def __init__(self, path: Path, sets: dict[str, str] | None = None) -> None:
        self.memory = MemoryBroker(path, {**FEW, "barnabas.log.sync": "always", **(sets or {})})
        self.memory.create_topic("t")
        self.producer = TransactionalClient(self.memory)
        self.client = self.producer.client

    def send(self) -> bytearray:
        """Send a batch; the memory of its frame."""
        assert self.producer.start() == 0
        self.memory.flushes.is_paused = True
        frame = bytearray(self.client.frame(self.producer.produce_request(b"kept"), 12))
        self.client.connection.receive(memoryview(frame), self.memory.clock.now)
        self.memory.broker.loop.end_turn()
        assert self.client.answers() == []
        assert end_offset(self.memory) == 0
        return frame

    def finish(self) -> list[int]:
        self.memory.flushes.is_paused = False
        self.memory.run_all()
        self.memory.advance(0)
        return codes(self.client)


@pytest.fixture
def verification(tmp_path: Path) -> Iterator[Verification]:
    verification = Verification(tmp_path)
    yield verification
    verification.memory.close()


def test_the_memory_of_the_frame_may_be_used_again(verification: Verification) -> None:
    frame = verification.send()
    frame[:] = bytes(len(frame))
    assert verification.finish() == [0]
    log = verification.memory.broker.partitions.get("t", 0).log
    assert b"kept" in chunk_bytes(log.read(0, 1 << 20, limit_offset=1, min_one_batch=True).slice)  # type: ignore[arg-type]


def test_the_topic_is_deleted_during_the_verification(verification: Verification) -> None:
    verification.send()
    remove_unflushed(verification.memory)
    assert verification.finish() == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def remove_unflushed(memory: MemoryBroker) -> None:
    memory.client().send(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    assert memory.broker.image.topic("t") is None


def test_access_is_taken_away_during_the_verification(tmp_path: Path) -> None:
    verification = Verification(tmp_path, ACLS)
    memory = verification.memory
    allow(memory, TOPIC, "t")
    allow(memory, TRANSACTIONAL_ID, "x")
    verification.client.connection.principal = as_alice(memory).connection.principal
    verification.send()
    delete(memory.client(), resource_type_filter=TOPIC)
    assert verification.finish() == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert end_offset(memory) == 0
    memory.close()


def test_a_client_that_leaves_during_the_verification_has_nothing_appended(verification: Verification) -> None:
    verification.send()
    verification.client.connection.close()
    verification.memory.flushes.is_paused = False
    verification.memory.run_all()
    assert end_offset(verification.memory) == 0


# ---- the steps of a request to many partitions


def test_the_topic_is_deleted_between_two_steps(memory: MemoryBroker) -> None:
    memory.create_topic("t", MANY)
    client = memory.client()
    client.feed(client.frame(request(*[batch(b"a")] * MANY), 9))
    assert _run_until(memory, lambda: end_offset(memory) == 1)
    remove(memory)
    memory.advance(0)
    error_codes = codes(client)
    assert (error_codes[0], error_codes[-1]) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _to_many(producer: TransactionalClient, count: int) -> ProduceRequest:
    request = producer.produce_request(b"a")
    (topic,) = request.topic_data
    topic.partition_data = [
        PartitionProduceData(index=index, records=bytes(topic.partition_data[0].records))  # type: ignore[arg-type]
        for index in range(count)
    ]
    return request


@pytest.mark.parametrize("ends", [False, True])
def test_a_transaction_that_ends_between_two_steps_does_not_get_the_rest(tmp_path: Path, ends: bool) -> None:
    """T11: a batch behind the marker would hold up readers."""
    memory = MemoryBroker(tmp_path, FEW)
    memory.create_topic("t", MANY)
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    assert producer.add(*[("t", index) for index in range(MANY)]) == [0] * MANY
    client = producer.client
    client.feed(client.frame(_to_many(producer, MANY), 11))
    done = _run_until(memory, lambda: end_offset(memory) == 1)
    assert done
    assert end_offset(memory, MANY - 1) == 0
    if ends:
        end = EndTxnRequest(
            transactional_id="x",
            producer_id=producer.producer[0],
            producer_epoch=producer.producer[1],
            committed=False,
        )
        assert memory.client().ask(end, 3, EndTxnResponse).error_code == 0
    memory.advance(1)
    error_codes = codes(client)
    assert error_codes[0] == 0
    assert (error_codes[-1] != 0) == ends
    for index in (0, MANY - 1):
        log = memory.broker.partitions.get("t", index).log
        assert (log.last_stable_offset == log.high_watermark) == ends
    memory.close()


def _run_until(memory: MemoryBroker, is_reached: Callable[[], bool]) -> bool:
    """Run the slices one by one, each a step."""
    slices = memory.broker.loop.slices
    for _ in range(100):
        if is_reached():
            return True
        work = slices._active.popleft() if slices._fill() else None
        if work is not None and work.step():
            slices._active.append(work)
    return is_reached()


@pytest.mark.parametrize("version", [9, 13])
def test_access_is_taken_away_between_two_steps(tmp_path: Path, version: int) -> None:
    memory = MemoryBroker(tmp_path, ACLS)
    topic_id = memory.create_topic("t", MANY)
    allow(memory, TOPIC, "t")
    alice = as_alice(memory)
    alice.feed(alice.frame(request(*[batch(b"a")] * MANY, topic_id=topic_id), version))
    assert _run_until(memory, lambda: end_offset(memory) == 1)
    delete(memory.client())
    memory.advance(0)
    error_codes = codes(alice)
    assert error_codes[0] == 0
    assert error_codes[-1] == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert end_offset(memory, MANY - 1) == 0
    memory.close()
