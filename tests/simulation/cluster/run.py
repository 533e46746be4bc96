"""What all runs of a cluster have in common: its start, its end, and the failure of everything at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import topics as tp
from tests.simulation.clients.consumer import Reader
from tests.simulation.clients.process import Process, Steps
from tests.simulation.cluster.checks import check_images
from tests.simulation.cluster.node import RESTART_S
from tests.simulation.cluster.world import REPLICAS, ClusterWorld
from tests.support.requests.fetch import Records

if TYPE_CHECKING:
    from barnabas.wire.schema import Message

HEALED_S = 60.0
SLICE_S = 0.5


class ClusterRun:
    """One run."""

    def __init__(self, world: ClusterWorld, topics: Mapping[str, int]) -> None:
        """`topics` are created, with so many partitions."""
        self.world = world
        self.topics = topics

    def start(self) -> None:
        """Start all nodes and create the topics."""
        world = self.world
        for node in world.nodes.values():
            node.start()
        world.run(20.0, self.all_unfenced)
        assert self.all_unfenced(), "the brokers are not unfenced"
        self._create_topics()

    def all_unfenced(self) -> bool:
        """Whether the controller runs and no broker is fenced."""
        image = self.world.image
        return image is not None and all(
            node_id in image.brokers and not image.brokers[node_id].fenced for node_id in self.world.brokers
        )

    def _create_topics(self) -> None:
        topics = [
            tp.CreatableTopic(name=name, num_partitions=partitions, replication_factor=REPLICAS)
            for name, partitions in self.topics.items()
        ]
        response = self.administer(tp.CreateTopicsRequest(topics=topics, timeout_ms=10_000))
        assert isinstance(response, tp.CreateTopicsResponse), response
        for topic in response.topics:
            assert topic.error_code == ErrorCode.NONE, topic

    def administer(self, request: Message) -> Any:
        """The response to an administrator's request, before there are faults."""
        world = self.world
        responses: list[object] = []
        client = world.clients.brokers.client(world.brokers[0], "admin")
        client.send(request, responses.append, timeout_s=20.0)
        world.run(20.0, lambda: bool(responses))
        assert responses
        return responses[0]

    # ---- the end

    def heal(self) -> None:
        """All faults are over."""
        world = self.world
        world.is_healed = True
        world.network.cuts.clear()
        world.network.slow.clear()
        for node in world.nodes.values():
            node.heal_disk()
        world.trace.note("healed")

    def settle(self, seconds: float = HEALED_S) -> None:
        """Heal, and wait until everything is as it should be."""
        world = self.world
        self.heal()
        end = world.clock.now + seconds
        failure: AssertionError | KafkaError | None = None
        while world.clock.now < end:
            world.run(SLICE_S)
            try:
                self.check_end()
            except (AssertionError, KafkaError) as error:
                failure = error
            else:
                return
        assert failure is not None
        raise failure

    def check_end(self) -> None:
        """Check what must hold some time after all faults are over; of the nodes here, of the clients in subclasses."""
        world = self.world
        assert not world.restarts
        image = world.image
        assert image is not None
        for topic in image.topics.values():
            for index, partition in topic.partitions.items():
                where = f"{topic.name}-{index}"
                assert partition.leader >= 0, f"{where} has no leader"
                assert not partition.adding_replicas, f"{where} is being moved: {partition}"
                assert not partition.removing_replicas, f"{where} is being moved: {partition}"
                assert set(partition.isr) == set(partition.replicas), f"{where}: ISR {partition.isr}"
        world.checks.check_equal(image)
        check_images(image, [node.broker.image for node in world.nodes.values() if node.broker is not None])

    def crash_all(self) -> None:
        """All brokers fail at the same time."""
        world, random = self.world, self.world.random
        power_fails = world.is_synced
        for node in world.nodes.values():
            if not node.is_controller or random.random() < 0.5:
                node.kill(power_fails=power_fails and not node.is_controller)
        for node in world.nodes.values():
            world.clock.after(random.choice(RESTART_S), node.start)

    # ---- what a reader sees

    def visible_values(self, topic: str, check: Callable[[int, Records], None]) -> Counter[bytes]:
        """All values of a topic under read_committed; `check` gets partition and records of each fetch."""
        world = self.world
        process = Process(world, world.links, "auditor")
        values: Counter[bytes] = Counter()
        done: list[int] = []

        def read(index: int) -> Steps[None]:
            reader, position, before = Reader(process, topic), 0, -1
            while position != before:
                fetched = yield from reader.fetch(index, position)
                if fetched is None:
                    yield 0.1
                    continue
                before, (position, records) = position, fetched
                check(index, records)
                values.update(value for _, value in records)
            done.append(index)

        for index in range(self.topics[topic]):
            process.spawn(read(index))
            world.run(20.0, lambda index=index: index in done)
            assert index in done, f"{topic}-{index} cannot be read"
        process.kill()
        return values
