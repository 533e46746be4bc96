"""T1-T11, T13 over the wire: producers of both protocol versions, isolation, offsets, markers, restarts."""

from __future__ import annotations

import shutil

import pytest

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.transactions import FEW, TransactionalClient, latest, marker


@pytest.fixture
def memory(tmp_path):
    memory = MemoryBroker(tmp_path / "data", FEW)
    memory.create_topic("t", 2)
    yield memory
    memory.close()


def fetched(memory, partition=0, isolation=1, topic="t"):
    """Last stable offset, aborted transactions, and the bytes that a reader gets."""
    requested = f.FetchRequestFetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = f.FetchRequest(
        max_wait_ms=0,
        isolation_level=isolation,
        session_epoch=-1,
        topics=[f.FetchRequestFetchTopic(topic=topic, partitions=[requested])],
    )
    (response,) = memory.client().ask(request, 12, f.FetchResponse).responses[0].partitions
    assert response.error_code == 0
    aborted = [
        (transaction.producer_id, transaction.first_offset) for transaction in response.aborted_transactions or ()
    ]
    return response.last_stable_offset, aborted, bytes(response.records or b"")


def committed_offset(memory, *, stable, version=9, group="g"):
    """(offset, error) of partition 0 of `t` in a group."""
    topics = [o.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = o.OffsetFetchRequest(
        require_stable=stable, groups=[o.OffsetFetchRequestGroup(group_id=group, topics=topics)]
    )
    response = memory.client().ask(request, version, o.OffsetFetchResponse)
    partition = response.groups[0].topics[0].partitions[0]
    return partition.committed_offset, partition.error_code


def describe(memory, transactional_id="x"):
    request = t.DescribeTransactionsRequest(transactional_ids=[transactional_id])
    return memory.client().ask(request, 0, t.DescribeTransactionsResponse).transaction_states[0]


def listed(memory, **filters):
    return memory.client().ask(t.ListTransactionsRequest(**filters), 2, t.ListTransactionsResponse)


# ---- both protocol versions


def test_clients_learn_the_transaction_version(memory):
    response = memory.client().ask(
        ApiVersionsRequest(client_software_name="test", client_software_version="1"), 4, ApiVersionsResponse
    )
    levels = {item.name: item.max_version_level for item in response.finalized_features}
    assert levels["transaction.version"] == 2
    served = {item.api_key: item.max_version for item in response.api_keys}
    assert served[26] == 5
    assert served[28] >= 5


@pytest.mark.parametrize("commit", [True, False])
def test_a_transaction_of_kip_890(memory, commit):
    """T6, T7: the write adds its partition, the epoch is incremented, readers see all or nothing."""
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    first = producer.producer
    assert producer.produce(b"one", b"two") == 0
    assert producer.produce(b"three", partition=1) == 0
    assert describe(memory).transaction_state == "Ongoing"
    assert fetched(memory)[:2] == (0, [])
    assert b"one" not in fetched(memory)[2]
    assert b"one" in fetched(memory, isolation=0)[2]
    assert (latest(memory, 0), latest(memory, 1)) == (2, 0)
    assert producer.end(commit) == 0
    assert producer.producer == (first[0], first[1] + 1)
    stable, aborted, records = fetched(memory)
    assert (stable, latest(memory, 1)) == (3, 3)
    assert aborted == ([] if commit else [(first[0], 0)])
    assert b"one" in records
    assert fetched(memory, 1)[0] == 2
    assert describe(memory).transaction_state == ("CompleteCommit" if commit else "CompleteAbort")
    assert producer.produce(b"next") == 0, "the next transaction starts by itself"


@pytest.mark.parametrize("version", [9, 10, 11])
def test_an_older_client_adds_its_partitions_first(memory, version):
    """T7: data of a partition that was not added would block the last stable offset forever."""
    producer = TransactionalClient(memory)
    producer.start()
    refused = E.TRANSACTION_ABORTABLE if version >= 11 else E.INVALID_TXN_STATE
    assert producer.produce(b"stray", version=version) == refused
    assert latest(memory, 0) == 0
    producer.sequences.clear()
    assert producer.add(("t", 0)) == [0]
    assert producer.produce(b"good", version=version) == 0
    assert producer.end(version=4) == 0
    assert fetched(memory)[0] == 2
    assert producer.produce(b"late", version=version) == refused, "of a transaction that has ended"


def test_verification_can_be_turned_off(tmp_path):
    memory = MemoryBroker(tmp_path / "d", {**FEW, "transaction.partition.verification.enable": "false"})
    memory.create_topic("t")
    producer = TransactionalClient(memory)
    producer.start()
    assert producer.produce(b"a", version=9) == 0
    memory.close()


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added_all_or_none(memory, version):
    producer = TransactionalClient(memory)
    producer.start()
    assert producer.add(("t", 0), ("t", 7), version=version) == [
        E.OPERATION_NOT_ATTEMPTED,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert producer.add(("t", 0), ("t", 1), version=version) == [0, 0]
    producer.producer = (producer.producer[0], 7)
    fenced = E.PRODUCER_FENCED if version >= 2 else E.INVALID_PRODUCER_EPOCH
    assert producer.add(("t", 0), version=version) == [fenced]


@pytest.mark.parametrize("version", [4, 5])
def test_brokers_add_and_verify_for_several_transactions_in_one_request(memory, version):
    first, second = TransactionalClient(memory, "one"), TransactionalClient(memory, "two")
    first.start()
    second.start()

    def asked(client, verify_only):
        return t.AddPartitionsToTxnTransaction(
            transactional_id=client.transactional_id,
            producer_id=client.producer[0],
            producer_epoch=client.producer[1],
            verify_only=verify_only,
            topics=[t.AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )

    request = t.AddPartitionsToTxnRequest(transactions=[asked(first, False), asked(second, True)])
    response = first.client.ask(request, version, t.AddPartitionsToTxnResponse)
    codes = {
        result.transactional_id: result.topic_results[0].results_by_partition[0].partition_error_code
        for result in response.results_by_transaction
    }
    assert codes == {"one": 0, "two": E.TRANSACTION_ABORTABLE}
    assert first.client.ask(t.AddPartitionsToTxnRequest(), version, t.AddPartitionsToTxnResponse).error_code == 0


def test_a_zombie_is_fenced(memory):
    """T3: a new InitProducerId fences the earlier producer."""
    zombie, successor = TransactionalClient(memory), TransactionalClient(memory)
    zombie.start()
    assert zombie.produce(b"zombie") == 0
    assert successor.start() == E.CONCURRENT_TRANSACTIONS
    assert successor.start() == 0
    assert zombie.produce(b"more") == E.INVALID_PRODUCER_EPOCH
    assert zombie.end() in (E.PRODUCER_FENCED, E.INVALID_TXN_STATE)
    assert successor.produce(b"successor") == 0
    assert successor.end() == 0
    stable, aborted, _ = fetched(memory)
    assert (stable, aborted) == (4, [(zombie.producer[0], 0)])


def test_a_transaction_that_takes_too_long_is_aborted(memory):
    """T10."""
    producer = TransactionalClient(memory)
    producer.start(transaction_timeout_ms=5_000)
    producer.produce(b"slow")
    memory.advance(21)
    assert describe(memory).transaction_state == "CompleteAbort"
    assert fetched(memory)[:2] == (2, [(producer.producer[0], 0)])
    assert producer.produce(b"more") == E.INVALID_PRODUCER_EPOCH
    assert producer.start(transaction_timeout_ms=900_001) == E.INVALID_TRANSACTION_TIMEOUT


def test_there_is_no_coordinator_before_find_coordinator(tmp_path):
    memory = MemoryBroker(tmp_path / "d")
    client = memory.client()
    request = p.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000)
    assert client.ask(request, 5, p.InitProducerIdResponse).error_code == E.NOT_COORDINATOR
    assert TransactionalClient(memory).start() == 0
    assert len(memory.broker.image.topics["__transaction_state"].partitions) == 50
    memory.close()


# ---- offsets


@for_each("commit", [True, False])
@for_each("version", [0, 2, 3, 4, 5])
def test_offsets_take_effect_with_the_commit(memory, commit, version):
    """T11: pending until the marker, whatever the version."""
    producer = TransactionalClient(memory)
    producer.start()
    producer.find(0, "g")
    plain = o.OffsetCommitRequest(
        group_id="g",
        topics=[
            o.OffsetCommitRequestTopic(
                name="t", partitions=[o.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)]
            )
        ],
    )
    producer.client.ask(plain, 8, o.OffsetCommitResponse)
    if version < 5:
        abortable = E.TRANSACTION_ABORTABLE if version == 4 else E.INVALID_TXN_STATE
        assert producer.commit_offset(10, version) == abortable
        assert producer.add_offsets() == 0
    assert producer.commit_offset(10, version) == 0
    assert committed_offset(memory, stable=False) == (3, 0)
    assert committed_offset(memory, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commit, version=5 if version >= 5 else 4) == 0
    assert committed_offset(memory, stable=True) == (10 if commit else 3, 0)


@pytest.mark.parametrize("commit", [True, False])
def test_pending_offsets_survive_a_restart(memory, tmp_path, commit):
    producer = TransactionalClient(memory)
    producer.start()
    producer.find(0, "g")
    assert producer.commit_offset(10) == 0
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    producer.client = again.client()
    assert committed_offset(again, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commit) == 0
    assert committed_offset(again, stable=True) == (10 if commit else -1, 0)
    again.close()


def test_offsets_of_a_group_with_members_need_a_member(memory):
    """T11, KIP-447: a zombie that lost its partitions cannot commit for them."""
    producer = TransactionalClient(memory)
    producer.start()
    producer.find(0, "g")
    member = {"generation_id_or_member_epoch": 4, "member_id": "nobody"}
    assert producer.commit_offset(10, **member) == E.ILLEGAL_GENERATION
    assert producer.commit_offset(10, partition=9) == E.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_of_a_fenced_producer_are_rejected(memory):
    zombie = TransactionalClient(memory)
    zombie.start()
    zombie.find(0, "g")
    TransactionalClient(memory).start()
    assert zombie.commit_offset(10) == E.INVALID_PRODUCER_EPOCH
    assert zombie.commit_offset(10, version=3) == E.INVALID_PRODUCER_EPOCH


# ---- markers, restarts, flushes


def test_late_and_repeated_markers_are_harmless(memory):
    """T8, T9."""
    producer = TransactionalClient(memory)
    producer.start()
    producer.produce(b"first")
    producer.end()

    def write(**options):
        response = memory.client().ask(marker(producer.producer, **options), 2, t.WriteTxnMarkersResponse)
        return response.markers[0].topics[0].partitions[0].error_code

    end_offset = latest(memory, 0)
    assert write(epoch=producer.producer[1]) == 0, "a repeat"
    assert latest(memory, 0) == end_offset
    producer.produce(b"second")
    assert write(epoch=producer.producer[1]) == E.INVALID_PRODUCER_EPOCH, "it came late"
    assert write(epoch=producer.producer[1] - 1) == E.INVALID_PRODUCER_EPOCH
    assert latest(memory, 1) == end_offset, "the second transaction is open still"
    assert write(partition=9, epoch=5) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert write(epoch=producer.producer[1], commit=False, version=0) == 0, "as kafka-transactions abort does"
    assert fetched(memory)[1] == [(producer.producer[0], end_offset)]


def test_a_marker_without_a_producer_is_not_written(memory):
    end_offset = latest(memory, 0)
    for producer, epoch in ((-1, 0), (5, -1)):
        request = marker((producer, epoch), epoch=epoch)
        response = memory.client().ask(request, 2, t.WriteTxnMarkersResponse)
        assert response.markers[0].topics[0].partitions[0].error_code == E.INVALID_REQUEST
    assert latest(memory, 0) == end_offset


def test_offsets_for_an_empty_group_are_refused_before_the_transaction_is_looked_at(memory):
    topics = [t.TxnOffsetCommitRequestTopic(name="t", partitions=[t.TxnOffsetCommitRequestPartition()])]
    request = t.TxnOffsetCommitRequest(transactional_id="unknown", producer_id=99, topics=topics)
    response = memory.client().ask(request, 5, t.TxnOffsetCommitResponse)
    assert response.topics[0].partitions[0].error_code == E.INVALID_GROUP_ID


def test_a_transactional_batch_without_a_producer_belongs_to_no_transaction(memory):
    """Kafka stores it too: it is neither verified nor added."""
    producer = TransactionalClient(memory)  # it has no producer id: it did not start
    for version in (11, 12):
        assert producer.produce(b"a", version=version) == 0
    assert fetched(memory)[0] == 2


def test_a_transaction_ends_without_the_partitions_that_were_deleted(memory):
    memory.create_topic("doomed")
    producer = TransactionalClient(memory)
    producer.start()
    assert producer.produce(b"a", topic="doomed") == 0
    assert producer.produce(b"b") == 0
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="doomed")], timeout_ms=1000)
    assert memory.client().ask(request, 6, DeleteTopicsResponse).responses[0].error_code == 0
    assert producer.end() == 0
    assert describe(memory).transaction_state == "CompleteCommit"
    assert fetched(memory)[0] == 2


