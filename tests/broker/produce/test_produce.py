"""Produce and InitProducerId: acks, errors of single partitions, producer ids, idempotence, over the wire."""

from __future__ import annotations

import struct
import zlib

import pytest

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.wire.batches.records import BatchBuilder, Codec
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
)
from tests.support.cases import for_each
from tests.support.logs.raw_batches import raw_batch, record
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.produce import answers, init, produce, to
from tests.support.world import START_MS


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    memory.create_topic("t", 2)
    return memory.client()


@for_each("version", range(3, 14))
def test_every_version_appends(memory: MemoryBroker, client: Client, version: int) -> None:
    topic_id = memory.broker.image.topics["t"].topic_id
    for offset in (0, 2):
        request = produce(to(0, batch(b"a", b"b")), topic_id=topic_id)
        (partition,) = answers(client.ask(request, version, ProduceResponse))
        assert (partition.error_code, partition.base_offset, partition.log_append_time_ms) == (0, offset, -1)
        assert partition.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_batch_can_be_read(memory: MemoryBroker, client: Client, acks: int) -> None:
    client.ask(produce(to(1, batch(b"a")), acks=acks), 9, ProduceResponse)
    assert memory.broker.partitions.get("t", 1).log.high_watermark == 1


def test_acks_0_has_no_response(memory: MemoryBroker, client: Client) -> None:
    """R13."""
    client.feed(client.frame(produce(to(0, batch(b"a")), acks=0), 9))
    client.sent.clear()
    assert client.answers() == []
    assert not client.connection.is_closing
    assert memory.broker.partitions.get("t", 0).log.log_end_offset == 1


def test_a_failure_with_acks_0_closes_the_connection(client: Client) -> None:
    """R13."""
    client.feed(client.frame(produce(to(9, batch(b"a")), acks=0), 9))
    client.sent.clear()
    assert client.answers() == []
    assert client.connection.is_closing


def test_invalid_acks_are_rejected(memory: MemoryBroker, client: Client) -> None:
    (partition,) = answers(client.ask(produce(to(0, batch(b"a")), acks=2), 9, ProduceResponse))
    assert partition.error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert memory.broker.partitions.get("t", 0).log.log_end_offset == 0


def test_a_produce_error_is_reported_for_its_partition_only(client: Client) -> None:
    damaged = bytearray(batch(b"damaged"))
    damaged[-1] ^= 1
    request = produce(to(0, bytes(damaged)), to(7, batch(b"nowhere")), to(1, batch(b"right")))
    response = answers(client.ask(request, 9, ProduceResponse))
    assert [partition.error_code for partition in response] == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert [partition.base_offset for partition in response] == [-1, -1, 0]
    assert response[0].error_message
    (without_records,) = answers(client.ask(produce(to(0, None)), 9, ProduceResponse))
    assert without_records.error_code == ErrorCode.INVALID_RECORD


def test_a_batch_larger_than_max_message_bytes_is_rejected(tmp_path) -> None:
    """L11."""
    memory = MemoryBroker(tmp_path, {"message.max.bytes": "1000"})
    memory.create_topic("t")
    (partition,) = answers(memory.client().ask(produce(to(0, batch(bytes(2000)))), 9, ProduceResponse))
    assert partition.error_code == ErrorCode.MESSAGE_TOO_LARGE
    memory.close()


