"""A broker on a faulty disk, and its clients: each request is answered, or its connection is closed."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import trio
import trio.testing

from barnabas.broker.background import BackgroundJobs
from barnabas.broker.replicas.cleaning import cleaner_process
from barnabas.broker.replicas.cleaning.cleaner import LogCleaner
from barnabas.broker.replicas.cleaning.retention import Retention
from barnabas.storage.checking.check import check_directory
from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.task import CleanedGroup, CleaningDone, CleaningTask
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.log_dirs import DataDirLocked, DataDirMismatch
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.wire.schema import Message
from tests.support.disks.broken import require
from tests.support.disks.faulty_disk import FaultyDisk
from tests.support.memory.broker import Client, MemoryBroker

SETS = {
    "barnabas.log.sync": "always",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": "10",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "2000",
}
PATH = "/data"
PATIENCE_S = 30.0
"""How long a client waits for an answer, in seconds of the broker's clock."""

R = TypeVar("R", bound=Message)


class Stopped(Exception):  # noqa: N818 - the name says what happened
    """The broker could not start, or has halted, as it does when its metadata cannot be written."""


class Bugs(logging.Handler):
    """Collects what a broker logs with a traceback."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info is not None:
            self.found.append(f"{record.getMessage()}: {record.exc_info[1]!r}")
            self.found += [f"  {line}" for line in logging.Formatter().formatException(record.exc_info).splitlines()]  # type: ignore[arg-type]

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Collect from the loggers of the broker, whose other output is not shown."""
        logger = logging.getLogger("kafka")
        before = logger.level, logger.propagate
        logger.addHandler(self)
        logger.propagate = False
        logger.setLevel(logging.WARNING)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.level, logger.propagate = before

    def check(self) -> None:
        """Raise Broken for the first bug."""
        require(not self.found, "the broker has logged a bug: " + "\n".join(self.found))


