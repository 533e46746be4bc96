"""Appends on a follower: the leader's batches are kept as received, byte for byte (R1).

The leader has assigned offsets and leader epochs, and has checked the producers; they are taken over. Checks are only
for damage by the network or the leader's disk: lengths, CRC, the order of the offsets. Offsets may be missing between
two batches, where the leader has compacted its log: so a gap is no error, an offset that goes back is.

A fetch response may end with a part of a batch, which is left out. If the rest is larger than a segment, it is written
in pieces.
A piece is written with one write; nothing can fail after it, as on the leader (`storage.log`). Segments are rolled by
the follower's own configuration, at its log end, so there is never a gap between two segments.
Source: Kafka's `UnifiedLog.appendAsFollower` and `AbstractFetcherThread.processFetchRequest`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from barnabas.storage.append.leader_epochs import NO_EPOCH, LeaderEpochCache
from barnabas.storage.log_config import LogConfig
from barnabas.storage.producers.producer_state import EndMarker, ProducerState, marker_of
from barnabas.storage.segments.log_segments import Segments
from barnabas.storage.segments.sparse_indexes import MAX_RELATIVE_OFFSET
from barnabas.storage.segments.txn_index import AbortedTransaction
from barnabas.wire.batches.batch_header import BatchHeader, size_at, walk_batches
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import CONTROL_BIT, CRC_START, MAGIC
from barnabas.wire.errors import ErrorCode, KafkaError


class FollowingLog(Protocol):
    """The part of a `Log` that `append_as_follower` uses."""

    config: LogConfig
    leader_epochs: LeaderEpochCache
    log_end_offset: int
    producers: ProducerState
    segments: Segments

    def skip_to(self, offset: int) -> None:
        """Move the log end forward."""

    def write(
        self,
        records: memoryview,
        headers: list[BatchHeader],
        last_offset: int,
        leader_epoch: int,
        now: float,
        *,
        is_marker: bool,
    ) -> None:
        """Write batches with one write."""


class FollowerAppend(NamedTuple):
    """The appended bytes and batches of the slice; the rest of the slice was an incomplete batch."""

    size: int
    batches: int


class UnexpectedOffset(KafkaError):  # noqa: N818 - named after the condition
    """The first batch begins below the log end: the leader's log starts in the middle of this batch, or it is wrong."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"A batch of the leader has the offsets {first_offset} to {last_offset}, but the log ends at "
            f"{log_end_offset}",
        )
        self.first_offset = first_offset
        self.last_offset = last_offset


class _Piece:
    """Batches that are written with one write, and the transaction markers among them."""

    __slots__ = ("end", "headers", "markers", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        self.headers: list[BatchHeader] = []
        self.markers: dict[BatchHeader, EndMarker] = {}

    def add(self, header: BatchHeader, records: memoryview) -> None:
        """Add the batch that follows; the header's position becomes relative to the piece."""
        at = header.position
        if header.attributes & CONTROL_BIT:
            marker = marker_of(records[at : at + header.size])
            if marker is not None:
                self.markers[header] = marker
        header.position = at - self.start
        self.headers.append(header)
        self.end = at + header.size

    def has_room_for(self, header: BatchHeader, segment_bytes: int) -> bool:
        """Whether a batch fits into the same segment."""
        if not self.headers:
            return True
        first = self.headers[0].base_offset
        return header.position + header.size - self.start <= segment_bytes and (
            header.last_offset - first <= MAX_RELATIVE_OFFSET
        )


def append_as_follower(log: FollowingLog, records: memoryview, *, now: float) -> FollowerAppend:
    """Append the whole batches of `records`, a slice of the leader's log from this log's end on.

    `now` is the monotonic clock in seconds, for rolling. Raises KafkaError: UnexpectedOffset, CORRUPT_MESSAGE,
    INVALID_RECORD; KAFKA_STORAGE_ERROR when the disk failed. After an error of the content the log is unchanged; after
    one of the disk it has the pieces that were written before.
    """
    pieces = _checked_pieces(records, log.log_end_offset, log.config.segment_bytes)
    size = batches = 0
    for piece in pieces:
        _append_piece(log, records, piece, now)
        size += piece.end - piece.start
        batches += len(piece.headers)
    return FollowerAppend(size, batches)


def _checked_pieces(records: memoryview, log_end_offset: int, segment_bytes: int) -> list[_Piece]:
    """The whole batches of a slice, checked and divided into pieces of at most a segment."""
    pieces: list[_Piece] = []
    piece = _Piece(0)
    position = 0
    expected = log_end_offset
    for header in walk_batches(BatchHeader, records, len(records)):
        _check(records, header, expected)
        expected = header.last_offset + 1
        position += header.size
        if not piece.has_room_for(header, segment_bytes):
            pieces.append(piece)
            piece = _Piece(header.position)
        piece.add(header, records)
    size = size_at(records, position)
    if size is not None and size <= len(records) - position:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A batch of the leader has the length {size} bytes")
    if piece.headers:
        pieces.append(piece)
    return pieces


def _check(records: memoryview, header: BatchHeader, expected: int) -> None:
    if header.magic != MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"A batch of the leader has magic {header.magic}")
    at = header.position
    if crc32c(records[at + CRC_START : at + header.size]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The CRC of the batch at offset {header.base_offset} is wrong")
    if header.base_offset < expected or header.last_offset < header.base_offset:
        if at == 0:
            raise UnexpectedOffset(header.base_offset, header.last_offset, expected)
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"The batch at offset {header.base_offset} follows one that ends at {expected - 1}",
        )


def _append_piece(log: FollowingLog, records: memoryview, piece: _Piece, now: float) -> None:
    headers = piece.headers
    first, last_offset = headers[0].base_offset, headers[-1].last_offset
    if last_offset - log.log_end_offset > MAX_RELATIVE_OFFSET:
        log.skip_to(first)  # no segment can hold offsets so far apart
    log.write(records[piece.start : piece.end], headers, last_offset, NO_EPOCH, now, is_marker=bool(piece.markers))
    producers = log.producers
    epochs = log.leader_epochs
    for header in headers:
        if header.partition_leader_epoch > epochs.latest_epoch:
            epochs.assign(header.partition_leader_epoch, header.base_offset)
        if header.producer_id < 0:
            continue
        marker = piece.markers.get(header)
        if marker is None:
            if not header.attributes & CONTROL_BIT:
                producers.update(header)
            continue
        completed = producers.end_transaction(header, marker)
        if completed is not None:
            if completed.is_aborted:
                stable_offset = producers.stable_offset_after(completed)
                log.segments.active.append_aborted(AbortedTransaction(*completed[:3], stable_offset))
            producers.keep_until_replicated(completed)
