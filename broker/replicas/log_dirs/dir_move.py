"""Copies one replica to another log directory, in steps, and puts the copy in its place (KIP-113).

The copy has the batches as they are, and follows truncations, by leader epochs, and the log start. It reads up to the
log end. When it has everything, its directory is reported to the controller (KIP-858); then it takes over, within one
turn: after a flush of the copy, whose checkpoints are written, and while everything that is durable in the current log
is durable in the copy (L15). Flushes of the current log are held back until then, so acknowledgements wait for that.
Source: Kafka's `ReplicaAlterLogDirsThread` and `Partition.maybeReplaceCurrentWithFutureReplica`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.storage import layout
from barnabas.storage.append.follower_append import UnexpectedOffset
from barnabas.storage.directories.checkpoint_files import CHECKPOINT_NAMES
from barnabas.storage.directories.future_logs import FutureLog, common_end, mark_as_moved, unmark
from barnabas.storage.recover.truncation import Truncation
from barnabas.storage.segments.segment import NotInMemory

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import Steps
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.files import FileSlice
    from barnabas.storage.log import Log

CHUNK_BYTES: Final = 1 << 18
CHUNKS_OF_A_ROUND: Final = 64
CHUNKS_OF_THE_LAST_TURN: Final = 4
TRIES: Final = 5
"""How often in a row the copy tries to take over while records are appended."""


class Unreadable(Exception):  # noqa: N818 - named after the condition
    """The current log cannot be read; its cause is the error."""


class DirMove:
    """The move of one replica."""

    def __init__(
        self,
        partition: Partition,
        future: FutureLog,
        *,
        loop: Loop,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        partitions: Partitions,
        is_throttled: Callable[[], bool],
        copied: Callable[[int], None],
    ) -> None:
        """`is_throttled` says whether to wait; `copied` is called with the bytes of each chunk."""
        self.partition = partition
        self.future = future
        self.is_cancelled = False
        self.has_taken_over = False
        """Whether the copy is the partition's log."""
        self.is_running = False
        """Whether a round is in progress, which may use the files in a thread."""
        self.is_telling = False
        """Whether the directory is being reported to the controller."""
        self.not_before = 0.0
        """When the directory may be reported again."""
        self.timer: Timer | None = None
        """Begins the next round."""
        self._loop = loop
        self._log_dirs = log_dirs
        self._failures = failures
        self._partitions = partitions
        self._is_throttled = is_throttled
        self._copied = copied
        self._source: Log | None = None
        self._truncations = -1  # of the source, when the copy was last compared with it

    @property
    def key(self) -> tuple[str, int]:
        """The partition by name."""
        return (self.partition.topic, self.partition.index)

    def is_live(self) -> bool:
        """Whether the move goes on."""
        return not self.is_cancelled and not self.partition.is_closed

    # --- copying

    def begin(self) -> Steps[bool]:
        """Remove the offsets of an earlier copy from the checkpoints: less of this copy is durable."""
        stale = self.future.stale_checkpoints
        while stale:
            if not (yield from self._failures.write_checkpoint(stale[-1])):
                return False
            stale.pop()
        return self.is_live()

    def copy(self) -> Steps[bool]:
        """Copy for a while; whether the copy ends where the log ends. Raises Unreadable, and the errors of `append`."""
        for _ in range(CHUNKS_OF_A_ROUND):
            yield from self._follow()
            if not self.is_live():
                return False
            log, copy = self.partition.log, self.future.log
            if copy.log_end_offset >= log.log_end_offset:
                return True
            if self._is_throttled():
                return False
            try:
                batches = self._read(may_wait=False)
            except NotInMemory as cold:
                yield _reading(cold.lookup)
                if not self.is_live():
                    return False
                batches = self._read()
            if batches is None:
                continue
            data = _cached(batches)
            if data is None:
                data = yield from self._load(batches)
                if data is None:
                    continue
            yield from self._append(data)
            yield None
        return False

    def _read(self, *, may_wait: bool = True) -> FileSlice | None:
        """The next batches; None if there are no more up to the log end, which the copy then has as well.

        NotInMemory as `Log.read`.
        """
        log, copy = self.partition.log, self.future.log
        try:
            batches = log.read(
                copy.log_end_offset,
                CHUNK_BYTES,
                limit_offset=log.log_end_offset,
                min_one_batch=True,
                may_wait=may_wait,
            ).slice
        except NotInMemory:
            raise
        except Exception as error:
            raise Unreadable from error
        if batches is None:  # compaction has removed the last records
            copy.skip_to(log.log_end_offset)
            copy.roll(self._loop.now())  # the log ends there for a start too
        return batches

    def _load(self, batches: FileSlice) -> Steps[memoryview | None]:
        """Read a slice from the disk; None if the log was truncated meanwhile, or the move has ended."""
        data: list[bytes] = []
        try:
            yield _reading(lambda: data.append(batches.read()))
        except Unreadable:
            if self._is_compared:
                raise
        return memoryview(data[0]) if data and self.is_live() and self._is_compared else None

    def _append(self, data: memoryview) -> Steps[None]:
        copy = self.future.log
        try:
            appended = copy.append_as_follower(data, now=self._loop.now())
        except UnexpectedOffset as unexpected:
            is_empty = copy.log_start_offset == copy.log_end_offset
            if not (is_empty and unexpected.first_offset < copy.log_end_offset <= unexpected.last_offset):
                raise
            yield from self._truncate(unexpected.first_offset, fully=True)
            appended = copy.append_as_follower(data, now=self._loop.now())
        self._copied(appended.size)

    @property
    def _is_compared(self) -> bool:
        """Whether the current log is still the one with which the copy agrees."""
        log = self.partition.log
        return log is self._source and log.truncations == self._truncations

    def _follow(self) -> Steps[None]:
        """Follow the truncations, the log start, the high watermark and the configuration of the current log."""
        log, copy = self.partition.log, self.future.log
        copy.config = log.config
        if not self._is_compared:
            self._source, self._truncations = log, log.truncations
            end = common_end(copy, log)
            if copy.log_start_offset > log.log_start_offset:  # a crash has taken its first segments
                yield from self._truncate(log.log_start_offset, fully=True)
            elif end < copy.log_end_offset:
                yield from self._truncate(end)
        if copy.log_end_offset < log.log_start_offset:
            yield from self._truncate(log.log_start_offset, fully=True)
        self._follow_start()

    def _follow_start(self) -> None:
        log, copy = self.partition.log, self.future.log
        copy.high_watermark = log.high_watermark
        start = min(log.log_start_offset, copy.high_watermark)
        if start > copy.log_start_offset:
            copy.advance_log_start_offset(start)
            self._remove_later(copy.delete_segments_below(start))

    def _truncate(self, offset: int, *, fully: bool = False) -> Steps[None]:
        truncation = Truncation(self.future.log, offset, fully=fully)
        yield from truncation.prepare()
        truncation.announce()
        yield from self._failures.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)
        self._remove_later(truncation.cut())
        yield truncation.sync
        truncation.finish()

    def _remove_later(self, paths: list[str]) -> None:
        delay_s = self.partition.log.config.file_delete_delay_ms / 1000
        self._log_dirs.deletions.schedule(paths, self._loop.now() + delay_s)

    # --- taking over

    def take_over(self) -> Steps[bool]:
        """Put the copy, which is near the log end, in the place of the current log; whether that was done."""
        log = self.partition.log
        log_start = log.log_start_offset
        if not (yield from self._prepare()):
            return False
        is_done = False
        policy = self.partition.flush_policy
        if policy is not None:
            policy.hold()
        try:
            for _ in range(TRIES):
                yield from self.copy()
                if not self.is_live():
                    return False
                yield from self._flush()
                is_done = self.is_live() and log.log_start_offset == log_start and self._replace()
                if is_done:
                    break
        finally:
            if policy is not None and not is_done:
                self._partitions.moved(self.partition, self.partition.log)
        return is_done

    def _prepare(self) -> Steps[bool]:
        """Make the copy complete on disk, and preferred by a start once it is renamed; whether that was done."""
        log, copy = self.partition.log, self.future.log
        home = self._log_dirs.dir_of(*self.key)
        if home is None or not (yield from self._retire_former(home)):
            return False
        if not (yield from self._work_in(home, lambda: unmark(log.files, log.directory))):
            return False
        yield lambda: mark_as_moved(copy.files, copy)
        yield from self._flush()  # only below the recovery point may a log have the gaps that compaction leaves
        for name in CHECKPOINT_NAMES:
            if not self.is_live() or not (yield from self._failures.write_checkpoint(name)):
                return False
        return True

    def _retire_former(self, home: LogDir) -> Steps[bool]:
        """Rename the directory that the current log has replaced, durably; whether that was done."""
        former = self._log_dirs.futures.retired_from(self.key)
        if former is None:
            return True
        if not (yield from self._work_in(home, home.sync_names)):
            return False
        self._log_dirs.settle(self.key, home)
        self._remove_later(self._log_dirs.futures.retire(self.key))
        return (yield from self._work_in(former, former.sync_names))

    def _work_in(self, log_dir: LogDir, work: Callable[[], None]) -> Steps[bool]:
        """Do work in a directory other than the target; an error fails that directory. Whether the move goes on."""
        try:
            yield work
        except OSError as error:
            self._failures.report(log_dir, f"move of {self.partition!r}", error)
            return False
        return self.is_live()

    def _flush(self) -> Steps[None]:
        copy = self.future.log
        job = copy.start_flush()
        if job is not None:
            yield job.run
            copy.finish_flush(job)

    def _replace(self) -> bool:
        """In one turn: copy the remaining records and replace the log; False if the log is not ready for that."""
        partition = self.partition
        log, copy = partition.log, self.future.log
        if log.is_cleaning or log.recovery_limit is not None or not self._is_compared:
            return False
        for _ in range(CHUNKS_OF_THE_LAST_TURN):
            if copy.log_end_offset >= log.log_end_offset:
                break
            batches = self._read()
            data = None if batches is None else _cached(batches)
            if data is None:
                continue
            self._copied(copy.append_as_follower(data, now=self._loop.now()).size)
        if copy.log_end_offset != log.log_end_offset or copy.synced_offset < log.synced_offset:
            return False
        self._log_dirs.replace_log(*self.key, self.future)
        self.has_taken_over = True
        self._partitions.moved(partition, copy)
        return True

    def settle(self) -> Steps[None]:
        """After taking over: make the new name durable, before the former directory may go, and the checkpoints."""
        log_dir = self.future.log_dir
        yield log_dir.sync_names
        self._log_dirs.settle(self.key, log_dir)
        for name in CHECKPOINT_NAMES:
            yield from self._failures.write_checkpoint(name)


def _cached(batches: FileSlice) -> memoryview | None:
    try:
        return batches.read_from_cache()
    except OSError as error:
        raise Unreadable from error


def _reading(work: Callable[[], None]) -> Callable[[], None]:
    def read() -> None:
        try:
            work()
        except Exception as error:
            raise Unreadable from error

    return read
