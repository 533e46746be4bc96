"""Which brokers and replicas clients of one listener can reach, for the descriptions of topics (R16, KIP-112).

A replica is offline if its broker is fenced, not registered or without this listener, or if its log directory is lost
(KIP-858). A partition whose leader cannot be reached is described without a leader. Source: Kafka 4.4
`KRaftMetadataCache`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coord.cluster.topic_image import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.context import RequestContext
    from barnabas.coord.cluster.topic_image import PartitionImage
    from barnabas.wire.types import Uuid

NO_BROKER: Final = -1


class ReplicaView:
    """The brokers and replicas that one request can see; valid as long as the image does not change."""

    __slots__ = (
        "_alive",
        "_brokers",
        "_lists_listener_errors",
        "_node_id",
        "_offline",
        "_online_directories",
        "brokers",
    )

    def __init__(self, ctx: RequestContext, *, lists_listener_errors: bool = False) -> None:
        """`lists_listener_errors` if the request's version has LISTENER_NOT_FOUND."""
        broker = ctx.broker
        self.brokers = broker.endpoints(ctx)
        """(node id, host, port, rack) of the brokers that the client can reach."""
        self._brokers = broker.image.brokers
        self._node_id = broker.node_id
        self._offline = broker.partitions.offline
        self._lists_listener_errors = lists_listener_errors
        self._alive: frozenset[int] | None = None
        self._online_directories: frozenset[Uuid] = frozenset()
        if not self._brokers.keys() <= {broker.node_id}:
            self._alive = frozenset([endpoint[0] for endpoint in self.brokers])
            directories = {directory for registered in self._brokers.values() for directory in registered.directories}
            self._online_directories = frozenset({*directories, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY})

    @property
    def shows_all(self) -> bool:
        """Whether every replica can be reached: there is one broker, and no partition of it is offline."""
        return self._alive is None and not self._offline

    def leader_error(self, topic: str, index: int, partition: PartitionImage) -> ErrorCode:
        """NONE if the leader can be reached, else why the partition is described without one."""
        leader = partition.leader
        if leader < 0:
            return ErrorCode.LEADER_NOT_AVAILABLE
        if self._alive is not None and leader not in self._alive:
            is_known = leader in self._brokers and self._lists_listener_errors
            return ErrorCode.LISTENER_NOT_FOUND if is_known else ErrorCode.LEADER_NOT_AVAILABLE
        if self._offline and leader == self._node_id and (topic, index) in self._offline:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return ErrorCode.NONE

    def offline_replicas(self, topic: str, index: int, partition: PartitionImage) -> list[int]:
        """The replicas that cannot be reached, in the order of the assignment."""
        alive = self._alive
        if alive is None:
            is_lost = partition.leader < 0 or (topic, index) in self._offline
            return [replica for replica in partition.replicas if replica == self._node_id] if is_lost else []
        replicas, directories = partition.replicas, partition.directories
        if alive.issuperset(replicas) and self._online_directories.issuperset(directories):
            if self._offline and (topic, index) in self._offline:
                return [replica for replica in replicas if replica == self._node_id]
            return []
        return [
            replica
            for replica, directory in zip(replicas, directories, strict=True)
            if not self._is_online(replica, directory)
        ]

    def _is_online(self, replica: int, directory: Uuid) -> bool:
        registered = self._brokers.get(replica)  # None: removed since the request began
        if self._alive is None or replica not in self._alive or registered is None or directory == LOST_DIRECTORY:
            return False
        own = registered.directories
        return not own or directory in own or directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY)

    def reachable(self, replicas: Iterable[int]) -> list[int]:
        """The `replicas` that can be reached: Metadata v0 lists no others."""
        alive = self._alive
        return list(replicas) if alive is None else [replica for replica in replicas if replica in alive]
