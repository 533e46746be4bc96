"""The coordinator of the groups of one partition of `__consumer_offsets` (rules G1, G2).

A pure state machine, see `coord.machine`. Durable state is what `replay` builds: the offsets and, of each group, its
last recorded generation or assignment. During a rebalance a classic group is ahead of its records; when it is Stable or
Empty, loading the log gives the same group. `describe`, `list_groups` and the fetch of offsets only read; every other
event returns a `Result`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from barnabas.coord.coordinator import APPEND_ERRORS, Coordinator
from barnabas.coord.groups import records
from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.membership import Membership
from barnabas.coord.groups.classic.rebalance import Rebalance, TimerKey
from barnabas.coord.groups.classic.responses import describe_group, join_error, listed_group, sync_error
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.classic_requests import ClassicRequests
from barnabas.coord.groups.committed_offset import is_plain
from barnabas.coord.groups.coordinator_parts import CoordinatorParts
from barnabas.coord.groups.group import SHARE
from barnabas.coord.groups.group_offsets import GroupOffsets
from barnabas.coord.groups.group_types import GroupTypes
from barnabas.coord.groups.limits import GroupLimits
from barnabas.coord.groups.settings import default_group_configs
from barnabas.coord.groups.topics import NoTopics
from barnabas.coord.machine import CoordinatorRecord, Moment, Result
from barnabas.coord.short_key_cache import LONGEST_KEPT
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import DeletableGroupResult
from barnabas.wire.messages.records.coordinator_records import OffsetCommitKey

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Hashable, Iterator

    from barnabas.coord.groups.config import GroupConfig
    from barnabas.coord.groups.consumer.groups import ConsumerGroups
    from barnabas.coord.groups.group import Group
    from barnabas.coord.groups.settings import GroupConfigs
    from barnabas.coord.groups.share.groups import ShareGroups
    from barnabas.coord.groups.streams.groups import StreamsGroups
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import Ticket
    from barnabas.wire.messages.groups.classic_groups import DescribeGroupsResponseDescribedGroup, ListedGroup

PREFIXES_KEPT: Final = 4096
"""How many pairs of group and topic are remembered at a time: about a megabyte."""
PARTITIONS_KEPT: Final = 16384
"""How many partition indexes are kept for all groups together: offsets of the same partition share one number."""

_indexes: dict[bytes, int] = {}


class GroupCoordinator(Coordinator):
    """All groups whose id is mapped to one partition of `__consumer_offsets`."""

    append_errors: ClassVar = {
        **APPEND_ERRORS,
        ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
    }
    """Kafka's `appendGroupMetadataErrorToResponseError`."""

    def __init__(
        self,
        config: GroupConfig,
        new_id: Callable[[], str],
        topics: Topics | None = None,
        group_configs: GroupConfigs = default_group_configs,
        group_count: Callable[[], int] | None = None,
    ) -> None:
        """`new_id` returns a new random text, the end of a member id; `topics` are the cluster's.

        `group_count` is the number of groups of all coordinators of the broker; by default this is the only one.
        """
        super().__init__()
        self.groups: dict[str, Group] = {}
        self.limits = GroupLimits(self.groups, config, group_count or self.groups.__len__)
        """Checked before requests that bring data."""
        self._config = config
        self._rebalance = Rebalance(self._timers, config)
        self._types = GroupTypes(
            CoordinatorParts(
                self.groups, self._timers, topics or NoTopics(), config, group_configs, new_id, self._rebalance
            )
        )
        self.offsets = GroupOffsets(self.groups, config, self._rebalance, self.limits)
        """Commit, fetch, deletion and expiry of offsets."""
        self._store, self._pending = self.offsets.store, self.offsets.pending
        membership = Membership(self.groups, self._timers, self._rebalance, config, new_id)
        self.classic = ClassicRequests(self.groups, membership, lambda: self.consumer_groups.classic_members)
        """The requests of the classic protocol."""
        self._known: KnownOffsets | None = KnownOffsets(self.groups)  # until the log is replayed
        self._is_loading = True

    # ---- load, replay, unload

    def replay(self, key: bytes, value: bytes | None, at: Moment, offset: int = -1) -> None:
        """Apply a record that is in the log, at this offset."""
        if self._pending.by_producer:
            self._pending.replayed(offset, CoordinatorRecord(key, value))
        self._apply(key, value, at)

    def replay_commit(
        self, group_id: str, topic: str, partition: int, record: tuple[bytes, bytes], offset: int
    ) -> None:
        """As `replay`, for the record (key, value) of an offset that `GroupOffsets.check_usual` has accepted."""
        if self._pending.by_producer:
            self._pending.replayed(offset, CoordinatorRecord(*record))
        self._store.put_plain(group_id, topic, partition, record[1])

    def replay_known(self, key: bytes, value: bytes) -> bool:
        """While the log is loaded: apply a record, if that takes a tenth of what `replay` does; False: it has to.

        True for the value of an offset whose group and topic were met before, unless transactions are open.
        """
        return self._known is not None and not self._pending.by_producer and self._known.put(key, value)

    def replay_pending(self, producer_id: int, key: bytes, value: bytes | None, at: Moment, offset: int) -> None:
        """Hold back a record of an open transaction that is in the log until the transaction's marker (T5, T11).

        The group exists from now on: it is listed, and can be deleted with what is held back.
        """
        self._pending.hold(producer_id, offset, CoordinatorRecord(key, value))
        about = records.read_key(key)
        if isinstance(about, OffsetCommitKey) and value is not None and about.group not in self.groups:
            self.groups[about.group] = ClassicGroup(about.group, at)

    def replay_end(self, producer_id: int, at: Moment, *, commit: bool) -> None:
        """Apply the marker that ends the producer's transaction in this partition."""
        for key, value in self._pending.end(producer_id, commit=commit):
            self._apply(key, value, at)

    def _apply(self, key: bytes, value: bytes | None, at: Moment) -> None:
        about = records.read_key(key)
        if about is None:
            record_type = int.from_bytes(key[:2], "big")
            group_type = self._types.of_record(record_type)
            if group_type is not None:
                group_type.replay(record_type, key[2:], value, at)
            return
        if isinstance(about, OffsetCommitKey):
            if value is None:
                self._store.remove(about.group, about.topic, about.partition)
            else:
                offsets = self._store.put(about.group, about.topic, about.partition, value)
                if about.group not in self.groups:
                    self.groups[about.group] = ClassicGroup(about.group, at)
                if self._known is not None:
                    self._known.remember(key, about.group, offsets)
        else:
            self._apply_classic(about.group, value, at)

    def _apply_classic(self, group_id: str, value: bytes | None, at: Moment) -> None:
        """Apply the record of a classic group. In an old log a group of another type may follow it."""
        group = self.groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                self._remove(group, at)
        elif self._is_loading:
            if group is None or isinstance(group, ClassicGroup):
                self.groups[group_id] = ClassicGroup.from_record(group_id, records.read_group(value))
        elif isinstance(group, ClassicGroup):
            group.apply(records.read_group(value), at)

    def loaded(self, at: Moment) -> Result:
        """The log has been replayed: start sessions; groups that are too large or without a leader rebalance."""
        self._is_loading = False
        self._known = None
        result = Result()
        for group in self._classic_groups():
            for member in group.members.values():
                self._rebalance.renew_session(group, member, at)
            if group.has_to_rebalance or len(group.members) > self._config.max_size:
                self._rebalance.prepare(group, at, result)
        for group_type in self._types:
            group_type.loaded(at, result)
        return result

    def unload(self, at: Moment) -> Result:
        """The partition has another coordinator: parked requests get NOT_COORDINATOR, and every group is Dead."""
        result = Result()
        error = ErrorCode.NOT_COORDINATOR
        for group in self._classic_groups():
            for member in group.members.values():
                self._rebalance.answer_join(member, join_error(member.member_id, error), result)
                self._rebalance.answer_sync(member, sync_error(error), result)
        for group in self._classic_groups():
            self._rebalance.forget(group)
            group.become(GroupState.DEAD, at)
        self.groups.clear()
        return result

    def _remove(self, group: ClassicGroup, at: Moment) -> None:
        del self.groups[group.group_id]
        self._rebalance.forget(group)
        group.become(GroupState.DEAD, at)

    def _classic_groups(self) -> list[ClassicGroup]:
        return [group for group in self.groups.values() if isinstance(group, ClassicGroup)]

    # ---- group types

    @property
    def streams_groups(self) -> StreamsGroups:
        """The groups of Kafka Streams applications (KIP-1071)."""
        return self._types.streams_groups

    @property
    def share_groups(self) -> ShareGroups:
        """Share groups (KIP-932)."""
        return self._types.share_groups

    @property
    def consumer_groups(self) -> ConsumerGroups:
        """Groups of the consumer protocol (KIP-848)."""
        return self._types.consumer_groups

    def metadata_changed(self, topics: Collection[str], at: Moment) -> Result:
        """These topics were created or deleted, or have other partitions or replicas."""
        result = Result()
        for group_type in self._types:
            group_type.metadata_changed(topics, at, result)
        return result

    # ---- administration

    def rebalance(self, group_id: str, at: Moment) -> Result:
        """Have all members of a classic group join again. KafkaError GROUP_ID_NOT_FOUND for any other.

        There is no request for it: the test kit asks for it.
        """
        group = self.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        result = Result()
        if group.members and group.can_rebalance:
            self._rebalance.prepare(group, at, result)
        return result

    def describe(self, group_id: str, api_version: int) -> DescribeGroupsResponseDescribedGroup:
        """DescribeGroups of one group."""
        return describe_group(self.groups.get(group_id), group_id, api_version)

    def list_groups(self, states: Collection[str] = (), types: Collection[str] = ()) -> list[ListedGroup]:
        """ListGroups: the groups in one of `states` and of one of `types`, or all; letter case does not matter."""
        state_names = {state.strip().lower() for state in states}
        type_names = {kind.strip().lower() for kind in types}
        return list(self.listed(state_names, type_names))

    def listed(self, states: Collection[str], types: Collection[str]) -> Iterator[ListedGroup]:
        """As `list_groups`, one by one, with the names of states and types in lower case."""
        for group in list(self.groups.values()):
            if (not states or str(group.state).lower() in states) and (not types or group.group_type in types):
                yield listed_group(group)

    def delete_group(self, group_id: str, ticket: Ticket) -> Result:
        """DeleteGroups of one group; the reply is a `DeletableGroupResult`."""
        result = Result()
        response = DeletableGroupResult(group_id=group_id)
        try:
            group = self.groups.get(group_id)
            if group is None:
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
            if group.group_type == SHARE:
                return self.share_groups.delete(group_id, ticket)
            group.validate_delete()
            result.records = [*self.offsets.tombstones(group_id), *group.tombstones()]
        except KafkaError as refused:
            response.error_code = int(refused.code)
        result.reply(ticket, response, lambda error: DeletableGroupResult(group_id=group_id, error_code=int(error)))
        return result

    # ---- time

    def _due(self, key: Hashable, at: Moment, result: Result) -> None:
        if isinstance(key, TimerKey):
            group = self.groups.get(key.group_id)
            if isinstance(group, ClassicGroup):
                self._rebalance.due(key, group, at, result)
            return

        def undo(later: Moment) -> Result:
            self._timers.retry(key, later.now)
            return Result()

        self._types.of_timer(key).due(key, at, result)
        if result.records:
            result.on_failure(undo)


