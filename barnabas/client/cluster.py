"""A client's view of a cluster: bootstrap, metadata, a connection to each node, retries until a deadline.

Retriable errors and lost connections are retried with increasing pauses until `timeout_s`. Exception: if no bootstrap
address has ever answered, the first refused connection fails, so that a mistyped address is reported immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from barnabas.client.connection import MAX_FRAME_BYTES, NodeConnection
from barnabas.client.errors import ClientError, NotFound, TimedOut, Unreachable, is_retriable, no_such, raise_for
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponseTopic,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import Uuid

if TYPE_CHECKING:
    from barnabas.client.security.settings import Security

T = TypeVar("T")
R = TypeVar("R", bound=Message)

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
GROUP, TRANSACTION = 0, 1
"""The key types of FindCoordinator."""
CREATION_PATIENCE_S = 5.0
"""How long a topic that is being created may be unknown, seconds."""


@dataclass(slots=True)
class Topic:
    """A topic's metadata. `leaders[p]` is the node that leads partition p, or -1."""

    name: str
    topic_id: Uuid
    leaders: list[int]

    def without_leader(self, partitions: Collection[int] | None) -> int | None:
        """The first of `partitions` (None: of all) that no node leads; None if each has a leader."""
        indexes = range(len(self.leaders)) if partitions is None else partitions
        return next((index for index in indexes if index < len(self.leaders) and self.leaders[index] < 0), None)

    @classmethod
    def from_metadata(cls, topic: MetadataResponseTopic) -> Topic:
        """From a topic of a Metadata response, with partitions in any order."""
        leaders = {partition.partition_index: partition.leader_id for partition in topic.partitions}
        return cls(topic.name or "", topic.topic_id, [leaders.get(index, -1) for index in range(len(leaders))])


