"""The state of a partition's idempotent and transactional producers (KIP-98, rules I1-I7).

A producer's entry has its epoch, its last five batches (sequences and offsets), so that a repeat is answered with the
original offset, and its open transaction. `check` before the write and `update` after it are separate, so that the
state never runs ahead of the file. The state can be rebuilt from the log; snapshot files, one per segment start and
one at a clean stop, only make that faster.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.storage.producers.producer_entry import NO_OFFSET, NUM_BATCHES_TO_RETAIN, BatchMetadata, ProducerEntry
from barnabas.storage.producers.producer_snapshot import decode_snapshot
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.records import (
    CONTROL_BIT,
    MAX_INT32,
    TRANSACTIONAL_BIT,
    ControlRecordType,
    control_record_type,
    end_txn_coordinator_epoch,
    iter_batches,
    iter_records,
)
from barnabas.wire.errors import ErrorCode, KafkaError

IDLE_MS: Final = 900_000
"""A producer that wrote nothing for so long may be forgotten for another: clients give up earlier."""
SWEEP_MS: Final = 1_000
"""How often idle producers are looked for, at most."""


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class EndMarker(NamedTuple):
    """The content of a transaction marker: KIP-98's control record."""

    is_commit: bool
    coordinator_epoch: int


class ProducerState:
    """The producers of one partition up to `end_offset`."""

    __slots__ = (
        "_next_sweep_ms",
        "_ongoing",
        "_unreplicated",
        "_unsynced",
        "end_offset",
        "producers",
        "snapshot_offset",
    )

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}
        self._unsynced: dict[int, int] = {}  # first offset -> marker offset, while a crash may lose the marker
        self.end_offset = 0
        self.snapshot_offset = -1
        self._next_sweep_ms = 0

    # --- appends

    def check(self, header: BatchHeader, offset: int, *, from_client: bool) -> BatchMetadata | None:
        """Check a data batch before the leader appends it; the batch that it repeats, None if it is new (I1-I4).

        Raises INVALID_PRODUCER_EPOCH for an old epoch, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap or a repeat of a batch
        that is no longer kept, INVALID_TXN_STATE for a non-transactional batch inside a transaction. Sequences are
        checked for clients only.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return None
        if from_client:
            duplicate = entry.find_duplicate(header)
            if duplicate is not None:
                return duplicate
        if header.producer_epoch < entry.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is older than {entry.producer_epoch}",
            )
        if from_client:
            _check_sequence(entry, header, offset)
        if entry.current_txn_first_offset != NO_OFFSET and not header.attributes & TRANSACTIONAL_BIT:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"Producer {header.producer_id} has an open transaction")
        return None

    def check_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        """Check a transaction marker before it is appended: its epochs must not be older than the producer's.

        Raises INVALID_PRODUCER_EPOCH or TRANSACTION_COORDINATOR_FENCED.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"The marker's epoch {header.producer_epoch} is older than the producer's {entry.producer_epoch}",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {marker.coordinator_epoch} is older than {entry.coordinator_epoch}",
            )

    def update(self, header: BatchHeader) -> None:
        """Apply a data batch that is in the log."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_id, header.producer_epoch)
        elif entry.producer_epoch != header.producer_epoch:
            entry.enter_epoch(header.producer_epoch)
        batches = entry.batches
        if len(batches) == NUM_BATCHES_TO_RETAIN:
            del batches[0]
        batches.append(
            BatchMetadata(
                header.base_sequence, header.last_sequence, header.base_offset, header.last_offset, header.max_timestamp
            )
        )
        entry.last_timestamp = header.max_timestamp
        if header.attributes & TRANSACTIONAL_BIT and entry.current_txn_first_offset == NO_OFFSET:
            entry.current_txn_first_offset = header.base_offset
            self._ongoing[header.producer_id] = header.base_offset

    def end_transaction(self, header: BatchHeader, marker: EndMarker) -> CompletedTransaction | None:
        """Apply a marker that is in the log; the transaction that it ended, None when none was open."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_id, header.producer_epoch)
        entry.enter_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        first_offset = entry.current_txn_first_offset
        entry.current_txn_first_offset = NO_OFFSET
        self._ongoing.pop(header.producer_id, None)
        if first_offset == NO_OFFSET:
            return None
        self._unsynced[first_offset] = header.base_offset
        return CompletedTransaction(header.producer_id, first_offset, header.base_offset, not marker.is_commit)

    def replay(self, header: BatchHeader, batch: memoryview) -> CompletedTransaction | None:
        """Apply a batch of any kind that is in the log; the transaction that it ended, if any."""
        if header.producer_id < 0:
            return None
        if header.attributes & CONTROL_BIT:
            marker = marker_of(batch)
            return self.end_transaction(header, marker) if marker is not None else None
        self.update(header)
        return None

    # --- transactions and the last stable offset

    def keep_until_replicated(self, completed: CompletedTransaction) -> None:
        """Hold back the last stable offset until the high watermark passes the marker of a completed transaction."""
        self._unreplicated[completed.first_offset] = completed.last_offset

    def on_high_watermark(self, high_watermark: int) -> None:
        """Release the completed transactions whose marker the high watermark has passed."""
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= high_watermark}

    def on_synced(self, synced_offset: int) -> None:
        """Release the completed transactions whose marker is synced."""
        if self._unsynced:
            self._unsynced = {first: last for first, last in self._unsynced.items() if last >= synced_offset}

    @property
    def first_undecided_durable(self) -> int | None:
        """The first offset of the earliest transaction that would be open after a power failure."""
        return min([*self._ongoing.values(), *self._unsynced], default=None)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest transaction that is open or whose marker is above the high watermark."""
        if not self._ongoing and not self._unreplicated:
            return None
        return min([*self._ongoing.values(), *self._unreplicated])

    @property
    def open_count(self) -> int:
        """The number of open transactions."""
        return len(self._ongoing)

    def has_late_transaction(self, before_ms: int) -> bool:
        """Whether the producer of an open transaction has written nothing since `before_ms`."""
        if not self._ongoing:
            return False
        producers = self.producers
        return any(producers[producer_id].last_timestamp < before_ms for producer_id in self._ongoing)

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset after a transaction: the start of the first other open one, or marker + 1."""
        return min(self._ongoing.values(), default=completed.last_offset + 1)

    # --- expiration and truncation

    def make_room(self, most: int, now_ms: int) -> None:
        """Before an unknown producer writes: forget idle producers if there are `most` already.

        KafkaError(POLICY_VIOLATION) if none is: what a producer that is at work has written must not be forgotten.
        """
        if len(self.producers) < most:
            return
        if now_ms >= self._next_sweep_ms:
            self._next_sweep_ms = now_ms + SWEEP_MS
            self.remove_expired(now_ms, IDLE_MS)
        if len(self.producers) >= most:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"{most} producers have written to this partition in the last {IDLE_MS // 60_000} minutes, no more are "
                "allowed (barnabas.partition.producers.max)",
            )

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers without a write for `expiration_ms`, except those with an open transaction (I6)."""
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.current_txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    def clear(self, offset: int) -> None:
        """Remove everything: the log continues at `offset` without records."""
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self._unsynced.clear()
        self.end_offset = offset
        self.snapshot_offset = -1

    def on_log_start(self, log_start_offset: int) -> None:
        """Release the completed transactions that are wholly below the new log start."""
        self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= log_start_offset}
        self.end_offset = max(self.end_offset, log_start_offset)

    # --- snapshots

    def load_snapshot(self, data: bytes, offset: int) -> None:
        """Load the content of a snapshot file at `offset`; after a CorruptSnapshot the state is unchanged."""
        entries = decode_snapshot(data)
        self.clear(offset)
        for entry in entries:
            self.producers[entry.producer_id] = entry
            if entry.current_txn_first_offset != NO_OFFSET:
                self._ongoing[entry.producer_id] = entry.current_txn_first_offset
        self.snapshot_offset = offset


def marker_of(batch: memoryview) -> EndMarker | None:
    """The transaction marker in a control batch; None for other control records and batches without records."""
    record = next(iter_records(next(iter_batches(batch))), None)
    if record is None:
        return None
    kind = control_record_type(record)
    if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return None
    return EndMarker(kind == ControlRecordType.COMMIT, end_txn_coordinator_epoch(record))


def _check_sequence(entry: ProducerEntry, header: BatchHeader, offset: int) -> None:
    first = header.base_sequence
    if header.producer_epoch != entry.producer_epoch:
        expected = 0
    else:
        last = entry.last_sequence
        expected = 0 if last == MAX_INT32 else last + 1
    if first != expected:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Sequence {first} of producer {header.producer_id} in epoch {header.producer_epoch} at offset {offset}: "
            f"expected {expected}",
        )
