"""The rounds of the collector: each asks the cluster for one kind of figures, in slices, and stores the answers.

A round is a generator that yields after each slice: a bounded request and the storing of its answer. `collector.py`
decides when the next slice runs. Errors of one broker end its part of the round and are kept in `BrokerFigures`;
errors of a question (not authorized, not offered) are kept in `Figures.failures`.
Apache Kafka answers all of them but the loads; a cluster without DescribeTopicPartitions (before 3.8) is asked for its
metadata in one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.client.admin.cluster import VERSION_WITH_FENCED_BROKERS
from barnabas.client.errors import ClientError, raise_for
from barnabas.client.groups.consumer_groups import LAST_VERSION_WITH_NAMES
from barnabas.client.offsets import LATEST_TIMESTAMP, READ_COMMITTED, READ_UNCOMMITTED, TopicPartition
from barnabas.client.releases import release_of
from barnabas.console.collector.figures import (
    BrokerFigures,
    Figures,
    GroupFigures,
    HeldPartition,
    TopicFigures,
    TransactionFigures,
)
from barnabas.wire.clients.broker_load import TAG, BrokerLoad, find
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.wire.messages.groups.offsets import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from barnabas.wire.messages.groups.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
    MetadataResponseTopic,
)
from barnabas.wire.messages.transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

R = TypeVar("R", bound=Message)
T = TypeVar("T")
Slices = Iterator[None]

ANSWER_S: Final = 3.0
"""How long a broker may take for an answer, seconds."""
REST_S: Final = 6.0
"""How long a broker that did not answer is not asked again, seconds."""
PARTITIONS_OF_A_SLICE: Final = 500
GROUPS_OF_A_SLICE: Final = 50
OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")
MAX_TRANSACTIONS: Final = 200
"""Open transactions that are described; more are only counted."""
MAX_HELD_PARTITIONS: Final = 2_000


class Rounds:
    """The questions to one cluster. `now_s` is the time in seconds since 1970, `lock` guards `figures`."""

    def __init__(self, cluster: Cluster, figures: Figures, lock: Lock, now_s: Callable[[], float]) -> None:
        self.cluster = cluster
        self.figures = figures
        self._lock = lock
        self._now_s = now_s
        self._rests_until: dict[int, float] = {}
        self._topic_round = 0
        self._group_round = 0

    # --- asking

    def _ask(self, broker: int, request: Message, reply: type[R], max_version: int | None = None) -> R | None:
        """The answer of one broker; None if it does not answer, now or a moment ago."""
        if monotonic() < self._rests_until.get(broker, 0.0):
            return None
        deadline = monotonic() + ANSWER_S
        try:
            response = self.cluster.node(broker, deadline).call(request, reply, deadline, max_version)
        except ClientError as error:
            self._rests_until[broker] = monotonic() + REST_S
            self._note(broker, str(error))
            return None
        except KafkaError as error:
            if error.code is not ErrorCode.BROKER_NOT_AVAILABLE:  # it has left the cluster
                raise
            return None
        self._note(broker, "")
        return response

    def _note(self, broker: int, failure: str) -> None:
        with self._lock:
            figures = self.figures.brokers.get(broker)
            if figures is not None:
                figures.answers, figures.failure = not failure, failure

    def _brokers(self) -> list[int]:
        return sorted(self.figures.brokers)

    # --- brokers

    def brokers(self) -> Slices:
        """The brokers of the cluster, their loads, and the ends of their certificates."""
        deadline = monotonic() + ANSWER_S
        node = self.cluster.any_node(deadline)
        request = DescribeClusterRequest()
        request.include_fenced_brokers = node.version_for(request, None) >= VERSION_WITH_FENCED_BROKERS
        described = node.call(request, DescribeClusterResponse, deadline)
        raise_for(described.error_code, "the cluster", described.error_message)
        self.cluster.metadata([], deadline)  # the addresses for `Cluster.node`
        with self._lock:
            brokers = self.figures.brokers
            self.figures.cluster_id, self.figures.controller = described.cluster_id, described.controller_id
            for gone in brokers.keys() - {broker.broker_id for broker in described.brokers}:
                del brokers[gone]
            for broker in described.brokers:
                figures = brokers.setdefault(broker.broker_id, BrokerFigures(broker.broker_id, "", 0))
                figures.host, figures.port, figures.rack = broker.host, broker.port, broker.rack
                if broker.is_fenced:
                    figures.answers, figures.failure, figures.load = False, "the controller has fenced it", None
        for broker in described.brokers:
            if not broker.is_fenced:
                self._load(broker.broker_id)
                yield

    def _load(self, broker: int) -> None:
        request = DescribeClusterRequest()
        request.unknown_tagged_fields = ((TAG, b""),)
        response = self._ask(broker, request, DescribeClusterResponse)
        end_s, release = None, None
        if response is not None:
            connection = self.cluster.node(broker, monotonic() + ANSWER_S)
            end_s = connection.certificate_end_s
            release = release_of({key: offered.max_version for key, offered in connection.versions.items()})
        with self._lock:
            figures = self.figures.brokers.get(broker)
            if figures is None:
                return
            figures.load = None if response is None else find(response.unknown_tagged_fields)
            if response is not None:
                figures.certificate_end_s = end_s
                figures.version = _version(figures.load, release)
            if figures.load is not None:
                figures.disk_used = figures.load.disk

    def disks(self) -> Slices:
        """The used part of each broker's fullest file system (KIP-827), of brokers that do not tell their load."""
        for broker in self._brokers():
            if self.figures.brokers[broker].load is None:
                response = self._ask(broker, DescribeLogDirsRequest(topics=[]), DescribeLogDirsResponse)
                if response is not None:
                    raise_for(response.error_code, f"log directories of broker {broker}")
                    used = [
                        1 - part.usable_bytes / part.total_bytes for part in response.results if part.total_bytes > 0
                    ]
                    with self._lock:
                        self.figures.brokers[broker].disk_used = max(used, default=None)
            yield

    # --- topics

    def topics(self) -> Slices:
        """All topics: leaders and in-sync replicas of their partitions."""
        self._topic_round += 1
        cursor: DescribeTopicPartitionsRequestCursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest(cursor=cursor, response_partition_limit=PARTITIONS_OF_A_SLICE)
            deadline = monotonic() + ANSWER_S
            node = self.cluster.any_node(deadline)
            if DescribeTopicPartitionsRequest.api_key not in node.versions:
                self._put_topics(self.cluster.metadata(None, deadline).topics)
                yield
                break
            response = node.call(request, DescribeTopicPartitionsResponse, deadline)
            self._put_topics(response.topics)
            yield
            if response.next_cursor is None:
                break
            cursor = DescribeTopicPartitionsRequestCursor(
                topic_name=response.next_cursor.topic_name, partition_index=response.next_cursor.partition_index
            )
        with self._lock:
            self.figures.forget_topics(self._topic_round)

    def _put_topics(
        self, topics: Sequence[DescribeTopicPartitionsResponseTopic] | Sequence[MetadataResponseTopic]
    ) -> None:
        with self._lock:
            for described in topics:
                if described.error_code or described.name is None:
                    continue
                topic = self.figures.topics.get(described.name)
                if topic is None:
                    topic = self.figures.topics[described.name] = TopicFigures(described.name)
                topic.is_internal = described.is_internal
                partitions = {part.partition_index: part for part in described.partitions}
                leaders = list(topic.leaders) if topic.round == self._topic_round else []
                lacking = topic.under_replicated if topic.round == self._topic_round else 0
                leaders += [-1] * (max(partitions, default=-1) + 1 - len(leaders))
                for index, part in partitions.items():  # a topic may be cut in two answers
                    leaders[index] = part.leader_id
                    lacking += part.leader_id >= 0 and len(part.isr_nodes) < len(part.replica_nodes)
                topic.describe(leaders, lacking)
                topic.round = self._topic_round

    def ends(self) -> Slices:
        """The end offset of every partition, by leader, in slices."""
        by_leader: dict[int, list[TopicPartition]] = {}
        with self._lock:
            for topic in self.figures.topics.values():
                for index, leader in enumerate(topic.leaders):
                    if leader >= 0:
                        by_leader.setdefault(leader, []).append((topic.name, index))
        for leader, partitions in by_leader.items():
            for part in _slices(partitions, PARTITIONS_OF_A_SLICE):
                offsets = self._latest(leader, part, READ_UNCOMMITTED)
                at_s = self._now_s()
                by_topic: dict[str, dict[int, int]] = {}
                for (name, index), offset in offsets.items():
                    by_topic.setdefault(name, {})[index] = offset
                with self._lock:
                    for name, ends in by_topic.items():
                        known = self.figures.topics.get(name)
                        if known is not None:
                            known.put_ends(ends, at_s)
                yield

    def _latest(self, leader: int, partitions: Iterable[TopicPartition], isolation: int) -> dict[TopicPartition, int]:
        """The end offsets, or the last stable ones, as their leader knows them; without those that it refuses."""
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for name, index in partitions:
            topics.setdefault(name, []).append(ListOffsetsPartition(partition_index=index, timestamp=LATEST_TIMESTAMP))
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=isolation,
            topics=[ListOffsetsTopic(name=name, partitions=parts) for name, parts in topics.items()],
        )
        response = self._ask(leader, request, ListOffsetsResponse)
        return {
            (topic.name, part.partition_index): part.offset
            for topic in (response.topics if response is not None else ())
            for part in topic.partitions
            if not part.error_code
        }

    # --- groups

    def groups(self) -> Slices:
        """All groups with their kind and state, by coordinator."""
        self._group_round += 1
        is_complete = True
        for broker in self._brokers():
            response = self._ask(broker, ListGroupsRequest(), ListGroupsResponse)
            if response is None or response.error_code in (
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ):
                is_complete = False
                continue
            raise_for(response.error_code, f"groups of broker {broker}")
            with self._lock:
                for listed in response.groups:
                    group = self.figures.groups.get(listed.group_id)
                    if group is None:
                        group = self.figures.groups[listed.group_id] = GroupFigures(listed.group_id)
                    group.kind = listed.group_type.lower() or "classic"
                    group.state, group.protocol = listed.group_state, listed.protocol_type
                    group.coordinator, group.round = broker, self._group_round
            yield
        if is_complete:
            with self._lock:
                self.figures.forget_groups(self._group_round)

    def offsets(self) -> Slices:
        """The committed offsets of all groups, and the start offsets of share groups, by coordinator, in slices."""
        by_coordinator: dict[tuple[int, bool], list[str]] = {}
        with self._lock:
            for group in self.figures.groups.values():
                by_coordinator.setdefault((group.coordinator, group.kind == "share"), []).append(group.group)
        for (coordinator, is_share), names in by_coordinator.items():
            for part in _slices(names, GROUPS_OF_A_SLICE):
                (self._share_offsets if is_share else self._committed)(coordinator, part)
                yield

    def _committed(self, coordinator: int, names: Sequence[str]) -> None:
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        response = self._ask(
            coordinator, OffsetFetchRequest(groups=groups), OffsetFetchResponse, LAST_VERSION_WITH_NAMES
        )
        if response is None:
            return
        at_s = self._now_s()
        with self._lock:
            for answered in response.groups:
                group = self.figures.groups.get(answered.group_id)
                if group is None or answered.error_code:
                    continue
                offsets = {
                    (topic.name, part.partition_index): part.committed_offset
                    for topic in answered.topics
                    for part in topic.partitions
                    if not part.error_code and part.committed_offset >= 0
                }
                self.figures.put_offsets(group, offsets, at_s)

    def _share_offsets(self, coordinator: int, names: Sequence[str]) -> None:
        groups = [DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in names]
        request = DescribeShareGroupOffsetsRequest(groups=groups)
        response = self._ask(coordinator, request, DescribeShareGroupOffsetsResponse)
        if response is None:
            return
        at_s = self._now_s()
        with self._lock:
            for answered in response.groups:
                group = self.figures.groups.get(answered.group_id)
                if group is None or answered.error_code:
                    continue
                parts = {
                    (topic.topic_name, part.partition_index): part
                    for topic in answered.topics
                    for part in topic.partitions
                    if not part.error_code
                }
                offsets = {which: part.start_offset for which, part in parts.items() if part.start_offset >= 0}
                lags = {which: part.lag for which, part in parts.items() if part.lag >= 0}
                self.figures.put_offsets(group, offsets, at_s, lags)

    # --- transactions

    def transactions(self) -> Slices:
        """The open transactions, and what they hold back in their partitions."""
        ids: list[tuple[int, str]] = []
        for broker in self._brokers():
            response = self._ask(
                broker, ListTransactionsRequest(state_filters=list(OPEN_STATES)), ListTransactionsResponse
            )
            if response is not None and response.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                raise_for(response.error_code, f"transactions of broker {broker}")
                ids += [(broker, state.transactional_id) for state in response.transaction_states]
            yield
        described: list[tuple[int, DescribeTransactionsResponseTransactionState]] = []
        by_coordinator: dict[int, list[str]] = {}
        for broker, name in sorted(ids)[:MAX_TRANSACTIONS]:
            by_coordinator.setdefault(broker, []).append(name)
        for broker, names in by_coordinator.items():
            answer = self._ask(
                broker, DescribeTransactionsRequest(transactional_ids=names), DescribeTransactionsResponse
            )
            if answer is not None:
                described += [(broker, state) for state in answer.transaction_states if not state.error_code]
            yield
        held = yield from self._held(described)
        with self._lock:
            self.figures.transactions_in_all = len(ids)
            self.figures.transactions = [
                _transaction(broker, state, held)
                for broker, state in described
                if state.transaction_state in OPEN_STATES
            ]

    def _held(
        self, described: Sequence[tuple[int, DescribeTransactionsResponseTransactionState]]
    ) -> Generator[None, None, dict[TopicPartition, HeldPartition]]:
        """The last stable offset and the high watermark of the transactions' partitions."""
        partitions = dict.fromkeys(
            (topic.topic, index) for _, state in described for topic in state.topics for index in topic.partitions
        )
        by_leader: dict[int, list[TopicPartition]] = {}
        with self._lock:
            for name, index in islice(partitions, MAX_HELD_PARTITIONS):
                topic = self.figures.topics.get(name)
                leader = topic.leaders[index] if topic is not None and index < len(topic.leaders) else -1
                if leader >= 0:
                    by_leader.setdefault(leader, []).append((name, index))
        held: dict[TopicPartition, HeldPartition] = {}
        for leader, led in by_leader.items():
            for part in _slices(led, PARTITIONS_OF_A_SLICE):
                stable = self._latest(leader, part, READ_COMMITTED)
                ends = self._latest(leader, part, READ_UNCOMMITTED)
                held |= {which: HeldPartition(*which, stable.get(which), ends.get(which)) for which in part}
                yield
        return held


def _transaction(
    coordinator: int,
    state: DescribeTransactionsResponseTransactionState,
    held: dict[TopicPartition, HeldPartition],
) -> TransactionFigures:
    partitions = [(topic.topic, index) for topic in state.topics for index in sorted(topic.partitions)]
    return TransactionFigures(
        state.transactional_id,
        state.transaction_state,
        state.producer_id,
        state.producer_epoch,
        coordinator,
        state.transaction_start_time_ms,
        state.transaction_timeout_ms,
        tuple(held.get(which, HeldPartition(*which, None, None)) for which in partitions),
    )


def _slices(items: Sequence[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while part := list(islice(iterator, size)):
        yield part


def _version(load: BrokerLoad | None, release: str | None) -> str:
    """What a broker is: Barnabas tells its version; the release of Kafka is that of its APIs."""
    own = f"Barnabas {load.version}".strip() if load is not None else ""
    return ", ".join(part for part in (own, f"Kafka {release}" if release else "") if part)
