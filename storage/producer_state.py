"""What a partition remembers of its idempotent and transactional producers. KIP-98, rules I1-I7.

A producer's entry holds its epoch and its last five batches (sequences and offsets), so that a repeat is answered with
the old offset, and its open transaction. Checking (`check`) and remembering (`update`) are separate steps around the
write: state never runs ahead of the file. The state is a function of the log: a snapshot file per segment start and
at a clean stop only saves reading it all.

Snapshot format (Kafka's `ProducerSnapshot`, `<offset>.snapshot`): int16 version 1, uint32 CRC32C of all that follows,
int32 count, then entries: producer id q, epoch h, last sequence i, last offset q, offset delta i, timestamp q,
coordinator epoch i, first offset of the open transaction q (-1 for none). Only the last batch is kept in it.
"""

from __future__ import annotations

from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

from storage.batch_header import CONTROL_BIT, MAX_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from storage.checkpoints import replace_file
from storage.files import Files
from wire.crc import crc32c
from wire.errors import ErrorCode, KafkaError

NUM_BATCHES_TO_RETAIN = 5
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1

_SNAPSHOT_HEADER = Struct(">hIi")
_SNAPSHOT_CRC_START = 6
_SNAPSHOT_VERSION = 1
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """A producer snapshot whose bytes are not what was written."""


class BatchMetadata(NamedTuple):
    """One remembered batch."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class CompletedTransaction(NamedTuple):
    """A transaction that its marker has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class EndMarker(NamedTuple):
    """The content of a transaction marker: KIP-98's control record."""

    is_commit: bool
    coordinator_epoch: int


class ProducerEntry:
    """The state of one producer id."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int, producer_epoch: int = NO_EPOCH) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches: list[BatchMetadata] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 when no batch is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """The offset of the last data record, -1 when no batch is remembered."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The remembered batch with the same epoch and sequences (I1)."""
        if header.producer_epoch != self.producer_epoch:
            return None
        first, last = header.base_sequence, header.last_sequence
        for batch in self.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        return None

    def enter_epoch(self, epoch: int) -> None:
        """Forget the batches of an older epoch."""
        if epoch != self.producer_epoch:
            self.batches.clear()
            self.producer_epoch = epoch