def test_transactions_are_answered_and_marked_only_when_durable(tmp_path):
    """T4: the outcome is flushed, then the markers, then the completion; a crash between any two is recovered."""
    copies = []

    def crash_here(name):
        shutil.copytree(tmp_path / "data", tmp_path / name)
        copies.append(name)

    memory = MemoryBroker(tmp_path / "data", {**FEW, "barnabas.log.sync": "always"})
    memory.create_topic("t", 2)
    producer = TransactionalClient(memory)
    assert producer.start() == 0
    assert producer.produce(b"one") == 0
    assert producer.produce(b"two", partition=1) == 0
    logs = [memory.broker.partitions.get("t", index).log for index in (0, 1)]
    memory.flushes.is_paused = True
    producer.client.send(producer.end_request(True), 5)
    assert not producer.client.answers()
    assert [log.log_end_offset for log in logs] == [1, 1], "no marker before the outcome is safe"
    crash_here("prepared")
    memory.run_flush()
    (response,) = producer.client.answers()
    assert response.error_code == 0
    assert [log.log_end_offset for log in logs] == [2, 2]
    assert [log.last_stable_offset for log in logs] == [0, 0]
    crash_here("marked")
    assert describe(memory).transaction_state == "PrepareCommit"
    memory.run_flush()
    assert [log.last_stable_offset for log in logs] == [2, 2]
    crash_here("completed")
    while memory.flushes.held:
        memory.run_flush()
    assert describe(memory).transaction_state == "CompleteCommit"
    memory.close()
    for name in copies:
        again = MemoryBroker(tmp_path / name)
        assert describe(again).transaction_state == "CompleteCommit", name
        for index in (0, 1):
            log = again.broker.partitions.get("t", index).log
            assert log.last_stable_offset == log.log_end_offset, name
            assert fetched(again, index)[1] == [], name
        successor = TransactionalClient(again)
        assert successor.start() == 0
        again.close()


