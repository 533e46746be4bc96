"""Validates the records of a produced batch, in place or in steps (rules L10, L11, L13).

Nearly all batches are checked in place. For a batch that takes more than the request's `Budget`, `UnfinishedCheck` has
the rest of the work as steps. Sources: Kafka's `LogValidator`, `DefaultRecordBatch`, `DefaultRecord`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import Final, Protocol

from barnabas.wire.batches import plain_records
from barnabas.wire.batches.batch_header import BatchHeader, set_create_time
from barnabas.wire.batches.compression import MAX_DECOMPRESSED_SIZE
from barnabas.wire.batches.decompression import MAX_EXPANSION, Source, decompressed_steps
from barnabas.wire.batches.long_record import BYTES_PER_UNIT
from barnabas.wire.batches.plain_records import (
    ACCELERATED_RECORDS_PER_UNIT,
    PLAIN_RECORDS,
    REGULAR_RECORDS_PER_UNIT,
    SHORT_DELTA,
    UNLIMITED,
    are_plain,
)
from barnabas.wire.batches.record_check import RecordCheck
from barnabas.wire.batches.record_lengths import HOPS_PER_UNIT, lengths_fit
from barnabas.wire.batches.records import CODEC_MASK, HEADER_SIZE, TIMESTAMP_TYPE_BIT
from barnabas.wire.errors import CorruptRecord, ErrorCode, KafkaError

IN_PLACE_UNITS: Final = 6_000
"""How much of the validation of a request is done in place, in units of `RecordCheck` (about 3 ms)."""
OPENED_UNITS: Final = 2_000
"""As `IN_PLACE_UNITS`, for batches that are decompressed or read record by record (about a millisecond). Others are
counted by their bytes, but most of these are only skipped."""
MOST_RECORDS_TO_COMPACT: Final = 2_000_000
"""The most records of a batch in a compacted topic, because the cleaner holds the keys of a batch in memory."""
SMALLEST_RECORD: Final = 7
"""A record has at least a byte each for length, attributes, timestamp delta, offset delta, key length, value length and
header count."""

FULL, LENGTHS, HEADER = "full", "lengths", "header"
"""How a batch is checked whose keys and timestamps need no check: every field of every record; that records fill the
batch, and the first and last one completely; the header only."""

UNLIMITED_MS: Final = 2**63 - 1
_CODEC_AND_TYPE = CODEC_MASK | TIMESTAMP_TYPE_BIT
_MOST_RECORDS = 20_000  # about 2 ms if they are skipped by their lengths
_MOST_BYTES = 1 << 21
_UNCOUNTED_BYTES = 512  # validating less takes a few microseconds, as all else that is done for a batch
_LONG_RECORD = 256  # so many bytes for each record: copying them costs more than it saves


class ContentLimits(Protocol):
    """The part of a log's configuration that records are checked against."""

    cleanup_policy: frozenset[str]
    max_decompressed_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    record_validation: str

    @property
    def checks_as_usual(self) -> bool:
        """Whether records are checked in full, with timestamps of their producers and no keys needed."""


class RecordValidationError(KafkaError):
    """Some records of a batch are invalid: the whole batch is rejected (KIP-467)."""

    def __init__(self, code: ErrorCode, message: str, record_errors: Sequence[tuple[int, str]]) -> None:
        """`record_errors` are (index of the record in its batch, message)."""
        super().__init__(code, message)
        self.record_errors = record_errors


class Budget:
    """How much may still be validated in place for a request, in units of `RecordCheck`."""

    __slots__ = ("units",)

    def __init__(self, units: int = IN_PLACE_UNITS) -> None:
        self.units = units


class UnfinishedCheck:
    """The rest of the validation of a batch that exceeds the budget: done in steps, before the batch is appended."""

    __slots__ = ("_source", "steps")

    def __init__(self, source: Source, steps: Generator[None, None, None]) -> None:
        self._source = source
        self.steps = steps
        """Does the rest, in steps of at most about a millisecond; raises KafkaError if the batch is invalid."""

    def move_to(self, records: memoryview) -> None:
        """Go on with a copy of the batch: the memory in which it was received is used for other data."""
        self._source.data = records[HEADER_SIZE:]


def check_size(header: BatchHeader) -> None:
    """Check what header and length say about the records, without opening the batch. KafkaError when they disagree."""
    count = header.record_count
    if count != header.last_offset - header.base_offset + 1 or count <= 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"The record batch counts {count} records up to offset delta {header.last_offset - header.base_offset}",
        )
    size = header.size - HEADER_SIZE
    codec = header.attributes & CODEC_MASK
    if count * SMALLEST_RECORD > size * MAX_EXPANSION[codec]:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"The record batch counts {count} records, which {size} bytes cannot contain"
        )


def check_records(
    records: memoryview, header: BatchHeader, limits: ContentLimits, now_ms: int, budget: Budget | None
) -> UnfinishedCheck | None:
    """Check the records of the only batch in `records`; what remains to be done if that takes more than `budget`.

    Without a budget all is done. KafkaError if the batch is invalid, RecordValidationError with the records that are.
    """
    if limits.checks_as_usual and not header.attributes & _CODEC_AND_TYPE:
        latest = now_ms + limits.message_timestamp_after_max_ms
        if header.max_timestamp <= latest and _are_valid(records, header, budget, FULL, -UNLIMITED, latest, False):
            return None  # nearly always
    return _check_closely(records, header, limits, now_ms, budget)


