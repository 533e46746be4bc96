"""Segments (`.log`) and snapshots of the cluster metadata (`.checkpoint`): batches and optionally their records."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from barnabas.storage.layout import LOG_SUFFIX, offset_of
from barnabas.tools.dump.decoders import decode_control_record
from barnabas.tools.dump.item import Fields, Item, Options, Problems, UnreadableError, java_text, line
from barnabas.wire.batches.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchView,
    Codec,
    ControlRecordType,
    CorruptRecord,
    Record,
    control_record_type,
    end_txn_coordinator_epoch,
    iter_records,
    walk_batches,
)

TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
BOOTSTRAP = "bootstrap.checkpoint"
READ_AHEAD = 64 << 10
_WITHOUT_COLON = {"SnapshotHeader", "SnapshotFooter", "KRaftVersion", "KRaftVoters"}


def dump_log_file(path: Path, options: Options, problems: Problems) -> Iterator[Item]:
    """The batches of a segment, optionally with records; problems are added to `problems`."""
    yield _head(path)
    size = path.stat().st_size
    end = size if options.max_bytes is None else min(size, options.max_bytes)
    offsets = Offsets(path, problems)
    position = 0
    with path.open("rb") as file:
        for position, batch in batches(file, end, problems):
            yield from _dump_batch(path, batch, position, options, problems, offsets)
            position += batch.size
    if position < size and options.max_bytes is None:
        remaining = size - position
        text = f"Found {remaining} invalid bytes at the end of {path.name}"
        problems.add(f"Invalid bytes at the end of {path}", f"  {remaining} bytes from position {position} on")
        yield Item("trailing_bytes", {"trailingBytes": remaining}, text)


def _head(path: Path) -> Item:
    if path.suffix == LOG_SUFFIX:
        start = base_offset(path)
        return Item("log", {"startingOffset": start}, f"Log starting offset: {start}")
    if path.name == BOOTSTRAP:
        return Item("snapshot", {}, "KRaft bootstrap snapshot")
    offset, _, epoch = path.stem.partition("-")
    if not (len(offset) == 20 and offset.isdigit() and epoch.isdigit()):
        raise UnreadableError(f"{path} is not named after a snapshot's end offset (20 digits) and epoch (10 digits)")
    fields: Fields = {"endOffset": int(offset), "epoch": int(epoch)}
    return Item("snapshot", fields, f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}")


def base_offset(path: Path) -> int:
    """The base offset in the name of a segment's file."""
    offset = offset_of(path.name)
    if offset is None:
        raise UnreadableError(f"{path} is not named after its base offset (20 digits)")
    return offset


def batches(file: BinaryIO, end: int, problems: Problems | None = None) -> Iterator[tuple[int, BatchView]]:
    """(position, batch) of the whole batches before `end`; stops at the first that is truncated or invalid."""

    def read(least: int, position: int) -> bytes:
        file.seek(position)
        return file.read(max(least, READ_AHEAD))

    position = 0
    for batch in walk_batches(BatchView, b"", end, 0, read, lambda _: True):
        if batch.magic != MAGIC:
            break
        yield position, batch
        position += batch.size
    header = read(HEADER_SIZE, position)[:HEADER_SIZE]
    if problems is None or position + HEADER_SIZE > end or len(header) < HEADER_SIZE or not any(header):
        return
    batch = BatchView(header)
    if batch.size < HEADER_SIZE or batch.magic != MAGIC:
        detail = f"  magic {batch.magic}, length {batch.size - LOG_OVERHEAD} at position {position}"
        problems.add(f"No record batch of magic 2 in {file.name}", detail)


class Offsets:
    """Checks that offsets are consecutive within a file."""

    def __init__(self, path: Path, problems: Problems) -> None:
        self._path = path
        self._problems = problems
        self._last: int | None = None

    def see(self, offset: int) -> None:
        """Check the next record's offset."""
        if self._last is not None and offset != self._last + 1:
            self._problems.add(f"Non-consecutive offsets in {self._path}", f"  {self._last} is followed by {offset}")
        self._last = offset


def _dump_batch(
    path: Path, batch: BatchView, position: int, options: Options, problems: Problems, offsets: Offsets
) -> Iterator[Item]:
    fields = batch_fields(batch, position)
    if not fields["isvalid"]:
        detail = f"  batch {batch.base_offset}..{batch.last_offset} at position {position}"
        problems.add(f"CRC mismatch in {path}", detail)
    yield Item("batch", fields)
    if not options.deep:
        return
    try:
        for record in iter_records(batch):
            offsets.see(record.offset)
            yield _record_item(batch, record, options)
    except CorruptRecord as error:
        problems.add(f"Unreadable records in {path}", f"  batch at position {position}: {error}")


def batch_fields(batch: BatchView, position: int) -> Fields:
    """A batch's header in the order and with the names of Kafka's tool."""
    horizon = batch.delete_horizon_ms
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": "OptionalLong.empty" if horizon is None else f"OptionalLong[{horizon}]",
        "position": position,
        TIMESTAMP_TYPES[batch.timestamp_type]: batch.max_timestamp,
        "size": batch.size,
        "magic": batch.magic,
        "compresscodec": Codec(batch.codec).name.lower() if batch.codec <= Codec.ZSTD else f"unknown({batch.codec})",
        "crc": batch.crc,
        "isvalid": batch.crc_is_valid(),
    }


def _record_item(batch: BatchView, record: Record, options: Options) -> Item:
    fields: Fields = {}
    if not options.skip_record_metadata:
        fields |= {
            "offset": record.offset,
            TIMESTAMP_TYPES[batch.timestamp_type]: record.timestamp,
            "keySize": -1 if record.key is None else len(record.key),
            "valueSize": -1 if record.value is None else len(record.value),
            "sequence": record.sequence,
            "headerKeys": [key for key, _ in record.headers],
        }
        if batch.is_control:
            fields |= control_fields(record)
    content: Fields = {}
    if options.print_data and not batch.is_control:
        key, payload = (record.key, record.value) if options.decode is None else options.decode(record)
        content = {name: value for name, value in (("key", key), ("payload", payload)) if value is not None}
    return Item("record", fields | _json_content(content), _record_line(fields, content))


def _record_line(fields: Fields, content: Fields) -> str:
    shown: Fields = {name: _text(value) for name, value in (fields | content).items()}
    if "headerKeys" in fields:
        keys = fields["headerKeys"]
        assert isinstance(keys, list)
        shown["headerKeys"] = f"[{','.join(keys)}]"
    text = f"| {line(shown)}" if shown else ""
    for name in _WITHOUT_COLON & fields.keys():
        text = text.replace(f"{name}: ", f"{name} ", 1)
    return text


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict | list):
        import json

        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return java_text(value)


def _json_content(content: Fields) -> Fields:
    """Text, or base64 in `<name>_base64` for bytes that are not UTF-8."""
    fields: Fields = {}
    for name, value in content.items():
        if not isinstance(value, bytes):
            fields[name] = value
            continue
        try:
            fields[name] = value.decode()
        except UnicodeDecodeError:
            fields[f"{name}_base64"] = b64encode(value).decode()
    return fields


def control_fields(record: Record) -> Fields:
    """The fields of a control record."""
    kind = control_record_type(record)
    if kind in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        return {
            "endTxnMarker": ControlRecordType(kind).name,
            "coordinatorEpoch": end_txn_coordinator_epoch(record),
        }
    return decode_control_record(kind, record)