class ProducerState:
    """The producers of one partition up to `end_offset`."""

    __slots__ = ("_files", "_ongoing", "_unreplicated", "directory", "end_offset", "producers", "snapshot_offset")

    def __init__(self, files: Files, directory: str) -> None:
        self._files = files
        self.directory = directory
        self.producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}
        self.end_offset = 0
        self.snapshot_offset = -1

    # --- appends

    def check(self, header: BatchHeader, offset: int, *, from_client: bool) -> BatchMetadata | None:
        """Whether the leader may append a data batch of a producer: None, or the batch that it repeats (I1-I4).

        Raises INVALID_PRODUCER_EPOCH for an old epoch, OUT_OF_ORDER_SEQUENCE_NUMBER for a gap or a too old repeat,
        INVALID_TXN_STATE for a plain write inside a transaction. Sequences are checked for clients only.
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
                f"Epoch {header.producer_epoch} of producer {header.producer_id} is older than its last epoch {entry.producer_epoch}",
            )
        if from_client:
            _check_sequence(entry, header, offset)
        if entry.current_txn_first_offset != NO_OFFSET and not header.attributes & TRANSACTIONAL_BIT:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, f"Producer {header.producer_id} has an open transaction")
        return None

    def check_marker(self, header: BatchHeader, marker: EndMarker) -> None:
        """Whether a transaction marker may be appended: its epochs must not be older than those known."""
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return
        if header.producer_epoch < entry.producer_epoch:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Marker epoch {header.producer_epoch} of producer {header.producer_id} is older than {entry.producer_epoch}",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Coordinator epoch {marker.coordinator_epoch} is older than {entry.coordinator_epoch}",
            )

    def update(self, header: BatchHeader) -> None:
        """Remember a data batch that is in the log."""
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
        """Remember a marker that is in the log; the transaction that it ended, None when none was open."""
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
        return CompletedTransaction(header.producer_id, first_offset, header.base_offset, not marker.is_commit)

    def is_control(self, header: BatchHeader) -> bool:
        """Whether a batch goes to `end_transaction` rather than `update`."""
        return bool(header.attributes & CONTROL_BIT)

    # --- transactions and the last stable offset

    def keep_until_replicated(self, completed: CompletedTransaction) -> None:
        """A completed transaction holds the last stable offset back until the high watermark passes its marker."""
        self._unreplicated[completed.first_offset] = completed.last_offset

    def on_high_watermark(self, high_watermark: int) -> None:
        """Let go of completed transactions whose marker the high watermark has passed."""
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= high_watermark}

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest transaction not yet decided, or decided above the high watermark."""
        if not self._ongoing and not self._unreplicated:
            return None
        return min([*self._ongoing.values(), *self._unreplicated])

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """The last stable offset that the aborted-transactions index keeps: the earliest other open transaction, or the marker + 1."""
        others = [first for producer_id, first in self._ongoing.items() if producer_id != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    # --- life

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers silent for `expiration_ms`, never one with an open transaction (I6)."""
        expired = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.current_txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.producers[producer_id]

    def clear(self, offset: int) -> None:
        """Forget everything: the log starts anew at `offset`."""
        self.producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.end_offset = offset
        self.snapshot_offset = -1

    def on_log_start(self, log_start_offset: int) -> None:
        """The log's start has moved: transactions wholly below it no longer hold anything back."""
        self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= log_start_offset}
        self.end_offset = max(self.end_offset, log_start_offset)

    # --- snapshots

    def encode_snapshot(self) -> bytes:
        """The bytes of a snapshot file."""
        body = b"".join(_encode_entry(entry) for entry in self.producers.values())
        count = len(self.producers).to_bytes(4, "big")
        return _SNAPSHOT_HEADER.pack(_SNAPSHOT_VERSION, crc32c(count + body), len(self.producers)) + body

    def load_snapshot(self, data: bytes, offset: int) -> None:
        """Take over the state in a snapshot file; CorruptSnapshot leaves the state as it was."""
        entries = _decode_snapshot(data)
        self.clear(offset)
        for entry in entries:
            self.producers[entry.producer_id] = entry
            if entry.current_txn_first_offset != NO_OFFSET:
                self._ongoing[entry.producer_id] = entry.current_txn_first_offset
        self.snapshot_offset = offset

    def write_snapshot(self, path: str, *, sync: bool) -> None:
        """Write a snapshot of the state at `end_offset`."""
        replace_file(self._files, path, self.encode_snapshot(), sync=sync)
        self.snapshot_offset = self.end_offset


def _check_sequence(entry: ProducerEntry, header: BatchHeader, offset: int) -> None:
    first = header.base_sequence
    if header.producer_epoch != entry.producer_epoch:
        expected = 0
    else:
        last = entry.last_sequence
        expected = 0 if last == MAX_SEQUENCE else last + 1
    if first != expected:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Sequence {first} of producer {header.producer_id} epoch {header.producer_epoch} at offset {offset}; expected {expected}",
        )


def _encode_entry(entry: ProducerEntry) -> bytes:
    last = entry.batches[-1] if entry.batches else None
    return _SNAPSHOT_ENTRY.pack(
        entry.producer_id,
        entry.producer_epoch,
        last.last_sequence if last else NO_SEQUENCE,
        last.last_offset if last else NO_OFFSET,
        last.last_offset - last.first_offset if last else 0,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def _decode_snapshot(data: bytes) -> list[ProducerEntry]:
    try:
        version, crc, count = _SNAPSHOT_HEADER.unpack_from(data, 0)
    except struct_error as error:
        raise CorruptSnapshot("the snapshot is too short") from error
    if version != _SNAPSHOT_VERSION:
        raise CorruptSnapshot(f"snapshot version {version} is unknown")
    if crc32c(memoryview(data)[_SNAPSHOT_CRC_START:]) != crc:
        raise CorruptSnapshot("the CRC of the snapshot does not match its bytes")
    if len(data) != _SNAPSHOT_HEADER.size + count * _SNAPSHOT_ENTRY.size:
        raise CorruptSnapshot("the snapshot's length does not fit its count")
    return [_decode_entry(*fields) for fields in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEADER.size :])]


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    first_txn_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch)
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.current_txn_first_offset = first_txn_offset
    if last_offset >= 0:
        first_sequence = (last_sequence - offset_delta) & MAX_SEQUENCE if last_sequence >= 0 else last_sequence
        entry.batches.append(
            BatchMetadata(first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp)
        )
    return entry