class KnownOffsets:
    """A cache for the replay of a log: where the offsets of groups and topics seen before are kept (rule G7).

    The key of an offset's record is the same for all partitions of a group and a topic but for its last four bytes. So
    one key in hundreds is decoded, and each further offset is two look-ups. Cached places are always checked: the group
    and its offsets in the topic may have been removed by a later record.
    """

    def __init__(self, groups: Container[str]) -> None:
        """`groups` are the groups that exist now."""
        self._groups = groups
        self._by_prefix: dict[bytes, tuple[str, dict[int, bytes]]] = {}

    def remember(self, key: bytes, group_id: str, offsets: dict[int, bytes]) -> None:
        """The record with this key, which is valid, was put into `offsets`, which the store drops when it is empty."""
        if len(key) <= LONGEST_KEPT:
            if len(self._by_prefix) >= PREFIXES_KEPT:
                self._by_prefix.clear()
            self._by_prefix[key[:-4]] = (group_id, offsets)

    def put(self, key: bytes, value: bytes) -> bool:
        """Apply the record of an offset if its group and topic are known; False: nothing was done."""
        known = self._by_prefix.get(key[:-4])
        if known is None:
            return False
        group_id, offsets = known
        if not offsets or group_id not in self._groups or not is_plain(value):
            return False
        last = key[-4:]
        index = _indexes.get(last)
        if index is None:
            index = int.from_bytes(last, "big", signed=True)
            if len(_indexes) < PARTITIONS_KEPT:
                _indexes[last] = index
        offsets[index] = value
        return True
