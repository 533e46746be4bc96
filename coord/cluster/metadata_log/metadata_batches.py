"""Batches of metadata records and of the control records of the metadata log (KIP-595)."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import LATEST_METADATA_VERSION, ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.metadata_serde import as_written, decode_record, encode_record
from barnabas.coord.cluster.metadata_log.replay import replay_in_steps
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.batches.records import (
    BatchBuilder,
    BatchView,
    ControlRecordType,
    CorruptRecord,
    control_key,
    control_record_type,
    iter_batches,
    iter_records,
)
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.records.raft_records import (
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
)
from barnabas.wire.schema import Message
from barnabas.wire.steps import result_of

if TYPE_CHECKING:
    from barnabas.wire.batches.decompression import Buffer


RECORDS_PER_STEP: Final = 25
"""The number of records that are encoded in one step."""


def build_metadata_batch(
    records: Sequence[Message],
    *,
    epoch: int,
    now_ms: int,
    base_offset: int = 0,
    metadata_version: int = LATEST_METADATA_VERSION,
) -> bytes:
    """One batch of metadata records."""
    return result_of(
        build_metadata_batch_in_steps(
            records, epoch=epoch, now_ms=now_ms, base_offset=base_offset, metadata_version=metadata_version
        )
    )


def build_metadata_batch_in_steps(
    records: Sequence[Message], *, epoch: int, now_ms: int, base_offset: int = 0, metadata_version: int
) -> Generator[None, None, bytes]:
    """`build_metadata_batch`; yields after each `RECORDS_PER_STEP` records."""
    builder = BatchBuilder(base_offset, partition_leader_epoch=epoch)
    for record in records:
        builder.append(now_ms, None, encode_record(record, metadata_version))
        if builder.count % RECORDS_PER_STEP == 0:
            yield
    return builder.build()


def as_written_in_steps(records: Sequence[Message], metadata_version: int) -> Generator[None, None, Sequence[Message]]:
    """The records as readers of a batch of them find them; yields after each `RECORDS_PER_STEP` records."""
    if metadata_version >= LATEST_METADATA_VERSION:
        return records
    messages: list[Message] = []
    for record in records:
        messages.append(as_written(record, metadata_version))
        if len(messages) % RECORDS_PER_STEP == 0:
            yield
    return messages


def leader_change_batch(
    *, leader_id: int, epoch: int, now_ms: int, base_offset: int = 0, quorum: Quorum | None = None
) -> bytes:
    """The control batch that a leader writes first in its epoch, for a quorum of this node alone.

    At the beginning of a log it includes `quorum`. Kafka reads LeaderChange as version 0 with every kraft.version.
    """
    voters = [LeaderChangeMessageVoter(voter_id=leader_id)]
    change = LeaderChangeMessage(leader_id=leader_id, voters=voters, granting_voters=voters)
    records = [(ControlRecordType.LEADER_CHANGE, change), *(() if quorum is None else quorum.records())]
    return control_batch(records, base_offset, epoch, now_ms)


def replay_batches(buffer: Buffer, image: ClusterImage, delta: ClusterDelta, *, partial_ok: bool = False) -> None:
    """Replay all metadata records of consecutive batches, and advance the image's offset and epoch.

    With `partial_ok` the last batch may be incomplete, as in a read of a log, and is ignored.
    """
    result_of(replay_batches_in_steps(buffer, image, delta, partial_ok=partial_ok))


def replay_batches_in_steps(
    buffer: Buffer, image: ClusterImage, delta: ClusterDelta, *, partial_ok: bool = True
) -> Generator[None, None, None]:
    """As `replay_batches`; yields after each `RECORDS_PER_STEP` records.

    The image's offset advances with each batch, so it never shows a part of one.
    """
    for batch in iter_batches(buffer, partial_ok=partial_ok):
        if not batch.crc_is_valid():
            raise UnknownMetadataError(f"The metadata batch at offset {batch.base_offset} has an invalid CRC")
        if batch.is_control:
            _replay_control(batch, image)
        else:
            yield from _replay_data(batch, image, delta)
        image.offset = batch.last_offset
        image.epoch = max(image.epoch, batch.partition_leader_epoch)


def _replay_data(batch: BatchView, image: ClusterImage, delta: ClusterDelta) -> Generator[None, None, None]:
    records: list[Message] = []
    for count, record in enumerate(iter_records(batch), 1):
        if record.value is None:
            raise UnknownMetadataError(f"The metadata record at offset {record.offset} has no value")
        records.append(decode_record(record.value))
        if count % RECORDS_PER_STEP == 0:
            yield
    yield from replay_in_steps(image, records, delta)


def _replay_control(batch: BatchView, image: ClusterImage) -> None:
    for record in iter_records(batch):
        try:
            image.quorum = image.quorum.after(control_record_type(record), record.value or b"")
        except (ValueError, ProtocolError, CorruptRecord) as error:
            raise UnknownMetadataError(f"Invalid control record at offset {record.offset}: {error}") from error


def control_batch(records: Iterable[tuple[int, Message]], offset: int, epoch: int, now_ms: int) -> bytes:
    builder = BatchBuilder(offset, control=True, partition_leader_epoch=epoch)
    for kind, message in records:
        builder.append(now_ms, control_key(kind), message.encode(0))
    return builder.build()
