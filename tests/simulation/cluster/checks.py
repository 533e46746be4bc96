"""The invariants of a cluster, checked after every turn, whatever fails.

- *one leader*: in a leader epoch one broker at most leads the partition;
- *monotonic*: a leader's high watermark never goes back in its epoch;
- *in sync*: every replica of the leader's ISR has all below the high watermark, under `sync=always` on its disk;
- *eligible*: every replica of the controller's ISR and ELR has everything that is committed;
- *committed*: bytes below the high watermark of any leader are the same below every other replica's high watermark;
- *complete*: a new leader has everything that is committed;
- *acknowledged*: an acknowledged record is committed, once, at the offset of the response, without a gap before it;
- *read*: a consumer gets committed records only, and from a leader only in the epoch of that leader;
- *replicated*: committed records are on min.insync.replicas replicas, under `sync=always` on their disks, synced.

A broker whose disk is lost has nothing, and does not count until the controller has registered its next incarnation.
Without any eligible replica the controller elects the last known leader, as Kafka does (KIP-966). If that one has lost
its disk, committed records are gone, and the run is over (`DataLost`): the other one has crashed between its
registration and the write of its broker epoch, so that it could not claim to have everything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.cluster.topic_image import LOST_DIRECTORY
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.records import HEADER_SIZE, iter_batches, iter_records

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.coord.cluster.topic_image import PartitionImage
    from barnabas.storage.log import Log
    from barnabas.wire.messages.fetch import FetchResponsePartitionData
    from tests.simulation.cluster.node import ClusterNode
    from tests.simulation.trace import Trace

Key = tuple[str, int]
READ_BYTES = 1 << 20


class DataLost(Exception):  # noqa: N818 - an end of a run that is no failure
    """A last known leader leads without its disk, since no other broker is eligible."""


class _Batch(NamedTuple):
    """A committed batch."""

    first: int
    last: int
    data: bytes


class _Seen(NamedTuple):
    """The last checked state of a partition on a node."""

    incarnation: int
    leads: bool
    leader_epoch: int
    high_watermark: int
    isr: tuple[int, ...]
    checked_to: int
    truncations: int


class _Lost:
    """The state of a broker when its disk was lost."""

    def __init__(self, broker_epoch: int, ends: dict[Key, int]) -> None:
        self.broker_epoch = broker_epoch
        self.ends = ends
        self.partition_epochs: dict[Key, int] = {}
        """The last ones of the controller in which the broker counts as the incarnation that had a disk."""


class ClusterChecks:
    """The truth of all partitions."""

    def __init__(self, trace: Trace, min_in_sync: int, *, is_synced: bool) -> None:
        self._trace = trace
        self._min_in_sync = min_in_sync
        self._is_synced = is_synced
        self.committed: dict[Key, list[_Batch]] = {}
        self.acknowledged: dict[Key, list[tuple[int, bytes]]] = {}
        self.nodes: dict[int, ClusterNode] = {}
        self.includes_internal = False
        """Whether internal topics are checked too."""
        self.on_committed: Callable[[Key, bytes], None] = lambda _key, _batch: None
        """Called with each batch when it is committed."""
        self._leaders: dict[tuple[Key, int], int] = {}
        self._seen: dict[tuple[int, Key], _Seen] = {}
        self._ends: dict[tuple[int, Key], int] = {}
        """Up to where a replica has what no crash takes away, and may acknowledge it; kept while its node is down."""
        self._lost: dict[int, _Lost] = {}
        self._checked_partitions: dict[Key, PartitionImage] = {}

    def _is_left_out(self, topic: str) -> bool:
        return topic.startswith("__") and not self.includes_internal

    def end(self, key: Key) -> int:
        """The end offset of the committed batches."""
        batches = self.committed.get(key)
        return batches[-1].last + 1 if batches else 0

    def after_turn(self, node: ClusterNode) -> None:
        """Check all partitions of a node whose state has changed."""
        broker = node.broker
        if broker is None or not node.is_listening:
            return
        for partition in broker.partitions:
            if self._is_left_out(partition.topic):
                continue
            key = (partition.topic, partition.index)
            log = partition.log
            end = log.synced_offset if self._is_synced else log.log_end_offset
            had, self._ends[node.node_id, key] = self._ends.get((node.node_id, key), 0), end
            if end < had:
                self._check_eligible(node.node_id, key)
            seen = self._seen.get((node.node_id, key))
            if seen is not None and seen.incarnation != node.incarnation:
                seen = None
            isr = tuple(partition.isr)
            now = (partition.is_leader, partition.leader_epoch, log.high_watermark, isr, log._truncations)
            if seen is not None and now == (*seen[1:5], seen.truncations):
                continue
            self._check(node, key, partition, seen)

    # ---- what the controller may elect

    def after_controller_turn(self, node: ClusterNode) -> None:
        """Check the partitions that the controller has changed."""
        broker = node.broker
        if broker is None:
            return
        image = broker.image
        for topic in image.topics.values():
            if self._is_left_out(topic.name):
                continue
            for index, partition in topic.partitions.items():
                key = (topic.name, index)
                for broker_id, lost in self._lost.items():
                    if image.brokers[broker_id].epoch == lost.broker_epoch:
                        lost.partition_epochs[key] = partition.partition_epoch
                before = self._checked_partitions.get(key)
                if before is None or before.partition_epoch != partition.partition_epoch:
                    self._checked_partitions[key] = partition
                    if before is not None and self._lost_disk_leads(before, partition):
                        self._trace.note("data lost", key)
                        raise DataLost(key)
                    for broker_id in (*partition.isr, *partition.elr):
                        self._check_eligible(broker_id, key)

    def _lost_disk_leads(self, before: PartitionImage, partition: PartitionImage) -> bool:
        """Whether the last known leader was elected although it was not eligible, and has lost its disk."""
        leader = partition.leader
        return leader in self._lost and leader in before.last_known_elr and leader not in (*before.isr, *before.elr)

    def _check_eligible(self, broker_id: int, key: Key) -> None:
        """A replica that the controller may elect has everything that is committed (R5, R10, KIP-966)."""
        controller = next(node for node in self.nodes.values() if node.is_controller).broker
        if controller is None or key[0] not in controller.image.topics:
            return
        partition = controller.image.topics[key[0]].partitions[key[1]]
        lost = [
            replica
            for replica, at in zip(partition.replicas, partition.directories, strict=True)
            if at == LOST_DIRECTORY
        ]
        if broker_id in partition.isr or (broker_id in partition.elr and broker_id not in lost):
            end = self._counted_end(broker_id, key, partition.partition_epoch)
            assert end >= self.end(key), (
                f"{broker_id} of the ISR {list(partition.isr)} or ELR {list(partition.elr)} of {key} "
                f"has {end}, committed up to {self.end(key)}"
            )

    def _counted_end(self, broker_id: int, key: Key, partition_epoch: int) -> int:
        """A replica's end as of this partition epoch; at least its end before, if it lost its disk later."""
        end = self._ends.get((broker_id, key), 0)
        lost = self._lost.get(broker_id)
        if lost is not None and partition_epoch <= lost.partition_epochs.get(key, -1):
            return max(end, lost.ends.get(key, 0))
        return end

    def may_lose(self, broker_id: int, image: ClusterImage) -> bool:
        """Whether every partition has another replica that the controller may elect."""
        if any(image.brokers[other].epoch == lost.broker_epoch for other, lost in self._lost.items()):
            return False  # the controller counts on it, and does not know yet
        partitions = [partition for topic in image.topics.values() for partition in topic.partitions.values()]
        return all({*partition.isr, *partition.elr} - {broker_id} for partition in partitions)

    def disk_is_lost(self, broker_id: int, image: ClusterImage) -> None:
        """Whatever a broker had is gone."""
        ends = {key: end for (node_id, key), end in self._ends.items() if node_id == broker_id}
        lost = self._lost[broker_id] = _Lost(image.brokers[broker_id].epoch, ends)
        for key in ends:
            del self._ends[broker_id, key]
            lost.partition_epochs[key] = image.topics[key[0]].partitions[key[1]].partition_epoch

    # ---- partitions

    def _check(self, node: ClusterNode, key: Key, partition: Partition, seen: _Seen | None) -> None:
        log, epoch = partition.log, partition.leader_epoch
        assert log.last_stable_offset <= log.high_watermark <= log.log_end_offset
        where = f"{key[0]}-{key[1]} on {node.node_id} in epoch {epoch}"
        if partition.is_leader:
            leader = self._leaders.setdefault((key, epoch), node.node_id)
            assert leader == node.node_id, f"{where}: {leader} leads in this epoch as well"
            is_new = seen is None or not seen.leads or seen.leader_epoch != epoch
            if is_new:
                end = self.end(key)
                self._trace.note("leads", where, log.log_end_offset, log.high_watermark, end)
                assert log.log_end_offset >= end, f"{where}: ends at {log.log_end_offset}, committed up to {end}"
                self._compare(where, key, log, 0, end, partition.partition_epoch, may_add=False)
            elif seen is not None:
                assert log.high_watermark >= seen.high_watermark, f"{where}: the high watermark goes back"
            self._check_in_sync(where, key, partition)
        start = 0
        if seen is not None and seen.truncations == log._truncations:
            start = seen.checked_to
        checked_to = self._compare(
            where, key, log, start, log.high_watermark, partition.partition_epoch, may_add=partition.is_leader
        )
        self._seen[node.node_id, key] = _Seen(
            node.incarnation,
            partition.is_leader,
            epoch,
            log.high_watermark,
            tuple(partition.isr),
            checked_to,
            log._truncations,
        )

    def _compare(
        self, where: str, key: Key, log: Log, start: int, end: int, partition_epoch: int, *, may_add: bool
    ) -> int:
        """Compare the batches of [start, end) with the committed ones; new ones of a leader are committed now."""
        committed = self.committed.setdefault(key, [])
        for batch in batches_of(log, max(start, log.log_start_offset), end):
            at = bisect_left(committed, batch.first, key=lambda known: known.first)
            if at < len(committed):
                assert committed[at] == batch, f"{where}: offset {batch.first} differs from what was committed"
            else:
                assert may_add, f"{where}: offset {batch.first} is below the high watermark, but was never committed"
                assert not committed or batch.first == committed[-1].last + 1, f"{where}: a gap at {batch.first}"
                committed.append(batch)
                self._trace.note("committed", where, batch.first)
                self._check_replicated(where, key, batch.last, partition_epoch)
                self.on_committed(key, batch.data)
            start = batch.last + 1
        return start

    def _check_in_sync(self, where: str, key: Key, leader: Partition) -> None:
        """Every replica of the ISR has all committed batches: it has not acknowledged what it may lose (R6)."""
        for broker_id in leader.isr:
            end = self._counted_end(broker_id, key, leader.partition_epoch)
            assert end >= leader.log.high_watermark, (
                f"{where}: high watermark {leader.log.high_watermark}, {broker_id} of the ISR has {end}"
            )

    def _check_replicated(self, where: str, key: Key, offset: int, partition_epoch: int) -> None:
        """A committed record is on as many replicas as min.insync.replicas asks for, whether they run or not."""
        have = [
            node_id
            for node_id in self.nodes
            if self._counted_end(node_id, key, partition_epoch) > offset and not self._is_moved_away(node_id, key)
        ]
        assert len(have) >= self._min_in_sync, f"{where}: offset {offset} is committed, but only {have} have it"

    def _is_moved_away(self, node_id: int, key: Key) -> bool:
        """Whether a running broker has deleted its replica."""
        broker = self.nodes[node_id].broker
        if broker is None or not self.nodes[node_id].is_listening or key in broker.partitions.offline:
            return False
        return all((partition.topic, partition.index) != key for partition in broker.partitions)

    def acknowledge(self, topic: str, index: int, first: int, values: list[bytes]) -> None:
        """A producer has received the acknowledgement of its records."""
        key = (topic, index)
        assert self.end(key) >= first + len(values), f"{key}: {first} is acknowledged, committed up to {self.end(key)}"
        for at, value in enumerate(values):
            self.acknowledged.setdefault(key, []).append((first + at, value))

    def read(self, where: str, key: Key, position: int, answer: FetchResponsePartitionData) -> int:
        """A consumer has read these batches at `position`: where it reads on."""
        data = memoryview(bytes(answer.records or b""))
        committed = self.committed.get(key, [])
        assert answer.high_watermark <= self.end(key), f"{where}: high watermark {answer.high_watermark}"
        at = 0
        while at + HEADER_SIZE <= len(data) and at + (header := BatchHeader(data, at, at)).size <= len(data):
            batch = _Batch(header.base_offset, header.last_offset, bytes(data[at : at + header.size]))
            at += header.size
            assert batch.first <= position <= batch.last, f"{where}: got {batch.first} to {batch.last} at {position}"
            position_of_batch = bisect_left(committed, batch.first, key=lambda known: known.first)
            assert committed[position_of_batch : position_of_batch + 1] == [batch], (
                f"{where}: offset {batch.first} was never committed"
            )
            position = batch.last + 1
        return position

    def answered_as_leader(self, where: str, key: Key, epoch: int, node_id: int) -> None:
        """A node has answered a client that asked it as the leader of an epoch."""
        leader = self._leaders.get((key, epoch))
        assert leader == node_id, f"{where}: the leader was {leader}"

    def check_values(self) -> None:
        """Every acknowledged value is committed at the acknowledged offset; a producer's values are in order."""
        for key, batches in self.committed.items():
            values = {
                record.offset: record.value or b""
                for stored in batches
                for batch in iter_batches(memoryview(stored.data))
                for record in iter_records(batch)
            }
            for offset, value in self.acknowledged.get(key, []):
                assert values.get(offset) == value, f"{key}: {value!r} was acknowledged at {offset}"
            counts: Counter[bytes] = Counter()
            for value in values.values():
                producer, _, count = value.partition(b"/")
                counts[producer] += 1
                assert int(count) == counts[producer], f"{key}: {value!r} is there instead of {counts[producer]}"

    def check_equal(self, image: ClusterImage) -> None:
        """At the end all replicas have the same bytes, all of them committed."""
        contents: dict[Key, list[tuple[int, int, bytes]]] = {}
        for node in self.nodes.values():
            if node.broker is None or node.is_controller:
                assert node.is_controller, f"{node.node_id} is down"
                continue
            for partition in node.broker.partitions:
                if not self._is_left_out(partition.topic):
                    state = (partition.log.log_end_offset, partition.log.high_watermark, content(partition.log))
                    contents.setdefault((partition.topic, partition.index), []).append(state)
        for key, states in contents.items():
            assigned = image.topics[key[0]].partitions[key[1]].replicas
            assert len(states) == len(assigned), f"{key}: {len(states)} replicas are open, assigned are {assigned}"
            assert len(set(states)) == 1, f"{key}: replicas differ: {[state[:2] for state in states]}"
            assert states[0][0] == states[0][1] == self.end(key), f"{key}: {states[0][:2]}, committed {self.end(key)}"


def check_images(controller: ClusterImage, brokers: Iterable[ClusterImage]) -> None:
    """At the end every broker has replayed the metadata log to what the controller has (R17)."""
    for image in brokers:
        for name in ("topics", "configs", "brokers", "features", "next_producer_id"):
            ours, theirs = getattr(image, name), getattr(controller, name)
            assert ours == theirs, f"{name} of a broker: {ours}, of the controller: {theirs}"


def batches_of(log: Log, start: int, end: int) -> list[_Batch]:
    """The batches of a log from `start` to `end`."""
    batches: list[_Batch] = []
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
            batches.append(
                _Batch(header.base_offset, header.last_offset, bytes(data[position : position + header.size]))
            )
            position += header.size
            start = header.last_offset + 1
        if start == before:
            break
    return batches


def content(log: Log) -> bytes:
    """All bytes of a log."""
    return b"".join(segment.read_bytes(0, segment.size) for segment in log.segments)
