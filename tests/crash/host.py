"""What a broker does with its logs, without a broker: open them as the metadata says, flush and checkpoint them.

The order of calls is the same as in `broker/replicas/partitions.py` and `broker/background.py`; every promise that a
broker would make to its clients is recorded in the disk's history.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.storage.log import Log
from barnabas.storage.log_config import LogConfig
from tests.crash.ledger import Durable, Identified, Key, Ledger, Promise, Recovered
from tests.support.disks.disk import RecordingDisk

NODE_ID = 1
START_MS = 10_000


@dataclass(frozen=True)
class Setup:
    """The fixed setup of a history."""

    paths: tuple[str, ...] = ("/data",)
    policy: str = "always"  # barnabas.log.sync
    config: LogConfig = field(default_factory=LogConfig)
    compacted: LogConfig = field(default_factory=LogConfig)
    follows: bool = False
    """Whether the logs are logs of followers, which append the batches of leaders."""

    def config_of(self, topic: str) -> LogConfig:
        """The configuration of a topic: the names of compacted topics start with k."""
        return self.compacted if is_compacted(topic) else self.config


def is_compacted(topic: str) -> bool:
    """Whether a topic is compacted."""
    return topic.startswith("k")


@dataclass
class Counters:
    """State that survives every disk: ids from the system, epochs from the controller."""

    last_id: int = 0
    leader_epoch: int = 0

    def new_id(self) -> int:
        """A unique id."""
        self.last_id += 1
        return self.last_id


class Host:
    """The logs of a broker on a disk."""

    def __init__(self, disk: RecordingDisk, setup: Setup, counters: Counters) -> None:
        self.disk = disk
        self.setup = setup
        self.now = 0.0
        self._counters = counters
        self.log_dirs = LogDirs(disk, setup.paths, self.new_id)
        self.log_dirs.are_replicas = setup.follows

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return START_MS + int(self.now * 1000)

    def new_id(self) -> bytes:
        """A unique id."""
        return self._counters.new_id().to_bytes(16, "big")

    def promise(self, promise: Promise, ledger: Ledger | None = None) -> None:
        """Record a promise in the history, and apply it to the ledger."""
        self.disk.note(promise)
        if ledger is not None:
            ledger.take(promise)

    def start(self, ledger: Ledger) -> None:
        """Open every log in the metadata and rename the others as strays; under `always` sync before serving."""
        cluster_id = self.log_dirs.open(NODE_ID, "")
        self.log_dirs.deleted_topics.add_all(ledger.deleted_topics)
        for key, partition in ledger.partitions.items():
            self.open_log(key, partition.topic_id)
        for topic, index in list(self.log_dirs.not_opened()):
            self.log_dirs.rename_stray(topic, index)
        self.log_dirs.forget_missing()
        self.promise(Identified(cluster_id), ledger)
        for key in ledger.partitions:
            log = self.log_dirs.logs[key]
            if self.setup.policy == "always":
                self.flush(key)
            self.promise(Recovered(key, log.log_start_offset, log.log_end_offset), ledger)
            if self.setup.policy == "always":
                self.promise(Durable(key, log.log_end_offset), ledger)
            log.high_watermark = log.log_end_offset

    def open_log(self, key: Key, topic_id: bytes) -> Log:
        """Open a partition's log, or make it."""
        config = self.setup.config_of(key[0])
        log = self.log_dirs.open_log(*key, config, topic_id=topic_id, now_ms=self.now_ms, now=self.now)
        log.high_watermark = log.log_end_offset
        return log

    def flush(self, key: Key) -> None:
        """Make a log durable."""
        log = self.log_dirs.logs[key]
        job = log.start_flush()
        if job is not None:
            job.run()
            log.finish_flush(job)
