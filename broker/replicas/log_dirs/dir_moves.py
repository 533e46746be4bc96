"""The moves of this broker's replicas between its log directories (KIP-113, KIP-858).

`num.replica.alter.log.dirs.threads` replicas are copied at a time, each in rounds (`dir_move`); the others wait in
order. `replica.alter.log.dirs.io.max.bytes.per.second` limits them together. A move whose disk has no space goes on
later; one whose target directory fails is cancelled. Future replicas that a start finds are copied on. Source: Kafka's
`ReplicaManager.alterReplicaLogDirs` and `ReplicaAlterLogDirsManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.dynamic_only import REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND
from barnabas.broker.config.keys.general import PRODUCER_ID_EXPIRATION_MS
from barnabas.broker.config.keys.replication import NUM_REPLICA_ALTER_LOG_DIRS_THREADS
from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.log_dir_failures import is_transient
from barnabas.broker.replicas.fetchers.throttle import ReplicationQuota
from barnabas.broker.replicas.log_dirs.dir_move import DirMove, Unreadable
from barnabas.storage.damage import DamagedLog
from barnabas.storage.directories.checkpoints import CorruptCheckpoint
from barnabas.storage.directories.future_logs import unmark
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.types import uuid_from_text

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.storage.directories.future_logs import FutureLog
    from barnabas.storage.directories.log_dir import LogDir
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.storage.log import Log
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.server.ReplicaAlterLogDirsManager")

PAUSE_S: Final = 0.1
"""The pause between two rounds of a move that waits for its quota, or for the controller, seconds."""
RETRY_S: Final = 1.0
"""The pause before a move goes on after an error, seconds."""

TELL_AGAIN_S: Final = 10.0
"""The pause before it is reported again to the controller that a replica stays in its directory, seconds."""

Assign = Callable[["Uuid", int, "Uuid", Callable[[ErrorCode], None]], None]
"""Reports to the controller that the replica of a partition (topic id, index) is in a directory."""


class DirMoves:
    """The moves in progress."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        partitions: Partitions,
        runner: StepRunner,
        assign: Assign,
    ) -> None:
        self._loop = loop
        self._config = config
        self._log_dirs = log_dirs
        self._failures = failures
        self._partitions = partitions
        self._runner = runner
        self._assign = assign
        self._quota = ReplicationQuota()
        self._moves: dict[tuple[str, int], DirMove] = {}
        self._active: set[DirMove] = set()
        partitions.on_removed.append(self._removed)
        failures.on_failure.append(self._dir_failed)

    # --- requests

    def move(self, partition: Partition, log_dir: LogDir) -> None:
        """Move a replica to a directory, or cancel its move if it is there. KafkaError, OSError."""
        key = (partition.topic, partition.index)
        existing = self._moves.get(key)
        if existing is not None:
            if existing.future.log_dir is log_dir:
                return
            self._cancel(existing)
        if self._log_dirs.dir_of(*key) is log_dir:
            return
        if len(self._log_dirs.working) < len(self._log_dirs.dirs):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "No replica is moved while a log directory is offline")
        if key in self._log_dirs.futures.directories:  # its partition was offline at the start
            self._log_dirs.deletions.schedule([self._log_dirs.futures.delete_found(key)], self._loop.now())
        self._begin(partition, log_dir)

    def resume(self) -> None:
        """Copy on the future replicas that the start has found, and remove those that are not needed."""
        futures = self._log_dirs.futures
        for key, (log_dir, path) in list(futures.directories.items()):
            if key in self._partitions.offline:
                continue
            try:
                self._resume(key, log_dir)
            except OSError as error:
                self._failures.report(log_dir, f"opening of the future replica {path}", error)
            except Exception as error:
                log_failure(f"Opening the future replica {path}", error)

    def _resume(self, key: tuple[str, int], log_dir: LogDir) -> None:
        partition = self._partitions.find(*key)
        is_wanted = partition is not None and self._log_dirs.dir_of(*key) is not log_dir
        if partition is not None and is_wanted:
            try:
                self._begin(partition, log_dir)
                return
            except (DamagedLog, CorruptCheckpoint) as error:  # the log itself is whole: copy it again
                logger.warning("The copy of %r in %s begins again: %s", partition, log_dir.path, error)
            except KafkaError as error:
                if error.code != ErrorCode.INCONSISTENT_TOPIC_ID:
                    raise
                is_wanted = False  # it belongs to a deleted topic of the same name
        self._log_dirs.deletions.schedule([self._log_dirs.futures.delete_found(key)], self._loop.now())
        if partition is not None and is_wanted:
            self._begin(partition, log_dir)

    def _begin(self, partition: Partition, log_dir: LogDir) -> None:
        log = partition.log
        future = self._log_dirs.futures.open(
            (partition.topic, partition.index),
            log_dir,
            log.config,
            topic_id=partition.topic_id,
            log_start_offset=log.log_start_offset,
            now_ms=self._loop.now_ms(),
            now=self._loop.now(),
            producer_expiration_ms=self._config[PRODUCER_ID_EXPIRATION_MS],
        )
        move = DirMove(
            partition,
            future,
            loop=self._loop,
            log_dirs=self._log_dirs,
            failures=self._failures,
            partitions=self._partitions,
            is_throttled=self._is_throttled,
            copied=lambda size: self._quota.record(size, self._loop.now()),
        )
        logger.info("Moving %r to %s, from offset %d on", partition, log_dir.path, future.log.log_end_offset)
        self._moves[move.key] = move
        self._loop.call_after_turn(self._start_next)

    def _is_throttled(self) -> bool:
        rate = self._config[REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND]
        return self._quota.is_exceeded(rate, self._loop.now())

    # --- rounds

    def _start_next(self) -> None:
        """Begin moves that wait, as many as may run at a time."""
        limit = self._config[NUM_REPLICA_ALTER_LOG_DIRS_THREADS] or len(self._log_dirs.dirs)
        for move in list(self._moves.values()):
            if len(self._active) >= limit:
                return
            if move not in self._active:
                self._active.add(move)
                self._run(move)

    def _run(self, move: DirMove) -> None:
        """Begin a round of a move."""
        if move in self._active and move.is_live() and not move.is_running:
            if move.timer is not None:
                move.timer.cancel()
            move.is_running = True
            self._runner.start(self._round(move), partial(self._round_ended, move), partial(self._failed, move))

    def _round(self, move: DirMove) -> Steps[float | None]:
        """Copy, or take over; how long to wait before the next round, None after the last."""
        if move.has_taken_over:
            yield from move.settle()
            return None
        if move.partition.log.is_cleaning:
            return PAUSE_S  # records copied before the cleaning has ended would count as clean; no other begins
        if not (yield from move.begin()):
            return RETRY_S
        if not (yield from move.copy()):
            return PAUSE_S if self._is_throttled() else 0.0
        if not move.future.is_assigned:
            self._tell(move)
            return PAUSE_S
        if not (yield from move.take_over()):
            return PAUSE_S
        yield from move.settle()
        return None

    def _round_ended(self, move: DirMove, delay: float | None) -> None:
        move.is_running = False
        if move.is_cancelled:
            self._delete(move.future)
        elif delay is not None:
            move.timer = self._loop.timers.at(self._loop.now() + delay, lambda: self._run(move))
        else:
            logger.info("Moved %r to %s", move.partition, move.future.log_dir.path)
            self._ended(move)
            delay_s = move.partition.log.config.file_delete_delay_ms / 1000
            self._loop.timers.at(self._loop.now() + delay_s, lambda: self._forget_former(move))

    def _failed(self, move: DirMove, error: Exception) -> None:
        cause = error.__cause__ if isinstance(error, (Unreadable, KafkaError)) else error
        if move.is_live():
            if isinstance(error, Unreadable):
                move.partition.report_unreadable(cause)
            elif isinstance(cause, OSError):
                self._failures.report(move.future.log_dir, f"move of {move.partition!r}", cause)
            if not isinstance(cause, OSError):
                log_failure(f"Moving {move.partition!r} to {move.future.log_dir.path}", error)
                if not isinstance(error, Unreadable):
                    self._cancel(move)
        delay = RETRY_S if is_transient(cause) or isinstance(error, Unreadable) else 10 * RETRY_S
        self._round_ended(move, delay)

    def _tell(self, move: DirMove) -> None:
        """Tell the controller the directory, before the copy takes over (KIP-858)."""
        now = self._loop.now()
        if move.is_telling or now < move.not_before:
            return

        def told(code: ErrorCode) -> None:
            move.is_telling = False
            if code:
                move.not_before = self._loop.now() + RETRY_S
                logger.warning("The controller did not take the directory of %r: %s", move.partition, code.name)
            elif move.is_cancelled:
                self._tell_current(move)
            else:
                move.future.is_assigned = True
                self._run(move)

        move.is_telling = True
        directory = uuid_from_text(move.future.log_dir.directory_id)
        self._assign(move.partition.topic_id, move.partition.index, directory, told)

    def _tell_current(self, move: DirMove) -> None:
        """Tell the controller that the replica stays where it is."""
        log_dir = self._log_dirs.dir_to_tell(*move.key)  # there may be another move by now
        if log_dir is not None and not move.partition.is_closed:

            def told(code: ErrorCode) -> None:
                if code and not move.partition.is_closed:
                    logger.warning(
                        "The controller did not take it that %r stays in its directory, telling it again: %s",
                        *(move.partition, code.name),
                    )
                    self._loop.timers.at(self._loop.now() + TELL_AGAIN_S, lambda: self._tell_current(move))

            directory = uuid_from_text(log_dir.directory_id)
            self._assign(move.partition.topic_id, move.partition.index, directory, told)

    # --- ends

    def _ended(self, move: DirMove) -> None:
        self._active.discard(move)
        if self._moves.get(move.key) is move:
            del self._moves[move.key]
        self._loop.call_after_turn(self._start_next)

    def _cancel(self, move: DirMove) -> None:
        """Cancel a move; its files are removed when no thread uses them."""
        self._ended(move)
        if move.has_taken_over:
            return
        move.is_cancelled = True
        self._log_dirs.futures.give_up(move.key, move.future)
        if move.future.is_assigned:
            self._tell_current(move)
        if not move.is_running:
            self._delete(move.future)

    def _delete(self, future: FutureLog) -> None:
        if future.log_dir.failure is not None:
            return
        try:
            self._log_dirs.deletions.schedule([self._log_dirs.futures.delete(future)], self._loop.now())
        except OSError as error:
            self._failures.report(future.log_dir, "deletion of a future replica", error)

    def _delete_former(self, key: tuple[str, int]) -> bool:
        """Remove the directory from which a partition was moved; whether it was renamed."""
        try:
            self._log_dirs.deletions.schedule(self._log_dirs.futures.retire(key), self._loop.now())
        except OSError as error:
            logger.error("Cannot remove the former directory of %s-%d: %s", *key, error)
            return False
        return True

    def _forget_former(self, move: DirMove) -> None:
        """Remove the former directory, then the mark that makes a start ignore it."""
        former, log = self._log_dirs.futures.retired_from(move.key), move.future.log
        if former is None or log is not move.partition.log or move.partition.is_closed:
            return

        def failed(error: Exception) -> None:
            if isinstance(error, OSError):
                self._failures.report(former, f"move of {move.partition!r}", error)

        if self._delete_former(move.key):
            self._runner.start(self._unmark(former, log), lambda _: None, failed)

    @staticmethod
    def _unmark(former: LogDir, log: Log) -> Steps[None]:
        yield former.sync_names
        with suppress(FileNotFoundError):  # the partition was deleted meanwhile
            yield lambda: unmark(log.files, log.directory)

    def _removed(self, partition: Partition) -> None:
        """The partition is not here any more; if it is offline, its future replica stays for the next start."""
        key = (partition.topic, partition.index)
        move = self._moves.get(key)
        if move is not None:
            self._ended(move)

        def decide() -> None:
            is_offline = key in self._partitions.offline
            log_dir = self._log_dirs.dir_of(*key)
            if not is_offline or log_dir is None or log_dir.failure is None:
                self._delete_former(key)  # a log that is filled again may be made where it is
            if move is not None and is_offline and not move.has_taken_over:
                self._log_dirs.futures.give_up(key, move.future)
            elif move is not None:
                self._cancel(move)

        self._loop.call_after_turn(decide)

    def _dir_failed(self, log_dir: LogDir, _reason: str) -> None:
        for move in list(self._moves.values()):
            if move.future.log_dir is log_dir:
                self._cancel(move)
