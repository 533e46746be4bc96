"""Acquires the records of one ShareFetch: from which partitions, and how many (KIP-932).

The logs are read first, after a thread has read what their lookups need (`cold`); records are acquired only if
there are at least `min_bytes`. The response has slices of the log files, cut to the batches with acquired records. The
first partition rotates with the session epoch. If the fetch only moved past records that no member may read, the
response is empty and immediate, as in Kafka: more may follow them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.sharing.share_sessions import INITIAL_EPOCH, SharedPartition
from barnabas.coord.share_partitions.acquisition import AcquireRequest
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.storage.files import FileSlice
from barnabas.storage.read.log_reader import batches_of
from barnabas.storage.segments.segment import NotInMemory
from barnabas.wire.batches.batch_format import CONTROL_BIT, TRANSACTIONAL_BIT
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.share_groups import AcquiredRecords, ShareFetchResponsePartitionData

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.sharing.live_share_partition import LiveSharePartition
    from barnabas.broker.sharing.share_partitions import SharePartitions
    from barnabas.broker.sharing.share_sessions import ShareSession
    from barnabas.coord.share_partitions.acquisition import Acquired
    from barnabas.storage.log import Log
    from barnabas.wire.batches.batch_header import BatchHeader
    from barnabas.wire.messages.groups.share_groups import ShareFetchRequest

Answers = list[tuple[SharedPartition, ShareFetchResponsePartitionData]]

RECORD_LIMIT = 1
"""ShareAcquireMode in which `max_records` is not exceeded; with 0, batch_optimized, whole batches are acquired."""
READ_COMMITTED = "read_committed"


_Readable: TypeAlias = "tuple[SharedPartition, LiveSharePartition, int, FileSlice]"
"""A partition with the offset and the bytes that were read from its log."""


class ShareFetchPlan:
    """The partitions and limits of one ShareFetch."""

    __slots__ = (
        "_batch_size",
        "_is_new_session",
        "_is_strict",
        "_loading",
        "_max_bytes",
        "_max_records",
        "_min_bytes",
        "_order",
        "_refused",
        "_session",
        "_share_partitions",
        "cold",
    )

    def __init__(
        self,
        share_partitions: SharePartitions,
        session: ShareSession,
        request: ShareFetchRequest,
        max_bytes: int,
        refused: Collection[bytes | str] = (),
    ) -> None:
        """`max_bytes` is the broker's limit of the response; the topics of `refused` may not be read."""
        self._refused = refused
        self._share_partitions = share_partitions
        self._session = session
        self._max_bytes = min(request.max_bytes, max_bytes)
        self._min_bytes = min(request.min_bytes, self._max_bytes)
        self._max_records = request.max_records
        self._batch_size = max(1, request.batch_size)
        self._is_strict = request.share_acquire_mode == RECORD_LIMIT
        self._is_new_session = request.share_session_epoch == INITIAL_EPOCH
        self._loading: set[SharedPartition] = set()
        """The partitions whose state this fetch has loaded or waits for, and from which it has not read yet."""
        partitions = list(session.partitions)
        first = request.share_session_epoch % len(partitions) if partitions else 0
        self._order = partitions[first:] + partitions[:first]
        self.cold: list[Callable[[], None]] = []
        """Functions that read the data of the last attempt's lookups from the disk; a thread has to call them first."""

    def partitions(self) -> Iterator[LiveSharePartition]:
        """The share partitions of the session that can be served."""
        for shared in self._order:
            try:
                yield self._find(shared)
            except KafkaError:
                continue

    def _find_loading(self, shared: SharedPartition) -> LiveSharePartition:
        """As `_find`; one that is being loaded, or was not served before, is noted in `_loading`."""
        was_served = self._share_partitions.find(SharePartitionKey(self._session.group_id, *shared)) is not None
        live = self._find(shared)
        if live.state is None or not was_served:
            self._loading.add(shared)
        return live

    def _find(self, shared: SharedPartition) -> LiveSharePartition:
        return self._share_partitions.get(SharePartitionKey(self._session.group_id, *shared))

    def acquire(self, *, is_last: bool, may_wait: bool = False) -> Answers | None:
        """Acquire records for the member, and return the answers of the partitions that have any.

        None if there are fewer than `min_bytes`, unless this attempt `is_last`; also if a lookup would wait for the
        disk, unless this call `may_wait`: then a thread must call the functions in `cold` first.
        """
        answers: Answers = []
        if self._max_bytes <= 0:
            return answers  # as Kafka: no records, and no wait for any
        self.cold = []
        readable, size = self._read_all(answers, may_wait)
        if self.cold:
            return None
        has_moved = False
        if answers or is_last or size >= self._min_bytes:
            remaining = self._max_records
            for shared, live, offset, records in readable:
                data, count = self._acquire(shared, live, offset, records, remaining)
                remaining -= count
                if data is not None:
                    answers.append((shared, data))
                elif live.state is not None and live.state.next_fetch_offset() != offset:
                    has_moved = True
            if self._is_new_session and (answers or has_moved or is_last):
                self._add_empty(answers)
        return answers if answers or has_moved or is_last or not self._order else None

    def _add_empty(self, answers: Answers) -> None:
        """Add the partitions without records: the first answer of a session has every partition that can be served."""
        answered = {shared for shared, _ in answers}
        for shared in self._order:
            if shared not in answered and shared not in self._loading and self._find(shared).can_acquire():
                answers.append((shared, ShareFetchResponsePartitionData(partition_index=shared.partition, records=b"")))

    def _read_all(self, answers: Answers, may_wait: bool) -> tuple[list[_Readable], int]:
        """Look for records in each partition, without acquiring them, and add errors to `answers`; also the size.

        As in Kafka the fetch that waits while the states of its partitions are loaded is answered with the first that
        has enough records; the others are left to the next fetch.
        """
        readable: list[_Readable] = []
        size = 0
        for shared in self._order:
            try:
                if self._refused and shared.topic_id in self._refused:
                    raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                live = self._find_loading(shared)
                if live.state is None:
                    continue
                if shared in self._loading and readable and size >= self._min_bytes:
                    continue
                read = self._read(live, may_wait, min_one_batch=not readable)
            except KafkaError as error:
                answers.append((shared, _failed(shared, error.code)))
                continue
            self._loading.discard(shared)
            if read is not None:
                readable.append((shared, live, *read))
                size += len(read[1])
        return readable, size

    def _read(self, live: LiveSharePartition, may_wait: bool, *, min_one_batch: bool) -> tuple[int, FileSlice] | None:
        """The offset at which records may be acquired, and the bytes there; None if there are none now."""
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
        max_bytes = max(1, self._max_bytes // len(self._order))
        try:
            read = log.read(offset, max_bytes, limit_offset=limit, min_one_batch=min_one_batch, may_wait=may_wait)
        except NotInMemory as cold:
            self.cold.append(cold.lookup)
            return None
        return None if read.slice is None else (offset, read.slice)

    @staticmethod
    def _limit(live: LiveSharePartition, log: Log) -> int:
        is_committed = live.settings().share_isolation_level == READ_COMMITTED
        return log.last_stable_offset if is_committed else log.high_watermark

    def _acquire(
        self, shared: SharedPartition, live: LiveSharePartition, offset: int, readable: FileSlice, max_records: int
    ) -> tuple[ShareFetchResponsePartitionData | None, int]:
        state = live.state
        if state is None or max_records <= 0:
            return None, 0
        partition = live.partition
        try:
            batches = batches_of(readable, max(offset, state.end_offset) + max_records)
            is_committed = live.settings().share_isolation_level == READ_COMMITTED
            aborted = _aborted(partition, batches) if batches and is_committed else ()
        except (OSError, KafkaError) as error:  # of this partition only: others may have acquired records already
            partition.report_unreadable(error if isinstance(error, OSError) else error.__cause__)
            return _failed(shared, ErrorCode.KAFKA_STORAGE_ERROR), 0
        if not batches:
            return None, 0
        acquired = live.acquire(
            AcquireRequest(
                self._session.member_id, max_records, self._batch_size, self._is_strict, offset, batches, aborted
            )
        )
        if not acquired:
            return None, 0
        data = ShareFetchResponsePartitionData(
            partition_index=shared.partition,
            records=_cut(readable, batches, acquired),
            acquired_records=[
                AcquiredRecords(first_offset=first, last_offset=last, delivery_count=count)
                for first, last, count in acquired
            ],
        )
        return data, sum(last - first + 1 for first, last, _ in acquired)


def _failed(shared: SharedPartition, code: ErrorCode) -> ShareFetchResponsePartitionData:
    return ShareFetchResponsePartitionData(partition_index=shared.partition, error_code=int(code), records=b"")


def _aborted(partition: Partition, batches: Sequence[BatchHeader]) -> list[tuple[int, int]]:
    """The offset ranges of batches that belong to aborted transactions."""
    ended = partition.log.aborted_transactions(batches[0].base_offset, batches[-1].last_offset + 1)
    if not ended:
        return []
    return [
        (batch.base_offset, batch.last_offset)
        for batch in batches
        if batch.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT) == TRANSACTIONAL_BIT
        and any(
            transaction.producer_id == batch.producer_id
            and transaction.first_offset <= batch.base_offset <= transaction.last_offset
            for transaction in ended
        )
    ]


def _cut(records: FileSlice, batches: Sequence[BatchHeader], acquired: Sequence[Acquired]) -> FileSlice:
    """The part of a slice with the batches that have acquired records."""
    first, last = acquired[0].first, acquired[-1].last
    acquired_batches = [batch for batch in batches if batch.last_offset >= first and batch.base_offset <= last]
    start, end = acquired_batches[0].position, acquired_batches[-1].position + acquired_batches[-1].size
    return FileSlice(records.file, start, end - start)
