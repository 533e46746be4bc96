"""What the collector knows about a cluster, as plain values: brokers, topics, groups, open transactions.

No I/O and no clock. `Figures` is changed by the collector's thread alone, under its lock (`collector.py`), and read
under the same lock. What a cluster does not tell (the loads of Apache Kafka's brokers) is None.
Memory: a topic takes about 0.3 kB and 16 bytes a partition, a group about 0.5 kB and 0.15 kB a partition; a series
(1.6 kB) exists only for a group that has had a lag, and for `MAX_TOPIC_SERIES` topics that had records last.
Series of single partitions exist for `MAX_PARTITION_SERIES` partitions: of the groups that were looked at last.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from barnabas.client.offsets import TopicPartition
from barnabas.console.collector.rings import History, rate
from barnabas.wire.clients.broker_load import BrokerLoad

MAX_PARTITION_SERIES: Final = 2_000
MAX_TOPIC_SERIES: Final = 2_000
"""Topics with a series: those that had records last."""
UNKNOWN: Final = -1
"""An offset that is not known."""


@dataclass(slots=True)
class BrokerFigures:
    """A broker of the cluster."""

    broker: int
    host: str
    port: int
    rack: str | None = None
    answers: bool | None = None
    """Whether it answered the last request; None before the first."""
    failure: str = ""
    """The sentence of the last failure, while it does not answer."""
    load: BrokerLoad | None = None
    disk_used: float | None = None
    """The used part of its fullest data directory's file system, 0 to 1; None if it does not say."""
    version: str = ""
    """The release of Apache Kafka that it speaks like, and before it `Barnabas` with the version if it is one."""
    certificate_end_s: float | None = None
    """When the certificate of its listener ends, seconds since 1970; None without TLS."""


@dataclass(slots=True)
class TopicFigures:
    """A topic: partitions, end offsets and rates."""

    name: str
    is_internal: bool = False
    leaders: array[int] = field(default_factory=lambda: array("i"))
    """The leader of each partition, -1 without one."""
    ends: array[int] = field(default_factory=lambda: array("q"))
    """The end offset of each partition, -1 while it is not known."""
    leaderless: int = 0
    """Partitions without a leader."""
    under_replicated: int = 0
    round: int = 0
    """The round of the list of topics in which it was seen."""
    ends_at_s: float = 0.0
    in_per_s: float | None = None
    out_per_s: float | None = None
    """Offsets a second by which all groups together moved on in it."""
    active_at_s: float = 0.0
    """When it had new records last."""
    history: History | None = None

    def describe(self, leaders: Iterable[int], under_replicated: int) -> None:
        """Store what the metadata says; end offsets of partitions that stay are kept."""
        self.leaders = array("i", leaders)
        self.leaderless = sum(leader < 0 for leader in self.leaders)
        self.under_replicated = under_replicated
        missing = len(self.leaders) - len(self.ends)
        if missing > 0:
            self.ends.extend([UNKNOWN] * missing)
        elif missing < 0:
            self.ends, self.in_per_s, self.ends_at_s = array("q", [UNKNOWN] * len(self.leaders)), None, 0.0

    def put_ends(self, offsets: Mapping[int, int], at_s: float) -> None:
        """Store end offsets by partition, read at `at_s`, and the rate since the last reading."""
        before = after = 0
        for index, offset in offsets.items():
            if index < len(self.ends):
                if self.ends[index] != UNKNOWN:
                    before += self.ends[index]
                    after += offset
                self.ends[index] = offset
        if self.ends_at_s:
            self.in_per_s = rate(before, self.ends_at_s, after, at_s)
            if self.in_per_s is not None and (self.in_per_s > 0 or self.history is not None):
                if self.history is None:
                    self.history = History()
                self.history.put(at_s, self.in_per_s)
                if self.in_per_s > 0:
                    self.active_at_s = at_s
        self.ends_at_s = at_s


