"""Whatever waits is answered: an exception between the parking of a request and its answer is the answer."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.storage.files import File, Files
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequestFetchPartition, FetchResponse
from tests.broker.memory_broker import Client, MemoryBroker, batch
from tests.broker.test_fetch import append, at, fetch, values


class FailingOpens(Files):
    """Files of which the next `failures` of logs cannot be opened."""

    failures = 0
    number = errno.EMFILE

    def open(self, path: str) -> File:
        if self.failures and path.endswith(".log"):
            self.failures -= 1
            raise OSError(self.number, "injected", path)
        return super().open(path)


def _parked(memory: MemoryBroker, *partitions: FetchRequestFetchPartition, **options: Any) -> Client:
    client = memory.client()
    options.setdefault("max_wait_ms", 5000)
    client.send(fetch(*partitions, **options), 12)
    assert client.answers() == []
    return client


def _answer(client: Client) -> FetchResponse:
    (answer,) = client.answers()
    assert isinstance(answer, FetchResponse)
    return answer


class TestDelayedResponse:
    def test_a_failed_callback_is_the_outcome(self) -> None:
        released: list[int] = []
        outcomes: list[object] = []
        delayed = DelayedResponse(on_cancel=lambda: released.append(1))
        delayed.attach(outcomes.append)
        failure = ZeroDivisionError()

        def complete(*_: object) -> None:
            raise failure

        guarded = delayed.guard(complete)
        guarded(1, 2)
        assert outcomes == [failure]
        assert released == [1]
        guarded()
        assert outcomes == [failure]

    def test_a_failure_before_the_handler_returns_is_the_outcome(self) -> None:
        delayed = DelayedResponse()
        delayed.guard(lambda: 1 / 0)()
        outcomes: list[object] = []
        delayed.attach(outcomes.append)
        assert isinstance(outcomes[0], ZeroDivisionError)

    def test_a_failure_after_the_answer_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        delayed = DelayedResponse()
        delayed.cancel()
        delayed.guard(lambda: 1 / 0)()
        assert "ZeroDivisionError" in caplog.text

    def test_what_a_cancel_releases_may_fail(self, caplog: pytest.LogCaptureFixture) -> None:
        delayed = DelayedResponse(on_cancel=lambda: 1 / 0)  # type: ignore[arg-type, return-value]
        delayed.cancel()
        assert "ZeroDivisionError" in caplog.text

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
        from barnabas.broker.apis.fetch_plan import FetchPlan

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
        files = FailingOpens()
        memory = MemoryBroker(tmp_path / "data", files=files)
        memory.create_topic("t", 2)
        first, second = (_parked(memory, at(0), at(0, 1)) for _ in range(2))
        partition = memory.broker.partitions.get("t", 0)
        partition.append(memoryview(bytearray(batch(b"a"))), memory.clock.now)
        partition.log.segments.active.close_file()  # as when other logs need the descriptors
        files.failures, files.number = 1, number
        memory.broker.loop.end_turn()
        failed, read = _answer(first), _answer(second)
        assert failed.error_code == 0
        assert [one.error_code for one in failed.responses[0].partitions] == [ErrorCode.KAFKA_STORAGE_ERROR, 0]
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
