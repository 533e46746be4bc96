"""One replica of a partition: its log, its leader, its high watermark and the waits for it.

A `Partition` exists for every replica that this broker has; its role comes from the metadata: it leads, it follows
another broker, or it has no leader (`update`). A partition with one replica has no `leading`: its high watermark is the
log end offset, or less while a flush policy asks for a flush first (`flush_policy`). Otherwise its followers take part
(`leading`), or its leader sends it (`follow_high_watermark`). When it advances, waiting readers are woken once, at the
end of the loop's turn, so a burst of produce requests costs a reader one response; callbacks of `when_committed` are
called immediately (R12, R13, G2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import TYPE_CHECKING, NoReturn

from barnabas.broker.config.keys.own import ALWAYS
from barnabas.broker.event_loop.guarded import log_failure
from barnabas.broker.event_loop.waking import FEW, Waking
from barnabas.broker.log_dir_failures import is_transient
from barnabas.broker.replicas.flush.policy import FlushPolicy
from barnabas.broker.replicas.leader.offset_waits import OffsetWaits
from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.coord.topic_names import INTERNAL_TOPICS
from barnabas.storage.append.batch_check import check_client_batch, header_of_own_batch
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.configdef import LONG_MAX
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.flush.flusher import Flusher
    from barnabas.broker.replicas.gathered_batches import GatheredBatches
    from barnabas.broker.replicas.leader.committed_bytes import CommittedBytes
    from barnabas.broker.replicas.leader.fetch_sessions import PartitionKey
    from barnabas.broker.replicas.leader.follower_watch import FollowerWatch
    from barnabas.broker.replicas.leader.leader_state import Follower
    from barnabas.broker.replicas.leader.leading import Leading
    from barnabas.broker.replicas.leader.tally import Tally
    from barnabas.coord.cluster.topic_image import PartitionImage
    from barnabas.storage.append.batch_check import Origin
    from barnabas.storage.append.offset_assignment import AppendInfo
    from barnabas.storage.batch_content import Budget, UnfinishedCheck
    from barnabas.storage.log import Log
    from barnabas.storage.producers.producer_state import EndMarker


class Partition:
    """One replica of a partition."""

    __slots__ = (
        "_awaiting",
        "_failures",
        "_is_waking",
        "_lead",
        "_loop",
        "_on_damage",
        "_on_failure",
        "_waking",
        "adding_replicas",
        "appends",
        "bytes_appended",
        "committed_bytes",
        "end_waiters",
        "fetches",
        "flush_policy",
        "gathered",
        "has_peers",
        "index",
        "is_closed",
        "is_internal",
        "is_leader",
        "is_waking_followers",
        "isr",
        "leader_epoch",
        "leader_id",
        "leading",
        "leads_alone",
        "log",
        "on_own_end",
        "partition_epoch",
        "removing_replicas",
        "replicas",
        "tally",
        "topic",
        "topic_id",
        "waiters",
        "watches",
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
        on_damage: Callable[[Partition, str], None],
        lead: Callable[[Partition], Leading],
    ) -> None:
        """`on_failure` takes the partition offline, `on_damage` records damage; their second argument is the reason.

        `lead` makes the leader's side when this broker begins to lead the partition with followers.
        """
        self._lead = lead
        self._loop = loop
        self._failures = failures
        self._on_failure = on_failure
        self._on_damage = on_damage
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.is_internal = topic in INTERNAL_TOPICS
        self.log = log
        self.is_leader = False
        self.leads_alone = False
        """Whether this broker leads the partition, which has no other replica."""
        self.has_peers = False
        """Whether it has other replicas; without any, the `Partition` has all that readers and writers need."""
        self.leading: Leading | None = None
        """The leader's side while this broker leads the partition with followers."""
        self.committed_bytes: CommittedBytes | None = None
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.replicas: Sequence[int] = ()
        self.isr: Sequence[int] = ()
        self.adding_replicas: Sequence[int] = ()
        self.removing_replicas: Sequence[int] = ()
        self.bytes_appended = 0  # up to the high watermark, since the broker started
        self.appends = self.fetches = 0  # since the broker started: appends as leader, and reads for fetches
        self.tally: Tally | None = None  # only with a listener of metrics
        self.waiters: dict[object, Callable[[Partition], None]] = {}  # the key is the waiter itself
        self.end_waiters: dict[object, Callable[[Partition], None]] = {}  # followers, which read up to the log end
        self.watches: dict[FollowerWatch, PartitionKey] = {}  # of followers that wait for any change
        self.flush_policy: FlushPolicy | None = None  # None: records are acknowledged without a flush
        self.gathered: GatheredBatches | None = None  # in this turn, see `gathered_batches`
        self.is_closed = False  # deleted, moved to other brokers or offline
        self.on_own_end: Callable[[Partition], None] | None = None
        """Of a follower: called when `own_end` has advanced, up to which its next fetch may report records."""
        self._awaiting = OffsetWaits(loop, "A callback for committed records")
        self._is_waking = self.is_waking_followers = False
        self._waking: Waking[Callable[[Partition], None]] | None = None  # while many are called
        log.on_damage = self.damaged

    # -- roles

    def update(self, assigned: PartitionImage, node_id: int) -> bool:
        """Take over the metadata of the partition; whether its leader or its leader epoch has changed.

        A state that is older than the one known is ignored: the controller's answer may be ahead of the metadata (R11).
        """
        if assigned.partition_epoch <= self.partition_epoch:
            return False
        tally, was_leader, isr, epoch = self.tally, self.is_leader, len(self.isr), self.leader_epoch
        if tally is not None:
            tally.before_change(self)
        is_new_epoch = assigned.leader_epoch != self.leader_epoch
        has_changed = is_new_epoch or assigned.leader != self.leader_id
        self.leader_id = assigned.leader
        self.leader_epoch = assigned.leader_epoch
        self.partition_epoch = assigned.partition_epoch
        self.replicas = assigned.replicas
        self.isr = assigned.isr
        self.adding_replicas = assigned.adding_replicas
        self.removing_replicas = assigned.removing_replicas
        self.is_leader = assigned.leader == node_id
        self.leads_alone = self.is_leader and len(assigned.replicas) == 1
        if self.is_leader and len(assigned.replicas) == 1:
            if self.has_peers or not was_leader:
                self._lead_alone()
        else:
            self._take_part(assigned, is_new_epoch=is_new_epoch, is_new_leader=not was_leader)
        if was_leader and not self.is_leader:
            self._resign()
        if tally is not None:
            tally.after_change(self, was_leader=was_leader, isr=isr, epoch=epoch, assigned=assigned)
        if has_changed:
            self._wake_all()
        return has_changed

    def _lead_alone(self) -> None:
        """This replica is the only one: its own end is the high watermark."""
        counted, self.committed_bytes = self.committed_bytes, None
        leading, self.leading = self.leading, None
        self.has_peers = False
        if counted is None:
            self.log.high_watermark = self.log.log_end_offset  # the records that a start has found are flushed
        else:
            self.advance_high_watermark(self.own_end, counted.total)
        if leading is not None:
            for offset, then in leading.take_stored_waits():
                self.when_committed(offset, then)
            leading.stop(ErrorCode.NONE)

    def _take_part(self, assigned: PartitionImage, *, is_new_epoch: bool, is_new_leader: bool) -> None:
        """There are other replicas: lead them, or follow the leader."""
        self.has_peers = True
        log = self.log
        if self.committed_bytes is None:
            from barnabas.broker.replicas.leader.committed_bytes import CommittedBytes

            policy = self.flush_policy
            total = self.bytes_appended if policy is None else policy.bytes_written
            self.committed_bytes = CommittedBytes(total, log.high_watermark, log.log_end_offset)
        if self.is_leader:
            if self.leading is None:
                self.leading = self._lead(self)
                is_new_leader = True
            self.leading.update(assigned, is_new_epoch=is_new_epoch, is_new_leader=is_new_leader)

    def _resign(self) -> None:
        """This broker leads no longer, and does not know whether the records waited for will be committed (R14)."""
        leading, self.leading = self.leading, None
        if leading is not None:
            leading.stop(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._awaiting.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _wake_all(self) -> None:
        """Wake all readers at the end of the turn: the partition's leader has changed."""
        if self.waiters:
            self._loop.call_after_turn(self.wake)
        self.wake_followers()

    @property
    def own_end(self) -> int:
        """The end of this replica's records: of its flushed records if a flush policy asks for that."""
        policy = self.flush_policy
        if policy is None or self.log.unflushed < policy.messages:
            return self.log.log_end_offset
        return self.log.synced_offset

    @property
    def min_in_sync(self) -> int:
        """The replicas that have to be in sync: min.insync.replicas, at most all (Kafka's `effectiveMinIsr`)."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    @property
    def is_behind_its_epoch(self) -> bool:
        """Whether a new leader's high watermark is below the start of its epoch: more may be committed (R15)."""
        return self.leading is not None and self.leading.state.epoch_start_offset > self.log.high_watermark

    # -- followers

    def appended_as_follower(self, size: int) -> None:
        """`size` bytes from the leader have been appended to the log: have them flushed if the policy asks for it."""
        if self.committed_bytes is not None:
            self.committed_bytes.appended(self.log.log_end_offset, size)
        if self.flush_policy is not None:
            self.flush_policy.appended(size)

    def follow_high_watermark(self, offset: int) -> None:
        """A follower's high watermark: the leader's, as far as this replica has the records (R8)."""
        self.commit(min(offset, self.log.log_end_offset))

    def follower_fetched(
        self, replica_id: int, broker_epoch: int, fetch_offset: int, log_start_offset: int, now: float
    ) -> None:
        """A follower has everything below `fetch_offset` (R4). KafkaError when it does not follow this leader."""
        follower = self.check_follower(replica_id, self.leader_epoch)
        assert self.leading is not None
        self.leading.follower_fetched(follower, broker_epoch, fetch_offset, log_start_offset, now)

    def check_follower(self, broker_id: int, current_leader_epoch: int) -> Follower:
        """A follower that fetches. KafkaError when this leader does not know it (yet): it asks again."""
        follower = None if self.leading is None else self.leading.state.followers.get(broker_id)
        if follower is None:
            unknown = ErrorCode.UNKNOWN_LEADER_EPOCH if current_leader_epoch >= 0 else ErrorCode.NOT_LEADER_OR_FOLLOWER
            raise KafkaError(unknown, f"Broker {broker_id} is no replica of {self.topic}-{self.index}")
        return follower

    def wake_followers(self) -> None:
        """Wake the fetches of followers at the end of the turn: the log has grown, or its leader has changed."""
        if not self.is_waking_followers and (self.end_waiters or self.watches):
            self.is_waking_followers = True
            self._loop.call_after_turn(self._wake_followers)

    def _wake_followers(self) -> None:
        self.is_waking_followers = False
        self._call_all(self.end_waiters)
        for watch, key in list(self.watches.items()):
            watch.woken(self, key)

    def mark_followers(self) -> None:
        """The next fetches of followers include the partition: they may get news of it, or join the ISR."""
        for watch, key in list(self.watches.items()):
            watch.mark(self, key)

    def truncated(self) -> None:
        """The follower's log has been truncated: readers look again."""
        if self.committed_bytes is not None:
            self.committed_bytes.truncated(self.log.log_end_offset)
        self._wake_all()

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """As of the log; a leader's epoch is known from when it leads on, as in Kafka, not from its first record."""
        if epoch == self.leader_epoch and self.is_leader:
            return epoch, self.log.log_end_offset
        return self.log.end_offset_for_epoch(epoch)

    def append_produced(
        self, records: memoryview, now: float, budget: Budget, *, is_validated: bool = False
    ) -> AppendInfo | UnfinishedCheck:
        """Append the batch of a Produce, as `append`; or return the rest of its validation.

        That is done if validating the records takes more than `budget`: call this again with `is_validated` when the
        rest of the validation has been done.
        """
        if self.gathered is not None:
            self._loop.write_gathered()
        now_ms = self._loop.now_ms()
        header = check_client_batch(records, self.log.config, now_ms, budget, is_validated=is_validated)
        if type(header) is BatchHeader:
            return self._append_batch(records, header, now, now_ms, from_client=True)
        return header  # type: ignore[return-value]

    def append(
        self, records: memoryview, now: float, *, origin: Origin = "client", is_checked: bool = False
    ) -> AppendInfo:
        """Append a client's or a coordinator's batches. KafkaError when they are invalid or cannot be written.

        `records` is patched in place (base offset, leader epoch) and not kept. The batches are committed when this
        returns, unless the flush policy asks for a flush first: see `when_committed`. `is_checked`: it is a batch
        that this process has built, so only its size is checked.
        """
        if self.gathered is not None:
            self._loop.write_gathered()
        now_ms = self._loop.now_ms()
        if is_checked:
            header = header_of_own_batch(records, self.log.config)
            return self._append_batch(records, header, now, now_ms, from_client=False)
        try:
            info = self.log.append_as_leader(
                records, leader_epoch=self.leader_epoch, now_ms=now_ms, now=now, origin=origin
            )
        except (KafkaError, OSError) as error:
            self._raise_not_written(error)
        self.appends += 1
        self._appended(info, len(records))
        return info

    def append_markers(self, batches: Sequence[tuple[bytes, EndMarker]], now: float) -> AppendInfo:
        """Append transaction markers of different producers, which this process has built, as `append`."""
        if self.gathered is not None:
            self._loop.write_gathered()
        now_ms = self._loop.now_ms()
        records = memoryview(bytearray().join([batch for batch, _ in batches]))
        markers, position = [], 0
        for batch, marker in batches:
            markers.append((BatchHeader(records, position, position), marker))
            position += len(batch)
        try:
            info = self.log.append_markers(records, markers, leader_epoch=self.leader_epoch, now_ms=now_ms, now=now)
        except (KafkaError, OSError) as error:
            self._raise_not_written(error)
        self.appends += len(markers)
        self._appended(info, len(records))
        return info

    def _append_batch(
        self, records: memoryview, header: BatchHeader, now: float, now_ms: int, *, from_client: bool
    ) -> AppendInfo:
        try:
            info = self.log.append_batch(
                records, header, leader_epoch=self.leader_epoch, now_ms=now_ms, now=now, from_client=from_client
            )
        except (KafkaError, OSError) as error:
            self._raise_not_written(error)
        self.appends += 1
        if self.leading is None and self.flush_policy is None and not self.waiters:
            self.log.commit_all()
            self.bytes_appended += header.size
        else:
            self._appended(info, header.size)
        return info

    def append_gathered(self, records: memoryview, headers: list[BatchHeader]) -> None:
        """Append the gathered batches of a turn, which have their offsets. KafkaError when they cannot be written."""
        try:
            self.log.append_checked(records, headers, leader_epoch=self.leader_epoch, now=self._loop.now())
        except (KafkaError, OSError) as error:
            self._raise_not_written(error)
        self.appends += len(headers)
        self._committed_alone(len(records))

    def _raise_not_written(self, error: KafkaError | OSError) -> NoReturn:
        """Report a failed write, and raise the error that its client gets."""
        if isinstance(error, KafkaError):
            self.report_failure("write", error.__cause__)
            raise error
        self.report_failure("write", error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _appended(self, info: AppendInfo, size: int) -> None:
        """`size` bytes are in the log, unless they were there before: commit them, or have them flushed or fetched."""
        if self.leading is not None:
            if not info.duplicate:
                self._replicate(size)
            return
        if self.flush_policy is not None:
            if not info.duplicate:
                self.flush_policy.appended(size)
            return
        self._committed_alone(size)

    def _committed_alone(self, size: int) -> None:
        """`size` bytes are in the log of the only replica: they are committed."""
        self.log.commit_all()
        self.bytes_appended += size
        if self.waiters and not self._is_waking:
            self._is_waking = True
            self._loop.call_after_turn(self.wake)

    def _replicate(self, size: int) -> None:
        assert self.committed_bytes is not None
        self.committed_bytes.appended(self.log.log_end_offset, size)
        self.wake_followers()
        assert self.leading is not None
        self.leading.appended(size)

    def report_failure(self, operation: str, error: BaseException | None) -> None:
        """Report a failed `operation` on the log if `error` comes from the disk; it may fail the log directory."""
        if isinstance(error, OSError):
            self._failures.report_log(self.topic, self.index, operation, error)

    def report_unreadable(self, error: BaseException | None) -> None:
        """Report a failed read of the log if `error` comes from the disk."""
        if isinstance(error, OSError):
            self._failures.report_unreadable(self.topic, self.index, self.log.directory, error)
            if self.has_peers and not is_transient(error):
                self._on_damage(self, f"{self.log.directory} cannot be read: {error}")

    def damaged(self, reason: str) -> None:
        """The log is damaged at some place; `reason` is a sentence. All the rest is served (R28).

        An internal topic's partition that has no other replica is not: coordinators need all of it.
        """
        if self.is_internal and not self.has_peers:
            self.fail(reason)
        else:
            self._on_damage(self, reason)

    # -- commitment

    def advance_own_end(self, offset: int, bytes_appended: int) -> None:
        """This replica's records end at `offset` now, `bytes_appended` bytes since the broker started (flushes)."""
        if self.leading is not None:
            self.leading.own_end_advanced(offset)
        elif self.is_leader:
            self.advance_high_watermark(offset, bytes_appended)
        elif self.on_own_end is not None:
            self.on_own_end(self)

    def commit(self, offset: int) -> None:
        """Commit everything below `offset` of a partition that has other replicas."""
        counted = self.committed_bytes
        if counted is not None:
            if self.watches:
                self.mark_followers()
            self.advance_high_watermark(offset, counted.below(offset))

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
        if self._awaiting.queue:
            self._awaiting.reached(offset)

    def when_committed(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` with NONE once the record at `offset` is committed, or with an error if it never will be.

        If the record is committed already, `then` is called before this returns.
        """
        if offset < self.log.high_watermark and not self._awaiting.is_calling:
            then(ErrorCode.NONE)
        else:
            self._awaiting.add(offset, then)

    def when_stored(self, offset: int, then: Callable[[ErrorCode], None]) -> None:
        """Call `then` once this replica has the record at `offset`, flushed if the flush policy asks for it (R13)."""
        if self.leading is not None:
            self.leading.when_stored(offset, then)
        else:
            self.when_committed(offset, then)

    def forget(self, then: Callable[[ErrorCode], None]) -> None:
        """Do not call `then`, which waits for something, any more: its time is up."""
        self._awaiting.forget(then)
        if self.leading is not None:
            self.leading.forget(then)

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
        """Take the partition offline; `reason` is a sentence about the failure of its log."""
        if not self.is_closed:
            self._on_failure(self, reason)

    def close(self, error: ErrorCode) -> None:
        """Stop serving the partition: fail all waits for commits with `error`, wake all readers."""
        self.is_closed = True
        self.log.on_damage = None  # the log of a deleted partition refers to it no longer
        if self.flush_policy is not None:
            self.flush_policy.cancel()
        leading, self.leading = self.leading, None
        if leading is not None:
            leading.stop(error)
        self._awaiting.fail(error)
        self._loop.call_after_turn(self.wake)
        self.wake_followers()

    def wake(self) -> None:
        """Call everything in `waiters`: the partition has changed."""
        self._is_waking = False
        if len(self.waiters) > FEW or self._waking is not None:
            self._wake_many()
        else:
            self._call_all(self.waiters)

    def _call_all(self, waiters: dict[object, Callable[[Partition], None]]) -> None:
        for woken in list(waiters.values()):
            self._call_reader(woken)

    def _call_reader(self, woken: Callable[[Partition], None]) -> None:
        try:
            woken(self)
        except Exception as failure:
            log_failure(f"Waking a reader of {self!r}", failure)

    def _wake_many(self) -> None:
        if self._waking is None:
            self._waking = Waking(self._loop, self.waiters, self._call_reader, self._all_woken)
        self._waking.begin()

    def _all_woken(self) -> None:
        self._waking = None

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Raise KafkaError unless a client's leader epoch is the current one (R3); a negative one is not checked."""
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
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
        if len(self.isr) >= len(self.replicas):
            return  # nearly always
        required = self.min_in_sync
        if len(self.isr) < required:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR {list(self.isr)} is insufficient to satisfy the min.isr requirement "
                f"of {required} for partition {self.topic}-{self.index}",
            )

    def __repr__(self) -> str:
        return f"<Partition {self.topic}-{self.index}>"
