"""Keys and values of the records of one group type (KIP-848, KIP-932, KIP-1071).

A key is (group id) or (group id, member id or regular expression), always of version 0; so are the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.coord.groups.records import prefixed
from barnabas.coord.machine import CoordinatorRecord

if TYPE_CHECKING:
    from barnabas.coord.machine import Moment
    from barnabas.wire.schema import Message

M = TypeVar("M")
T = TypeVar("T")

_VERSION = 0


class RecordTypes:
    """The record types of one group type, by their number (Kafka's `CoordinatorRecordType`)."""

    def __init__(self, classes: Mapping[int, tuple[type[Message], type[Message]]]) -> None:
        """`classes` are the classes of key and value of each type."""
        self._classes = dict(classes)

    def __contains__(self, record_type: int) -> bool:
        return record_type in self._classes

    def __iter__(self) -> Iterator[int]:
        return iter(self._classes)

    def read_key(self, record_type: int, key: bytes) -> tuple[str, str]:
        """Group id, and member id or regular expression ("" where the key has none). Raises ProtocolError."""
        fields: Any = self._classes[record_type][0].decode(key, _VERSION)
        return fields.group_id, getattr(fields, "member_id", "") or getattr(fields, "regular_expression", "")

    def read_value(self, record_type: int, value: bytes) -> Message:
        """The value of a record, of any version. Raises ProtocolError."""
        return self._classes[record_type][1].decode(value[2:], int.from_bytes(value[:2], "big"))

    def record(self, record_type: int, value: Message, **key: str) -> CoordinatorRecord:
        """A record; `key` has the fields of the key."""
        return CoordinatorRecord(self._key(record_type, key), prefixed(_VERSION, value, _VERSION))

    def tombstone(self, record_type: int, **key: str) -> CoordinatorRecord:
        """The record that removes what a key names."""
        return CoordinatorRecord(self._key(record_type, key), None)

    def tombstones(self, record_types: Iterable[int], **key: str) -> list[CoordinatorRecord]:
        """Tombstones of several types with the same fields of the key, in this order."""
        return [self.tombstone(record_type, **key) for record_type in record_types]

    def _key(self, record_type: int, fields: dict[str, str]) -> bytes:
        key_class: Any = self._classes[record_type][0]
        return prefixed(record_type, key_class(**fields), _VERSION)


class GroupRecords(Protocol[M, T]):
    """The module `records` of a group type with members `M` and target assignments `T`."""

    GROUP_METADATA: int
    MEMBER_METADATA: int
    TARGET_ASSIGNMENT_METADATA: int
    TARGET_ASSIGNMENT_MEMBER: int
    CURRENT_ASSIGNMENT: int

    def new_member(self, member_id: str, /) -> M:
        """A member of which only the id is known."""

    def with_metadata(self, member: M, value: Any, /) -> M:
        """The member with the metadata of this record."""

    def with_assignment(self, member: M, value: Any, /) -> M:
        """The member with the assignment of this record."""

    def without_assignment(self, member: M, /) -> M:
        """The member after the tombstone of its assignment."""

    def read_target(self, value: Any, /) -> T:
        """The target assignment of this record."""

    def member_metadata(self, group_id: str, member: M, /) -> CoordinatorRecord:
        """The record with the member's identity and subscription."""

    def target_epoch(self, group_id: str, epoch: int, timestamp_ms: int, /) -> CoordinatorRecord:
        """All target assignments of this epoch are written."""

    def target_assignment(self, group_id: str, member_id: str, target: T, /) -> CoordinatorRecord:
        """The member's target assignment."""

    def current_assignment(self, group_id: str, member: M, /) -> CoordinatorRecord:
        """The member's assignment, and how far it has come towards its target."""

    def member_tombstones(self, group_id: str, member_id: str, /) -> list[CoordinatorRecord]:
        """The records that remove a member."""


def target_records(
    records: GroupRecords[Any, T],
    group_id: str,
    before: Mapping[str, T],
    after: Mapping[str, T],
    epoch: int,
    at: Moment,
) -> list[CoordinatorRecord]:
    """The records that replace the target assignments `before` by `after`, in `epoch`."""
    changed = [
        records.target_assignment(group_id, member_id, target)
        for member_id, target in after.items()
        if before.get(member_id) != target
    ]
    return [*changed, records.target_epoch(group_id, epoch, at.now_ms)]