class Session:
    """A broker on a disk. Raises Broken for whatever a broker must never do."""

    def __init__(self, disk: FaultyDisk, bugs: Bugs) -> None:
        self.disk = disk
        self.bugs = bugs
        self._clients: dict[str, Client] = {}
        self.may_lack_memory = False
        """Whether an answer may be UNKNOWN_SERVER_ERROR."""
        try:
            self.memory = MemoryBroker(Path(PATH), SETS, files=disk)
        except (DataDirLocked, DataDirMismatch, CorruptCheckpoint, OSError, KafkaError) as error:
            is_of_disk = not isinstance(error, KafkaError) or error.code == ErrorCode.KAFKA_STORAGE_ERROR
            require(is_of_disk, f"the start has failed with {error!r}")
            disk.unlock()  # the process has ended
            raise Stopped(str(error)) from error
        self.memory.broker.loop.end_turn()
        if self.memory.broker.halt_reason is not None:
            self.release()
            raise Stopped(self.memory.broker.halt_reason)

    def _check_halt(self) -> None:
        if self.memory.broker.halt_reason is not None:
            raise Stopped(self.memory.broker.halt_reason)

    @property
    def is_offline(self) -> bool:
        """Whether the log directory has failed."""
        return self.memory.broker.log_dirs.dirs[0].failure is not None

    # --- requests

    def ask(self, request: Message, version: int, answer_class: type[R], *, client: str = "main") -> R | None:
        """The answer to a request; None if the broker has closed the connection instead. Stopped, Broken."""
        connected = self._clients.get(client)
        if connected is None:
            connected = self._clients[client] = self.memory.client(client_id=client)
        waited = 0.0
        try:
            connected.send(request, version)
            while not (answers := connected.answers()):
                self._check_halt()
                if connected.connection.is_closing:
                    raise ConnectionError("the broker has closed the connection")
                require(waited < PATIENCE_S, f"{type(request).__name__} is not answered after {waited} s")
                self.memory.advance(0.25)
                self.memory.broker.loop.end_turn()
                waited += 0.25
        except (OSError, ProtocolError):  # the reactor closes the connection
            del self._clients[client]
            connected.connection.close()
            self.memory.broker.loop.end_turn()
            self._check_halt()
            return None
        self.bugs.check()
        self._check_halt()
        (response,) = answers
        require(isinstance(response, answer_class), f"{response} is no {answer_class.__name__}")
        assert isinstance(response, answer_class)
        if re.search(rf"error_code={int(ErrorCode.UNKNOWN_SERVER_ERROR)}\b", repr(response)):
            require(self.may_lack_memory, f"UNKNOWN_SERVER_ERROR: {response}")
            return None
        return response

    def wait(self, seconds: float) -> None:
        """Let time pass. Stopped."""
        self.memory.advance(seconds)
        self.memory.broker.loop.end_turn()
        self.bugs.check()
        self._check_halt()

    # --- periodic jobs

    def run_jobs(self) -> None:
        """Each periodic job once: sync of closed segments, checkpoints, retention, deletions, disk checks."""
        broker = self.memory.broker
        jobs = BackgroundJobs(broker, None)  # type: ignore[arg-type]  # without connections that could be idle
        for job in (
            jobs._checkpoint_recovery_points,
            Retention(broker.loop, broker.partitions).check,
            jobs._checkpoint_log_starts,
            jobs._checkpoint_high_watermarks,
            jobs._check_disks,
            jobs._remove_deleted,
        ):
            self._run(job)
        self.memory.advance(61.0)
        self._run(jobs._remove_deleted)

    def compact(self) -> None:
        """One pass of compaction over the log that is due. A disk that is full has space again after 5 s."""
        broker = self.memory.broker
        cleaner = LogCleaner(broker.loop, broker.config, broker.log_dirs, broker.log_dir_failures, broker.partitions)
        disk = self.disk

        async def clean() -> None:
            cleaner._cleaned_offsets.load(broker.partitions)
            await cleaner._flush_closed_segments()
            chosen = cleaner._choose()
            if chosen is not None:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(heal)
                    await cleaner._work(*chosen)
                    nursery.cancel_scope.cancel()

        async def heal() -> None:
            await trio.sleep(5.0)
            disk.heal()

        class InProcess(_InProcessCleaner):
            files = disk

        before = cleaner_process.CleanerProcess
        cleaner_process.CleanerProcess = InProcess  # type: ignore[misc,assignment]  # there are no real files
        try:
            self._run(clean)
        finally:
            cleaner_process.CleanerProcess = before  # type: ignore[misc]

    def _run(self, job: Callable[[], Awaitable[None]]) -> None:
        """Run a job that waits for threads: here their work is done at once."""
        before = trio.to_thread.run_sync

        async def run_sync(work: Callable[..., Any], *args: Any, **_: Any) -> Any:
            return work(*args)

        trio.to_thread.run_sync = run_sync  # type: ignore[assignment]
        try:
            trio.run(job, clock=trio.testing.MockClock(autojump_threshold=0))
        finally:
            trio.to_thread.run_sync = before
        self.memory.broker.loop.end_turn()
        self.bugs.check()
        self._check_halt()

    # --- the end

    def stop(self) -> bool:
        """A clean stop, as `broker.server` does it; whether everything was closed."""
        broker = self.memory.broker
        broker.is_stopping = True
        for runtime in (broker.transaction_coordinators, broker.share_coordinators, broker.group_coordinators):
            runtime.stop()
        for client in self._clients.values():
            client.connection.close()
        try:
            broker.log_dirs.close(broker.controller.close())
        except (OSError, KafkaError):
            self.bugs.check()
            return False
        self.bugs.check()
        return not self.is_offline and not broker.partitions.offline

    def release(self) -> None:
        """The process ends."""
        self.disk.unlock()

    def content(self) -> FaultyDisk:
        """A copy of the disk, as a process that starts after a kill -9 finds it."""
        return FaultyDisk(self.disk.content())


def check_storage(disk: FaultyDisk, *, has_leftovers: bool = False) -> None:
    """`barnabas storage check` finds nothing, after a clean stop; except for what a failed deletion has left."""
    report = check_directory(disk, PATH)
    findings = [*report.findings, *(finding for partition in report.partitions for finding in partition.findings)]
    if has_leftovers:
        findings = [finding for finding in findings if "interrupted" not in finding.text]
    require(report.is_clean, "there is no marker of a clean stop")
    require(not findings, f"storage check finds {findings}")


class _InProcessCleaner:
    """The interface of `CleanerProcess`, without a process."""

    files: FaultyDisk

    async def start(self, task: CleaningTask) -> None:
        self._cleaner = Cleaner(task, self.files)
        self._groups = self._cleaner.run()

    async def answer(self) -> CleanedGroup | CleaningDone:
        try:
            for group in self._groups:
                return group
        except OSError as error:
            raise cleaner_process.CleaningFailed(error.errno, str(error), is_damaged=False) from error
        except DamagedLog as error:
            raise cleaner_process.CleaningFailed(None, str(error), is_damaged=True) from error
        return self._cleaner.done

    async def close(self) -> None:
        """Nothing to end."""
