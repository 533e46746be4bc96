"""The share groups of one coordinator, and which partitions the share coordinator keeps state for (KIP-932).

Invariant: a partition whose state is being initialized is not given to a second task, unless the first one has failed
or is older than `INITIALIZE_RETRY_S`. Source: Kafka 4.4 `GroupMetadataManager.subscribedTopicsChangeMap`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.share import records
from barnabas.coord.groups.share.group import ShareGroup
from barnabas.coord.groups.share.state_partitions import minus, plus, without
from barnabas.coord.groups.share.tasks import Initialization
from barnabas.coord.machine import Moment, Result
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.share.state_partitions import StatePartitions
    from barnabas.coord.groups.share.tasks import Failures
    from barnabas.coord.groups.topics import Topics

INITIALIZE_RETRY_S = 30.0
"""After this time an initialization that has not ended is started again (Kafka's fixed 30 seconds)."""


class ShareGroupRegistry:
    """Looks up share groups, and keeps track of the initializations under way."""

    def __init__(self, groups: dict[str, Group], topics: Topics) -> None:
        """`groups` are the coordinator's, of every type."""
        self.groups = groups
        self.topics = topics
        self._initializations: dict[str, list[Initialization]] = {}

    def group(self, group_id: str) -> ShareGroup:
        """The share group of this id. KafkaError GROUP_ID_NOT_FOUND."""
        group = self.groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        if not isinstance(group, ShareGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")
        return group

    def group_or_new(self, group_id: str) -> ShareGroup:
        """The share group of this id, or a new one, which its first record adds to the coordinator's groups."""
        return self.group(group_id) if group_id in self.groups else ShareGroup(group_id)

    def find(self, group_id: str) -> ShareGroup | None:
        """The share group of this id, if there is one."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def __iter__(self) -> Iterator[ShareGroup]:
        return (group for group in self.groups.values() if isinstance(group, ShareGroup))

    def write_states(self, group: ShareGroup, state: StatePartitions, result: Result) -> None:
        """Add the record that makes `state` the group's."""
        result.records.append(records.state_partitions_record(group.group_id, state.as_value(self.topics)))

    # ---- initializations

    def begin(self, group: ShareGroup, partitions: Partitions, at: Moment, result: Result) -> Initialization:
        """Record that the state of these partitions is being initialized."""
        self.write_states(group, group.state_partitions.begun(partitions), result)
        begun = Initialization(group.group_id, partitions, at.now)
        self._initializations.setdefault(group.group_id, []).append(begun)

        def undo(_: Moment) -> Result:
            self._remove(begun)
            return Result()

        result.on_failure(undo)
        return begun

    def under_way(self, group_id: str, at: Moment) -> list[Initialization]:
        """The group's initializations that have not ended and are not due for a retry, oldest first."""
        begun = self._initializations.get(group_id, ())
        return [initialization for initialization in begun if at.now - initialization.since < INITIALIZE_RETRY_S]

    def without_task(self, group_id: str, partitions: Partitions, at: Moment) -> Partitions:
        """The partitions whose initialization is not in progress."""
        busy: Partitions = {}
        for initialization in self.under_way(group_id, at):
            busy = plus(busy, initialization.partitions)
        return minus(partitions, busy)

    def end(self, initialization: Initialization, failures: Failures, result: Result) -> None:
        """Record for which partitions the share coordinator keeps state now."""
        self._remove(initialization)
        group = self.find(initialization.group_id)
        if group is None:
            return  # deleted meanwhile
        partitions = initialization.partitions
        deleted = {topic_id for topic_id in partitions if self.topics.by_id(topic_id) is None}
        failed = {topic_id: frozenset(failures.get(topic_id, ())) for topic_id in partitions}
        done = without(minus(partitions, failed), deleted)
        self.write_states(group, group.state_partitions.ended(done, failed).without_topics(deleted), result)

    def _remove(self, initialization: Initialization) -> None:
        remaining = [
            other for other in self._initializations.get(initialization.group_id, ()) if other is not initialization
        ]
        if remaining:
            self._initializations[initialization.group_id] = remaining
        else:
            self._initializations.pop(initialization.group_id, None)