class TestInvalidRecords:
    """A batch with invalid records lists them, so that a client can distinguish them from valid ones (KIP-467)."""

    @staticmethod
    def send(
        memory: MemoryBroker, *records: tuple[bytes | None, int], version: int = 9, codec: Codec = Codec.NONE
    ) -> PartitionProduceResponse:
        """Produce one batch of (key, timestamp relative to now in ms) to a new topic."""
        memory.create_topic("checked")
        builder = BatchBuilder(codec=codec)
        for key, age_ms in records:
            builder.append(timestamp=memory.clock.now_ms + age_ms, key=key, value=b"v")
        (partition,) = answers(
            memory.client().ask(produce(to(0, bytes(builder.build())), topic="checked"), version, ProduceResponse)
        )
        assert memory.broker.partitions.get("checked", 0).log.log_end_offset == 0
        assert (partition.base_offset, partition.log_start_offset) == (-1, 0)
        return partition

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
    def test_records_without_a_key_in_a_compacted_topic(self, tmp_path, codec: Codec) -> None:
        """L10."""
        memory = MemoryBroker(tmp_path, {"log.cleanup.policy": "compact"})
        response = self.send(memory, (b"k", 0), (None, 0), (b"k", 0), (None, 0), codec=codec)
        assert response.error_code == ErrorCode.INVALID_RECORD
        reason = "Compacted topic cannot accept message without key"
        assert listed(response) == [(1, reason), (3, reason)]
        assert response.error_message is not None
        assert response.error_message.startswith(
            "One or more records have been rejected due to 2 record errors in total"
        )
        memory.close()

    def test_timestamps_out_of_range(self, tmp_path) -> None:
        """L11."""
        limits = {"log.message.timestamp.before.max.ms": "1000", "log.message.timestamp.after.max.ms": "2000"}
        memory = MemoryBroker(tmp_path, limits)
        response = self.send(memory, (b"k", 0), (b"k", -1001), (b"k", -1000), (b"k", 2000), (None, 2001))
        assert response.error_code == ErrorCode.INVALID_TIMESTAMP
        assert response.error_message == "One or more records have been rejected due to invalid timestamp"
        bounds = f"[{memory.clock.now_ms - 1000}, {memory.clock.now_ms + 2000}]"
        outside = f"is out of range. The timestamp should be within {bounds}"
        assert listed(response) == [
            (
                index,
                f"Timestamp {memory.clock.now_ms + age_ms} of message with offset {index} {outside}",
            )
            for index, age_ms in ((1, -1001), (4, 2001))
        ]
        memory.close()

    def test_a_bad_timestamp_decides_the_error_of_a_batch_with_both(self, tmp_path) -> None:
        memory = MemoryBroker(tmp_path, {"log.cleanup.policy": "compact", "log.message.timestamp.after.max.ms": "2000"})
        response = self.send(memory, (None, 0), (b"k", 5000), (None, 5000))
        assert response.error_code == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in listed(response)] == [0, 1, 2]
        memory.close()

    def test_a_maximum_timestamp_that_is_too_late_is_rejected_if_the_records_are_not(self, tmp_path) -> None:
        """The header would mislead lookups by timestamp and retention."""
        memory = MemoryBroker(tmp_path, {"log.message.timestamp.after.max.ms": "2000"})
        memory.create_topic("t")
        late = raw_batch(record(0), 1, base_ms=memory.clock.now_ms, max_ms=memory.clock.now_ms + 2001)
        (partition,) = answers(memory.client().ask(produce(to(0, late)), 9, ProduceResponse))
        assert partition.error_code == ErrorCode.INVALID_TIMESTAMP
        assert listed(partition) == []
        memory.close()

    def test_a_response_lists_a_thousand_at_most(self, tmp_path) -> None:
        memory = MemoryBroker(tmp_path, {"log.cleanup.policy": "compact"})
        response = self.send(memory, *[(None, 0)] * 1500)
        assert len(listed(response)) == 1000
        assert response.error_message is not None
        assert "due to 1500 record errors" in response.error_message
        memory.close()


def listed(partition: PartitionProduceResponse) -> list[tuple[int, str | None]]:
    """The record errors of an answer: (index in the batch, message)."""
    return [(error.batch_index, error.batch_index_error_message) for error in partition.record_errors]


def test_log_append_time_is_in_the_response(tmp_path) -> None:
    memory = MemoryBroker(tmp_path, {"log.message.timestamp.type": "LogAppendTime"})
    memory.create_topic("t")
    memory.clock.advance(5)
    (partition,) = answers(memory.client().ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))
    assert partition.log_append_time_ms == memory.clock.now_ms
    memory.close()


def test_a_topic_is_not_created_by_producing_to_it(memory: MemoryBroker, client: Client) -> None:
    (partition,) = answers(client.ask(produce(to(0, batch(b"a")), topic="missing"), 9, ProduceResponse))
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "missing" not in memory.broker.image.topics


def test_an_unknown_topic_id_is_an_error(client: Client) -> None:
    (partition,) = answers(client.ask(produce(to(0, batch(b"a")), topic_id=b"x" * 16), 13, ProduceResponse))
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_acks_all_needs_enough_replicas_in_sync(memory: MemoryBroker, client: Client) -> None:
    """R12: before the append, and nothing is written."""
    partition = memory.broker.partitions.get("t", 0)
    partition.replicas, partition.leads_alone = (1, 2, 3), False
    partition.log.config.min_insync_replicas = 2
    (response,) = answers(client.ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))
    assert response.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    (response,) = answers(client.ask(produce(to(0, batch(b"a")), acks=1), 9, ProduceResponse))
    assert response.error_code == 0


def test_min_insync_replicas_is_limited_to_the_number_of_replicas(memory: MemoryBroker, client: Client) -> None:
    memory.broker.partitions.get("t", 0).log.config.min_insync_replicas = 3
    (partition,) = answers(client.ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))
    assert partition.error_code == 0


def test_clients_may_not_write_to_internal_topics(memory: MemoryBroker) -> None:
    memory.create_topic("__consumer_offsets")
    request = produce(to(0, batch(b"a")), topic="__consumer_offsets")
    (partition,) = answers(memory.client().ask(request, 9, ProduceResponse))
    assert partition.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    (partition,) = answers(memory.client(client_id="__admin_client").ask(request, 9, ProduceResponse))
    assert partition.error_code == 0


