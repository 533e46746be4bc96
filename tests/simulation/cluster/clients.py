"""The clients of a simulated cluster: idempotent producers with acks=all, one for each partition, over a real client.

A producer has one batch in flight and repeats it, to the leader at that time, until it is acknowledged. So acknowledged
batches are in the log once and in order (I1, I2), whichever broker fails in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.net.client.inter_broker import InterBroker
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages import produce as p
from tests.simulation.clock import START_MS

if TYPE_CHECKING:
    from barnabas.broker.net.client.outgoing import Peer, Transport
    from barnabas.coord.cluster.topic_image import PartitionImage
    from tests.simulation.cluster.network import ClusterNetwork
    from tests.simulation.environment import Environment

CLIENTS_ID = 9000
TIMEOUT_S = 3.0

REPEATED = frozenset(
    {
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
        E.LEADER_NOT_AVAILABLE,
    }
)
"""Errors after which a producer sends the batch again."""


class Clients:
    """The machine of the clients: it never fails, its network does."""

    def __init__(self, environment: Environment, network: ClusterNetwork) -> None:
        self.node_id = CLIENTS_ID
        self.incarnation = 1
        self.environment = environment
        self._clock = environment.clock
        self.loop = Loop(lambda: self._clock.now, lambda: self._clock.now_ms)

        def connect(host: str, port: int, peer: Peer) -> Transport:
            return network.connect(self, host, port, peer)

        self.brokers = InterBroker(self.loop, connect, lambda node_id: (f"node{node_id}", 9092), client_id="client")

    def turn_with(self, work: Callable[[], None]) -> None:
        """One turn."""
        work()
        self.loop.end_turn()

    def next_deadline(self) -> float:
        """When the next timer is due."""
        return self.loop.timers.next_deadline()

    def fire_timers(self) -> None:
        """Fire the timers that are due."""
        self.turn_with(lambda: self.loop.timers.fire(self._clock.now) and None)


class ClusterProducer:
    """Sends batches to one partition."""

    def __init__(
        self,
        clients: Clients,
        producer_id: int,
        topic: str,
        index: int,
        batches: int,
        find: Callable[[str, int], tuple[bytes, PartitionImage] | None],
        acknowledged: Callable[[str, int, int, list[bytes]], None],
    ) -> None:
        """`find` is what metadata says of the partition; `acknowledged` gets topic, index, first offset and values."""
        self._clients = clients
        self._random = clients.environment.random
        self._producer_id = producer_id
        self._topic = topic
        self._index = index
        self._left = batches
        self._find = find
        self._acknowledged = acknowledged
        self._sequence = 0
        self._values: list[bytes] = []
        self._count = 0
        self._leader_epoch = -1

    @property
    def is_done(self) -> bool:
        """Whether everything is acknowledged."""
        return not self._left and not self._values

    def start(self) -> None:
        """Begin."""
        self._later(self._random.uniform(0, 1.0), self._next)

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        loop = self._clients.loop
        loop.timers.at(loop.now() + seconds, action)

    def _next(self) -> None:
        if not self._left:
            return
        self._left -= 1
        for _ in range(self._random.randint(1, 3)):
            self._count += 1
            self._values.append(b"%d/%d" % (self._producer_id, self._count))
        self._send()

    def _send(self) -> None:
        known = self._find(self._topic, self._index)
        if known is None or known[1].leader < 0 or known[1].leader_epoch < self._leader_epoch:
            self._again()  # as real clients, it does not go back to an earlier leader
            return
        topic_id, partition = known
        self._leader_epoch = partition.leader_epoch
        builder = BatchBuilder(producer_id=self._producer_id, producer_epoch=0, base_sequence=self._sequence)
        for value in self._values:
            builder.append(START_MS, None, value)
        data = p.PartitionProduceData(index=self._index, records=builder.build())
        topics = [p.TopicProduceData(name=self._topic, topic_id=topic_id, partition_data=[data])]
        request = p.ProduceRequest(acks=-1, timeout_ms=1500, topic_data=topics)
        client = self._clients.brokers.client(partition.leader, f"producer-{self._producer_id}")
        client.send(request, self._answered, timeout_s=TIMEOUT_S)

    def _again(self) -> None:
        self._later(self._random.choice((0.02, 0.1, 0.5)), self._send)

    def _answered(self, response: Any) -> None:
        if isinstance(response, KafkaError):
            self._again()
            return
        partition_response = response.responses[0].partition_responses[0]
        error = E(partition_response.error_code)
        if error in REPEATED:
            self._again()
            return
        assert error is E.NONE, f"producer {self._producer_id} is answered {error!r}"
        self._acknowledged(self._topic, self._index, partition_response.base_offset, self._values)
        self._sequence += len(self._values)
        self._values = []
        self._later(self._random.choice((0.02, 0.2, 1.0)), self._next)
