"""The bytes of metadata records, and the batches and checkpoints they travel in.

A record's value is: frame version (unsigned varint, always 1), record type (unsigned varint), version
(unsigned varint), then the message. A checkpoint is a file of record batches: a SNAPSHOT_HEADER control batch, the
records of a whole image, a SNAPSHOT_FOOTER control batch; its name is `<end offset, 20 digits>-<epoch, 10
digits>.checkpoint`. A record is written in the version that the cluster's metadata.version allows, so that an older
Kafka that formatted a directory can go on with it. Source: Kafka 4.4 `MetadataRecordSerde`, `RecordsSnapshotWriter`,
`MetadataVersion`. KIP-595, KIP-630.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.image import LATEST_METADATA_VERSION, ClusterDelta, ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.quorum import Quorum
from barnabas.wire.errors import ProtocolError
from barnabas.wire.fields import parse_versions
from barnabas.wire.messages import metadata_records
from barnabas.wire.messages.raft_records import (
    LeaderChangeMessage,
    LeaderChangeMessageVoter,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
)
from barnabas.wire.records import (
    BatchBuilder,
    BatchView,
    ControlRecordType,
    CorruptRecord,
    control_key,
    control_record_type,
    iter_batches,
    iter_records,
)
from barnabas.wire.schema import Message
from barnabas.wire.varint import encode_unsigned_varint, unsigned_varint

if TYPE_CHECKING:
    from barnabas.wire.compression import Buffer

FRAME_VERSION: Final = 1
CHECKPOINT_SUFFIX: Final = ".checkpoint"
RECORDS_PER_BATCH: Final = 1000
"""Records in one batch of a checkpoint; a log batch has as many as were written together."""

_REMOTE_LOG_RECORDS: Final = "Remote"

RECORD_TYPES: Final[dict[int, type[Message]]] = {
    declared.api_key: declared
    for name, declared in vars(metadata_records).items()
    if isinstance(declared, type)
    and issubclass(declared, Message)
    and declared is not Message
    and not name.startswith(_REMOTE_LOG_RECORDS)
}
"""The message of each metadata record type; the remote-log topic has types of its own."""


_VERSIONS: Final[dict[type[Message], tuple[tuple[int, int], ...]]] = {
    metadata_records.RegisterBrokerRecord: ((8, 1), (17, 2), (30, 3)),
    metadata_records.BrokerRegistrationChangeRecord: ((17, 1), (30, 2)),
    metadata_records.PartitionRecord: ((17, 0), (23, 1)),
    metadata_records.PartitionChangeRecord: ((17, 0), (23, 1)),
}
"""Below which metadata.version a record is written in which version; in its newest from there on."""


def record_version(declared: type[Message], metadata_version: int) -> int:
    """The version in which a kind of record is written."""
    for below, version in _VERSIONS.get(declared, ()):
        if metadata_version < below:
            return version
    return declared.max_version


def encode_record(record: Message, metadata_version: int = LATEST_METADATA_VERSION) -> bytes:
    """A record's value, in the version that goes with a metadata.version, without what that version lacks."""
    version = record_version(type(record), metadata_version)
    if version < record.max_version:
        known = [field.name for field in record.declared if version in parse_versions(field.versions)]
        record = type(record)(**{name: getattr(record, name) for name in known})
    head = (encode_unsigned_varint(number) for number in (FRAME_VERSION, record.api_key, version))
    return b"".join(head) + record.encode(version)


def decode_record(value: bytes) -> Message:
    """The message in a record's value; UnknownMetadataError for a type or version that is not known here."""
    try:
        frame_version, pos = unsigned_varint(value, 0)
        record_type, pos = unsigned_varint(value, pos)
        version, pos = unsigned_varint(value, pos)
    except (ProtocolError, IndexError) as error:
        raise UnknownMetadataError("A metadata record is cut off") from error
    if frame_version != FRAME_VERSION:
        raise UnknownMetadataError(f"A metadata record has frame version {frame_version}, not {FRAME_VERSION}")
    declared = RECORD_TYPES.get(record_type)
    if declared is None or version not in declared.versions:
        raise UnknownMetadataError(f"Metadata record type {record_type} version {version} is not understood here")
    try:
        return declared.decode(memoryview(value)[pos:], version)
    except ProtocolError as error:
        raise UnknownMetadataError(f"A {declared.__name__} cannot be read: {error}") from error


