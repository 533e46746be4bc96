"""What one coordinator's groups of all types have in common: the seam between `GroupCoordinator` and the types.

A group type is a package with one class that serves all groups of its type (`GroupType`), and a class of the groups
themselves (`Group`). They all live in one dictionary by group id, since an id belongs to one group, whatever its type
(KIP-848, KIP-932, KIP-1071). A type is made when its first record or request comes.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from enum import Enum

    from barnabas.coord.machine import CoordinatorRecord, Moment, Result
    from barnabas.wire.messages.offsets import OffsetCommitRequest

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""The names of the types, in ListGroups and in configuration."""


class Group(Protocol):
    """One group of any type."""

    group_type: ClassVar[str]

    @property
    def group_id(self) -> str:
        """The name, one group's whatever its type."""

    @property
    def protocol_type(self) -> str | None:
        """What ListGroups shows as protocol type; None or "" before the first member."""

    @property
    def state(self) -> Enum:
        """Where the group stands; its text is the name that ListGroups shows."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no members: only then may the group be deleted or taken over by another type."""

    def is_subscribed_to(self, topic: str, /) -> bool:
        """Whether members read `topic`: its offsets cannot be deleted then."""

    def validate_commit(self, request: OffsetCommitRequest, api_version: int, *, is_transactional: bool) -> None:
        """KafkaError unless the group takes this OffsetCommit or, if transactional, TxnOffsetCommit."""

    def validate_fetch(self, member_id: str | None, member_epoch: int) -> None:
        """KafkaError unless the group gives its offsets to this OffsetFetch; member_epoch -1: asked by no member."""

    def validate_offset_delete(self) -> None:
        """KafkaError unless single offsets of the group may be deleted now (OffsetDelete)."""

    def validate_delete(self) -> None:
        """KafkaError unless the whole group may be deleted now (DeleteGroups)."""

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, its offsets apart."""


class GroupType(Protocol):
    """All groups of one type: what happens to them, and their timers."""

    timer_key: ClassVar[type]
    """The class of its timers' keys. Keys are named tuples that begin with a text no other type's begin with."""

    def replay(self, record_type: int, key: bytes, value: bytes | None, at: Moment, /) -> None:
        """A record of this type is in the log; key and value begin behind and with their version, respectively."""

    def loaded(self, at: Moment, result: Result, /) -> None:
        """The whole log has been replayed: time begins to run for what is there."""

    def forget(self, group_id: str, /) -> None:
        """Cancel every timer of a group that goes away."""

    def metadata_changed(self, topics: Collection[str], at: Moment, result: Result, /) -> None:
        """These topics came, went, or changed."""

    def due(self, key: Any, at: Moment, result: Result, /) -> None:
        """One of its timers has come due."""
