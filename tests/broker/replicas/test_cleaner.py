"""The broker's side of compaction: choice of logs, limits, checkpoints, and handling of failures.

The cleaner process is the real one; tests wait for its results.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import pytest
import trio

from barnabas.broker.replicas.cleaning.cleaner import LogCleaner
from barnabas.broker.replicas.cleaning.cleaner_process import CleanerLost, CleanerProcess, CleaningFailed
from barnabas.broker.replicas.cleaning.cleaner_worker import Throttle
from barnabas.storage import layout
from barnabas.storage.cleaning.task import CleanedGroup, CleaningDone
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.messages import topics as t
from barnabas.wire.schema import Message
from tests.support.logs.cleaning_driver import compacted, keys_and_values, task_for
from tests.support.logs.log_driver import append, batch_of, open_log
from tests.support.memory.broker import MemoryBroker
from tests.support.waiting import wait_for_async
from tests.support.world import START_MS

SEGMENT_BYTES = 1_048_576
SETTINGS = {"log.cleaner.backoff.ms": "10", "log.segment.bytes": str(SEGMENT_BYTES)}
VALUE = b"v" * 100_000
R = TypeVar("R", bound=Message)

pytestmark = pytest.mark.trio


def log_cleaner(memory: MemoryBroker) -> LogCleaner:
    broker = memory.broker
    return LogCleaner(broker.loop, broker.config, broker.log_dirs, broker.log_dir_failures, broker.partitions)


@asynccontextmanager
async def cleaning(directory: Path, **sets: str) -> AsyncIterator[MemoryBroker]:
    """A broker whose cleaner runs, on the real clock."""
    settings = SETTINGS | {name.replace("_", "."): value for name, value in sets.items()}
    memory = MemoryBroker(directory, settings)
    memory.broker.loop.now = trio.current_time
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log_cleaner(memory).run)
        yield memory
        nursery.cancel_scope.cancel()
    memory.close()


def create(memory: MemoryBroker, *names: str, policy: str = "compact") -> None:
    configs = [t.CreatableTopicConfig(name="cleanup.policy", value=policy)]
    topics = [t.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs) for name in names]
    response = ask(memory, t.CreateTopicsRequest(topics=topics), 7, t.CreateTopicsResponse)
    assert [topic.error_code for topic in response.topics] == [0] * len(names)


def delete(memory: MemoryBroker, topic: str) -> None:
    request = t.DeleteTopicsRequest(topics=[t.DeleteTopicState(name=topic)])
    ask(memory, request, 6, t.DeleteTopicsResponse)


@contextmanager
def in_one_moment(memory: MemoryBroker) -> Iterator[None]:
    """The clock stands still: on a busy machine the real one would have work in steps done between the turns."""
    loop = memory.broker.loop
    clock, moment = loop.now, loop.now()
    loop.now = lambda: moment
    yield
    loop.now = clock


def ask(memory: MemoryBroker, request: Message, version: int, response: type[R]) -> R:
    with in_one_moment(memory):
        return memory.client().ask(request, version, response)


def produce(memory: MemoryBroker, topic: str, count: int = 22, key: bytes = b"k") -> None:
    """Append records of 100 KB with one key: ten fill a segment."""
    partition = memory.broker.partitions.get(topic, 0)
    for _ in range(count):
        builder = BatchBuilder()
        builder.append(START_MS, key, VALUE)
        partition.append(memoryview(bytearray(builder.build())), 0.0, origin="coordinator")
    memory.broker.loop.end_turn()


def size(memory: MemoryBroker, topic: str) -> int:
    return memory.broker.partitions.get(topic, 0).log.size_bytes


def content(path: Path) -> bytes:
    return path.read_bytes()


def flip_a_bit(path: Path) -> bytes:
    """Damage the first batch of a file; returns the file's content."""
    damaged = bytearray(path.read_bytes())
    damaged[500] ^= 1
    path.write_bytes(damaged)
    return bytes(damaged)


