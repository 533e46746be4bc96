"""The group types of one coordinator; each is created, and its package imported, when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from barnabas.coord.groups.group import CONSUMER, SHARE, STREAMS
from barnabas.coord.groups.records import TYPE_OF_RECORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.coord.groups.consumer.groups import ConsumerGroups
    from barnabas.coord.groups.coordinator_parts import CoordinatorParts
    from barnabas.coord.groups.group import GroupType
    from barnabas.coord.groups.share.groups import ShareGroups
    from barnabas.coord.groups.streams.groups import StreamsGroups


class GroupTypes:
    """All group types except the classic one, see `coord.groups.group`."""

    def __init__(self, parts: CoordinatorParts) -> None:
        self._parts = parts
        self._types: dict[str, GroupType] = {}
        self._type_of_timer: dict[type, GroupType] = {}

    def __iter__(self) -> Iterator[GroupType]:
        """The types that have been created."""
        return iter(self._types.values())

    def of_record(self, record_type: int) -> GroupType | None:
        """The type that records of this type belong to; None for record types of newer releases."""
        name = TYPE_OF_RECORD.get(record_type)
        return None if name is None else self.get(name)

    def of_timer(self, key: object) -> GroupType:
        """The type that has set this timer."""
        return self._type_of_timer[type(key)]

    def get(self, name: str) -> GroupType:
        """The type of this name."""
        group_type = self._types.get(name)
        if group_type is None:
            group_type = self._types[name] = self._make(name)
            self._type_of_timer[group_type.timer_key] = group_type
        return group_type

    def _make(self, name: str) -> GroupType:
        if name == CONSUMER:
            from barnabas.coord.groups.consumer.groups import ConsumerGroups

            return ConsumerGroups(self._parts)
        if name == STREAMS:
            from barnabas.coord.groups.streams.groups import StreamsGroups

            return StreamsGroups(self._parts)
        assert name == SHARE, name
        from barnabas.coord.groups.share.groups import ShareGroups

        return ShareGroups(self._parts)

    @property
    def streams_groups(self) -> StreamsGroups:
        """The groups of Kafka Streams applications (KIP-1071)."""
        return cast("StreamsGroups", self.get(STREAMS))

    @property
    def share_groups(self) -> ShareGroups:
        """Share groups (KIP-932)."""
        return cast("ShareGroups", self.get(SHARE))

    @property
    def consumer_groups(self) -> ConsumerGroups:
        """Groups of the consumer protocol (KIP-848)."""
        return cast("ConsumerGroups", self.get(CONSUMER))