@dataclass(slots=True)
class GroupFigures:
    """A group of any kind: state, offsets and lag."""

    group: str
    kind: str = "classic"
    """classic, consumer, share or streams."""
    state: str = ""
    protocol: str = ""
    coordinator: int = -1
    round: int = 0
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    """Committed offsets; of a share group its start offsets."""
    lags: dict[TopicPartition, int] = field(default_factory=dict)
    """The lag of the partitions whose lag is known."""
    offsets_at_s: float = 0.0
    read_per_s: float | None = None
    """Offsets a second by which it moved on; moves back do not count."""
    read_by_topic: dict[str, float] = field(default_factory=dict)
    history: History | None = None
    partition_histories: dict[TopicPartition, History] = field(default_factory=dict)
    looked_at_s: float = 0.0
    """When somebody last looked at this group, for the series of its partitions."""

    @property
    def lag(self) -> int | None:
        """The sum of the known lags; None if none is known."""
        return sum(self.lags.values()) if self.lags else None

    @property
    def has_members(self) -> bool | None:
        """Whether it has members; None if its state does not say."""
        return None if not self.state else self.state not in ("Empty", "Dead")


@dataclass(slots=True, frozen=True)
class HeldPartition:
    """A partition in which a transaction is open."""

    topic: str
    partition: int
    last_stable_offset: int | None
    high_watermark: int | None

    @property
    def held(self) -> int | None:
        """The records that readers with read_committed do not get yet; None if an offset is not known."""
        if self.last_stable_offset is None or self.high_watermark is None:
            return None
        return max(0, self.high_watermark - self.last_stable_offset)


