"""Records of `__consumer_offsets` in Kafka's bytes: a 2-byte schema version, then the message.

The version of a key is the type of the record (Kafka's `CoordinatorRecordType`): 0 and 1 are an offset, 2 is a classic
group; 3 and up belong to the other group types, whose packages read them (`TYPE_OF_RECORD`). Values have the versions
that Kafka 4.4 writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.group import CONSUMER, SHARE, STREAMS
from barnabas.coord.machine import CoordinatorRecord
from barnabas.coord.short_key_cache import cached_if_short
from barnabas.wire.messages.records.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

OFFSET_COMMIT = 1
GROUP_METADATA = 2

TYPE_OF_RECORD: dict[int, str] = {
    **dict.fromkeys((3, 4, 5, 6, 7, 8, 16), CONSUMER),
    **dict.fromkeys((10, 11, 12, 13, 14, 15), SHARE),
    **dict.fromkeys((17, 18, 19, 20, 21, 22, 23), STREAMS),
}
"""The group type of each record type from 3 on."""

GROUP_METADATA_VALUE_VERSION = 3
OFFSET_COMMIT_VALUE_VERSION = 4
OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY = 1  # the only one with expire_timestamp

KEYS_KEPT = 4096
"""How many encoded and decoded keys are cached, since every commit needs its partitions' keys."""

_KEY_VERSION = 0  # the 2-byte prefix of a key is the record type, not this version


def prefixed(prefix: int, message: Message, version: int) -> bytes:
    """A message after its 2-byte prefix: the record type of a key, the version of a value."""
    return prefix.to_bytes(2, "big") + message.encode(version)


def offset_commit(key: OffsetCommitKey, value: OffsetCommitValue) -> CoordinatorRecord:
    """The record of one committed offset."""
    with_expiry = value.expire_timestamp >= 0
    version = OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY if with_expiry else OFFSET_COMMIT_VALUE_VERSION
    return CoordinatorRecord(offset_key(key.group, key.topic, key.partition), prefixed(version, value, version))


@cached_if_short(KEYS_KEPT)
def offset_key(group: str, topic: str, partition: int) -> bytes:
    """The key of one committed offset."""
    return prefixed(OFFSET_COMMIT, OffsetCommitKey(group=group, topic=topic, partition=partition), _KEY_VERSION)


def offset_key_prefix(group: str) -> bytes:
    """The bytes with which the keys of all of a group's offsets start, and no other keys."""
    return offset_key(group, "", 0)[:-6]  # without the topic's length and the partition


def offset_tombstone(group: str, topic: str, partition: int) -> CoordinatorRecord:
    """The record that removes one committed offset."""
    return CoordinatorRecord(offset_key(group, topic, partition), None)


def group_metadata(group: str, value: GroupMetadataValue) -> CoordinatorRecord:
    """The record of a classic group's generation, members and assignments."""
    version = GROUP_METADATA_VALUE_VERSION
    key = prefixed(GROUP_METADATA, GroupMetadataKey(group=group), _KEY_VERSION)
    return CoordinatorRecord(key, prefixed(version, value, version))


def group_tombstone(group: str) -> CoordinatorRecord:
    """The record that removes a classic group."""
    return CoordinatorRecord(prefixed(GROUP_METADATA, GroupMetadataKey(group=group), _KEY_VERSION), None)


@cached_if_short(KEYS_KEPT)
def read_key(key: bytes) -> OffsetCommitKey | GroupMetadataKey | None:
    """The key of an offset or a classic group; None for records of other types. Raises ProtocolError."""
    record_type = int.from_bytes(key[:2], "big")
    if record_type == OFFSET_COMMIT:
        return OffsetCommitKey.decode(key[2:], _KEY_VERSION)
    if record_type == GROUP_METADATA:
        return GroupMetadataKey.decode(key[2:], _KEY_VERSION)
    if record_type == 0:
        legacy = LegacyOffsetCommitKey.decode(key[2:], 0)
        return OffsetCommitKey(group=legacy.group, topic=legacy.topic, partition=legacy.partition)
    return None


def read_offset(value: bytes) -> OffsetCommitValue:
    """The value of a committed offset, of any version. Raises ProtocolError."""
    return OffsetCommitValue.decode(value[2:], int.from_bytes(value[:2], "big"))


def read_group(value: bytes) -> GroupMetadataValue:
    """The value of a classic group, of any version. Raises ProtocolError."""
    return GroupMetadataValue.decode(value[2:], int.from_bytes(value[:2], "big"))
