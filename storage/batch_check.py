"""Validates the batches of an append on the leader, in one pass over their headers.

Length, magic, size, CRC32C, offsets against the record count, producer fields, control bit, timestamps, and on
compacted topics that every record has a key. Records are decompressed only for the last check and for a limit on
timestamps in the past, since the header only contains the greatest timestamp. Sources: Kafka's `LogValidator`,
`UnifiedLog.analyzeAndValidateRecords`, `ProduceRequest.validateRecords`; rules L10, L11.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

from barnabas.storage.batch_header import BatchHeader
from barnabas.wire.compression import MAX_DECOMPRESSED_SIZE
from barnabas.wire.crc import crc32c
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError
from barnabas.wire.records import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER_SIZE,
    MAGIC,
    MAGIC_OFFSET,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    Codec,
    Record,
    iter_batches,
    iter_records,
)

Origin = Literal["client", "coordinator", "replication"]
"""The source of an append: clients are checked fully, coordinators may write control batches, leaders are trusted."""

_LAST_CODEC = int(max(Codec))  # computed once: iterating over an enum costs as much as all other checks
_UNLIMITED_MS = 2**63 - 1

_MAX_RECORD_ERRORS = 1000
"""The maximum number of invalid records listed per batch, so that one request does not cause a huge response."""
_MAX_RECORDS_OF_LATE_BATCH = 5000
_MAX_BYTES_OF_LATE_BATCH = 4 * 1024 * 1024
"""The header is sufficient to reject a batch for late timestamps. Its records are listed up to these limits only."""


class RecordValidationError(KafkaError):
    """Some records of a batch are invalid: the whole batch is rejected (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[tuple[int, str]]) -> None:
        """`record_errors` are (index of the record in its batch, message)."""
        super().__init__(code, message)
        self.record_errors = record_errors


class BatchLimits(Protocol):
    """The part of a log's configuration that batches are checked against."""

    max_message_bytes: int
    message_timestamp_type: str
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    cleanup_policy: frozenset[str]


def split_batches(records: memoryview) -> list[BatchHeader]:
    """The headers of the batches that fill `records` exactly; CORRUPT_MESSAGE when they do not."""
    end = len(records)
    position = 0
    headers = []
    while position < end:
        if end - position < HEADER_SIZE:
            _raise_too_short(records, position)
        header = BatchHeader(records, position, position)
        if header.magic != MAGIC:
            raise KafkaError(
                ErrorCode.INVALID_RECORD, f"A record batch has magic {header.magic}; only magic 2 is accepted"
            )
        if header.size < HEADER_SIZE or header.size > end - position:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"A record batch has the length {header.size} bytes, but only {end - position} are left",
            )
        headers.append(header)
        position += header.size
    if not headers:
        raise KafkaError(ErrorCode.INVALID_RECORD, "There is no record batch to append")
    return headers


def _raise_too_short(records: memoryview, position: int) -> None:
    left = len(records) - position
    if left > MAGIC_OFFSET and records[position + MAGIC_OFFSET] < MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A record batch has an old magic; only magic 2 is accepted")
    raise KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{left} bytes are too few for a record batch of at least {HEADER_SIZE}",
    )


def check_batches(records: memoryview, limits: BatchLimits, origin: Origin, now_ms: int) -> list[BatchHeader]:
    """Validate the batches in `records`; their headers. KafkaError with Kafka's code for the first problem."""
    headers = split_batches(records)
    if origin == "client":
        if len(headers) != 1:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"A produce request must contain one record batch per partition, not {len(headers)}",
            )
        _check_client_batch(headers[0])
    for header in headers:
        if header.size > limits.max_message_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"The record batch has {header.size} bytes, more than max.message.bytes of {limits.max_message_bytes}",
            )
        at = header.position
        if crc32c(records[at + CRC_START : at + header.size]) != header.crc:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "The CRC of the record batch does not match its bytes")
        if header.record_count != header.last_offset - header.base_offset + 1 or header.record_count <= 0:
            last_delta = header.last_offset - header.base_offset
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"The record batch counts {header.record_count} records up to offset delta {last_delta}",
            )
        if origin == "client":  # only batches from clients are untrusted
            _check_content(records, header, limits, now_ms)
    return headers