def build_metadata_batch(
    records: Sequence[Message],
    *,
    epoch: int,
    now_ms: int,
    base_offset: int = 0,
    metadata_version: int = LATEST_METADATA_VERSION,
) -> bytes:
    """One batch of records written together."""
    builder = BatchBuilder(base_offset, partition_leader_epoch=epoch)
    for record in records:
        builder.append(now_ms, None, encode_record(record, metadata_version))
    return builder.build()


def leader_change_batch(
    *, leader_id: int, epoch: int, now_ms: int, base_offset: int = 0, quorum: Quorum | None = None
) -> bytes:
    """What a quorum's leader writes first in its epoch; here the quorum is this node alone.

    At the beginning of a log `quorum` follows it. Kafka reads a LeaderChange as version 0 whatever the kraft.version.
    """
    voters = [LeaderChangeMessageVoter(voter_id=leader_id)]
    change = LeaderChangeMessage(leader_id=leader_id, voters=voters, granting_voters=voters)
    records = [(ControlRecordType.LEADER_CHANGE, change), *(() if quorum is None else quorum.records())]
    return _control_batch(records, base_offset, epoch, now_ms)


def replay_batches(buffer: Buffer, image: ClusterImage, delta: ClusterDelta, *, partial_ok: bool = False) -> None:
    """Replay every metadata record of a run of batches, and move the image's offset and epoch along.

    With `partial_ok` the last batch may be cut, as it is in what a log gives to read: it is left alone.
    """
    for batch in iter_batches(buffer, partial_ok=partial_ok):
        if not batch.crc_is_valid():
            raise UnknownMetadataError(f"The metadata batch at offset {batch.base_offset} fails its checksum")
        if batch.is_control:
            _replay_control(batch, image)
        else:
            for record in iter_records(batch):
                if record.value is None:
                    raise UnknownMetadataError(f"The metadata record at offset {record.offset} has no value")
                image.replay(decode_record(record.value), delta)
        image.offset = batch.last_offset
        image.epoch = max(image.epoch, batch.partition_leader_epoch)


def _replay_control(batch: BatchView, image: ClusterImage) -> None:
    for record in iter_records(batch):
        try:
            image.quorum = image.quorum.after(control_record_type(record), record.value or b"")
        except (ValueError, ProtocolError, CorruptRecord) as error:
            raise UnknownMetadataError(
                f"The control record at offset {record.offset} cannot be read: {error}"
            ) from error


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """The file name of the snapshot that holds everything below `end_offset`."""
    return f"{end_offset:020d}-{epoch:010d}{CHECKPOINT_SUFFIX}"


def parse_checkpoint_name(name: str) -> tuple[int, int] | None:
    """(end offset, epoch) of a checkpoint's name; None for any other file."""
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
    """The batches of a snapshot, header and footer included. Offsets in it count from 0."""
    header = SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp_ms)
    control = [(ControlRecordType.SNAPSHOT_HEADER, header), *quorum.records()]
    yield _control_batch(control, 0, epoch, now_ms)
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
    yield _control_batch([(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord())], offset, epoch, now_ms)


def _control_batch(records: Iterable[tuple[int, Message]], offset: int, epoch: int, now_ms: int) -> bytes:
    builder = BatchBuilder(offset, control=True, partition_leader_epoch=epoch)
    for kind, message in records:
        builder.append(now_ms, control_key(kind), message.encode(0))
    return builder.build()


def load_checkpoint(buffer: Buffer, end_offset: int, epoch: int) -> ClusterImage:
    """The image in a snapshot; UnknownMetadataError unless it is whole, from header to footer."""
    image = ClusterImage()
    try:
        kinds = [control_record_type(next(iter_records(batch))) for batch in iter_batches(buffer) if batch.is_control]
        if not kinds or kinds[0] != ControlRecordType.SNAPSHOT_HEADER or kinds[-1] != ControlRecordType.SNAPSHOT_FOOTER:
            raise UnknownMetadataError(f"The snapshot at offset {end_offset} is not whole")
        replay_batches(buffer, image, ClusterDelta())
    except CorruptRecord as error:
        raise UnknownMetadataError(f"The snapshot at offset {end_offset} cannot be read: {error}") from error
    image.offset = end_offset - 1
    image.epoch = epoch
    return image
