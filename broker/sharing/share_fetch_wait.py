"""The reading half of ShareFetch: from which partitions, how much, and waiting for it (KIP-932).

Bytes are looked for first, and records locked only when there are enough of them. What is sent is whole batches of the
log's file, cut to those with acquired records. Partitions take turns at being first. A fetch that only moved past
records that nobody is to see is answered with nothing at once, as Kafka does: there may be more behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.general import FETCH_MAX_BYTES
from barnabas.broker.sharing.share_sessions import SharedPartition
from barnabas.coord.share_partitions.acquisition import AcquireRequest
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.storage.files import FileSlice
from barnabas.storage.slice_scan import batches_of
from barnabas.wire.batch_format import CONTROL_BIT, TRANSACTIONAL_BIT
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.share_groups import AcquiredRecords, ShareFetchResponsePartitionData

if TYPE_CHECKING:
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.sharing.share_partitions import LiveSharePartition
    from barnabas.broker.sharing.share_sessions import ShareSession
    from barnabas.coord.share_partitions.acquisition import Acquired
    from barnabas.storage.batch_header import BatchHeader
    from barnabas.storage.log import Log
    from barnabas.wire.messages.share_groups import ShareFetchRequest

Given = list[tuple[SharedPartition, ShareFetchResponsePartitionData]]

RECORD_LIMIT = 1
"""ShareAcquireMode: `max_records` is not exceeded. 0, batch_optimized, gives whole batches."""
READ_COMMITTED = "read_committed"


class SharePlan:
    """What one ShareFetch wants."""

    __slots__ = ("_batch_size", "_is_strict", "_max_bytes", "_max_records", "_min_bytes", "_order", "broker", "session")

    def __init__(self, broker: Broker, session: ShareSession, request: ShareFetchRequest) -> None:
        self.broker = broker
        self.session = session
        self._max_bytes = min(request.max_bytes, broker.config[FETCH_MAX_BYTES])
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_records = request.max_records
        self._batch_size = max(1, request.batch_size)
        self._is_strict = request.share_acquire_mode == RECORD_LIMIT
        partitions = list(session.partitions)
        first = session.epoch % len(partitions) if partitions else 0
        self._order = partitions[first:] + partitions[:first]

    def partitions(self) -> Iterator[LiveSharePartition]:
        """The share partitions that can be had."""
        for one in self._order:
            try:
                yield self._find(one)
            except KafkaError:
                continue

    def _find(self, one: SharedPartition) -> LiveSharePartition:
        return self.broker.share_partitions.get(SharePartitionKey(self.session.group_id, *one))

    def give(self, *, is_last: bool) -> Given | None:
        """Lock records for the member; None while there is not enough to say, unless this `is_last` chance."""
        given: Given = []
        if self._max_bytes <= 0:
            return given  # as Kafka: no records, and no wait for any
        found: list[tuple[SharedPartition, LiveSharePartition, int, FileSlice]] = []
        size = 0
        has_moved = False
        for one in self._order:
            try:
                live = self._find(one)
                read = self._look(live, len(self._order), min_one_batch=not found)
            except KafkaError as error:
                given.append((one, _failed(one, error.code)))
                continue
            if read is not None:
                found.append((one, live, *read))
                size += len(read[1])
        if given or is_last or size >= self._min_bytes:
            left = self._max_records
            for one, live, offset, records in found:
                data, count = self._acquire(one, live, offset, records, left)
                left -= count
                if data is not None:
                    given.append((one, data))
                elif live.state is not None and live.state.next_fetch_offset() != offset:
                    has_moved = True
        return given if given or has_moved or is_last or not self._order else None

    def _look(
        self, live: LiveSharePartition, partition_count: int, *, min_one_batch: bool
    ) -> tuple[int, FileSlice] | None:
        """Where records may be had, and the bytes there; None when there are none for now."""
        state = live.state
        if state is None:
            return None
        log = live.partition.log
        state.move_log_start(log.log_start_offset)
        if not live.can_acquire():
            return None
        offset = state.next_fetch_offset()
        limit = self._limit(live, log)
        if offset >= limit:
            return None
        read = log.read(
            offset, max(1, self._max_bytes // partition_count), limit_offset=limit, min_one_batch=min_one_batch
        )
        return None if read.slice is None else (offset, read.slice)

    @staticmethod
    def _limit(live: LiveSharePartition, log: Log) -> int:
        is_committed = live.settings().share_isolation_level == READ_COMMITTED
        return log.last_stable_offset if is_committed else log.high_watermark

    def _acquire(
        self, one: SharedPartition, live: LiveSharePartition, offset: int, found: FileSlice, max_records: int
    ) -> tuple[ShareFetchResponsePartitionData | None, int]:
        state = live.state
        if state is None or max_records <= 0:
            return None, 0
        partition = live.partition
        try:
            batches = batches_of(found, max(offset, state.end_offset) + max_records)
        except OSError as error:
            partition.report_unreadable(error)
            return _failed(one, ErrorCode.KAFKA_STORAGE_ERROR), 0
        if not batches:
            return None, 0
        aborted = _aborted(partition, batches) if live.settings().share_isolation_level == READ_COMMITTED else ()
        acquired = live.acquire(
            AcquireRequest(
                self.session.member_id, max_records, self._batch_size, self._is_strict, offset, batches, aborted
            )
        )
        if not acquired:
            return None, 0
        data = ShareFetchResponsePartitionData(
            partition_index=one.partition,
            records=_cut(found, batches, acquired),
            acquired_records=[
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in acquired
            ],
        )
        return data, sum(last - first + 1 for first, last, _ in acquired)


class ShareWait:
    """A parked ShareFetch."""

    __slots__ = ("_done", "_live", "_plan", "_timer")

    def __init__(self, plan: SharePlan, deadline: float, done: Callable[[Given], None]) -> None:
        self._plan = plan
        self._done = done
        self._live: set[LiveSharePartition] = set()
        self._join()
        self._timer = plan.broker.timers.at(deadline, lambda: self._try(is_last=True))

    def _join(self) -> None:
        """Be told of all partitions of the plan: also of those that were loaded anew meanwhile."""
        for live in self._plan.partitions():
            if live not in self._live:
                self._live.add(live)
                live.waiters[self] = self._woken

    def _woken(self) -> None:
        self._try(is_last=False)

    def _try(self, *, is_last: bool) -> None:
        given = self._plan.give(is_last=is_last)
        if given is not None:
            self.leave()
            self._done(given)
        elif any(live.is_gone for live in self._live):
            self._join()

    def leave(self) -> None:
        """Wait no longer."""
        self._timer.cancel()
        for live in self._live:
            live.waiters.pop(self, None)


def _failed(one: SharedPartition, code: ErrorCode) -> ShareFetchResponsePartitionData:
    return ShareFetchResponsePartitionData(partition_index=one.partition, error_code=int(code), records=b"")


def _aborted(partition: Partition, batches: Sequence[BatchHeader]) -> list[tuple[int, int]]:
    """Ranges of these batches that belong to aborted transactions."""
    ended = partition.log.aborted_transactions(batches[0].base_offset, batches[-1].last_offset + 1)
    if not ended:
        return []
    return [
        (batch.base_offset, batch.last_offset)
        for batch in batches
        if batch.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT
        and any(
            one.producer_id == batch.producer_id and one.first_offset <= batch.base_offset <= one.last_offset
            for one in ended
        )
    ]


def _cut(found: FileSlice, batches: Sequence[BatchHeader], acquired: Sequence[Acquired]) -> FileSlice:
    """The part of a slice with the batches that hold acquired records."""
    first, last = acquired[0].first, acquired[-1].last
    wanted = [batch for batch in batches if batch.last_offset >= first and batch.base_offset <= last]
    start, end = wanted[0].position, wanted[-1].position + wanted[-1].size
    return FileSlice(found.file, start, end - start)
