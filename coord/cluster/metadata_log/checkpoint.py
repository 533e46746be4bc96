"""Snapshots of the metadata log (KIP-630).

A checkpoint file holds a SNAPSHOT_HEADER control batch, the records of a whole image, and a SNAPSHOT_FOOTER control
batch. Its name is `<end offset, 20 digits>-<epoch, 10 digits>.checkpoint`. Source: Kafka 4.4 `RecordsSnapshotWriter`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import LATEST_METADATA_VERSION, ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch, control_batch, replay_batches
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.batches.records import (
    ControlRecordType,
    CorruptRecord,
    control_record_type,
    iter_batches,
    iter_records,
)
from barnabas.wire.messages.records.raft_records import (
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.wire.batches.decompression import Buffer


CHECKPOINT_SUFFIX: Final = ".checkpoint"
RECORDS_PER_BATCH: Final = 100
"""Records in one batch of a checkpoint."""


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """The file name of the snapshot of all records below `end_offset`."""
    return f"{end_offset:020d}-{epoch:010d}{CHECKPOINT_SUFFIX}"


def parse_checkpoint_name(name: str) -> tuple[int, int] | None:
    """(end offset, epoch) from a checkpoint's file name; None for any other name."""
    stem = name.removesuffix(CHECKPOINT_SUFFIX)
    offset, _, epoch = stem.partition("-")
    if stem == name or len(offset) != 20 or len(epoch) != 10 or not (offset + epoch).isdigit():
        return None
    return int(offset), int(epoch)


def build_checkpoint(
    records: Iterable[Message],
    *,
    quorum: Quorum,
    epoch: int,
    last_timestamp_ms: int,
    now_ms: int,
    metadata_version: int = LATEST_METADATA_VERSION,
) -> Iterator[bytes]:
    """The batches of a snapshot, header and footer included. Offsets start at 0."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp_ms)
    control = [(ControlRecordType.SNAPSHOT_HEADER, header), *quorum.records()]
    yield control_batch(control, 0, epoch, now_ms)
    offset = len(control)
    held: list[Message] = []
    for record in records:
        held.append(record)
        if len(held) == RECORDS_PER_BATCH:
            yield build_metadata_batch(
                held, epoch=epoch, now_ms=now_ms, base_offset=offset, metadata_version=metadata_version
            )
            offset += len(held)
            held = []
    if held:
        yield build_metadata_batch(
            held, epoch=epoch, now_ms=now_ms, base_offset=offset, metadata_version=metadata_version
        )
        offset += len(held)
    yield control_batch([(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord())], offset, epoch, now_ms)


def load_checkpoint(buffer: Buffer, end_offset: int, epoch: int) -> ClusterImage:
    """The image in a snapshot; UnknownMetadataError when it is incomplete or invalid."""
    image = ClusterImage()
    try:
        kinds = [control_record_type(next(iter_records(batch))) for batch in iter_batches(buffer) if batch.is_control]
        if not kinds or kinds[0] != ControlRecordType.SNAPSHOT_HEADER or kinds[-1] != ControlRecordType.SNAPSHOT_FOOTER:
            raise UnknownMetadataError(f"The snapshot at offset {end_offset} is incomplete")
        replay_batches(buffer, image, ClusterDelta())
    except CorruptRecord as error:
        raise UnknownMetadataError(f"The snapshot at offset {end_offset} is invalid: {error}") from error
    image.offset = end_offset - 1
    image.epoch = epoch
    return image
