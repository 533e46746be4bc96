"""Whatever waits is answered: an exception between the parking of a request and its answer is the answer."""

from __future__ import annotations

import errno
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.replicas.flush.policy import FlushPolicy
from barnabas.broker.sharing.live_share_partition import LiveSharePartition
from barnabas.coord.share_partitions.partition import SharePartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.fetch import FetchRequestFetchPartition, FetchResponse
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.broker.share_member import ACCEPT, Member, Queue, partitions_of
from tests.support.disks.failing_files import FailingFiles
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import append, at, fetch, values


def _parked(memory: MemoryBroker, *partitions: FetchRequestFetchPartition, **options: Any) -> Client:
    client = memory.client()
    options.setdefault("max_wait_ms", 5000)
    client.send(fetch(*partitions, **options), 12)
    assert client.answers() == []
    return client


def _answer(client: Client) -> FetchResponse:
    (response,) = client.answers()
    assert isinstance(response, FetchResponse)
    return response


class TestParkedFetch:
    @pytest.mark.parametrize(
        ("error", "code", "has_traceback"),
        [
            (KafkaError(ErrorCode.NOT_COORDINATOR), ErrorCode.NOT_COORDINATOR, False),
            (OSError(errno.EIO, "injected"), ErrorCode.KAFKA_STORAGE_ERROR, False),
            (ValueError("a bug"), ErrorCode.UNKNOWN_SERVER_ERROR, True),
        ],
    )
    def test_each_exception_has_its_error(
        self,
        memory: MemoryBroker,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        error: Exception,
        code: ErrorCode,
        has_traceback: bool,
    ) -> None:
        from barnabas.broker.apis.fetch.plan import FetchPlan

        memory.create_topic("t")
        client = _parked(memory, at(0))

        def respond(*_: object) -> None:
            raise error

        monkeypatch.setattr(FetchPlan, "respond", respond)
        append(memory, "t", b"a")
        assert _answer(client).error_code == code
        bugs = [record for record in caplog.records if record.levelno >= logging.ERROR]
        assert bool(bugs) == (not isinstance(error, KafkaError))
        assert any(record.exc_info for record in bugs) == has_traceback


class TestReaders:
    @pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
    def test_a_parked_fetch_that_cannot_open_the_log_is_answered(self, tmp_path: Path, number: int) -> None:
        files = FailingFiles(errors_in=".log")
        memory = MemoryBroker(tmp_path / "data", files=files)
        memory.create_topic("t", 2)
        first, second = (_parked(memory, at(0), at(0, 1)) for _ in range(2))
        partition = memory.broker.partitions.get("t", 0)
        partition.append(memoryview(bytearray(batch(b"a"))), memory.clock.now)
        partition.log.segments.active.close_file()  # as when other logs need the descriptors
        files.errors["open"], files.times = number, 1
        memory.broker.loop.end_turn()
        failed, read = _answer(first), _answer(second)
        assert failed.error_code == 0
        assert [item.error_code for item in failed.responses[0].partitions] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
        assert values(read.responses[0].partitions[0]) == [(0, b"a")]
        assert values(first.ask(fetch(at(0)), 12, FetchResponse).responses[0].partitions[0]) == [(0, b"a")]
        memory.close()

    def test_a_reader_that_fails_leaves_the_others(
        self, memory: MemoryBroker, caplog: pytest.LogCaptureFixture
    ) -> None:
        memory.create_topic("t")
        partition = memory.broker.partitions.get("t", 0)

        def fails(_: object) -> None:
            raise ValueError("a bug")

        partition.waiters["first"] = fails
        client = _parked(memory, at(0))
        append(memory, "t", b"a")
        assert values(_answer(client).responses[0].partitions[0]) == [(0, b"a")]
        assert "a bug" in caplog.text

    def test_a_failed_wait_for_a_commit_leaves_the_others(self, memory: MemoryBroker) -> None:
        memory.create_topic("t")
        partition = memory.broker.partitions.get("t", 0)
        decided: list[ErrorCode] = []

        def fails(_: object) -> None:
            raise ValueError("a bug")

        partition.when_committed(0, fails)
        partition.when_committed(0, decided.append)
        partition.close(ErrorCode.KAFKA_STORAGE_ERROR)
        assert decided == [ErrorCode.KAFKA_STORAGE_ERROR]


def _produce(memory: MemoryBroker, partition: int = 0) -> Client:
    """A client whose record waits for its flush."""
    client = memory.client()
    data = [PartitionProduceData(index=partition, records=batch(b"a"))]
    request = ProduceRequest(acks=-1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)])
    client.send(request, 9)
    return client


def _code(client: Client) -> int:
    (response,) = client.answers()
    assert isinstance(response, ProduceResponse)
    return response.responses[0].partition_responses[0].error_code


