"""A consumer of a simulated cluster: it reads one partition from its start on, at the leader or at any replica.

Only committed records may ever be read, each once and without gaps. A leader never responds OFFSET_OUT_OF_RANGE, since
everything that was read is in its log (R5, R15); it responds only in the leader epoch of the request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages import fetch as f

if TYPE_CHECKING:
    from barnabas.coord.cluster.topic_image import PartitionImage
    from tests.simulation.cluster.checks import ClusterChecks
    from tests.simulation.cluster.clients import Clients

TIMEOUT_S = 3.0
WAIT_MS = 1000
MAX_BYTES = 2000

REPEATED = frozenset(
    {
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.UNKNOWN_TOPIC_ID,
        E.FENCED_LEADER_EPOCH,
        E.UNKNOWN_LEADER_EPOCH,
        E.OFFSET_NOT_AVAILABLE,
        E.KAFKA_STORAGE_ERROR,
    }
)
"""Errors after which a consumer fetches again, perhaps from another broker."""


class ClusterConsumer:
    """Reads one partition."""

    def __init__(
        self,
        clients: Clients,
        consumer_id: int,
        topic: str,
        index: int,
        find: Callable[[str, int], tuple[bytes, PartitionImage] | None],
        checks: ClusterChecks,
    ) -> None:
        """`find` is what metadata says of the partition."""
        self._clients = clients
        self._random = clients.environment.random
        self._consumer_id = consumer_id
        self._topic = topic
        self._index = index
        self._find = find
        self._checks = checks
        self._position = 0
        self._leader_epoch = -1
        self._read_elsewhere_in = -1
        """The leader epoch in which another replica was read, which may be the next leader and have more by then."""

    @property
    def is_done(self) -> bool:
        """Whether everything that is committed has been read."""
        return self._position == self._checks.end((self._topic, self._index))

    def start(self) -> None:
        """Begin."""
        self._later(self._random.uniform(0, 1.0))

    def _later(self, seconds: float) -> None:
        loop = self._clients.loop
        loop.timers.at(loop.now() + seconds, self._fetch)

    def _fetch(self) -> None:
        known = self._find(self._topic, self._index)
        if known is None or known[1].leader < 0 or known[1].leader_epoch < self._leader_epoch:
            self._later(0.1)  # as real clients, it does not go back to an earlier leader
            return
        topic_id, partition = known
        self._leader_epoch = partition.leader_epoch
        at_leader = self._random.random() < 0.8
        node_id = partition.leader if at_leader else self._random.choice(list(partition.replicas))
        partition_request = f.FetchRequestFetchPartition(
            partition=self._index,
            fetch_offset=self._position,
            current_leader_epoch=partition.leader_epoch if at_leader else -1,
            partition_max_bytes=self._random.choice((1, MAX_BYTES, MAX_BYTES)),
        )
        topic = f.FetchRequestFetchTopic(topic=self._topic, topic_id=topic_id, partitions=[partition_request])
        request = f.FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES, topics=[topic])
        client = self._clients.brokers.client(node_id, f"consumer-{self._consumer_id}")
        epoch = partition.leader_epoch if at_leader else None
        client.send(request, lambda response: self._answered(node_id, epoch, response), timeout_s=TIMEOUT_S)

    def _answered(self, node_id: int, epoch: int | None, response: Any) -> None:
        if isinstance(response, KafkaError):
            self._later(self._random.choice((0.02, 0.1, 0.5)))
            return
        data = response.responses[0].partitions[0]
        error = E(data.error_code)
        if error in REPEATED or (error is E.OFFSET_OUT_OF_RANGE and epoch in {None, self._read_elsewhere_in}):
            self._later(self._random.choice((0.02, 0.1, 0.5)))
            return
        where = f"{self._topic}-{self._index} read at {self._position} from {node_id}, epoch {epoch}"
        assert error is E.NONE, f"{where}: {error!r}"
        self._position = self._checks.read(where, (self._topic, self._index), self._position, data)
        if epoch is None:
            self._read_elsewhere_in = self._leader_epoch
        else:
            self._checks.answered_as_leader(where, (self._topic, self._index), epoch, node_id)
        self._later(self._random.choice((0.0, 0.2, 1.0)))
