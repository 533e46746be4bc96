"""What must hold at every moment in a cluster, whatever fails.

- *one leader*: in a leader epoch one broker at most leads the partition;
- *monotonic*: a leader's high watermark never goes back in its epoch;
- *committed*: what was below the high watermark of any leader is, byte for byte, below that of every other replica;
- *complete*: a new leader has everything that is committed;
- *acknowledged*: what a producer was told is committed, once, at the offset that it was told;
- under `sync=always` it is on the disks, synced, of min.insync.replicas replicas.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage.batch_header import BatchHeader
from barnabas.wire.records import HEADER_SIZE, iter_batches, iter_records

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.storage.log import Log
    from tests.simulation.cluster_node import ClusterNode
    from tests.simulation.trace import Trace

Key = tuple[str, int]
READ_BYTES = 1 << 20


class _Batch(NamedTuple):
    """A committed batch."""

    first: int
    last: int
    data: bytes


class _Seen(NamedTuple):
    """What was last seen of a partition on a node."""

    incarnation: int
    leads: bool
    leader_epoch: int
    high_watermark: int
    checked_to: int
    truncations: int


class ClusterChecks:
    """The truth of all partitions."""

    def __init__(self, trace: Trace, min_in_sync: int, *, is_synced: bool) -> None:
        self._trace = trace
        self._min_in_sync = min_in_sync
        self._is_synced = is_synced
        self.committed: dict[Key, list[_Batch]] = {}
        self.acknowledged: dict[Key, list[tuple[int, bytes]]] = {}
        self.nodes: dict[int, ClusterNode] = {}
        self._leaders: dict[tuple[Key, int], int] = {}
        self._seen: dict[tuple[int, Key], _Seen] = {}

    def end(self, key: Key) -> int:
        """The end of what is committed."""
        batches = self.committed.get(key)
        return batches[-1].last + 1 if batches else 0

    def after_turn(self, node: ClusterNode) -> None:
        """Check all partitions of a node whose state has changed."""
        broker = node.broker
        if broker is None or not node.is_listening:
            return
        for partition in broker.partitions:
            if partition.topic.startswith("__"):
                continue
            key = (partition.topic, partition.index)
            log = partition.log
            seen = self._seen.get((node.node_id, key))
            if seen is not None and seen.incarnation != node.incarnation:
                seen = None
            now = (partition.is_leader, partition.leader_epoch, log.high_watermark, log._truncations)
            if seen is not None and now == (seen.leads, seen.leader_epoch, seen.high_watermark, seen.truncations):
                continue
            self._check(node, key, partition, seen)

    def _check(self, node: ClusterNode, key: Key, partition: Partition, seen: _Seen | None) -> None:
        log, epoch = partition.log, partition.leader_epoch
        where = f"{key[0]}-{key[1]} on {node.node_id} in epoch {epoch}"
        if partition.is_leader:
            leader = self._leaders.setdefault((key, epoch), node.node_id)
            assert leader == node.node_id, f"{where}: {leader} leads in this epoch as well"
            is_new = seen is None or not seen.leads or seen.leader_epoch != epoch
            if is_new:
                end = self.end(key)
                self._trace.note("leads", where, log.log_end_offset, log.high_watermark, end)
                assert log.log_end_offset >= end, f"{where}: ends at {log.log_end_offset}, committed up to {end}"
                self._compare(where, key, log, 0, end, may_add=False)
            elif seen is not None:
                assert log.high_watermark >= seen.high_watermark, f"{where}: the high watermark goes back"
        start = 0
        if seen is not None and seen.truncations == log._truncations:
            start = seen.checked_to
        checked_to = self._compare(where, key, log, start, log.high_watermark, may_add=partition.is_leader)
        self._seen[node.node_id, key] = _Seen(
            node.incarnation, partition.is_leader, epoch, log.high_watermark, checked_to, log._truncations
        )

    def _compare(self, where: str, key: Key, log: Log, start: int, end: int, *, may_add: bool) -> int:
        """Compare the batches of [start, end) with what is committed; a leader's new ones are committed from now on."""
        committed = self.committed.setdefault(key, [])
        for batch in batches_of(log, max(start, log.log_start_offset), end):
            at = bisect_left(committed, batch.first, key=lambda one: one.first)
            if at < len(committed):
                assert committed[at] == batch, f"{where}: offset {batch.first} differs from what was committed"
            else:
                assert may_add, f"{where}: offset {batch.first} is below the high watermark, but was never committed"
                assert not committed or batch.first == committed[-1].last + 1, f"{where}: a gap at {batch.first}"
                committed.append(batch)
                self._trace.note("committed", where, batch.first)
                if self._is_synced:
                    self._check_synced(where, key, batch.last)
            start = batch.last + 1
        return start

    def _check_synced(self, where: str, key: Key, offset: int) -> None:
        """A committed record is synced on as many running replicas as min.insync.replicas asks for.

        A replica that has failed since its last fetch counts as well: nobody has heard of it.
        """
        synced = 0
        for node in self.nodes.values():
            if node.is_controller:
                continue
            if node.broker is None or not node.is_listening:
                synced += 1
                continue
            found = [one for one in node.broker.partitions if (one.topic, one.index) == key]
            synced += any(one.log.synced_offset > offset for one in found)
        assert synced >= self._min_in_sync, f"{where}: offset {offset} is committed, but synced on {synced} replicas"

    def acknowledge(self, topic: str, index: int, first: int, values: list[bytes]) -> None:
        """A producer was told that its records are committed."""
        key = (topic, index)
        assert self.end(key) >= first + len(values), f"{key}: {first} is acknowledged, committed up to {self.end(key)}"
        for at, value in enumerate(values):
            self.acknowledged.setdefault(key, []).append((first + at, value))

    def check_values(self) -> None:
        """Every acknowledged value is committed where the producer was told, and no value twice."""
        for key, batches in self.committed.items():
            found = {
                record.offset: record.value or b""
                for one in batches
                for batch in iter_batches(memoryview(one.data))
                for record in iter_records(batch)
            }
            for offset, value in self.acknowledged.get(key, []):
                assert found.get(offset) == value, f"{key}: {value!r} was acknowledged at {offset}"
            values = list(found.values())
            assert len(set(values)) == len(values), f"{key}: a value is there twice"

    def check_equal(self, replicas: int) -> None:
        """At the end all replicas have the same bytes, all of them committed."""
        contents: dict[Key, list[tuple[int, int, bytes]]] = {}
        for node in self.nodes.values():
            if node.broker is None or node.is_controller:
                assert node.is_controller, f"{node.node_id} is down"
                continue
            for one in node.broker.partitions:
                if not one.topic.startswith("__"):
                    state = (one.log.log_end_offset, one.log.high_watermark, content(one.log))
                    contents.setdefault((one.topic, one.index), []).append(state)
        for key, states in contents.items():
            assert len(states) == replicas, f"{key}: {len(states)} replicas are open"
            assert len(set(states)) == 1, f"{key}: replicas differ: {[state[:2] for state in states]}"
            assert states[0][0] == states[0][1] == self.end(key), f"{key}: {states[0][:2]}, committed {self.end(key)}"


def batches_of(log: Log, start: int, end: int) -> list[_Batch]:
    """The batches of a log from `start` to `end`."""
    found: list[_Batch] = []
    while start < end:
        read = log.read(start, READ_BYTES, limit_offset=end, min_one_batch=True)
        if read.slice is None:
            break
        before = start
        data = memoryview(read.slice.read())
        position = 0
        while position + HEADER_SIZE <= len(data):
            header = BatchHeader(data, position, position)
            if header.base_offset >= end or position + header.size > len(data):
                break
            found.append(_Batch(header.base_offset, header.last_offset, bytes(data[position : position + header.size])))
            position += header.size
            start = header.last_offset + 1
        if start == before:
            break
    return found


def content(log: Log) -> bytes:
    """All bytes of a log."""
    return b"".join(segment.read_bytes(0, segment.size) for segment in log.segments)