class TestFlushes:
    @pytest.fixture
    def synced(self, tmp_path: Path) -> Iterator[MemoryBroker]:
        memory = MemoryBroker(tmp_path / "data", {"barnabas.log.sync": "always"})
        memory.create_topic("t", 2)
        yield memory
        memory.close()

    def test_a_flush_without_a_thread_is_tried_again(
        self, synced: MemoryBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def submit(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(synced.flushes, "submit", submit)
            client = _produce(synced)
            assert client.answers() == []
        synced.advance(1)
        assert _code(client) == 0
        assert "can't start new thread" in caplog.text

    @pytest.mark.parametrize("step", ["begin", "finish"])
    def test_a_partition_whose_flush_fails_leaves_the_others(
        self, synced: MemoryBroker, monkeypatch: pytest.MonkeyPatch, step: str
    ) -> None:
        original = getattr(FlushPolicy, step)

        def fails(policy: FlushPolicy, *args: Any) -> Any:
            if policy is broken:
                raise ZeroDivisionError("injected")
            return original(policy, *args)

        broken = synced.broker.partitions.get("t", 0).flush_policy
        synced.flushes.is_paused = True
        first = _produce(synced, 1)  # occupies the flusher, so that the next two are flushed together
        with monkeypatch.context() as patch:
            patch.setattr(FlushPolicy, step, fails)
            clients = [_produce(synced, 0), _produce(synced, 1)]
            while synced.flushes.held:
                synced.run_flush()
        assert _code(first) == 0
        assert [_code(client) for client in clients] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]


def test_a_failed_follower_of_log_dir_failures_leaves_the_others(memory: MemoryBroker) -> None:
    failures = memory.broker.log_dir_failures
    failures.on_failure.insert(0, lambda *_: 1 / 0)  # type: ignore[arg-type, return-value]
    memory.create_topic("t")
    log_dir = memory.broker.log_dirs.dirs[0]
    failures.take_offline(log_dir, "sync", OSError(errno.EIO, "injected"))
    assert ("t", 0) in memory.broker.partitions.offline


def test_what_a_closed_connection_releases_may_fail(memory: MemoryBroker) -> None:
    released: list[int] = []
    connection = memory.client().connection
    connection.on_close += [lambda: 1 / 0, lambda: released.append(1)]  # type: ignore[list-item, return-value]
    connection.close()
    assert released == [1]


def test_a_failed_subscriber_of_the_metadata_leaves_the_others(
    memory: MemoryBroker, caplog: pytest.LogCaptureFixture
) -> None:
    memory.broker.controller.on_config_change.insert(0, lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    seen: list[set[str]] = []
    memory.broker.controller.on_config_change.append(seen.append)
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsRequestAlterConfigsResource(
                resource_type=4,
                resource_name="",
                configs=[IncrementalAlterConfigsRequestAlterableConfig(name="log.retention.ms", value="5000")],
            )
        ]
    )
    response = memory.client().ask(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0
    assert seen == [{"log.retention.ms"}]
    assert "ZeroDivisionError" in caplog.text


class TestShareGroups:
    @pytest.fixture
    def queue(self, tmp_path: Path) -> Iterator[Queue]:
        queue = Queue(tmp_path / "data")
        queue.initialize()
        yield queue
        queue.close()

    def test_locks_end_although_their_expiry_fails(self, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
        queue.produce(b"a")
        member, two = Member(queue, "one"), Member(queue, "two")
        assert member.take() == [(0, 0, 1)]

        def fails(*_: object) -> None:
            raise ZeroDivisionError("injected")

        with monkeypatch.context() as patch:
            patch.setattr(SharePartition, "tick", fails)
            queue.advance(31)
            queue.broker.loop.end_turn()
        assert [(first, last) for first, last, _ in two.take()] == [(0, 0)]

    def test_an_acknowledgement_that_cannot_be_applied_is_answered(
        self, queue: Queue, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue.produce(b"a")
        member = Member(queue, "one")
        assert member.take() == [(0, 0, 1)]

        def fails(*_: object) -> None:
            raise ZeroDivisionError("injected")

        with monkeypatch.context() as patch:
            patch.setattr(SharePartition, "committed", fails)
            assert member.acknowledge((0, 0, [ACCEPT])) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert member.take() == []  # the acknowledgement is in the log, from which the state was loaded again

    def test_a_share_partition_that_cannot_be_loaded_is_answered(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        queue = Queue(tmp_path / "other")
        queue.initialize(start_offset=-1)

        def fails(*_: object) -> int:
            raise OSError(errno.EIO, "injected")

        with monkeypatch.context() as patch:
            patch.setattr(LiveSharePartition, "_first_offset", fails)
            (data,) = partitions_of(Member(queue, "one").fetch())
            assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        queue.close()