def parse_address(text: str) -> tuple[str, int]:
    """`host:port`, `[::1]:port`, or a host alone (port 9092). ValueError with a sentence."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or (":" in host and not host.endswith("]")):
        host, port = text.strip(), "9092"
    host = host.removeprefix("[").removesuffix("]")
    if not host or "/" in host or not (port.isascii() and port.isdigit() and 0 < int(port) <= 65535):
        raise ValueError(f"a broker's address is HOST:PORT, as in 127.0.0.1:9092, not {text!r}")
    return host, int(port)


def parse_addresses(text: str) -> list[tuple[str, int]]:
    """Addresses separated by commas. ValueError with a sentence; also if there is none."""
    addresses = [parse_address(part) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("a broker's address is HOST:PORT, as in 127.0.0.1:9092")
    return addresses


class Cluster:
    """Connections to the nodes of one cluster, and its metadata. Close it after use."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "barnabas",
        software_version: str = "0",
        timeout_s: float = 30.0,
        security: Security | None = None,
    ) -> None:
        self.bootstrap = parse_addresses(bootstrap)
        self.client_id = client_id
        self.software_version = software_version
        self.timeout_s = timeout_s
        self.security = security
        self.nodes: dict[int, MetadataResponseBroker] = {}
        self._connections: dict[tuple[str, int], NodeConnection] = {}
        self._topics: dict[str, Topic] = {}
        self._was_reached = False
        self.max_frame_bytes = MAX_FRAME_BYTES
        """The largest answer that is received; `limited_to` changes it."""

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; requests without a reply fail."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # --- connections

    def any_node(self, deadline: float) -> NodeConnection:
        """A connection to any node: an open one, or to a bootstrap address. `Unreachable` if none answers."""
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        known = [(node.host, node.port) for node in self.nodes.values()]
        addresses = [*self.bootstrap, *known]
        last: ClientError | None = None
        for number, (host, port) in enumerate(addresses):
            now = monotonic()
            share = (deadline - now) / (len(addresses) - number)  # one that never answers leaves time for the others
            try:
                return self._open(host, port, now + share)
            except ClientError as error:
                last = error
        assert last is not None
        raise last

    def node(self, node_id: int, deadline: float) -> NodeConnection:
        """A connection to one node, at its advertised address."""
        if node_id not in self.nodes:
            self.metadata([], deadline)
        if node_id not in self.nodes:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"node {node_id} is not among the cluster's brokers")
        node = self.nodes[node_id]
        try:
            return self._open(node.host, node.port, deadline)
        except Unreachable as error:
            raise Unreachable(f"{error}; this is the address that node {node_id} advertises") from None

    def _open(self, host: str, port: int, deadline: float) -> NodeConnection:
        connection = self._connections.get((host, port))
        if connection is not None and connection.is_open:
            return connection
        connection = NodeConnection(host, port, self.client_id, self.software_version, self.security)
        connection.max_frame_bytes = self.max_frame_bytes
        connection.open(deadline)
        self._connections[host, port] = connection
        self._was_reached = True
        return connection

    @contextmanager
    def limited_to(self, max_frame_bytes: int) -> Iterator[None]:
        """Within the block a larger answer is not received: `ResponseTooLarge`."""
        before = self.max_frame_bytes
        self._set_limit(max_frame_bytes)
        try:
            yield
        finally:
            self._set_limit(before)

    def _set_limit(self, max_frame_bytes: int) -> None:
        self.max_frame_bytes = max_frame_bytes
        for connection in self._connections.values():
            connection.max_frame_bytes = max_frame_bytes

    @property
    def open_connections(self) -> list[NodeConnection]:
        """Every connection that is open."""
        return [connection for connection in self._connections.values() if connection.is_open]

    # --- calls

    def retry(self, attempt: Callable[[float], T]) -> T:
        """Run `attempt(deadline)`; retry after retriable errors until `timeout_s` (`TimedOut`)."""
        deadline = monotonic() + self.timeout_s
        pause = FIRST_PAUSE_S
        while True:
            try:
                return attempt(deadline)
            except (KafkaError, Unreachable) as error:
                if not is_retriable(error) or not self._was_reached:
                    raise
                self._topics.clear()
                if monotonic() + pause > deadline:
                    raise TimedOut(f"failed for {self.timeout_s:g} s: {error}") from error
            sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_S)

    def call(
        self, request: Message, reply: type[R], *, node_id: int | None = None, max_version: int | None = None
    ) -> R:
        """One request to any node or to a given one, with retries while the connection fails."""

        def attempt(deadline: float) -> R:
            node = self.any_node(deadline) if node_id is None else self.node(node_id, deadline)
            return node.call(request, reply, deadline, max_version)

        return self.retry(attempt)

    # --- metadata

    def metadata(self, topics: Sequence[str] | None, deadline: float, *, create: bool = False) -> MetadataResponse:
        """Request metadata (None: of all topics) and store the nodes. The caller checks errors of topics."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=create)
        response = self.any_node(deadline).call(request, MetadataResponse, deadline)
        self.nodes = {node.node_id: node for node in response.brokers}
        return response

    def topic(
        self, name: str, deadline: float, *, create: bool = False, partitions: Collection[int] | None = None
    ) -> Topic:
        """One topic, cached or requested, with a leader of each of `partitions` (None: of all).

        `NotFound` if there is none; a retriable error while it is being created, or while a leader is missing.
        """
        cached = self._topics.get(name)
        if cached is not None and cached.without_leader(partitions) is None:
            return cached
        patience = min(deadline, monotonic() + CREATION_PATIENCE_S)
        pause = FIRST_PAUSE_S
        while True:
            described = self.metadata([name], deadline, create=create).topics[0]
            if described.error_code == ErrorCode.NONE:
                break
            unknown = described.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if unknown and (not create or monotonic() + pause > patience):
                raise no_such("topic", name)
            if not (create and unknown):
                raise_for(described.error_code, f"topic {name!r}")
            sleep(pause)
            pause *= 2
        topic = self._topics[name] = Topic.from_metadata(described)
        missing = topic.without_leader(partitions)
        if missing is not None:
            raise_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{name}-{missing}", "no broker leads the partition")
        return topic

    def leader(self, name: str, index: int, deadline: float) -> int:
        """The node that leads a partition; a retriable error while none does. Other partitions may have none."""
        leaders = self.topic(name, deadline, partitions=[index]).leaders
        if index >= len(leaders):
            raise NotFound(f"topic {name!r} has no partition {index}")
        return leaders[index]

    def find_topic(self, name: str) -> Topic:
        """One topic, whose partitions may be without a leader; `NotFound` if it does not exist."""
        return self.retry(lambda deadline: self.topic(name, deadline, partitions=()))

    def forget(self, name: str) -> None:
        """Remove a topic from the cache."""
        self._topics.pop(name, None)

    def coordinator(self, group: str, deadline: float) -> NodeConnection:
        """A connection to the node that coordinates a group."""
        return self.node(self.coordinator_id(group, deadline), deadline)

    def coordinator_id(self, key: str, deadline: float, key_type: int = GROUP) -> int:
        """The node that coordinates a group, or a transactional id (TRANSACTION)."""
        about = f"the coordinator of {'group' if key_type == GROUP else 'transactional id'} {key!r}"
        request = FindCoordinatorRequest(key=key, key_type=key_type, coordinator_keys=[key])
        node = self.any_node(deadline)
        version = node.version_for(request, None)
        if version >= 4:
            request.key = ""
        else:
            request.coordinator_keys = []
        response = node.call(request, FindCoordinatorResponse, deadline, version)
        if version >= 4:
            coordinator = response.coordinators[0]
            raise_for(coordinator.error_code, about, coordinator.error_message)
            return coordinator.node_id
        raise_for(response.error_code, about, response.error_message)
        return response.node_id