async def test_a_dirty_log_is_cleaned_and_a_clean_one_is_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """L7: and the cleaned offset is written to Kafka's checkpoint file."""
    caplog.set_level(logging.INFO)
    async with cleaning(tmp_path / "data") as memory:
        create(memory, "t")
        create(memory, "u", policy="delete")
        produce(memory, "t")
        produce(memory, "u")
        before = size(memory, "u")
        checkpoint = tmp_path / "data" / layout.CLEANER_CHECKPOINT
        await wait_for_async(checkpoint.exists, "the log is cleaned")
        assert checkpoint.read_text() == "0\n1\nt 0 20\n"
        assert size(memory, "t") < 3 * len(VALUE) + 1000
        assert size(memory, "u") == before
        log = memory.broker.partitions.get("t", 0).log
        await wait_for_async(lambda: not log.is_cleaning, "the log is not being cleaned any more")
        cleaned = [record.getMessage() for record in caplog.records if "Cleaned" in record.getMessage()]
        assert len(cleaned) == 1
        assert "<Partition t-0> from dirty offset 0 up to 20" in cleaned[0]
        assert "1 of 20 records kept" in cleaned[0]


async def test_a_restart_continues_from_the_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with cleaning(tmp_path / "data") as memory:
        create(memory, "t")
        produce(memory, "t")
        await wait_for_async((tmp_path / "data" / layout.CLEANER_CHECKPOINT).exists, "the log is cleaned")
    async with cleaning(tmp_path / "data") as memory:
        produce(memory, "t", 10)
        await wait_for_async(lambda: "from dirty offset 20 up to 30" in caplog.text, "the log is cleaned from 20 on")


async def test_the_checkpoint_of_a_deleted_topic_does_not_apply_to_a_new_one_of_its_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with cleaning(tmp_path / "data") as memory:
        create(memory, "t")
        produce(memory, "t")
        await wait_for_async(lambda: "Cleaned" in caplog.text, "the log is cleaned")
        delete(memory, "t")
        create(memory, "t")
        produce(memory, "t")
        await wait_for_async(
            lambda: caplog.text.count("from dirty offset 0 up to 20") == 2, "the new log is cleaned whole"
        )


async def test_a_damaged_log_is_uncleanable_and_others_are_cleaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's uncleanable partitions: logged once, and not tried again until a restart."""
    caplog.set_level(logging.INFO)
    async with cleaning(tmp_path / "data", log_cleaner_threads="0") as memory:
        create(memory, "bad", "good")
        produce(memory, "bad", 30)
        produce(memory, "good")
        log = memory.broker.partitions.get("bad", 0).log
        path = Path(log.segments[0].path(layout.LOG_SUFFIX))
        damaged = flip_a_bit(path)
        memory.broker.config.set_dynamic({}, {"log.cleaner.threads": "1"})
        await wait_for_async(lambda: "Cleaned <Partition good-0>" in caplog.text, "the good one is cleaned")
        await wait_for_async(lambda: "uncleanable" in caplog.text, "the damage is logged")
        produce(memory, "good", 30)
        await wait_for_async(
            lambda: caplog.text.count("Cleaned <Partition good-0>") > 1, "the good one is cleaned again"
        )
        (warning,) = [record for record in caplog.records if "uncleanable" in record.getMessage()]
        assert warning.getMessage() == (
            "Cannot clean <Partition bad-0>: The CRC of the batch at offset 0 does not match its bytes. "
            "It is marked as uncleanable and grows until the broker is started again"
        )
        assert content(path) == damaged


