"""Records of `__share_group_state` in Kafka's bytes: a 2-byte type or schema version, then the message (KIP-932)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from barnabas.coord.machine import CoordinatorRecord
from barnabas.coord.share_state.key import SharePartitionKey
from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.coordinator_records import (
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

SHARE_SNAPSHOT = 0
SHARE_UPDATE = 1
_VALUE_VERSION = 0

KEYS_KEPT = 4096
"""Keys are made and read again with every write: those of the share partitions in use are remembered."""


def snapshot_record(key: SharePartitionKey, value: ShareSnapshotValue) -> CoordinatorRecord:
    """The record that says everything of a share partition."""
    return CoordinatorRecord(_snapshot_key(key), _value(value))


def update_record(key: SharePartitionKey, value: ShareUpdateValue) -> CoordinatorRecord:
    """The record that says what has changed since the snapshot."""
    return CoordinatorRecord(_update_key(key), _value(value))


def tombstone(key: SharePartitionKey) -> CoordinatorRecord:
    """The record that forgets a share partition."""
    return CoordinatorRecord(_snapshot_key(key), None)


@lru_cache(KEYS_KEPT)
def read_key(key: bytes) -> tuple[int, SharePartitionKey] | None:
    """Type and share partition of a record; None for types that Kafka 4.4 does not know. ProtocolError: no key."""
    record_type = int.from_bytes(key[:2], "big")
    if record_type not in (SHARE_SNAPSHOT, SHARE_UPDATE):
        return None
    read = (ShareSnapshotKey if record_type == SHARE_SNAPSHOT else ShareUpdateKey).decode(key[2:], 0)
    return record_type, SharePartitionKey(read.group_id, read.topic_id, read.partition)


def read_snapshot(value: bytes) -> ShareSnapshotValue:
    """A snapshot. ProtocolError when the bytes or their version are unknown."""
    return ShareSnapshotValue.decode(_body(value), _VALUE_VERSION)


def read_update(value: bytes) -> ShareUpdateValue:
    """An update. ProtocolError when the bytes or their version are unknown."""
    return ShareUpdateValue.decode(_body(value), _VALUE_VERSION)


def _body(value: bytes) -> bytes:
    version = int.from_bytes(value[:2], "big")
    if version != _VALUE_VERSION:
        raise ProtocolError(f"Records of share state have no version {version}")
    return value[2:]


@lru_cache(KEYS_KEPT)
def _snapshot_key(key: SharePartitionKey) -> bytes:
    return SHARE_SNAPSHOT.to_bytes(2, "big") + ShareSnapshotKey(**key._asdict()).encode(0)


@lru_cache(KEYS_KEPT)
def _update_key(key: SharePartitionKey) -> bytes:
    return SHARE_UPDATE.to_bytes(2, "big") + ShareUpdateKey(**key._asdict()).encode(0)


def _value(value: Message) -> bytes:
    return _VALUE_VERSION.to_bytes(2, "big") + value.encode(_VALUE_VERSION)
