"""One replica of a partition: its log, who leads it, its high watermark and the waits for it.

A `Partition` exists for every replica that this broker has; what it may do follows from the metadata: it leads, it
follows another broker, or it has no leader (`update`). A partition with one replica has no `leading`: its high
watermark is the log end offset, or less while a flush policy asks for a flush first (`flush_policy`). Otherwise its
followers take part (`leading`), or its leader tells it (`follow_high_watermark`). When it advances, waiting readers
are woken once, at the end of the loop's turn, so a burst of produce requests costs a reader one response; callbacks of
`when_committed` are called immediately (R12, R13, G2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.own import ALWAYS
from barnabas.broker.guarded import log_failure
from barnabas.broker.replicas.flush_policy import FlushPolicy
from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.coord.topic_names import INTERNAL_TOPICS
from barnabas.wire.configdef import LONG_MAX
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.loop import Loop
    from barnabas.broker.replicas.flusher import Flusher
    from barnabas.coord.cluster.topic_image import PartitionImage
    from barnabas.storage.append import AppendInfo
    from barnabas.storage.batch_check import Origin
    from barnabas.storage.batch_content import Budget
    from barnabas.storage.log import Log


class Partition:
    """One replica of a partition."""

    __slots__ = (
        "_awaiting",
        "_failures",
        "_is_waking",
        "_loop",
        "_on_failure",
        "adding_replicas",
        "bytes_appended",
        "elr",
        "flush_policy",
        "index",
        "is_closed",
        "is_internal",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "log",
        "on_own_end",
        "partition_epoch",
        "removing_replicas",
        "replicas",
        "topic",
        "topic_id",
        "waiters",
    )

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: bytes,
        log: Log,
        *,
        loop: Loop,
        failures: LogDirFailures,
        on_failure: Callable[[Partition, str], None],
    ) -> None:
        """`on_failure` takes the partition offline; its second argument is the reason."""
        self._loop = loop
        self._failures = failures
        self._on_failure = on_failure
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.is_internal = topic in INTERNAL_TOPICS
        self.log = log
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        self.elr: Sequence[int] = ()
        self.adding_replicas: Sequence[int] = ()
        self.removing_replicas: Sequence[int] = ()
        self.bytes_appended = 0  # up to the high watermark, since the broker started
        self.waiters: dict[object, Callable[[Partition], None]] = {}  # the key is the waiter itself
        self.flush_policy: FlushPolicy | None = None  # None: records are acknowledged without a flush
        self.is_closed = False  # deleted, moved to other brokers or offline
        self.on_own_end: Callable[[Partition], None] | None = None
        """A follower's: called when `own_end` has advanced, which is what its next fetch may say it has."""
        self._awaiting: list[tuple[int, Callable[[ErrorCode], None]]] = []
        self._is_waking = False
        log.on_damage = self.fail

    # -- roles

    def update(self, assigned: PartitionImage, node_id: int) -> bool:
        """Take over what the metadata says of the partition; whether its leader or its leader epoch has changed.

        A state that is older than the one known is ignored: the controller's answer may be ahead of the metadata (R11).
        """
        if assigned.partition_epoch < self.partition_epoch:
            return False
        was_leader = self.is_leader
        has_changed = assigned.leader != self.leader_id or assigned.leader_epoch != self.leader_epoch
        self.leader_id = assigned.leader
        self.leader_epoch = assigned.leader_epoch
        self.partition_epoch = assigned.partition_epoch
        self.replicas = assigned.replicas
        self.isr = assigned.isr
        self.elr = assigned.elr
        self.adding_replicas = assigned.adding_replicas
        self.removing_replicas = assigned.removing_replicas
        self.is_leader = assigned.leader == node_id
        if self.is_leader:
            if not was_leader:
                self.log.high_watermark = self.log.log_end_offset
        elif was_leader:
            self._resign()
        return has_changed

    def _resign(self) -> None:
        """This broker leads no longer: nobody here can say whether what waits will be committed (R14)."""
        awaiting, self._awaiting = self._awaiting, []
        for _, then in awaiting:
            self._decide(then, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._loop.call_after_turn(self.wake)

    @property
    def own_end(self) -> int:
        """The end of what this replica has: of what it has flushed if a flush policy asks for that."""
        return self.log.log_end_offset if self.flush_policy is None else self.log.synced_offset

    def appended_as_follower(self, size: int) -> None:
        """`size` bytes from the leader have been appended to the log: have them flushed if the policy asks for it."""
        if self.flush_policy is not None:
            self.flush_policy.appended(size)

    def follow_high_watermark(self, offset: int) -> None:
        """A follower's high watermark: the leader's, as far as this replica has the records (R8)."""
        log = self.log
        self.advance_high_watermark(min(offset, log.log_end_offset), self.bytes_appended)

    def truncated(self) -> None:
        """The follower's log has been truncated: readers look again."""
        if self.waiters:
            self._loop.call_after_turn(self.wake)

    def append(
        self,
        records: memoryview,
        now: float,
        *,
        origin: Origin = "client",
        budget: Budget | None = None,
        is_validated: bool = False,
    ) -> AppendInfo:
        """Append a client's or a coordinator's batches. KafkaError when they are invalid or cannot be written.

        Raises UnfinishedCheck when validating the records takes more than `budget`: call this again with `is_validated`
        when the rest of the validation has been done. `records` is patched in place (base offset, leader epoch) and not
        kept. The batches are committed when this returns, unless the flush policy asks for a flush first: see
        `when_committed`.
        """
        log = self.log
        try:
            info = log.append_as_leader(
                records,
                leader_epoch=self.leader_epoch,
                now_ms=self._loop.now_ms(),
                now=now,
                origin=origin,
                budget=budget,
                is_validated=is_validated,
            )
        except KafkaError as error:
            self.report_failure("write", error.__cause__)
            raise
        except OSError as error:
            self.report_failure("write", error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        if self.flush_policy is not None:
            if not info.duplicate:
                self.flush_policy.appended(len(records))
            return info
        log.high_watermark = log.log_end_offset
        self.bytes_appended += len(records)
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self._loop.call_after_turn(self.wake)
        return info

    def report_failure(self, operation: str, error: BaseException | None) -> None:
        """Report a failed `operation` on the log if `error` comes from the disk; it may fail the log directory."""
        if isinstance(error, OSError):
            self._failures.report_log(self.topic, self.index, operation, error)

    def report_unreadable(self, error: BaseException | None) -> None:
        """Report a failed read of the log if `error` comes from the disk."""
        if isinstance(error, OSError):
            self._failures.report_unreadable(self.topic, self.index, self.log.directory, error)

    # -- commitment

    def advance_own_end(self, offset: int, bytes_appended: int) -> None:
        """What this replica has ends at `offset` now, `bytes_appended` bytes since the broker started (flushes)."""
        if self.is_leader:
            self.advance_high_watermark(offset, bytes_appended)
        elif self.on_own_end is not None:
            self.on_own_end(self)

    def advance_high_watermark(self, offset: int, bytes_appended: int) -> None:
        """Commit everything below `offset`, which is `bytes_appended` bytes since the broker started."""
        log = self.log
        if offset <= log.high_watermark:
            return
        log.high_watermark = offset
        self.bytes_appended = bytes_appended
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self._loop.call_after_turn(self.wake)
        if self._awaiting:
            self._release(offset)

    def when_committed(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` with NONE once the record at `offset` is committed, or with an error if it never will be.

        If the record is committed already, `then` is called before this returns.
        """
        if offset < self.log.high_watermark:
            then(ErrorCode.NONE)
        else:
            self._awaiting.append((offset, then))

    def _release(self, high_watermark: int) -> None:
        """Call the callbacks of offsets below the new high watermark."""
        awaiting, self._awaiting = self._awaiting, []
        for waiter in awaiting:
            if waiter[0] < high_watermark:
                self._decide(waiter[1], ErrorCode.NONE)
            else:
                self._awaiting.append(waiter)

    def apply_flush_policy(self, sync_mode: str | None, flusher: Flusher) -> None:
        """Apply the flush limits of the topic's config and of `barnabas.log.sync`, from the next append on."""
        config = self.log.config
        messages = 1 if sync_mode == ALWAYS else config.flush_messages
        if messages == LONG_MAX and config.flush_ms == LONG_MAX:
            self._remove_flush_policy()
            return
        policy = self.flush_policy
        if policy is None:
            policy = self.flush_policy = FlushPolicy(self, self._loop, flusher.request)
        policy.messages = messages
        policy.seconds = inf if config.flush_ms == LONG_MAX else config.flush_ms / 1000

    def _remove_flush_policy(self) -> None:
        """Acknowledge records without a flush from now on."""
        policy, self.flush_policy = self.flush_policy, None
        if policy is not None:
            policy.cancel()
            self.advance_own_end(self.log.log_end_offset, policy.bytes_written)

    def fail(self, reason: str) -> None:
        """Take the partition offline; `reason` is a sentence about what happened to its log."""
        if not self.is_closed:
            self._on_failure(self, reason)

    def close(self, error: ErrorCode) -> None:
        """Stop serving the partition: fail all waits for commits with `error`, wake all readers."""
        self.is_closed = True
        if self.flush_policy is not None:
            self.flush_policy.cancel()
        awaiting, self._awaiting = self._awaiting, []
        for _, then in awaiting:
            self._decide(then, error)
        self._loop.call_after_turn(self.wake)

    def wake(self) -> None:
        """Call everything in `waiters`: the partition has changed."""
        self._is_waking = False
        for woken in list(self.waiters.values()):
            try:
                woken(self)
            except Exception as failure:
                log_failure(f"Waking a reader of {self!r}", failure)

    def _decide(self, then: Callable[[ErrorCode], None], error: ErrorCode) -> None:
        """Call a callback of `when_committed`; its failure must not keep the others from being called."""
        try:
            then(error)
        except Exception as failure:
            log_failure(f"A callback for committed records of {self!r}", failure)

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raise KafkaError unless a client's leader epoch is the current one (R3); -1 asks for no check."""
        if current_leader_epoch in (-1, self.leader_epoch):
            return
        if current_leader_epoch < self.leader_epoch:
            raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_leader(self, current_leader_epoch: int) -> None:
        """As `check_epoch`; then KafkaError(NOT_LEADER_OR_FOLLOWER) unless this broker leads the partition (R3)."""
        if current_leader_epoch not in (-1, self.leader_epoch):
            self.check_epoch(current_leader_epoch)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_in_sync_replicas(self) -> None:
        """Raise KafkaError for acks=all while fewer than min.insync.replicas replicas are in sync (R12).

        min.insync.replicas is capped at the number of replicas (Kafka's `effectiveMinIsr`).
        """
        required = min(self.log.config.min_insync_replicas, len(self.replicas))
        if len(self.isr) < required:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {required} for partition {self.topic}-{self.index}",
            )

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"
