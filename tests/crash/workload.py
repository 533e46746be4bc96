"""Random operations on the logs of a broker, with every promise recorded in the disk's history.

A `Workload` uses one disk; after a power failure a new one continues with another disk and a copy of the ledger.
All randomness comes from its `Random`, so that a seed gives the same history every time.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from barnabas.storage import layout
from barnabas.storage.append.flush_job import FlushJob
from barnabas.storage.cleaning import retention
from barnabas.storage.cleaning.cleaner import Cleaner
from barnabas.storage.cleaning.replacement import Replacement
from barnabas.storage.cleaning.selection import CleanerLimits, cleanable, cleaning_task
from barnabas.storage.log import Log
from tests.crash.appends import Appender
from tests.crash.host import Counters, Host, Setup, is_compacted
from tests.crash.ledger import (
    Created,
    Cut,
    Cutting,
    Deleted,
    Durable,
    Key,
    Ledger,
    StartMoved,
    StartMoving,
)
from tests.support.disks.disk import RecordingDisk
from tests.support.logs.log_driver import truncate

T = TypeVar("T")
LIMITS = CleanerLimits(key_memory=1 << 20, io_buffer=700, io_per_second=0.0)


class Workload:
    """The logs of a broker on a disk, with random operations on them."""

    def __init__(self, disk: RecordingDisk, setup: Setup, random: Random, ledger: Ledger, counters: Counters) -> None:
        self.disk = disk
        self.setup = setup
        self.random = random
        self.ledger = ledger
        self.counters = counters
        self.host = Host(disk, setup, counters)
        self.appender = Appender(self.host, random, ledger, counters)
        self._cleaned: dict[Key, int] = {}
        self._planned: list[Callable[[], None]] = []
        self._actions: list[tuple[int, Callable[[], None]]] = [
            (40, self.append),
            (14 if setup.policy == "always" else 3, self.commit),
            (4, self.flush_rolled),
            (5, self.write_checkpoints),
            (2, self.write_planned),
            (4, self.delete_records),
            (2, self.expire),
            (6, self.clean),
            (2, self.truncate),
            (2, self.roll),
            (2, self.create_topic),
            (2, self.delete_topic),
            (3, self.remove_deleted),
            (3, self.begin_epoch),
            (1, self.stop_and_start),
            (1, self.kill_and_start),
        ]

    def start(self) -> None:
        """Recover the logs on the disk and continue."""
        self.host.start(self.ledger)
        self.begin_epoch()
        for key in self.ledger.partitions:
            self.appender.producers.setdefault(key, [])
        while len(self.ledger.partitions) < 2:
            self.create_topic()

    def run(self, actions: int) -> None:
        """Do a number of random actions."""
        choices = [action for _, action in self._actions]
        # The weights vary, so that many actions of one kind in a row occur as well.
        weights = [weight * self.random.choice((0.3, 1, 1, 3)) for weight, _ in self._actions]
        for action in self.random.choices(choices, weights, k=actions):
            action()

    # --- appending

    def _log(self, *, compacted: bool | None = None) -> tuple[Key, Log] | None:
        keys = [key for key in self.ledger.partitions if compacted in (None, is_compacted(key[0]))]
        if not keys:
            return None
        key = self.random.choice(keys)
        return key, self.host.log_dirs.logs[key]

    def _any_log(self) -> tuple[Key, Log]:
        chosen = self._log()
        assert chosen is not None
        return chosen

    def append(self) -> None:
        """Append one batch of a random kind to a random log."""
        self.appender.append(*self._any_log())

    # --- syncing

    def commit(self) -> None:
        """Flush all logs with unsynced records, as a flusher does, while the broker continues."""
        data_only = self.random.random() < 0.8
        self._flush({key: log.start_flush(data_only=data_only) for key, log in self.host.log_dirs.logs.items()})

    def flush_rolled(self) -> None:
        """Kafka syncs a segment when it rolls, and then advances the recovery points."""
        rolled = self.host.log_dirs.logs_with_rolled_segments()
        keys = {id(log): key for key, log in self.host.log_dirs.logs.items()}
        self._flush({keys[id(log)]: log.start_flush(log.segments.active.base_offset) for log in rolled})
        self.host.log_dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)

    def _flush(self, jobs: dict[Key, FlushJob | None]) -> None:
        for key, job in jobs.items():
            if job is not None:
                log = self.host.log_dirs.logs[key]
                self._meanwhile(job.run)
                log.finish_flush(job)
                self._durable(key, log)

    def _meanwhile(self, work: Callable[[], T]) -> T:
        """Run a function that waits for the disk, as in a thread; the broker may append during every sync."""
        appends = self.random.choice((0, 0, 1, 2))

        def meanwhile() -> None:
            nonlocal appends
            if appends and self.random.random() < 0.3:
                appends -= 1
                self.disk.during_sync = None
                self.append()
                self.disk.during_sync = meanwhile

        self.disk.during_sync = meanwhile
        try:
            return work()
        finally:
            self.disk.during_sync = None

    def _durable(self, key: Key, log: Log) -> None:
        self.host.promise(Durable(key, log.synced_offset), self.ledger)
        if self.setup.policy == "always":
            log.high_watermark = log.synced_offset

    def write_checkpoints(self) -> None:
        """Write one of the periodic checkpoints, in a thread that may be late."""
        name = self.random.choice(
            (layout.RECOVERY_POINT_CHECKPOINT, layout.LOG_START_CHECKPOINT, layout.REPLICATION_CHECKPOINT)
        )
        self._planned += [write for _, write in self.host.log_dirs.plan_checkpoint(name)]
        if self.random.random() < 0.7:
            self.write_planned()

    def write_planned(self) -> None:
        """Run the planned writes."""
        planned, self._planned = self._planned, []
        for write in planned:
            self._meanwhile(write)

    # --- truncation and retention

    def delete_records(self) -> None:
        """DeleteRecords: the log start is persisted before files are renamed (L5)."""
        chosen = self._log(compacted=False)
        if chosen is None:
            return
        key, log = chosen
        log.advance_log_start_offset(self.random.randint(log.log_start_offset, log.high_watermark))
        self._delete_below_start(key, log)

    def expire(self) -> None:
        """Retention by size."""
        chosen = self._log(compacted=False)
        if chosen is not None:
            retention.expire(chosen[1], self.host.now_ms, self.host.now)
            self._delete_below_start(*chosen)

    def _delete_below_start(self, key: Key, log: Log) -> None:
        if log.log_start_offset == self.ledger.partitions[key].start:
            return
        self.host.promise(StartMoving(key, log.log_start_offset), self.ledger)
        self.host.log_dirs.write_checkpoint(layout.LOG_START_CHECKPOINT)
        self._delete_later(log.delete_segments_below(log.log_start_offset))
        self.host.promise(StartMoved(key), self.ledger)

    def _delete_later(self, paths: list[str]) -> None:
        self.host.log_dirs.deletions.schedule(paths, self.host.now + self.random.random())

    def clean(self) -> None:
        """One pass of compaction, while the broker continues."""
        chosen = self._log(compacted=True)
        if chosen is None:
            return
        key, log = chosen
        if self.random.random() < 0.5:  # a segment may be closed for its age
            log.roll(self.host.now)
            self._flush({key: log.start_flush(log.segments.active.base_offset)})
        part = cleanable(log, self._cleaned.get(key), self.host.now_ms)
        if not part.dirty_bytes:
            return
        log.is_cleaning = True
        cleaner = Cleaner(cleaning_task(log, part, LIMITS, self.host.now_ms), self.disk)
        for group in cleaner.run():
            replacement = Replacement(log, group)
            self._meanwhile(replacement.publish)
            replacement.take_over()
            self._delete_later(self._meanwhile(replacement.retire) or [])
            replacement.finish()
        log.is_cleaning = False
        self._cleaned[key] = cleaner.done.end_offset

    def truncate(self) -> None:
        """A follower of a new leader truncates its log between two batches."""
        chosen = self._log(compacted=False)
        if chosen is None:
            return
        key, log = chosen
        ends = [batch.first for batch in self.ledger.partitions[key].batches if batch.first >= log.log_start_offset]
        if not ends:
            return
        end = self.random.choice(ends[-4:])
        self.host.promise(Cutting(key, end), self.ledger)
        name = layout.RECOVERY_POINT_CHECKPOINT
        renamed = truncate(log, end, write_checkpoint=lambda: self.host.log_dirs.write_checkpoint(name))
        self._delete_later(renamed)
        self.host.promise(Cut(key), self.ledger)
        self.appender.producers[key] = []

    def roll(self) -> None:
        """Roll a segment for its age."""
        self._any_log()[1].roll(self.host.now)

    # --- topics

    def create_topic(self) -> None:
        """Create a topic, perhaps with the name of a deleted one."""
        free = [name for name in ("a", "b", "ka", "kb") if (name, 0) not in self.ledger.partitions]
        if not free:
            return
        topic = self.random.choice(free)
        created = Created(topic, self.random.choice((1, 1, 2)), self.host.new_id())
        self.host.promise(created, self.ledger)
        for index in range(created.partitions):
            self.host.open_log((topic, index), created.topic_id)
            self.appender.producers[topic, index] = []
            self._cleaned.pop((topic, index), None)

    def delete_topic(self) -> None:
        """Delete a topic: first in the metadata, then on disk; sometimes while it is being synced."""
        topic = self.random.choice(list(self.ledger.partitions))[0]
        keys = [key for key in self.ledger.partitions if key[0] == topic]
        if len(keys) == len(self.ledger.partitions):
            return
        self.host.promise(Deleted(topic), self.ledger)
        for log_dir in {self.host.log_dirs.delete_log(*key, now=self.host.now) for key in keys}:
            log_dir.sync_names()
        self.host.log_dirs.write_checkpoint(layout.RECOVERY_POINT_CHECKPOINT)

    def remove_deleted(self) -> None:
        """Remove files that were renamed for deletion."""
        self.host.now += 0.5
        for path in self.host.log_dirs.deletions.take_due(self.host.now):
            self.host.log_dirs.deletions.remove(path)

    # --- restarts

    def begin_epoch(self) -> None:
        """Start a new leader epoch, for all following batches."""
        self.counters.leader_epoch += 1

    def stop_and_start(self) -> None:
        """A clean stop and the next start."""
        self.write_planned()
        self.host.log_dirs.close()
        marker = f"{self.setup.paths[0]}/{layout.CLEAN_SHUTDOWN}"
        assert self.disk.exists(marker)
        self._start_again()

    def kill_and_start(self) -> None:
        """kill -9: the page cache survives."""
        self._planned = []
        self.host.log_dirs.release()
        self._start_again()

    def _start_again(self) -> None:
        before = {key: log.log_end_offset for key, log in self.host.log_dirs.logs.items()}
        self.host = self.appender.host = Host(self.disk, self.setup, self.counters)
        self.host.start(self.ledger)
        assert {key: log.log_end_offset for key, log in self.host.log_dirs.logs.items()} == before
        self.begin_epoch()
