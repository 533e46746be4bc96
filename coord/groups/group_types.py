"""The group types of one coordinator; each is created, and its package imported, when it is first needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from barnabas.coord.groups.group import CONSUMER, SHARE, STREAMS
from barnabas.coord.groups.records import TYPE_OF_RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from barnabas.coord.groups.classic.rebalance import Rebalance
    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.consumer.groups import ConsumerGroups
    from barnabas.coord.groups.group import Group, GroupType
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.share.groups import ShareGroups
    from barnabas.coord.groups.streams.groups import StreamsGroups
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.timers import Timers


class GroupTypes:
    """All group types except the classic one, see `coord.groups.group`."""

    def __init__(
        self,
        groups: dict[str, Group],
        timers: Timers,
        topics: Topics,
        config: GroupConfig,
        group_configs: GroupConfigs,
        new_id: Callable[[], str],
        rebalance: Rebalance,
    ) -> None:
        self._groups = groups
        self._timers = timers
        self._topics = topics
        self._config = config
        self._group_configs = group_configs
        self._new_id = new_id
        self._rebalance = rebalance
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

            return ConsumerGroups(
                self._groups,
                self._timers,
                self._topics,
                self._config,
                self._group_configs,
                self._new_id,
                self._rebalance,
            )
        if name == STREAMS:
            from barnabas.coord.groups.streams.groups import StreamsGroups

            return StreamsGroups(self._groups, self._timers, self._topics, self._config, self._group_configs)
        assert name == SHARE, name
        from barnabas.coord.groups.share.groups import ShareGroups

        max_size = self._config.share_max_size
        return ShareGroups(self._groups, self._timers, self._topics, self._group_configs, max_size)

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