def _check_closely(
    records: memoryview, header: BatchHeader, limits: ContentLimits, now_ms: int, budget: Budget | None
) -> UnfinishedCheck | None:
    """`check_records` of a batch that is not known to be valid at a glance."""
    earliest, latest = -UNLIMITED, UNLIMITED
    if limits.message_timestamp_type == "CreateTime":
        if header.attributes & TIMESTAMP_TYPE_BIT:  # a copy from another topic
            set_create_time(records)
            header.attributes &= ~TIMESTAMP_TYPE_BIT
        latest = now_ms + limits.message_timestamp_after_max_ms
        if limits.message_timestamp_before_max_ms != UNLIMITED_MS:
            earliest = now_ms - limits.message_timestamp_before_max_ms
    is_late = header.max_timestamp > latest
    needs_keys = "compact" in limits.cleanup_policy
    level = limits.record_validation
    if needs_keys or is_late or earliest != -UNLIMITED:
        level = FULL
    elif level == HEADER:
        return None
    codec = header.attributes & CODEC_MASK
    if (
        not limits.checks_as_usual
        and not codec
        and not is_late
        and _are_valid(records, header, budget, level, earliest, latest, needs_keys)
    ):
        return None
    if needs_keys and header.record_count > MOST_RECORDS_TO_COMPACT:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"The record batch has {header.record_count} records; in a compacted topic {MOST_RECORDS_TO_COMPACT} are "
            f"allowed",
        )
    check = RecordCheck(
        header.record_count,
        header.base_timestamp,
        needs_keys=needs_keys,
        earliest=earliest,
        latest=latest,
        max_record_size=limits.max_decompressed_message_bytes if codec else UNLIMITED,
        lengths_only=level == LENGTHS,
    )
    source = Source(records[HEADER_SIZE:])
    pieces = decompressed_steps(codec, source, MAX_DECOMPRESSED_SIZE if codec else UNLIMITED)
    return _run(_steps(check, pieces, header.max_timestamp if is_late else None), check, source, budget)


def _are_valid(
    records: memoryview,
    header: BatchHeader,
    budget: Budget | None,
    level: str,
    earliest: int,
    latest: int,
    needs_keys: bool,
) -> bool:
    """Whether the records of an uncompressed batch are valid, as far as `level` says; False if not sure."""
    count, size = header.record_count, header.size - HEADER_SIZE
    data, base = records[HEADER_SIZE:], header.base_timestamp
    valid_records = plain_records.valid_records
    if size > _UNCOUNTED_BYTES:
        if size > _MOST_BYTES or (budget is not None and budget.units <= 0):
            return False
        if valid_records is not None:
            records_per_unit = ACCELERATED_RECORDS_PER_UNIT
        elif level == LENGTHS:
            records_per_unit = HOPS_PER_UNIT
        else:
            records_per_unit = 1 if count <= PLAIN_RECORDS else REGULAR_RECORDS_PER_UNIT
        if budget is not None:
            budget.units -= count // records_per_unit + size // BYTES_PER_UNIT
    if valid_records is not None:
        return valid_records(data, 0, 0, count, base, earliest, latest, needs_keys, size) == (size, count)
    if count > _MOST_RECORDS or (level != LENGTHS and (base + SHORT_DELTA > latest or base - SHORT_DELTA < earliest)):
        return False
    # Reading single bytes of a view takes longer than of a copy, which costs too much for long records.
    piece = data if size >= _LONG_RECORD * count else bytes(data)
    return lengths_fit(piece, count) if level == LENGTHS else are_plain(piece, count, needs_keys=needs_keys)


def _run(
    steps: Generator[None, None, None], check: RecordCheck, source: Source, budget: Budget | None
) -> UnfinishedCheck | None:
    """Do the steps that the budget allows; the rest if there are more."""
    units = UNLIMITED if budget is None else budget.units - (IN_PLACE_UNITS - OPENED_UNITS)
    if units <= 0:
        return UnfinishedCheck(source, steps)
    for _ in steps:
        if budget is not None and check.units > units:
            budget.units = 0
            return UnfinishedCheck(source, steps)
    if budget is not None:
        budget.units -= check.units
    return None


def _steps(check: RecordCheck, pieces: Iterator[bytes], late: int | None) -> Generator[None, None, None]:
    """Check the records in steps, and raise what has been found; `late` is a maximum timestamp that is too late."""
    try:
        yield from check.steps(pieces)
    except CorruptRecord as error:
        raise KafkaError(ErrorCode.INVALID_RECORD, error.message) from None
    if check.errors:
        code = ErrorCode.INVALID_TIMESTAMP if check.timestamp_errors else ErrorCode.INVALID_RECORD
        raise RecordValidationError(code, _rejection(code, check), check.errors)
    if late is not None:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, f"The batch's maximum timestamp {late} is too late")


def _rejection(code: ErrorCode, check: RecordCheck) -> str:
    """Kafka's message for a rejected batch."""
    if code is ErrorCode.INVALID_TIMESTAMP:
        return "One or more records have been rejected due to invalid timestamp"
    shown = ", ".join(f"RecordError(batchIndex={index}, message='{text}')" for index, text in check.errors[:3])
    return (
        f"One or more records have been rejected due to {check.error_count} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