def test_zstd_needs_version_7(client: Client) -> None:
    """KIP-110, whatever the producer is."""
    producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": 0}
    for version, code in (
        (3, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (6, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (7, 0),
    ):
        for fields in ({}, producer) * 3:  # what is repeated is looked up
            request = produce(to(0, batch(b"a", codec=Codec.ZSTD, **fields)))
            (partition,) = answers(client.ask(request, version, ProduceResponse))
            assert partition.error_code == code, (version, fields)


def test_old_messages_are_not_taken_for_transactional_ones(client: Client) -> None:
    """What is the byte of the attributes in a batch is a part of the timestamp in messages of magic 1."""
    rest = struct.pack(">bbqiis", 1, 0, 0x10_10_10_10_10_10_10, -1, 1, b"v")
    message = struct.pack(">qiI", 0, len(rest) + 4, zlib.crc32(rest)) + rest
    (partition,) = answers(client.ask(produce(to(0, message)), 9, ProduceResponse))
    assert partition.error_code == ErrorCode.INVALID_RECORD


def test_a_producer_id_and_an_epoch_come_together(client: Client) -> None:
    """KIP-360."""
    for fields in ({"producer_id": 5}, {"producer_epoch": 0}):
        for transactional_id in (None, "x"):
            assert init(client, transactional_id=transactional_id, **fields).error_code == ErrorCode.INVALID_REQUEST


@for_each("version", range(6))
def test_producer_ids_are_unique(client: Client, version: int) -> None:
    responses = [init(client, version) for _ in range(3)]
    assert len({response.producer_id for response in responses}) == 3
    assert all((response.error_code, response.producer_epoch) == (0, 0) for response in responses)


def test_producer_ids_are_not_reused_after_a_restart(tmp_path) -> None:
    memory = MemoryBroker(tmp_path)
    before = {init(memory.client()).producer_id for _ in range(1500)}
    memory.close()
    memory = MemoryBroker(tmp_path)
    after = {init(memory.client()).producer_id for _ in range(5)}
    memory.close()
    assert len(before) == 1500
    assert not before & after


def test_a_duplicate_batch_is_answered_with_its_first_offset(memory: MemoryBroker, client: Client) -> None:
    """I1."""
    producer_id = init(client).producer_id
    sent = [batch(b"a", producer_id=producer_id, producer_epoch=0, base_sequence=number) for number in range(2)]
    offsets = []
    for records in (sent[0], sent[1], sent[0], sent[1]):
        (partition,) = answers(client.ask(produce(to(0, records)), 9, ProduceResponse))
        assert partition.error_code == 0
        offsets.append(partition.base_offset)
    assert offsets == [0, 1, 0, 1]
    assert memory.broker.partitions.get("t", 0).log.log_end_offset == 2


def test_a_gap_in_the_sequence_and_an_old_epoch_are_rejected(client: Client) -> None:
    """I2, I3."""
    producer_id = init(client).producer_id

    def send(epoch: int, sequence: int) -> int:
        records = batch(b"a", producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        return answers(client.ask(produce(to(0, records)), 9, ProduceResponse))[0].error_code

    assert send(1, 0) == 0
    assert send(1, 5) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(0, 0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(2, 3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(2, 0) == 0


def test_the_state_of_an_idle_producer_expires(tmp_path) -> None:
    """I6, I4: after producer.id.expiration.ms, in a running broker and at start; then any sequence is accepted."""
    memory = MemoryBroker(tmp_path, {"producer.id.expiration.ms": "60000"})
    memory.create_topic("t")
    client = memory.client()
    producer_id = init(client).producer_id

    def send(sequence: int, timestamp: int = START_MS) -> int:
        records = batch(b"a", timestamp=timestamp, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        return answers(client.ask(produce(to(0, records)), 9, ProduceResponse))[0].error_code

    assert send(0) == 0
    memory.advance(59)
    run_in_place(memory.broker.partitions.forget_expired_producers())
    assert send(7) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    memory.advance(1)
    run_in_place(memory.broker.partitions.forget_expired_producers())
    assert send(7, START_MS - 60_000) == 0
    memory.close()
    memory = MemoryBroker(tmp_path, {"producer.id.expiration.ms": "60000"})
    assert not memory.broker.partitions.get("t", 0).log.active_producers()
    memory.close()


def test_records_of_a_transaction_need_a_transactional_id(memory: MemoryBroker, client: Client) -> None:
    records = batch(b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    (partition,) = answers(client.ask(produce(to(0, records)), 9, ProduceResponse))
    assert partition.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "transaction" in (partition.error_message or "")
    assert memory.broker.partitions.get("t", 0).log.log_end_offset == 0


def test_a_failing_disk_is_an_error_and_the_broker_continues(memory: MemoryBroker, client: Client, monkeypatch) -> None:
    log = memory.broker.partitions.get("t", 0).log

    def no_space(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(log.files), "write_at", no_space)
    (partition,) = answers(client.ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))
    assert partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    (partition,) = answers(client.ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))
    assert (partition.error_code, partition.base_offset) == (0, 0)