async def test_a_killed_cleaner_is_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is cleaned again after the backoff, whatever the killed process has left."""
    caplog.set_level(logging.INFO)
    killed: list[int] = []
    start = CleanerProcess.start

    async def start_and_kill(self: CleanerProcess, task: object) -> None:
        if not killed:
            killed.append(self.pid)
            os.kill(self.pid, signal.SIGKILL)
        await start(self, task)  # type: ignore[arg-type]

    monkeypatch.setattr(CleanerProcess, "start", start_and_kill)
    async with cleaning(tmp_path / "data") as memory:
        create(memory, "t")
        produce(memory, "t")
        await wait_for_async(lambda: "Cleaned" in caplog.text, "the log is cleaned in the end")
        assert "Cannot clean <Partition t-0> now: its cleaner process has ended" in caplog.text
        assert killed


async def test_a_topic_may_be_deleted_while_it_is_cleaned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    original = CleanerProcess.answer

    async with cleaning(tmp_path / "data") as memory:

        async def answer_to_a_deleted_one(self: CleanerProcess) -> CleanedGroup | CleaningDone:
            result = await original(self)
            if memory.broker.partitions.of_topic("t"):
                delete(memory, "t")
            return result

        create(memory, "t", "other")
        monkeypatch.setattr(CleanerProcess, "answer", answer_to_a_deleted_one)
        produce(memory, "t", 30)
        await wait_for_async(lambda: not memory.broker.partitions.of_topic("t"), "the topic is deleted")
        monkeypatch.setattr(CleanerProcess, "answer", original)
        produce(memory, "other")
        await wait_for_async(lambda: "Cleaned <Partition other-0>" in caplog.text, "the other one is cleaned")
        assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_segments_are_not_deleted_while_a_cleaner_reads_them(tmp_path: Path) -> None:
    """L5: DeleteRecords is effective immediately; the files are deleted when the cleaner has finished."""
    async with cleaning(tmp_path / "data", log_cleaner_threads="0") as memory:
        create(memory, "t", policy="compact,delete")
        produce(memory, "t")
        log = memory.broker.partitions.get("t", 0).log
        log.is_cleaning = True
        log.advance_log_start_offset(15)
        with in_one_moment(memory):
            memory.broker.partitions.persist_log_starts()
            assert log.segments[0].base_offset == 0
            log.is_cleaning = False
            memory.broker.partitions.persist_log_starts()
        assert log.segments[0].base_offset == 10


async def test_disabled_cleaner_cleans_nothing(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "data", SETTINGS | {"log.cleaner.enable": "false"})
    await log_cleaner(memory).run()
    memory.close()


async def test_limits_are_divided_between_the_cleaners(tmp_path: Path) -> None:
    sets = {
        "log.cleaner.threads": "4",
        "log.cleaner.dedupe.buffer.size": "80000000",
        "log.cleaner.io.buffer.load.factor": "0.5",
        "log.cleaner.io.buffer.size": "800000",
        "log.cleaner.io.max.bytes.per.second": "4000000.0",
    }
    memory = MemoryBroker(tmp_path / "data", sets)
    limits = log_cleaner(memory)._limits()
    assert limits == (10_000_000, 100_000, 1_000_000.0)
    memory.broker.config.set_dynamic({}, {"log.cleaner.threads": "1"})
    assert log_cleaner(memory)._limits() == (40_000_000, 400_000, 4_000_000.0)
    memory.close()


# --- the process


async def test_the_process_cleans_a_log(tmp_path: Path) -> None:
    log = open_log(tmp_path, compacted())
    for value in (b"1", b"2", b"3"):
        append(log, batch_of([value], key=b"a"))
    log.roll(0.0)
    log.high_watermark = log.log_end_offset
    log.flush()
    process = CleanerProcess()
    for _ in range(2):
        await process.start(task_for(log))
        group = await process.answer()
        assert isinstance(group, CleanedGroup)
        assert len(content(Path(log.directory, f"{0:020d}.log.cleaned"))) == group.size
        done = await process.answer()
        assert isinstance(done, CleaningDone)
        assert (done.records_read, done.records_kept) == (3, 1)
    await process.close()
    assert keys_and_values(log)[0] == (0, b"a", b"1"), "the log is as it was: swapping is the broker's"


async def test_the_process_reports_why_it_failed(tmp_path: Path) -> None:
    log = open_log(tmp_path, compacted())
    append(log, batch_of([b"1"], key=b"a"))
    log.roll(0.0)
    log.high_watermark = log.log_end_offset
    log.flush()
    task = task_for(log)._replace(directory=str(tmp_path / "nowhere"))
    process = CleanerProcess()
    await process.start(task)
    with pytest.raises(CleaningFailed, match="No such file or directory") as caught:
        await process.answer()
    assert caught.value.errno == 2
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(CleanerLost):
        await process.answer()
    await process.close()


async def test_the_process_ends_when_its_input_is_closed(tmp_path: Path) -> None:
    process = CleanerProcess()
    await process._input.aclose()
    with pytest.raises(CleanerLost):
        await process.answer()
    assert await trio.to_thread.run_sync(process._process.wait) == 0
    await process.close()


async def test_the_throttle_sleeps_when_the_limit_is_exceeded() -> None:
    """log.cleaner.io.max.bytes.per.second, with a simulated clock."""
    clock = [100.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    throttle = Throttle(1000, lambda: clock[0], sleep)
    for _ in range(5):
        throttle(500)
    assert clock[0] == pytest.approx(102.5)
    clock[0] += 60
    throttle(100)
    assert slept[-1] == pytest.approx(0.1), "a pause earns no burst"
    Throttle(0, lambda: clock[0], sleep)(10**9)
    assert slept[-1] == pytest.approx(0.1)
