"""State files in a log directory: `.snapshot`, the checkpoints, `partition.metadata`, `meta.properties`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from barnabas.tools.dump.item import Fields, Item, Options, Problems, UnreadableError
from barnabas.tools.dump.log_file import base_offset
from barnabas.wire.batches.crc import crc32c

_SNAPSHOT_HEAD = Struct(">hIi")
_SNAPSHOT_ENTRY = Struct(">qhiqiqiq")
_CRC_START = 6


def dump_producer_snapshot(path: Path, options: Options, problems: Problems) -> Iterator[Item]:  # noqa: ARG001
    """The producers of a partition at the offset in the file's name (I5)."""
    base_offset(path)
    data = path.read_bytes()
    if len(data) < _SNAPSHOT_HEAD.size:
        problems.add(f"Snapshot {path} is corrupt", f"  {len(data)} bytes are too few")
        return
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != 1:
        problems.add(f"Snapshot {path} is corrupt", f"  version {version} is unknown")
        return
    if crc != crc32c(memoryview(data)[_CRC_START:]):
        problems.add(f"Snapshot {path} is corrupt", "  the CRC does not match the bytes")
        return
    if len(data) != _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size:
        problems.add(f"Snapshot {path} is corrupt", f"  {len(data)} bytes for {count} producers")
        return
    for entry in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size :]):
        yield Item("producer", _producer_fields(*entry))


def _producer_fields(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_start: int,
) -> Fields:
    fields: Fields = {
        "producerId": producer_id,
        "producerEpoch": epoch,
        "coordinatorEpoch": coordinator_epoch,
        "currentTxnFirstOffset": "OptionalLong.empty"
        if transaction_start < 0
        else f"OptionalLong[{transaction_start}]",
        "lastTimestamp": timestamp,
    }
    if last_offset >= 0:
        fields |= {
            "firstSequence": (last_sequence - offset_delta) & 0x7FFFFFFF if last_sequence >= 0 else last_sequence,
            "lastSequence": last_sequence,
            "lastOffset": last_offset,
            "offsetDelta": offset_delta,
            "timestamp": timestamp,
        }
    return fields


def dump_checkpoint(path: Path, options: Options, problems: Problems) -> Iterator[Item]:  # noqa: ARG001
    """A checkpoint: leader epochs, or an offset per partition."""
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError:
        raise UnreadableError(f"{path} is not a checkpoint: it is not text") from None
    if len(lines) < 2 or lines[0] != "0" or lines[1] != str(len(lines) - 2):
        problems.add(f"Checkpoint {path} is damaged", "  the version is not 0, or the count does not match the lines")
    for text in lines[2:]:
        words = text.split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            yield Item("leader_epoch", {"epoch": int(words[0]), "startOffset": int(words[1])})
        elif len(words) == 3 and words[1].isdigit() and words[2].isdigit():
            fields: Fields = {"topic": words[0], "partition": int(words[1]), "offset": int(words[2])}
            yield Item("offset_checkpoint", fields)
        else:
            problems.add(f"Checkpoint {path} is damaged", f"  {text!r} is not an entry")


def dump_properties(path: Path, options: Options, problems: Problems) -> Iterator[Item]:  # noqa: ARG001
    """`partition.metadata` (`key: value`) and `meta.properties` (`key=value`)."""
    for text in path.read_text(errors="replace").splitlines():
        if not text.startswith("#") and (mark := next((c for c in text if c in ":="), None)):
            name, _, value = text.partition(mark)
            yield Item("property", {"name": name.strip(), "value": value.strip()}, f"{name.strip()}: {value.strip()}")
