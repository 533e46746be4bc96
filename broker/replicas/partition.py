"""One partition led by this broker: its log, its leader epoch, and those who wait for it.

On one node this broker leads everything and the ISR is itself, so the high watermark is the log's end, or less while
the sync policy asks for the disk first (`broker.replicas.committer`). Its advance wakes the waiting
readers once, at the end of the loop's turn, so that a burst of produce requests costs a reader one answer; who waits
for an offset to be committed is told at once (R12, R13, G2).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.coord.cluster.topic_names import INTERNAL_TOPICS
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.committer import SyncLimit
    from barnabas.storage.append import AppendInfo
    from barnabas.storage.batch_check import Origin
    from barnabas.storage.log import Log

logger = logging.getLogger("kafka.server.ReplicaManager")


class Partition:
    """One partition led by this broker."""

    __slots__ = (
        "_awaiting",
        "_is_waking",
        "broker",
        "bytes_appended",
        "index",
        "is_gone",
        "is_internal",
        "isr",
        "leader_epoch",
        "log",
        "replicas",
        "sync_limit",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(self, broker: Broker, topic: str, index: int, topic_id: bytes, log: Log) -> None:
        self.broker = broker
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.is_internal = topic in INTERNAL_TOPICS
        self.log = log
        self.leader_epoch = 0
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        self.bytes_appended = 0  # up to the high watermark, since this process began: how much came for a reader
        self.waiters: dict[object, Callable[[Partition], None]] = {}  # the key is the waiter itself
        self.sync_limit: SyncLimit | None = None  # None: the page cache is enough
        self.is_gone = False  # deleted or offline
        self._awaiting: list[tuple[int, Callable[[ErrorCode], None]]] = []
        self._is_waking = False
        log.high_watermark = log.log_end_offset
        log.on_damage = self.fail

    def append(self, records: memoryview, now: float, *, origin: Origin = "client") -> AppendInfo:
        """Append a client's or a coordinator's batches; KafkaError says what is wrong with them.

        `records` is patched in place (base offset, leader epoch); it is not kept. The batches are committed at once,
        or later if a sync is due first: `when_committed` tells.
        """
        log = self.log
        try:
            info = log.append_as_leader(
                records, leader_epoch=self.leader_epoch, now_ms=self.broker.now_ms(), now=now, origin=origin
            )
        except KafkaError as error:
            self.note_failure("write", error.__cause__)
            raise
        except OSError as error:
            self.note_failure("write", error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if self.sync_limit is not None:
            if not info.duplicate:
                self.sync_limit.appended(len(records))
            return info
        log.high_watermark = log.log_end_offset
        self.bytes_appended += len(records)
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self.broker.call_after_turn(self.wake)
        return info

    def note_failure(self, deed: str, error: BaseException | None) -> None:
        """A disk that refuses is reported; one that has failed is given up."""
        if isinstance(error, OSError):
            broker = self.broker
            log_dir = broker.log_dirs.dir_of(self.topic, self.index)
            if log_dir is not None:
                broker.log_dir_failures.note(log_dir, f"{deed} of {self.topic}-{self.index}", error)

    def note_unreadable(self, error: BaseException | None) -> None:
        """Something could not be read; the operator is told, as who has asked is."""
        if isinstance(error, OSError):
            self.broker.log_dir_failures.note_unreadable(self, error)

    # -- commitment

    def advance_high_watermark(self, offset: int, bytes_appended: int) -> None:
        """All below `offset` is committed, which is `bytes_appended` since this process began."""
        log = self.log
        if offset <= log.high_watermark:
            return
        log.high_watermark = offset
        self.bytes_appended = bytes_appended
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self.broker.call_after_turn(self.wake)
        if self._awaiting:
            self._release(offset)

    def when_committed(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` once the record at `offset` is committed: with NONE, or with what has come between.

        It may be called at once.
        """
        if offset < self.log.high_watermark:
            then(ErrorCode.NONE)
        else:
            self._awaiting.append((offset, then))

    def _release(self, high_watermark: int) -> None:
        """Tell those who wait for what is committed now."""
        awaiting, self._awaiting = self._awaiting, []
        for waiter in awaiting:
            if waiter[0] < high_watermark:
                _tell(waiter[1], ErrorCode.NONE)
            else:
                self._awaiting.append(waiter)

    def end_sync_limit(self) -> None:
        """Acknowledge without regard to the disk from now on."""
        limit, self.sync_limit = self.sync_limit, None
        if limit is not None:
            limit.drop()
            self.advance_high_watermark(self.log.log_end_offset, limit.bytes_written)

    def fail(self, reason: str) -> None:
        """Take the partition offline; `reason` says in a sentence what happened to its log."""
        if not self.is_gone:
            self.broker.partitions.take_offline(self, reason)

    def leave(self, error: ErrorCode) -> None:
        """The partition is not served any more: everybody who waits is told."""
        self.is_gone = True
        if self.sync_limit is not None:
            self.sync_limit.drop()
        awaiting, self._awaiting = self._awaiting, []
        for _, then in awaiting:
            _tell(then, error)
        self.broker.call_after_turn(self.wake)

    def wake(self) -> None:
        """Tell everyone who waits for this partition that it has changed."""
        self._is_waking = False
        for woken in list(self.waiters.values()):
            woken(self)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a client whose idea of the leader is older or newer than ours (R3); -1 asks for no check."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_in_sync_replicas(self) -> None:
        """Refuse acks=all while too few replicas are in sync (R12).

        min.insync.replicas never asks for more replicas than the partition has (Kafka's `effectiveMinIsr`).
        """
        wanted = min(self.log.config.min_insync_replicas, len(self.replicas))
        if len(self.isr) < wanted:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {wanted} for partition {self.topic}-{self.index}",
            )

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"


def _tell(then: Callable[[ErrorCode], None], error: ErrorCode) -> None:
    """One who fails at being told must not keep it from the others."""
    try:
        then(error)
    except Exception:
        logger.exception("An answer about committed records failed")