@dataclass(slots=True, frozen=True)
class TransactionFigures:
    """A transaction that its coordinator has open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    coordinator: int
    started_ms: int
    """Milliseconds since 1970; -1 if it has no record yet."""
    timeout_ms: int
    partitions: tuple[HeldPartition, ...]


@dataclass(slots=True)
class Figures:
    """The cluster. Times are seconds since 1970."""

    cluster_id: str = ""
    controller: int = -1
    brokers: dict[int, BrokerFigures] = field(default_factory=dict)
    topics: dict[str, TopicFigures] = field(default_factory=dict)
    groups: dict[str, GroupFigures] = field(default_factory=dict)
    transactions: list[TransactionFigures] = field(default_factory=list)
    transactions_in_all: int = 0
    """Open transactions; `transactions` has the first of them."""
    messages_in: History = field(default_factory=History)
    """Messages a second into all topics."""
    messages_out: History = field(default_factory=History)
    """Offsets a second by which the groups moved on."""
    bytes_in: History = field(default_factory=History)
    """Bytes a second appended to the partitions of all brokers, followers included; empty where no broker tells."""
    lag: History = field(default_factory=History)
    """The lag of all groups together."""
    partition_series: int = 0
    """The series of single partitions, of all groups."""
    failures: dict[str, str] = field(default_factory=dict)
    """By kind of question, the sentence of its last failure; without entry it works."""

    # --- topics

    def forget_topics(self, before_round: int) -> None:
        """Forget the topics that were last seen before a round of the list: they were deleted."""
        for name in [name for name, topic in self.topics.items() if topic.round < before_round]:
            del self.topics[name]

    def end(self, partition: TopicPartition) -> int | None:
        """The end offset of a partition; None if it is not known."""
        topic = self.topics.get(partition[0])
        if topic is None or partition[1] >= len(topic.ends) or topic.ends[partition[1]] == UNKNOWN:
            return None
        return topic.ends[partition[1]]

    def bound_topic_series(self) -> None:
        """End the series of the topics that had no records for the longest time, if there are too many."""
        drawn = [topic for topic in self.topics.values() if topic.history is not None]
        if len(drawn) > MAX_TOPIC_SERIES:
            drawn.sort(key=lambda topic: topic.active_at_s)
            for topic in drawn[: len(drawn) - MAX_TOPIC_SERIES * 9 // 10]:
                topic.history = None

    # --- groups

    def forget_groups(self, before_round: int) -> None:
        """Forget the groups that were last seen before a round of the list."""
        for name in [name for name, group in self.groups.items() if group.round < before_round]:
            self.partition_series -= len(self.groups.pop(name).partition_histories)

    def put_offsets(
        self,
        group: GroupFigures,
        offsets: dict[TopicPartition, int],
        at_s: float,
        lags: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Store the offsets of a group with its lag and rate. `lags`: those that the broker itself computes (share)."""
        offsets = {self._key(which): offset for which, offset in offsets.items()}
        seconds = at_s - group.offsets_at_s
        if group.offsets_at_s and seconds > 0:
            group.read_by_topic = {}
            for which, offset in offsets.items():
                step = offset - group.offsets.get(which, offset)
                if step > 0:
                    group.read_by_topic[which[0]] = group.read_by_topic.get(which[0], 0.0) + step / seconds
            group.read_per_s = sum(group.read_by_topic.values())
        group.offsets, group.offsets_at_s = offsets, at_s
        group.lags = dict(lags) if lags is not None else self._lags(offsets)
        lag = group.lag
        if lag is not None and (lag > 0 or group.history is not None):
            if group.history is None:
                group.history = History()
            group.history.put(at_s, lag)
        self._put_partition_lags(group, at_s)

    def _key(self, partition: TopicPartition) -> TopicPartition:
        """The partition with the text that its topic has: an answer has a new one each time."""
        topic = self.topics.get(partition[0])
        return partition if topic is None else (topic.name, partition[1])

    def _lags(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        lags = {}
        for which, offset in offsets.items():
            end = self.end(which)
            if end is not None and offset >= 0:
                lags[which] = max(0, end - offset)  # the end was read before the offset was committed
        return lags

    def _put_partition_lags(self, group: GroupFigures, at_s: float) -> None:
        """Add to the series of partitions, which begin as long as there is room, or for the group looked at last."""
        histories = group.partition_histories
        for gone in [which for which in histories if which not in group.lags]:
            del histories[gone]
            self.partition_series -= 1
        fresh = [which for which in group.lags if which not in histories]
        if fresh and self._make_room(group, len(fresh)):
            histories.update({which: History() for which in fresh})
            self.partition_series += len(fresh)
        for which, history in histories.items():
            history.put(at_s, group.lags[which])

    def _make_room(self, group: GroupFigures, needed: int) -> bool:
        """True if `needed` more series of partitions may begin; ends those of groups that were looked at earlier."""
        if (
            self.partition_series + needed > MAX_PARTITION_SERIES
            and group.looked_at_s
            and needed <= MAX_PARTITION_SERIES
        ):
            earlier = [other for other in self.groups.values() if other.looked_at_s < group.looked_at_s]
            for other in sorted(earlier, key=lambda other: other.looked_at_s):
                if self.partition_series + needed <= MAX_PARTITION_SERIES:
                    break
                self.partition_series -= len(other.partition_histories)
                other.partition_histories = {}
        return self.partition_series + needed <= MAX_PARTITION_SERIES

    # --- the cluster

    def put_totals(self, at_s: float) -> None:
        """Store the sums of what was read last, and each topic's rate out by what its groups read."""
        self.bound_topic_series()
        self.messages_in.put(at_s, sum(topic.in_per_s or 0.0 for topic in self.topics.values()))
        for topic in self.topics.values():
            topic.out_per_s = 0.0
        for group in self.groups.values():
            for name, per_s in group.read_by_topic.items():
                if name in self.topics:
                    self.topics[name].out_per_s = (self.topics[name].out_per_s or 0.0) + per_s
        if self.groups:
            self.messages_out.put(at_s, sum(group.read_per_s or 0.0 for group in self.groups.values()))
            self.lag.put(at_s, sum(group.lag or 0 for group in self.groups.values()))
        loads = [broker.load for broker in self.brokers.values() if broker.load is not None]
        if loads:
            self.bytes_in.put(at_s, sum(load.bytes_per_s for load in loads))
