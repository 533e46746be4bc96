"""Records of `__share_group_state` in Kafka's bytes: a 2-byte type or schema version, then the message (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.machine import CoordinatorRecord
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.coord.short_key_cache import cached_if_short
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.records.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from barnabas.wire.types import Uuid

SHARE_SNAPSHOT = 0
SHARE_UPDATE = 1
_VALUE_VERSION = 0

KEY_CACHE_SIZE = 4096
"""Size of the caches of encoded and decoded keys: every write needs both."""


def snapshot_record(key: SharePartitionKey, value: ShareSnapshotValue) -> CoordinatorRecord:
    """The record with the whole state of a share partition."""
    return CoordinatorRecord(_snapshot_key(*key), _value(value))


def update_record(key: SharePartitionKey, value: ShareUpdateValue) -> CoordinatorRecord:
    """The record with a change since the snapshot."""
    return CoordinatorRecord(_update_key(*key), _value(value))


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """The tombstone that removes a share partition."""
    return CoordinatorRecord(_snapshot_key(*key), None)


@cached_if_short(KEY_CACHE_SIZE)
def read_key(key: bytes) -> tuple[int, SharePartitionKey] | None:
    """Type and key of a record; None for types that Kafka 4.4 does not know. ProtocolError for invalid bytes."""
    record_type = int.from_bytes(key[:2], "big")
    if record_type not in (SHARE_SNAPSHOT, SHARE_UPDATE):
        return None
    read = (ShareSnapshotKey if record_type == SHARE_SNAPSHOT else ShareUpdateKey).decode(key[2:], 0)
    return record_type, SharePartitionKey(read.group_id, read.topic_id, read.partition)


def read_snapshot(value: bytes) -> ShareSnapshotValue:
    """Decode a snapshot. ProtocolError for invalid bytes or an unknown version."""
    return ShareSnapshotValue.decode(_body(value), _VALUE_VERSION)


def read_update(value: bytes) -> ShareUpdateValue:
    """Decode an update. ProtocolError for invalid bytes or an unknown version."""
    return ShareUpdateValue.decode(_body(value), _VALUE_VERSION)


def _body(value: bytes) -> bytes:
    version = int.from_bytes(value[:2], "big")
    if version != _VALUE_VERSION:
        raise ProtocolError(f"Unknown version {version} of a share state record")
    return value[2:]


@cached_if_short(KEY_CACHE_SIZE)
def _snapshot_key(group_id: str, topic_id: Uuid, partition: int) -> bytes:
    key = ShareSnapshotKey(group_id=group_id, topic_id=topic_id, partition=partition)
    return SHARE_SNAPSHOT.to_bytes(2, "big") + key.encode(0)


@cached_if_short(KEY_CACHE_SIZE)
def _update_key(group_id: str, topic_id: Uuid, partition: int) -> bytes:
    key = ShareUpdateKey(group_id=group_id, topic_id=topic_id, partition=partition)
    return SHARE_UPDATE.to_bytes(2, "big") + key.encode(0)


def _value(value: Message) -> bytes:
    return _VALUE_VERSION.to_bytes(2, "big") + value.encode(_VALUE_VERSION)
