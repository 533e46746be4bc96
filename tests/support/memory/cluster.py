"""Brokers in one process that share their metadata and reach each other through their dispatchers, with one clock.

Partitions have a leader whose ISR is itself; `move` gives the next leader the records first, as replication does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.topic_image import PartitionImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records import metadata_records as m
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid
from tests.support.memory.broker import Client, MemoryBroker

ONE_REPLICA_EACH = {"transaction.state.log.num.partitions": "2", "offsets.topic.num.partitions": "2"}
DIRECTORY = Uuid(b"directory-of-000")


class Link:
    """The connection of one broker to another; requests are answered in order, or fail while it is cut."""

    def __init__(self, cluster: MemoryCluster, source: int, target: int) -> None:
        self._cluster = cluster
        self._ends = (source, target)
        self._client: Client | None = None
        self._waiting: list[Callable[[Any], None]] = []
        self.sent: list[Message] = []

    def send(
        self, request: Message, then: Callable[[Any], None], *, timeout_s: float, max_version: int | None = None
    ) -> None:
        assert timeout_s > 0
        source = self._cluster.brokers[self._ends[0]]
        version = min(request.max_version, max_version if max_version is not None else request.max_version)
        source.broker.loop.timers.at(source.clock.now, lambda: self._send(request, then, version))

    def _send(self, request: Message, then: Callable[[Any], None], version: int) -> None:
        if set(self._ends) & self._cluster.unreachable:
            then(KafkaError(ErrorCode.NETWORK_EXCEPTION, "cut"))
            return
        if self._client is None:
            self._client = self._cluster.brokers[self._ends[1]].client(client_id="broker")
        self.sent.append(request)
        self._waiting.append(then)
        self._client.send(request, version)

    def collect(self) -> bool:
        """Hand over the responses that have arrived; whether there were any."""
        responses = [] if self._client is None else self._client.answers()
        for response in responses:
            self._waiting.pop(0)(response)
        return bool(responses)


class _InterBroker:
    def __init__(self, cluster: MemoryCluster, source: int) -> None:
        self._cluster = cluster
        self._source = source

    def client(self, node_id: int, purpose: str) -> Link:
        key = (self._source, node_id, purpose)
        return self._cluster.links.setdefault(key, Link(self._cluster, self._source, node_id))


class MemoryCluster:
    """Brokers 1, 2 ... of a cluster."""

    def __init__(
        self, path: Path, sets: Mapping[str, str] | None = None, *, count: int = 2, profile: str = "dev"
    ) -> None:
        self.brokers: dict[int, MemoryBroker] = {}
        self.links: dict[tuple[int, int, str], Link] = {}
        self.unreachable: set[int] = set()
        for node_id in range(1, count + 1):
            own = {"node.id": str(node_id), **ONE_REPLICA_EACH, **(sets or {})}
            memory = self.brokers[node_id] = MemoryBroker(path / str(node_id), own, profile)
            memory.clock = self.brokers[1].clock
            memory.broker.inter_broker = _InterBroker(self, node_id)  # type: ignore[assignment]
        for node_id, memory in self.brokers.items():
            others = [self.registration(other) for other in self.brokers if other != node_id]
            self.commit_to(memory, *others)

    @staticmethod
    def registration(node_id: int, *, fenced: bool = False) -> m.RegisterBrokerRecord:
        return m.RegisterBrokerRecord(
            broker_id=node_id,
            incarnation_id=Uuid(b"incarnation-%04d" % node_id),
            broker_epoch=node_id,
            end_points=[m.BrokerEndpoint(name="PLAINTEXT", host=f"host-{node_id}", port=9092)],
            rack=f"rack-{node_id}",
            fenced=fenced,
            log_dirs=[Uuid(b"dir-of-node-%04d" % node_id)],
        )

    def commit_to(self, memory: MemoryBroker, *records: Message) -> None:
        """Change the metadata that one broker has."""
        memory.broker.controller.commit(lambda: Outcome(list(records), None), lambda _: None)
        memory.broker.loop.end_turn()

    def commit(self, *records: Message) -> None:
        """Change the metadata of all brokers."""
        for memory in self.brokers.values():
            self.commit_to(memory, *records)

    def create(self, name: str, leaders: list[int]) -> Uuid:
        """Create a topic whose partitions are led by these brokers; all brokers have a replica."""
        topic_id = Uuid(name.encode().ljust(16, b".")[-16:])
        nodes = sorted(self.brokers)
        partitions = [
            m.PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=[leader, *(node for node in nodes if node != leader)],
                isr=[leader],
                leader=leader,
                leader_epoch=0,
                partition_epoch=0,
            )
            for index, leader in enumerate(leaders)
        ]
        self.commit(m.TopicRecord(name=name, topic_id=topic_id), *partitions)
        return topic_id

    def move(self, name: str, index: int, leader: int) -> None:
        """Have another broker lead a partition; it has the records of the one before (-1: it has no leader)."""
        image = self.brokers[1].broker.image
        partition = image.partition(name, index)
        assert partition is not None
        if leader >= 0:
            self._replicate(name, index, partition, leader)
        change = m.PartitionChangeRecord(
            partition_id=index,
            topic_id=image.topics[name].topic_id,
            leader=leader,
            isr=[leader] if leader >= 0 else None,
        )
        self.commit(change)

    def _replicate(self, name: str, index: int, partition: PartitionImage, to: int) -> None:
        source_id = partition.leader if partition.leader >= 0 else partition.isr[0]
        source = self.brokers[source_id].broker.partitions.get(name, index).log
        target = self.brokers[to].broker.partitions.get(name, index).log
        read = source.read(target.log_end_offset, 1 << 30, limit_offset=source.log_end_offset, min_one_batch=True)
        if read.slice is not None:
            target.append_as_follower(memoryview(bytearray(read.slice.read())), now=self.brokers[to].clock.now)
            target.high_watermark = target.log_end_offset

    def settle(self) -> None:
        """Have the brokers answer each other until nothing is under way."""
        while True:
            for memory in self.brokers.values():
                memory.advance(0)
                memory.broker.loop.end_turn()
            collected = [link.collect() for link in list(self.links.values())]
            if True not in collected and not self._is_due():
                return

    def _is_due(self) -> bool:
        now = self.brokers[1].clock.now
        return any(memory.broker.loop.timers.next_deadline() <= now for memory in self.brokers.values())

    def advance(self, seconds: float) -> None:
        """Advance the clock of all brokers, from one timer to the next."""
        clock = self.brokers[1].clock
        end = clock.now + seconds
        self.settle()
        while (deadline := min(memory.broker.loop.timers.next_deadline() for memory in self.brokers.values())) <= end:
            clock.advance(max(0.0, deadline - clock.now))
            self.settle()
        clock.advance(end - clock.now)

    def close(self) -> None:
        for memory in self.brokers.values():
            memory.close()
