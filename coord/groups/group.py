"""The interface between `GroupCoordinator` and the group types.

A group type is a package with a class that serves all groups of its type (`GroupType`), and a class of the groups
(`Group`). Groups of all types are in one dictionary by group id, since an id belongs to one group, whatever its type
(KIP-848, KIP-932, KIP-1071). A type is created with its first record or request.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from enum import Enum

    from barnabas.coord.machine import CoordinatorRecord, Moment, Result
    from barnabas.wire.messages.groups.offsets import OffsetCommitRequest

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""The names of the types, in ListGroups and in configuration."""


class Group(Protocol):
    """One group of any type."""

    group_type: ClassVar[str]

    @property
    def group_id(self) -> str:
        """The name of the group, unique among groups of all types."""

    @property
    def protocol_type(self) -> str | None:
        """The protocol type in ListGroups; None or "" before the first member."""

    @property
    def state(self) -> Enum:
        """The state of the group; its text is the name in ListGroups."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no members; only then may the group be deleted or replaced by one of another type."""

    def is_subscribed_to(self, topic: str, /) -> bool:
        """Whether members subscribe to `topic`; its offsets cannot be deleted then."""

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:
        """KafkaError unless the group accepts this OffsetCommit or, if transactional, TxnOffsetCommit."""

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError unless this OffsetFetch may read the group's offsets; member_epoch -1: not sent by a member."""

    def validate_offset_delete(self) -> None:
        """KafkaError unless single offsets of the group may be deleted now (OffsetDelete)."""

    def validate_delete(self) -> None:
        """KafkaError unless the whole group may be deleted now (DeleteGroups)."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, without its offsets."""


class GroupType(Protocol):
    """All groups of one type: their events and timers."""

    timer_key: ClassVar[type]
    """The class of its timer keys: named tuples whose first field is a text that no other type uses."""

    def replay(self, record_type: int, key: bytes, value: bytes | None, at: Moment, /) -> None:
        """Apply a record in the log; `key` is without its 2-byte record type, `value` with its 2-byte version."""

    def loaded(self, at: Moment, result: Result, /) -> None:
        """The whole log has been replayed: start the timers."""

    def forget(self, group_id: str, /) -> None:
        """Cancel every timer of a group that is removed."""

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result, /) -> None:
        """These topics were created, deleted or changed."""

    def due(self, key: Any, at: Moment, result: Result, /) -> None:
        """One of its timers has expired."""
