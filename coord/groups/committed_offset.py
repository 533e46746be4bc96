"""A committed offset as it is kept in memory: the bytes of its record's value, decoded when it is asked for.

A coordinator may hold a million of them, and nearly all of them are only ever replaced. An object of each, with its
numbers and its topic id, takes three times the memory of its bytes, and most of the time of a load is spent on making
them. Bytes are checked once, when they are put into the store, so that decoding does not fail.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from barnabas.wire.types import ZERO_UUID, Uuid

_VERSION_4: Final = b"\0\4"
_START: Final = Struct(">hqiB")  # version, offset, leader epoch, length of the metadata + 1
_TIMESTAMP: Final = Struct(">q")
_METADATA_AT: Final = _START.size
_SHORT: Final = 0x80  # lengths from here on have two bytes
_NO_TAGS: Final = b"\0"
_TOPIC_ID_TAG: Final = b"\1\0\x10"  # one tagged field: tag 0, 16 bytes
_TOPIC_ID_END: Final = len(_TOPIC_ID_TAG) + 16

_USUAL: Final = Struct(">hqiBq3s16s")
"""A value of version 4 without metadata, with a topic id: what most commits are. It has 42 bytes."""
USUAL_SIZE: Final = _USUAL.size


class CommittedOffset(NamedTuple):
    """The committed offset of a group in one partition."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    """Set only by OffsetCommit v2-4 with a retention time."""
    topic_id: Uuid = ZERO_UUID


def usual_value(offset: int, leader_epoch: int, commit_timestamp_ms: int, topic_id: Uuid) -> bytes:
    """The value of a commit without metadata to a topic with an id; it `is_plain`."""
    return _USUAL.pack(4, offset, leader_epoch, 1, commit_timestamp_ms, _TOPIC_ID_TAG, topic_id)


def checked(value: bytes) -> bytes:
    """The value of a record, which can be decoded. Raises ProtocolError if it is none of a committed offset."""
    if not is_plain(value):
        _decode(value)
    return value


def is_plain(value: bytes) -> bool:
    """Whether it is a value of version 4 with short ASCII metadata and no tagged field but the topic id."""
    if len(value) == 42 and value[14] == 1 and value[:2] == _VERSION_4 and value[23:26] == _TOPIC_ID_TAG:
        return True  # as `_USUAL`
    return _metadata_end(value) > 0


def _metadata_end(value: bytes) -> int:
    """The position after the metadata of a value that `is_plain`, 0 for others."""
    if len(value) <= _METADATA_AT or value[:2] != _VERSION_4:
        return 0
    length = value[_METADATA_AT - 1]
    end = _METADATA_AT + length - 1
    if not 0 < length < _SHORT or not value[_METADATA_AT:end].isascii():
        return 0
    tags = value[end + _TIMESTAMP.size :]
    has_topic_id = len(tags) == _TOPIC_ID_END and tags.startswith(_TOPIC_ID_TAG)
    return end if has_topic_id or tags == _NO_TAGS else 0


def decoded(value: bytes) -> CommittedOffset:
    """The committed offset of a value that was `checked`."""
    if len(value) == 42:
        version, offset, leader_epoch, length, timestamp_ms, tags, topic_id = _USUAL.unpack(value)
        if version == 4 and length == 1 and tags == _TOPIC_ID_TAG:
            return CommittedOffset(offset, leader_epoch, "", timestamp_ms, -1, topic_id)
    end = _metadata_end(value)
    if not end:
        return _decode(value)
    _, offset, leader_epoch, length = _START.unpack_from(value)
    return CommittedOffset(
        offset,
        leader_epoch,
        value[_METADATA_AT:end].decode() if length > 1 else "",
        _TIMESTAMP.unpack_from(value, end)[0],
        -1,
        value[-16:] if len(value) >= end + _TIMESTAMP.size + _TOPIC_ID_END else ZERO_UUID,
    )


def _decode(value: bytes) -> CommittedOffset:
    from barnabas.wire.messages.records.coordinator_records import OffsetCommitValue  # a start does not need it

    read = OffsetCommitValue.decode(value[2:], int.from_bytes(value[:2], "big"))
    return CommittedOffset(
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.expire_timestamp,
        read.topic_id,
    )
