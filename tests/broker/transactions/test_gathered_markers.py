"""Markers of the transactions that a turn ends are one write for each partition, with the effects of single ones."""

from __future__ import annotations

import errno

import pytest

from barnabas.broker.coordinators import gathered_markers
from barnabas.broker.replicas.partition import Partition
from barnabas.coord.transactions.records import read_transaction, transaction_record
from barnabas.coord.transactions.states import BY_LOG_ID, TransactionState
from barnabas.coord.transactions.transaction import Transaction
from barnabas.storage.files import Files
from barnabas.wire.batches.records import iter_batches
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import offsets as o
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.transactions import TransactionalClient, latest, marker

COUNT = 5


@pytest.fixture
def memory(tmp_path):
    sets = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    memory = MemoryBroker(tmp_path / "data", sets)
    memory.create_topic("t", 2)
    yield memory
    memory.close()


@pytest.fixture
def producers(memory) -> list[TransactionalClient]:
    """Each has an open transaction with a record in both partitions of `t`."""
    producers = [TransactionalClient(memory, f"x{number}") for number in range(COUNT)]
    for producer in producers:
        assert producer.start() == 0
    begin(producers)
    return producers


def begin(producers: list[TransactionalClient]) -> None:
    for producer in producers:
        for partition in (0, 1):
            assert producer.produce(b"record", partition=partition) == 0


