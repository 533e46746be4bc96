"""Checks the records of one batch while they are decompressed, a piece at a time.

It checks what Kafka's `LogValidator` and record iterators check: lengths, header counts, no bytes left over, and what a
topic asks for (keys, timestamps within limits). In addition a record's offset delta must be its index: batches are
stored as they were sent, so readers would see wrong offsets. (Kafka writes a compressed batch with wrong deltas again,
and stores an uncompressed one.)

Reading each record in Python costs as much as everything else that the broker does for it. So the accelerator reads
them if there is one (`plain_records`); without it, runs of records of one size, as producers of messages of a fixed
size send them, are compared as columns (`record_runs`). Every error is made here, in Python.

No step is long: `check` stops after `STEP_UNITS`, where a unit is about the work for one record, and a record that is
larger than a piece is read in steps (`long_record`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Final

from barnabas.wire.batches import plain_records
from barnabas.wire.batches.batch_format import NO_TIMESTAMP
from barnabas.wire.batches.decompression import STEP_BYTES
from barnabas.wire.batches.long_record import (
    MAX_HEADERS_OF_A_STEP,
    PieceReader,
    after_headers,
    header_count,
    invalid,
    long_record_steps,
    size_at,
    wrong_delta,
    wrong_size,
)
from barnabas.wire.batches.plain_records import (
    ACCELERATED_RECORDS_PER_UNIT,
    REGULAR_RECORDS_PER_UNIT,
    SHORT_DELTA,
    UNLIMITED,
    are_regular,
)
from barnabas.wire.batches.record_lengths import HOPS_PER_UNIT, hop
from barnabas.wire.batches.record_runs import equal_records
from barnabas.wire.errors import CorruptRecord, KafkaError
from barnabas.wire.varint import record_varint, record_varlong

STEP_UNITS: Final = 1_000
"""The most units of a step, about half a millisecond."""

MAX_RECORD_ERRORS: Final = 1_000
"""The maximum number of invalid records listed per batch, so that one request does not cause a huge response."""

_LONG_DELTA = 1 << 20
_RETRY_AFTER = 16
_NULL_KEY = "Compacted topic cannot accept message without key"


class RecordCheck:
    """The check of one batch: how far it is, and what it has found.

    `errors` are the records that are well-formed and not acceptable, as (index, message) of the first
    `MAX_RECORD_ERRORS`; `error_count` counts all, `timestamp_errors` those because of the timestamp. `index` is the
    number of records checked, `units` the work done.
    """

    __slots__ = (
        "_base_timestamp",
        "_count",
        "_earliest",
        "_extra",
        "_free_timestamp_bytes",
        "_has_many_headers",
        "_late_index",
        "_latest",
        "_lengths_only",
        "_max_record_size",
        "_needs_keys",
        "_retry_at",
        "error_count",
        "errors",
        "index",
        "timestamp_errors",
        "units",
    )

    def __init__(
        self,
        count: int,
        base_timestamp: int,
        *,
        needs_keys: bool = False,
        earliest: int = -UNLIMITED,
        latest: int = UNLIMITED,
        max_record_size: int = UNLIMITED,
        lengths_only: bool = False,
    ) -> None:
        """There should be `count` records, with timestamps (ms) from `earliest` to `latest`, or -1.

        `max_record_size` limits the bytes of a record that follow its length (max.decompressed.message.bytes). With
        `lengths_only` records between the first and the last one are only skipped by their lengths.
        """
        self._count = count
        self._base_timestamp = base_timestamp
        self._lengths_only = lengths_only
        self._needs_keys = needs_keys
        self._earliest = earliest
        self._latest = latest
        self._max_record_size = max_record_size
        self._free_timestamp_bytes = _free_bytes(base_timestamp - earliest, latest - base_timestamp)
        self._retry_at = 0
        self._extra = 0  # units of the current step besides one for each record
        self._has_many_headers = False
        self._late_index = -1  # the last record with a timestamp error
        self.index = 0
        self.units = 0
        self.errors: list[tuple[int, str]] = []
        self.error_count = 0
        self.timestamp_errors = 0

    def steps(self, pieces: Iterator[bytes]) -> Generator[None, None, None]:
        """Check the records in `pieces`, in steps. KafkaError if they are malformed; see `errors` at the end."""
        reader = PieceReader(pieces, self)
        while True:
            reader.pos = self.check(reader.data, reader.pos)
            if self.index == self._count:
                break
            yield
            size = self._size_at(reader.data, reader.pos)
            is_whole = size is not None and size <= len(reader.data) - reader.pos
            if self._has_many_headers or (size is not None and size > STEP_BYTES and not is_whole):
                yield from long_record_steps(self, reader)
            elif not is_whole and not reader.more():
                raise invalid(f"The record batch ends after {self.index} of its {self._count} records")
        while reader.pos == len(reader.data) and reader.more():
            yield  # to the end, where a checksum may be
        if reader.pos < len(reader.data):
            raise invalid(f"The record batch has more bytes after the last of its {self._count} records")

    def check(self, data: bytes, pos: int) -> int:
        """Check whole records from `pos` on, at most `STEP_UNITS`; returns the position of the next record."""
        first = self.index
        self._extra = 0
        self._has_many_headers = False
        last = min(self._count, first + STEP_UNITS)
        if self._lengths_only:
            last = first + 1
            if 0 < first < self._count - 1:
                most = min(self._count - 1 - first, STEP_UNITS * HOPS_PER_UNIT)
                pos, hops = hop(data, pos, most)
                self.index += hops
                if hops:
                    self.units += 1 + hops // HOPS_PER_UNIT
                    return pos
        elif plain_records.valid_records is not None:
            last = min(self._count, first + STEP_UNITS * ACCELERATED_RECORDS_PER_UNIT)
            pos, self.index = plain_records.valid_records(
                data, pos, first, last, self._base_timestamp, self._earliest, self._latest, self._needs_keys,
                self._max_record_size,
            )  # fmt: skip
            if self.index > first:
                self.units += 1 + (self.index - first) // ACCELERATED_RECORDS_PER_UNIT
                return pos
            last = min(self._count, first + STEP_UNITS)
        elif not first and not pos and self._is_regular(data):
            self.index = self._count
            self.units += 1 + self._count // REGULAR_RECORDS_PER_UNIT
            return len(data)
        try:
            return self._whole_records(data, pos, last)
        except CorruptRecord as error:
            raise self._invalid_record(error) from None
        finally:
            self.units += 1 + self.index - first + self._extra

    def _size_at(self, data: bytes, pos: int) -> int | None:
        """The size of the next record; None if its length is not all there. KafkaError if it is malformed."""
        try:
            return size_at(data, pos)
        except CorruptRecord as error:
            raise self._invalid_record(error) from None

    def _invalid_record(self, error: CorruptRecord) -> KafkaError:
        return invalid(f"Record {self.index} of the batch: {error.message}")

    def _whole_records(self, data: bytes, pos: int, last: int) -> int:  # noqa: C901 (the hot loop, inlined)
        index = first = self.index
        end, previous, start = len(data), -1, pos
        is_exact = self._free_timestamp_bytes < 2
        try:
            while index < last:
                length = data[pos]
                pos += 1
                if length > 0x7F:
                    if (byte := data[pos]) > 0x7F:
                        length, pos = record_varint(data, start)
                    else:
                        length = length & 0x7F | byte << 7
                        pos += 1
                stop = pos + (length >> 1)
                if stop > end or length >> 1 > self._max_record_size or length & 1:
                    self.index = index  # for its message
                    self.check_size(length)
                    break  # the rest of the record is not here yet
                pos += 1  # the record's attributes: none are defined
                if is_exact or (data[pos] > 0x7F and data[pos + 1] > 0x7F):
                    number, pos = record_varlong(data, pos)
                    self.check_timestamp(index, number)
                else:
                    pos += 1 if data[pos] < 0x80 else 2
                number = data[pos]
                pos += 1
                if number > 0x7F:
                    number, pos = record_varint(data, pos - 1)
                if number != index << 1:
                    raise wrong_delta(index, number)
                number = data[pos]
                pos += 1
                if number > 0x7F:
                    number, pos = record_varint(data, pos - 1)
                if not number & 1:
                    pos += number >> 1
                elif self._needs_keys:
                    self.no_key(index)
                number = data[pos]
                pos += 1
                if number > 0x7F:
                    if (byte := data[pos]) > 0x7F:
                        number, pos = record_varint(data, pos - 1)
                    else:
                        number = number & 0x7F | byte << 7
                        pos += 1
                if not number & 1:
                    pos += number >> 1
                if data[pos]:
                    pos = self._after_headers(data, pos, stop)
                    if self._has_many_headers:
                        break
                    last = min(last, first + STEP_UNITS - self._extra)
                else:
                    pos += 1
                if pos != stop:
                    raise wrong_size(index, pos - stop)
                index += 1
                if length == previous and index >= self._retry_at:
                    run = self._run(data, start, stop - start, index, last)
                    index += run
                    pos += run * (stop - start)
                    last = min(self._count, first + STEP_UNITS - self._extra)
                previous, start = length, pos
        except IndexError:
            _check_is_incomplete(data, start, index)
        finally:
            self.index = index  # also for the message of an error
        return start

    def _is_regular(self, data: bytes) -> bool:
        """Whether `data` is all records, and they are valid."""
        is_safe = self._free_timestamp_bytes > 0 and len(data) <= self._max_record_size
        return is_safe and are_regular(data, self._count, needs_keys=self._needs_keys)

    def _run(self, data: bytes, start: int, size: int, index: int, last: int) -> int:
        """How many records after the one at `start`, which is before record `index`, are like it."""
        limit = min(self._count - index, (last - index) * REGULAR_RECORDS_PER_UNIT)
        free, needs_key = self._free_timestamp_bytes, self._needs_keys
        run = equal_records(data, start, size, index - 1, limit, timestamp_bytes=free, needs_key=needs_key)
        self._retry_at = index + run + (0 if run > _RETRY_AFTER else _RETRY_AFTER)
        self._extra -= run - run // REGULAR_RECORDS_PER_UNIT
        return run

    def _after_headers(self, data: bytes, pos: int, stop: int) -> int:
        number, pos = header_count(data, pos, stop)
        if number > MAX_HEADERS_OF_A_STEP:
            self._has_many_headers = True
            return pos
        self._extra += number
        return after_headers(data, pos, number)

    # -- single fields, shared with `long_record`

    def check_size(self, length: int) -> None:
        """Check the length of a record, which is still in zig-zag form."""
        if length & 1:
            raise invalid(f"Record {self.index} of the batch has a negative length")
        if length >> 1 > self._max_record_size:
            raise invalid(
                f"Record {self.index} of the batch has {length >> 1} bytes, "
                f"more than max.decompressed.message.bytes of {self._max_record_size}"
            )

    def check_timestamp(self, index: int, delta: int) -> None:
        """Check the timestamp of a record; its delta is still in zig-zag form."""
        timestamp = self._base_timestamp + (delta >> 1 ^ -(delta & 1))
        if timestamp != NO_TIMESTAMP and not self._earliest <= timestamp <= self._latest:
            self.timestamp_errors += 1
            self._late_index = index
            self._add_error(
                index,
                f"Timestamp {timestamp} of message with offset {index} is out of range. "
                f"The timestamp should be within [{self._earliest}, {self._latest}]",
            )

    def check_key(self, index: int, length: int) -> None:
        """Check that a record has a key if it needs one; the key's length is still in zig-zag form."""
        if length & 1 and self._needs_keys:
            self.no_key(index)

    def no_key(self, index: int) -> None:
        """Add the error of a record that needs a key and has none; it replaces one about the record's timestamp."""
        if index == self._late_index:
            self.timestamp_errors -= 1
            self.error_count -= 1
            if self.errors[-1][0] == index:
                self.errors.pop()
        self._add_error(index, _NULL_KEY)

    def _add_error(self, index: int, message: str) -> None:
        self.error_count += 1
        if len(self.errors) < MAX_RECORD_ERRORS:
            self.errors.append((index, message))


def _check_is_incomplete(data: bytes, pos: int, index: int) -> None:
    """Check that it is the length of a record that is not there yet, not one of its fields."""
    if size_at(data, pos) is not None:
        raise invalid(f"Record {index} of the batch ends before its fields")


def _free_bytes(before: int, after: int) -> int:
    """How long a timestamp delta may be without a check, in bytes; arguments: ms from base timestamp to the limits."""
    nearest = min(before, after)
    if nearest >= _LONG_DELTA:
        return 3
    return 2 if nearest >= SHORT_DELTA else 0