def _check_client_batch(header: BatchHeader) -> None:
    if header.base_offset != 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"The base offset of a produced record batch must be 0, not {header.base_offset}"
        )
    if header.attributes & CONTROL_BIT:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Clients may not write control records")
    if header.producer_id >= 0 and header.base_sequence < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Sequence {header.base_sequence} of producer {header.producer_id} is negative"
        )
    if header.attributes & CODEC_MASK > _LAST_CODEC:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Compression codec {header.attributes & CODEC_MASK} is unknown"
        )


def _check_content(records: memoryview, header: BatchHeader, limits: BatchLimits, now_ms: int) -> None:
    """Check timestamps (L11) and keys (L10); records are read only where the header is not sufficient."""
    earliest, latest = -(2**63), 2**63 - 1
    if limits.message_timestamp_type == "CreateTime":
        if header.attributes & TIMESTAMP_TYPE_BIT:
            raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "A producer may not set the timestamp type LogAppendTime")
        latest = now_ms + limits.message_timestamp_after_max_ms
        if limits.message_timestamp_before_max_ms != _UNLIMITED_MS:
            earliest = now_ms - limits.message_timestamp_before_max_ms
    needs_keys = "compact" in limits.cleanup_policy and not header.attributes & CONTROL_BIT
    is_late = header.max_timestamp > latest
    if needs_keys or earliest > -(2**63):
        _check_records(_records_of(records, header), needs_keys=needs_keys, earliest=earliest, latest=latest)
    elif is_late and header.record_count <= _MAX_RECORDS_OF_LATE_BATCH:
        try:
            late = _records_of(records, header, _MAX_BYTES_OF_LATE_BATCH)
            _check_records(late, needs_keys=False, earliest=earliest, latest=latest)
        except CorruptRecord:
            pass  # rejected below
    if is_late:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, f"The batch's maximum timestamp {header.max_timestamp} is later than {latest}"
        )


def _check_records(records: Iterator[Record], *, needs_keys: bool, earliest: int, latest: int) -> None:
    """Check each record's key and timestamp (in ms); RecordValidationError lists the invalid records."""
    errors: list[tuple[int, str]] = []
    count = 0
    code = ErrorCode.INVALID_RECORD
    for index, record in enumerate(records):
        timestamp = record.timestamp
        if needs_keys and record.key is None:
            error = "Compacted topic cannot accept message without key"
        elif timestamp != NO_TIMESTAMP and not earliest <= timestamp <= latest:
            code = ErrorCode.INVALID_TIMESTAMP
            error = ""
        else:
            continue
        count += 1
        if count <= _MAX_RECORD_ERRORS:
            errors.append((index, error or _out_of_range(record, earliest, latest)))
    if errors:
        raise RecordValidationError(code, _rejection(code, count, errors), errors)


def _out_of_range(record: Record, earliest: int, latest: int) -> str:
    return (
        f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
        f"The timestamp should be within [{earliest}, {latest}]"
    )


def _rejection(code: ErrorCode, count: int, errors: Sequence[tuple[int, str]]) -> str:
    """Kafka's message for a rejected batch."""
    if code is ErrorCode.INVALID_TIMESTAMP:
        return "One or more records have been rejected due to invalid timestamp"
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3])
    return (
        f"One or more records have been rejected due to {count} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


def _records_of(records: memoryview, header: BatchHeader, max_size: int = MAX_DECOMPRESSED_SIZE) -> Iterator[Record]:
    return iter_records(next(iter_batches(records[header.position : header.position + header.size])), max_size)
