"""Validates the batches of an append on the leader, in one pass over their headers.

Length, magic, size, CRC32C, offsets against the record count, producer fields, control bit; the records of clients are
checked in `batch_content`. Sources: Kafka's `LogValidator`, `UnifiedLog.analyzeAndValidateRecords`,
`ProduceRequest.validateRecords`.
"""

from __future__ import annotations

from typing import Final, Literal, NoReturn, Protocol

from barnabas.storage.batch_content import (
    SMALLEST_RECORD,
    Budget,
    ContentLimits,
    UnfinishedCheck,
    check_records,
    check_size,
)
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.crc import crc32c
from barnabas.wire.batches.records import (
    CODEC_MASK,
    CONTROL_BIT,
    CRC_START,
    HEADER_SIZE,
    LENGTH_OFFSET,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    Codec,
)
from barnabas.wire.errors import ErrorCode, KafkaError

Origin = Literal["client", "coordinator", "replication"]
"""The source of an append: clients are checked fully, coordinators may write control batches, leaders are trusted."""

_CODEC_AND_CONTROL = CODEC_MASK | CONTROL_BIT
_SHORTEST_LENGTH: Final = 14
"""The least length that a batch of any magic may have: that of a record of magic 0 without content."""
_LAST_CODEC = int(max(Codec))  # computed once: iterating over an enum costs as much as all other checks


class NotOneBatchError(KafkaError):
    """The data of a partition in a Produce is not one record batch: Kafka refuses it before it looks at the log."""


class BatchLimits(ContentLimits, Protocol):
    """The part of a log's configuration that batches are checked against."""

    max_message_bytes: int


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
    remaining = len(records) - position
    if remaining > MAGIC_OFFSET and records[position + MAGIC_OFFSET] < MAGIC:
        raise KafkaError(ErrorCode.INVALID_RECORD, "A record batch has an old magic; only magic 2 is accepted")
    raise KafkaError(
        ErrorCode.CORRUPT_MESSAGE,
        f"{remaining} bytes are too few for a record batch of at least {HEADER_SIZE}",
    )


def check_batches(records: memoryview, limits: BatchLimits, origin: Origin, now_ms: int) -> list[BatchHeader]:
    """Validate the batches in `records`; their headers. KafkaError with Kafka's code for the first problem."""
    if origin == "client":
        header = check_client_batch(records, limits, now_ms)
        assert isinstance(header, BatchHeader)  # without a budget all is checked
        return [header]
    headers = split_batches(records)
    for header in headers:  # only batches from clients are untrusted
        _check_whole(records, header, limits)
        check_size(header)
    return headers


def check_client_batch(
    records: memoryview,
    limits: BatchLimits,
    now_ms: int,
    budget: Budget | None = None,
    *,
    is_validated: bool = False,
) -> BatchHeader | UnfinishedCheck:
    """Validate the only batch in `records`, which a client has sent; its header. KafkaError as of `check_batches`.

    If its records take more than `budget`, the rest of the validation is returned; call this again with
    `is_validated` when the rest has been done.
    """
    size = len(records)
    if size < HEADER_SIZE:
        _raise_not_one(records)
    header = BatchHeader(records, 0, 0)
    if header.magic != MAGIC or header.size != size:
        _raise_not_one(records)
    if header.base_offset or header.attributes & _CODEC_AND_CONTROL > _LAST_CODEC or header.producer_id >= 0:
        _check_client_fields(header)
    if size > limits.max_message_bytes or crc32c(records[CRC_START:]) != header.crc:
        _check_whole(records, header, limits)
    count = header.record_count
    if count != header.last_offset + 1 or count <= 0 or count * SMALLEST_RECORD > size - HEADER_SIZE:
        check_size(header)
    if is_validated:
        return header
    return check_records(records, header, limits, now_ms, budget) or header


def _raise_not_one(records: memoryview) -> NoReturn:
    """Say why a client's records are not one batch of magic 2, with Kafka's codes; a batch may be cut off anywhere."""
    size = len(records)
    if size <= MAGIC_OFFSET:
        raise NotOneBatchError(ErrorCode.INVALID_RECORD, f"{size} bytes are too few for a record batch")
    announced = int.from_bytes(records[LENGTH_OFFSET : LENGTH_OFFSET + 4], "big", signed=True)
    magic = records[MAGIC_OFFSET]
    if announced < _SHORTEST_LENGTH or magic > MAGIC:
        text = f"Invalid magic found in record: {magic}"
        if announced < _SHORTEST_LENGTH:
            text = f"Record size {announced} is less than the minimum record overhead ({_SHORTEST_LENGTH})"
        raise NotOneBatchError(ErrorCode.CORRUPT_MESSAGE, text)  # Kafka's words
    if announced > size - LOG_OVERHEAD:
        text = f"The record batch has {LOG_OVERHEAD + announced} bytes, but only {size} are in the request"
        raise NotOneBatchError(ErrorCode.INVALID_RECORD, text)
    if magic != MAGIC:
        text = f"A record batch has magic {magic}; only magic {MAGIC} is accepted"
        raise NotOneBatchError(ErrorCode.INVALID_RECORD, text)
    if LOG_OVERHEAD + announced == size:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{size} bytes are too few for a record batch of at least {HEADER_SIZE}"
        )
    text = "A produce request must contain one record batch per partition, without anything behind it"
    raise NotOneBatchError(ErrorCode.INVALID_RECORD, text)


def header_of_own_batch(records: memoryview, limits: BatchLimits) -> BatchHeader:
    """The header of a batch that this process has just built. KafkaError(MESSAGE_TOO_LARGE)."""
    header = BatchHeader(records, 0, 0)
    if header.size > limits.max_message_bytes:
        _raise_too_large(header, limits)
    return header


def _raise_too_large(header: BatchHeader, limits: BatchLimits) -> None:
    raise KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE,
        f"The record batch has {header.size} bytes, more than max.message.bytes of {limits.max_message_bytes}",
    )


def _check_whole(records: memoryview, header: BatchHeader, limits: BatchLimits) -> None:
    """Check the size and the CRC of a batch."""
    if header.size > limits.max_message_bytes:
        _raise_too_large(header, limits)
    at = header.position
    if crc32c(records[at + CRC_START : at + header.size]) != header.crc:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "The CRC of the record batch does not match its bytes")


def _check_client_fields(header: BatchHeader) -> None:
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
        text = f"Compression codec {header.attributes & CODEC_MASK} is unknown"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text)  # as in Kafka, which has a code for it and no use
