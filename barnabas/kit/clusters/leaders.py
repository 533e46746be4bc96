"""The leaders of partitions in a cluster of several brokers: elections, and leaders in snapshots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from barnabas.kit.clusters.snapshots import Led
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ElectLeadersResponse,
    ReassignablePartition,
    ReassignableTopic,
)

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.server import Server
    from barnabas.kit.clusters.local_client import LocalClient

PREFERRED: Final = 0
Key = tuple[str, int]
"""Topic and index."""


class Brokers(Protocol):
    """The brokers of a cluster, as its leaders see them (`nodes.Nodes`)."""

    @property
    def server(self) -> Server:
        """The first broker that runs."""

    @property
    def client(self) -> LocalClient:
        """A client of the first broker that runs."""

    def running(self) -> list[Server]:
        """The brokers that run."""

    def is_running(self, node_id: int) -> bool:
        """Whether a broker runs."""

    async def until(self, condition: Callable[[], bool], what_else: str) -> None:
        """Wait until a condition holds."""


class Leaders:
    """The leaders of one cluster."""

    def __init__(self, nodes: Brokers) -> None:
        self._nodes = nodes

    # -- elections

    async def elect(self, topic: str, index: int, leader: int) -> None:
        """Have a replica lead a partition: it becomes the preferred one, and is elected once it is in sync."""
        nodes = self._nodes
        if not nodes.is_running(leader):
            raise ControlError(f"Broker {leader} is not running")
        partition = _image_of(nodes.server, (topic, index))
        if partition is None:
            raise NotFoundError(f"There is no partition {topic}-{index}")
        if leader not in partition.replicas:
            raise ControlError(
                f"Broker {leader} has no replica of {topic}-{index}; {list(partition.replicas)} have one"
            )
        await self._until_known((topic, index), lambda known: leader in known.isr, f"Broker {leader} is not in sync")
        order = [leader, *(replica for replica in partition.replicas if replica != leader)]
        reordered = ReassignablePartition(partition_index=index, replicas=order)
        request = AlterPartitionReassignmentsRequest(topics=[ReassignableTopic(name=topic, partitions=[reordered])])
        moved = await nodes.client.ask(request, AlterPartitionReassignmentsResponse)
        _check(moved.error_code, moved.error_message)
        for result in (result for response in moved.responses for result in response.partitions):
            _check(result.error_code, result.error_message)
        await self._elect_preferred([(topic, index)])
        await self._until_known((topic, index), lambda known: known.leader == leader, f"Broker {leader} does not lead")

    async def _elect_preferred(self, keys: Iterable[Key]) -> None:
        """Have the first replica of each partition elected. ControlError if one cannot be."""
        by_topic: dict[str, list[int]] = {}
        for topic, index in keys:
            by_topic.setdefault(topic, []).append(index)
        named = [ElectLeadersRequestTopicPartitions(topic=topic, partitions=own) for topic, own in by_topic.items()]
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=named)
        elected = await self._nodes.client.ask(request, ElectLeadersResponse)
        _check(elected.error_code, None)
        for result in (result for response in elected.replica_election_results for result in response.partition_result):
            if result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                _check(result.error_code, result.error_message)

    async def _until_known(self, key: Key, condition: Any, what_else: str) -> None:
        """Wait until a condition on a partition holds in the metadata of all running brokers."""

        def is_known() -> bool:
            images = [_image_of(server, key) for server in self._nodes.running()]
            return all(image is not None and condition(image) for image in images)

        await self._nodes.until(is_known, what_else)

    # -- snapshots

    def _led(self) -> Iterator[tuple[int, Partition]]:
        for server in self._nodes.running():
            for partition in server.broker.partitions:
                if partition.is_leader:
                    yield server.config.node_id, partition

    def now(self) -> dict[Key, Led]:
        """The partitions that are led by running brokers, with the replicas in sync that run."""
        running = {server.config.node_id for server in self._nodes.running()}
        led = {}
        for leader, partition in self._led():
            key = (partition.topic, partition.index)
            known = _image_of(self._server(leader), key)
            isr = frozenset(() if known is None else running.intersection(known.isr))
            led[key] = Led(leader, isr, partition.log.high_watermark)
        return led

    def lagging(self) -> str | None:
        """A partition whose running in-sync replicas miss records, or whose records are not committed; else None."""
        for key, led in self.now().items():
            replicas = [self._server(node_id).broker.partitions.find(*key) for node_id in led.isr]
            ends = {None if replica is None else replica.log.log_end_offset for replica in replicas}
            if len(ends) > 1 or self._will_commit(key, led):
                return f"{key[0]}-{key[1]}"
        return None

    def _will_commit(self, key: Key, led: Led) -> bool:
        """Whether the next fetches commit records: the replicas in sync have them, all of which run and are enough."""
        leader = self._server(led.leader)
        known, partition = _image_of(leader, key), leader.broker.partitions.find(*key)
        return (
            known is not None
            and partition is not None
            and led.high_watermark < partition.own_end
            and led.isr.issuperset(known.isr)
            and len(led.isr) >= partition.min_in_sync
        )

    async def return_to(self, before: Mapping[Key, Led]) -> None:
        """Wait until the former in-sync replicas are in sync, and preferred leaders lead again. ControlError."""
        await self._nodes.until(lambda: self._are_back(before), "Not all replicas are in sync again")
        now = self.now()
        moved = [key for key, led in before.items() if now[key].leader != led.leader and self._prefers(key, led.leader)]
        if moved:
            await self._elect_preferred(moved)
            await self._nodes.until(
                lambda: self._are_back(before, moved), "Not all partitions have their leaders again"
            )

    def _are_back(self, before: Mapping[Key, Led], moved: Iterable[Key] = ()) -> bool:
        """Whether partitions have their former in-sync replicas and commits, and `moved` their former leader."""
        now = self.now()
        for key, led in before.items():
            led_now = now.get(key)
            if led_now is None or not led.isr <= led_now.isr or led_now.high_watermark < led.high_watermark:
                return False
        return all(now[key].leader == before[key].leader for key in moved)

    def _prefers(self, key: Key, leader: int) -> bool:
        known = _image_of(self._nodes.server, key)
        return known is not None and known.replicas[0] == leader

    def _server(self, node_id: int) -> Server:
        return next(server for server in self._nodes.running() if server.config.node_id == node_id)


def _image_of(server: Server, key: Key) -> Any:
    """A partition as a broker's metadata has it, None if it has not."""
    topic = server.broker.image.topics.get(key[0])
    return None if topic is None else topic.partitions.get(key[1])


def _check(code: int, message: str | None) -> None:
    if code:
        raise ControlError(f"{ErrorCode(code).name}: {message or 'refused'}")