def test_a_write_waits_until_adding_its_partition_is_durable(tmp_path):
    """T7: otherwise a crash could leave data of a partition that was not added."""
    memory = MemoryBroker(tmp_path / "data", {**FEW, "barnabas.log.sync": "always"})
    memory.create_topic("t")
    producer = TransactionalClient(memory)
    producer.start()
    log = memory.broker.partitions.get("t", 0).log
    memory.flushes.is_paused = True
    producer.client.send(producer.produce_request(b"one"), 12)
    assert log.log_end_offset == 0
    memory.run_flush()
    assert log.log_end_offset == 1
    while memory.flushes.held:
        memory.run_flush()
    (response,) = producer.client.answers()
    assert response.responses[0].partition_responses[0].error_code == 0
    assert b"one" in fetched(memory, isolation=0)[2], "kept whole while it waited"
    memory.close()


def test_an_open_transaction_survives_a_restart(memory, tmp_path):
    producer = TransactionalClient(memory)
    producer.start()
    producer.produce(b"one")
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    producer.client = again.client()
    assert fetched(again)[0] == 0
    assert producer.produce(b"two") == 0
    assert producer.end() == 0
    assert fetched(again)[0] == 3
    again.close()


# ---- DescribeTransactions, ListTransactions


def test_transactions_are_described_and_listed(memory):
    first, second = TransactionalClient(memory, "shop-1"), TransactionalClient(memory, "shop-2")
    first.start()
    second.start()
    first.produce(b"a")
    shown = describe(memory, "shop-1")
    assert (shown.producer_id, shown.producer_epoch, shown.transaction_timeout_ms) == (*first.producer, 60_000)
    assert [(topic.topic, topic.partitions) for topic in shown.topics] == [("t", [0])]
    assert describe(memory, "nobody").error_code == E.TRANSACTIONAL_ID_NOT_FOUND

    def names(**filters):
        return sorted(first.transactional_id for first in listed(memory, **filters).transaction_states)

    assert names() == ["shop-1", "shop-2"]
    assert names(state_filters=["Ongoing"]) == ["shop-1"]
    assert names(producer_id_filters=[second.producer[0]]) == ["shop-2"]
    assert names(transactional_id_pattern="shop-.*") == ["shop-1", "shop-2"]
    assert names(transactional_id_pattern="shop") == [], "the whole name has to match"
    memory.advance(10)
    assert names(duration_filter=9_000, state_filters=["Ongoing"]) == ["shop-1"]
    assert names(duration_filter=11_000, state_filters=["Ongoing"]) == []
    unknown = listed(memory, state_filters=["Nonsense"])
    assert (unknown.unknown_state_filters, unknown.transaction_states) == (["Nonsense"], [])
    assert listed(memory, transactional_id_pattern="(").error_code == E.INVALID_REGULAR_EXPRESSION


@pytest.mark.parametrize("asks", ["describe", "list"])
def test_state_that_is_not_durable_is_not_reported(tmp_path, asks):
    """T13: DescribeTransactions and ListTransactions wait until the state that they report is durable."""
    memory = MemoryBroker(tmp_path / "data", {**FEW, "barnabas.log.sync": "always"})
    producer, watcher = TransactionalClient(memory), memory.client()
    assert producer.find() == 0
    memory.flushes.is_paused = True
    request = p.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    producer.client.send(request, 5)
    while len(memory.flushes.held) > 1:
        memory.run_flush()
    if asks == "describe":
        watcher.send(t.DescribeTransactionsRequest(transactional_ids=["x"]), 0)
    else:
        watcher.send(t.ListTransactionsRequest(), 2)
    assert (producer.client.answers(), watcher.answers()) == ([], [])
    while memory.flushes.held:
        memory.run_flush()
    assert producer.client.answers()[0].error_code == 0
    (response,) = watcher.answers()
    assert [transaction.transactional_id for transaction in response.transaction_states] == ["x"]
    memory.close()
