"""The bytes of metadata records.

A record's value is: frame version (unsigned varint, always 1), record type (unsigned varint), version (unsigned
varint), then the message. A record is written in the version that the cluster's metadata.version allows, so that the
older Kafka that formatted a directory can still read it. Source: Kafka 4.4 `MetadataRecordSerde`, `MetadataVersion`.
"""

from __future__ import annotations

from typing import Final

from barnabas.coord.cluster.image import LATEST_METADATA_VERSION, UnknownMetadataError
from barnabas.wire.codec.fields import parse_versions
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.records import metadata_records
from barnabas.wire.schema import Message
from barnabas.wire.varint import encode_unsigned_varint, unsigned_varint

FRAME_VERSION: Final = 1

_REMOTE_LOG_RECORDS: Final = "Remote"

RECORD_TYPES: Final[dict[int, type[Message]]] = {
    declared.api_key: declared
    for name, declared in vars(metadata_records).items()
    if isinstance(declared, type)
    and issubclass(declared, Message)
    and declared is not Message
    and not name.startswith(_REMOTE_LOG_RECORDS)
}
"""The message class of each metadata record type; records of the remote log metadata topic have other types."""


_VERSIONS: Final[dict[type[Message], tuple[tuple[int, int], ...]]] = {
    metadata_records.RegisterBrokerRecord: ((8, 1), (17, 2), (30, 3)),
    metadata_records.BrokerRegistrationChangeRecord: ((17, 1), (30, 2)),
    metadata_records.PartitionRecord: ((17, 0), (23, 1)),
    metadata_records.PartitionChangeRecord: ((17, 0), (23, 1)),
}
"""(metadata.version, record version): the record version below that metadata.version; the newest from there on."""


def record_version(declared: type[Message], metadata_version: int) -> int:
    """The version to write a record type in."""
    for below, version in _VERSIONS.get(declared, ()):
        if metadata_version < below:
            return version
    return declared.max_version


def encode_record(record: Message, metadata_version: int = LATEST_METADATA_VERSION) -> bytes:
    """A record's value, in the version for `metadata_version`; fields that the version does not have are left out."""
    return encode_record_at(record, record_version(type(record), metadata_version))


def encode_record_at(record: Message, version: int) -> bytes:
    """A record's value in one version of its type; fields that the version does not have are left out."""
    header = (encode_unsigned_varint(number) for number in (FRAME_VERSION, record.api_key, version))
    return b"".join(header) + _without_later_fields(record, version).encode(version)


def as_written(record: Message, metadata_version: int) -> Message:
    """What a reader of `encode_record` finds: the record without the fields that its version does not have."""
    return _without_later_fields(record, record_version(type(record), metadata_version))


def _without_later_fields(record: Message, version: int) -> Message:
    if version >= record.max_version:
        return record
    known = [field.name for field in record.declared if version in parse_versions(field.versions)]
    return type(record)(**{name: getattr(record, name) for name in known})


def decode_record(value: bytes) -> Message:
    """The message in a record's value; UnknownMetadataError for an unknown type or version."""
    try:
        frame_version, pos = unsigned_varint(value, 0)
        record_type, pos = unsigned_varint(value, pos)
        version, pos = unsigned_varint(value, pos)
    except (ProtocolError, IndexError) as error:
        raise UnknownMetadataError("A metadata record is truncated") from error
    if frame_version != FRAME_VERSION:
        raise UnknownMetadataError(f"A metadata record has frame version {frame_version}, not {FRAME_VERSION}")
    declared = RECORD_TYPES.get(record_type)
    if declared is None or version not in declared.versions:
        raise UnknownMetadataError(f"Unknown metadata record type {record_type} version {version}")
    try:
        return declared.decode(memoryview(value)[pos:], version)
    except ProtocolError as error:
        raise UnknownMetadataError(f"Invalid {declared.__name__}: {error}") from error
