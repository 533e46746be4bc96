"""The responses to clients, and what clients must therefore read, now and after every restart.

Nothing acknowledged is lost, nothing aborted is visible, every record is in the log at most once, at its offset, and
offsets are contiguous. Of a request without an answer either outcome is right, as long as it stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.batches.records import iter_batches, iter_records
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from barnabas.wire.messages.fetch import FetchResponse, FetchResponsePartitionData
from barnabas.wire.messages.groups.offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tests.crash.faults.session import Session
from tests.crash.faults.sharing import TOPIC, ShareMember
from tests.support.disks.broken import require
from tests.support.requests.fetch import at, committed_records, fetch

Place = tuple[str, int]
"""Topic and partition."""
Records = tuple[tuple[int, bytes], ...]

OFFLINE = frozenset({E.KAFKA_STORAGE_ERROR, E.NOT_LEADER_OR_FOLLOWER})
"""Errors of a partition that is offline."""


@dataclass
class Sent:
    """A record that was sent; `offset` once that was acknowledged."""

    value: bytes
    key: bytes | None = None
    offset: int | None = None


@dataclass
class Transaction:
    """The records of a transaction. `commit`: what was asked for; `is_ended`: whether that was acknowledged."""

    sent: list[tuple[Place, Sent]] = field(default_factory=list)
    commit: bool = False
    is_ended: bool = False


class Partition(NamedTuple):
    """A partition as clients read it: its first offset, its records, and the records for read_committed."""

    start: int
    records: Records
    committed: Records


class View(NamedTuple):
    """Everything that clients read: partitions, offsets of groups, topics; without offline partitions."""

    partitions: dict[Place, Partition]
    offsets: dict[str, int]
    topics: frozenset[str]


@dataclass
class Facts:
    """Everything that clients were answered."""

    topics: dict[str, int] = field(default_factory=dict)
    """Acknowledged topics: number of partitions."""
    unsure_topics: set[str] = field(default_factory=set)
    """Topics whose creation or deletion was not answered."""
    sent: dict[Place, list[Sent]] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    compacted: set[str] = field(default_factory=set)
    starts: dict[Place, int] = field(default_factory=dict)
    """Acknowledged log starts (DeleteRecords)."""
    starts_asked: dict[Place, int] = field(default_factory=dict)
    expires: set[str] = field(default_factory=set)
    """Topics with retention: their log starts move by themselves."""
    offsets: dict[str, set[int]] = field(default_factory=dict)
    """By group: the acknowledged offset, and the offsets of later commits without a response."""
    accepted: set[int] = field(default_factory=set)
    """The offsets that the share group has accepted, with an answer."""
    accept_asked: set[int] | None = None
    """The offsets that it may have accepted; None without a share group."""
    configs: dict[str, set[str]] = field(default_factory=dict)
    """By topic: the values that `max.message.bytes` may have."""

    def check(self, session: Session, before: View | None = None) -> View:
        """Read everything and compare it with the facts, and with what was read before. Broken, Stopped."""
        names = frozenset(session.memory.broker.image.topics)
        partitions = {}
        for name, count in self.topics.items():
            require(name in names or name in self.unsure_topics, f"topic {name} is missing")
            for index in range(count if name in names else 0):
                read = read_partition(session, (name, index))
                if read is not None:
                    self._check_partition((name, index), read)
                    partitions[name, index] = read
        self._check_transactions(partitions)
        stale = {topic for topic, _ in session.memory.broker.log_dirs.logs} - names - {CLUSTER_METADATA_TOPIC}
        require(not stale, f"logs of deleted topics are open: {stale}")
        view = View(partitions, self._check_offsets(session), names)
        self._check_configs(session, names)
        if self.accept_asked is not None and (TOPIC, 0) in partitions:
            self._check_share_group(session, {offset for offset, _ in partitions[TOPIC, 0].records})
        if before is not None:
            _compare(before, view)
        return view

    def _check_partition(self, place: Place, read: Partition) -> None:
        name = f"{place[0]}-{place[1]}"
        sent = self.sent.get(place, [])
        values = [value for _, value in read.records]
        require(len(set(values)) == len(values), f"a record of {name} is there twice: {values}")
        unknown = set(values) - {record.value for record in sent}
        require(not unknown, f"{name} has records that were not sent: {unknown}")
        require(self.starts.get(place, 0) <= read.start, f"{name} starts at {read.start}, not {self.starts.get(place)}")
        if place[0] not in self.expires:
            requested = self.starts_asked.get(place, 0)
            require(read.start <= requested, f"{name} starts at {read.start}, only {requested} was asked for")
        offsets = {value: offset for offset, value in read.records}
        if place[0] in self.compacted:
            self._check_keys(name, sent, offsets)
            return
        for record in sent:
            if record.offset is not None and record.offset >= read.start:
                position = offsets.get(record.value)
                require(
                    position == record.offset,
                    f"{record.value!r} of {name} is at {position}, acknowledged at {record.offset}",
                )

    @staticmethod
    def _check_keys(name: str, sent: list[Sent], offsets: dict[bytes, int]) -> None:
        """Of every key the last acknowledged record is there, or a later one."""
        for key in {record.key for record in sent}:
            of_key = [record for record in sent if record.key == key]
            last = max((at for at, record in enumerate(of_key) if record.offset is not None), default=None)
            if last is not None:
                values = [record.value for record in of_key[last:] if record.value in offsets]
                require(bool(values), f"the last record of key {key!r} of {name} is missing: {of_key[last]}")

    def _check_transactions(self, partitions: dict[Place, Partition]) -> None:
        """T6: all or nothing, nothing of a transaction that was aborted, all of one that was committed."""
        for transaction in self.transactions:
            seen = []
            for place, record in transaction.sent:
                read = partitions.get(place)
                if read is not None and (record.offset is None or record.offset >= read.start):
                    seen.append(record.value in {value for _, value in read.committed})
            if not transaction.commit:
                require(not any(seen), f"records of an aborted transaction are visible: {transaction}")
            elif transaction.is_ended:
                require(all(seen), f"records of a committed transaction are missing: {transaction}")
            else:
                require(all(seen) or not any(seen), f"a part of a transaction is visible: {transaction}")

    def _check_offsets(self, session: Session) -> dict[str, int]:
        committed = {}
        for group, allowed in self.offsets.items():
            topics = [OffsetFetchRequestTopics(name="a", partition_indexes=[0])]
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
            response = session.ask(request, 9, OffsetFetchResponse)
            require(response is not None, "OffsetFetch was not answered")
            assert response is not None
            if not response.groups[0].error_code:
                committed[group] = response.groups[0].topics[0].partitions[0].committed_offset
                require(
                    committed[group] in allowed, f"group {group} has offset {committed[group]}, not one of {allowed}"
                )
        return committed

    def _check_share_group(self, session: Session, offsets: set[int]) -> None:
        """G5: what was accepted is not delivered again, what was not is."""
        assert self.accept_asked is not None
        session.wait(2.0)  # locks of earlier members expire
        member = ShareMember(session, "check")
        delivered: set[int] = set()
        for _ in range(3):
            code, ranges = member.take()
            require(code == 0, f"the share group cannot fetch: {code}")
            for first, last in ranges:
                delivered |= set(range(first, last + 1))
        session.wait(2.0)
        again = delivered & self.accepted
        require(not again, f"accepted offsets are delivered again: {again}")
        missing = offsets - delivered - self.accept_asked
        require(not missing, f"offsets are not delivered: {missing}")

    def _check_configs(self, session: Session, names: frozenset[str]) -> None:
        for topic, allowed in self.configs.items():
            if topic not in names:
                continue
            resource = DescribeConfigsResource(
                resource_type=2, resource_name=topic, configuration_keys=["max.message.bytes"]
            )
            response = session.ask(DescribeConfigsRequest(resources=[resource]), 4, DescribeConfigsResponse)
            require(
                response is not None and not response.results[0].error_code, f"{topic} is not described: {response}"
            )
            assert response is not None
            value = response.results[0].configs[0].value
            require(value in allowed, f"max.message.bytes of {topic} is {value}, not one of {allowed}")


def read_partition(session: Session, place: Place) -> Partition | None:
    """Read a partition from its first offset to the end, under both isolation levels; None when it is offline."""
    try:
        log = session.memory.broker.partitions.get(*place).log
    except Exception:
        return None
    start = log.log_start_offset
    records = _read_all(session, place, start, 0)
    committed = _read_all(session, place, start, 1)
    return None if records is None or committed is None else Partition(start, records, committed)


def _read_all(session: Session, place: Place, offset: int, isolation: int) -> Records | None:
    records: list[tuple[int, bytes]] = []
    while True:
        fetched = read_once(session, place, offset, isolation)
        if fetched is None:
            return None
        if isolation:
            following, new_records = committed_records(offset, fetched)
        else:
            following, new_records = _uncommitted_records(offset, fetched)
        records += new_records
        if following == offset:
            end = fetched.last_stable_offset if isolation else fetched.high_watermark
            require(offset >= end, f"nothing is read at {offset} of {place}, below {end}")
            return tuple(records)
        offset = following


def _uncommitted_records(position: int, fetched: FetchResponsePartitionData) -> tuple[int, list[tuple[int, bytes]]]:
    records: list[tuple[int, bytes]] = []
    for batch in iter_batches(bytes(fetched.records or b""), partial_ok=True):
        if not batch.is_control:
            records += [
                (record.offset, record.value or b"") for record in iter_records(batch) if record.offset >= position
            ]
        position = max(position, batch.next_offset)
    return position, records


def read_once(session: Session, place: Place, offset: int, isolation: int) -> FetchResponsePartitionData | None:
    """One fetch; None when it was not answered, or the partition is offline."""
    request = fetch(at(offset, place[1], 1500), topic=place[0], isolation_level=isolation)
    response = session.ask(request, 12, FetchResponse)
    if response is None:
        return None
    partition: FetchResponsePartitionData = response.responses[0].partitions[0]
    if partition.error_code:
        require(
            partition.error_code in OFFLINE, f"the fetch of {place} at {offset} is answered {E(partition.error_code)!r}"
        )
        return None
    return partition


def _compare(before: View, after: View) -> None:
    """Memory and disk agree: a restart changes nothing, but for an unacknowledged tail."""
    require(before.topics == after.topics, f"topics {sorted(before.topics)} have become {sorted(after.topics)}")
    for place, was in before.partitions.items():
        require(place in after.partitions, f"{place} is offline after the restart")
        read = after.partitions[place]
        require(read.start == was.start, f"the start of {place} has changed from {was.start} to {read.start}")
        for kind, old, new in (("", was.records, read.records), (" committed", was.committed, read.committed)):
            require(new[: len(old)] == old, f"the{kind} records of {place} have changed from {old} to {new}")
    for group, offset in before.offsets.items():
        require(after.offsets.get(group) == offset, f"group {group} had {offset}, now {after.offsets.get(group)}")