class Writes:
    """The paths that are written to; a write to one with `failing` in it fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        self.failing = ""
        write_at = Files.write_at

        def recorded(files: Files, file, data, position) -> None:
            path = file.path.split("/")[-2]
            if self.failing and path.startswith(self.failing):
                raise OSError(errno.ENOSPC, "injected")
            self.paths.append(path)
            write_at(files, file, data, position)

        monkeypatch.setattr(Files, "write_at", recorded)


def end_together(memory, producers: list[TransactionalClient], commits: list[bool], version: int = 5) -> None:
    """Serve an EndTxn of each producer in one turn, up to its end."""
    loop = memory.broker.loop
    loop.is_gathering = True
    for producer, commit in zip(producers, commits, strict=True):
        frame = producer.client.frame(producer.end_request(commit), version)
        producer.client.connection.receive(memoryview(bytearray(frame)), memory.clock.now)
    loop.is_gathering = False


def take_responses(producers: list[TransactionalClient]) -> list[int]:
    codes = []
    for producer in producers:
        (response,) = producer.client.answers()
        codes.append(response.error_code)
        producer.take_end(response)
    return codes


def markers_in(memory, partition: int) -> list[int]:
    """The producer ids of the markers in a partition of `t`."""
    log = memory.broker.partitions.get("t", partition).log
    data = log.read(0, 1 << 20, limit_offset=log.log_end_offset, min_one_batch=True).slice.read()
    return [view.producer_id for view in iter_batches(data) if view.is_control]


def states(memory, producers: list[TransactionalClient]) -> list[str]:
    request = t.DescribeTransactionsRequest(transactional_ids=[producer.transactional_id for producer in producers])
    described = memory.client().ask(request, 0, t.DescribeTransactionsResponse).transaction_states
    return [state.transaction_state for state in described]


def test_the_markers_of_a_turn_are_one_write_for_each_partition(memory, producers, monkeypatch) -> None:
    writes = Writes(monkeypatch)
    commits = [True, False, True, False, True]
    ids = [producer.producer[0] for producer in producers]
    end_together(memory, producers, commits)
    assert writes.paths == ["__transaction_state-0"] * COUNT  # the outcomes, before any marker (T4)
    assert latest(memory, 1) == 0
    memory.broker.loop.end_turn()
    assert writes.paths[COUNT:] == ["t-0", "t-1", "__transaction_state-0"]
    assert take_responses(producers) == [0] * COUNT
    assert markers_in(memory, 0) == markers_in(memory, 1) == ids
    assert latest(memory, 1) == latest(memory, 0) == 2 * COUNT
    ended = ["CompleteCommit" if commit else "CompleteAbort" for commit in commits]
    assert states(memory, producers) == ended
    log = memory.broker.partitions.get("t", 0).log
    aborted = [transaction.producer_id for transaction in log.aborted_transactions(0, log.log_end_offset)]
    assert aborted == [ids[1], ids[3]]
    begin(producers)
    assert [producer.end() for producer in producers] == [0] * COUNT


def test_a_failed_write_of_markers_is_repeated_and_fails_nothing_else(memory, producers, monkeypatch) -> None:
    writes = Writes(monkeypatch)
    ids = [producer.producer[0] for producer in producers]
    monkeypatch.setattr(Partition, "report_failure", lambda *_: None)  # the directory stays online
    end_together(memory, producers, [True] * COUNT)
    writes.failing = "t-1"
    memory.broker.loop.end_turn()
    assert take_responses(producers) == [0] * COUNT
    assert states(memory, producers) == ["PrepareCommit"] * COUNT
    assert (markers_in(memory, 0), markers_in(memory, 1)) == (ids, [])
    writes.failing = ""
    memory.advance(1.0)
    assert states(memory, producers) == ["CompleteCommit"] * COUNT
    assert (markers_in(memory, 0), markers_in(memory, 1)) == (ids, ids)


def test_a_failed_write_of_the_completing_records_is_repeated(memory, producers, monkeypatch) -> None:
    writes = Writes(monkeypatch)
    monkeypatch.setattr(Partition, "report_failure", lambda *_: None)  # the directory stays online
    end_together(memory, producers, [True] * COUNT)
    writes.failing = "__transaction_state"
    memory.broker.loop.end_turn()
    writes.failing = ""
    assert take_responses(producers) == [0] * COUNT
    assert states(memory, producers) == ["PrepareCommit"] * COUNT
    memory.advance(2.0)
    assert states(memory, producers) == ["CompleteCommit"] * COUNT
    assert len(markers_in(memory, 0)) == COUNT


def test_a_late_marker_does_not_hold_back_the_others(memory, producers) -> None:
    """Another coordinator has ended the transaction of one producer with a later epoch."""
    late = producers[2]
    end_together(memory, producers, [True] * COUNT)
    memory.client().ask(marker(late.producer, epoch=late.producer[1] + 5), 2, t.WriteTxnMarkersResponse)
    memory.broker.loop.end_turn()
    assert take_responses(producers) == [0] * COUNT
    assert states(memory, producers) == ["CompleteCommit"] * COUNT
    assert sorted(markers_in(memory, 0)) == sorted(markers_in(memory, 1))
    assert len(markers_in(memory, 0)) == COUNT


def test_the_number_of_gathered_markers_is_bounded(memory, producers, monkeypatch) -> None:
    monkeypatch.setattr(gathered_markers, "MOST_MARKERS", 4)
    end_together(memory, producers, [True] * COUNT)
    assert len(markers_in(memory, 0)) == 4
    memory.broker.loop.end_turn()
    assert len(markers_in(memory, 0)) == COUNT
    assert take_responses(producers) == [0] * COUNT


def test_offsets_of_transactions_are_committed_together(memory, producers) -> None:
    for number, producer in enumerate(producers):
        assert producer.find(0, f"g{number}") == 0
        assert producer.commit_offset(number, group=f"g{number}") == 0
    commits = [True, False, True, False, True]
    end_together(memory, producers, commits)
    memory.broker.loop.end_turn()
    assert take_responses(producers) == [0] * COUNT
    asked = [o.OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    groups = [o.OffsetFetchRequestGroup(group_id=f"g{number}", topics=asked) for number in range(COUNT)]
    fetched = memory.client().ask(o.OffsetFetchRequest(require_stable=True, groups=groups), 9, o.OffsetFetchResponse)
    partitions = [group.topics[0].partitions[0] for group in fetched.groups]
    assert [partition.error_code for partition in partitions] == [0] * COUNT
    expected = [number if commit else -1 for number, commit in enumerate(commits)]
    assert [partition.committed_offset for partition in partitions] == expected


def test_a_turn_in_which_the_coordinator_is_unloaded_leaves_the_markers_to_the_next_one(memory, producers) -> None:
    end_together(memory, producers, [True] * COUNT)
    memory.broker.transaction_coordinators.reload("x0", 0.5)
    memory.broker.loop.end_turn()
    assert markers_in(memory, 0) == []
    memory.advance(1.0)
    assert states(memory, producers) == ["CompleteCommit"] * COUNT
    assert len(markers_in(memory, 0)) == COUNT


@pytest.mark.parametrize("state", BY_LOG_ID.values(), ids=str)
def test_a_record_says_all_of_its_transaction(state: TransactionState) -> None:
    """So a transaction may be replayed without a parse of the record that was just written."""
    is_empty = state is TransactionState.EMPTY
    partitions = frozenset() if is_empty else frozenset({("t", 0), ("t", 7), ("u", 3)})
    for number in (0, 1, 2**15 - 1):
        transaction = Transaction(
            producer_id=number,
            producer_epoch=number,
            timeout_ms=number,
            state=state,
            last_update_ms=number,
            partitions=partitions,
            start_ms=number - 1,
            previous_producer_id=number - 1,
            next_producer_id=number - 1,
            client_version=min(number, 2),
        )
        record = transaction_record("x", transaction, 1)
        assert record.value is not None
        assert read_transaction(record.value) == transaction
