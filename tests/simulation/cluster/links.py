"""The connections of a cluster's client processes: each request goes to the broker that is responsible for it.

Clients find that broker as real ones do, by asking any broker: FindCoordinator for a group or a transactional id,
Metadata for the leader of a partition. After an error or without a response they forget it and ask again when the
process repeats the request. So a request may reach a broker that is not responsible any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import metadata as md
from barnabas.wire.messages import produce as p
from barnabas.wire.messages.groups import classic_groups as g
from tests.simulation.broker.network import Link
from tests.simulation.clients.producer import GROUP_KEY, TRANSACTION_KEY

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.broker.network import ResponseCallback
    from tests.simulation.cluster.clients import Clients
    from tests.simulation.cluster.network import ClusterNetwork
    from tests.simulation.environment import Environment
    from tests.simulation.faults import RequestOutcome

LOOKUP_S = 1.0
BUFFER_BYTES = 1 << 16
FIND_COORDINATOR, METADATA = 4, 12
DIRECTLY = "node "
"""Begins the name of a lane whose requests go to one node."""


class ClusterWire:
    """One connection to a broker, for a `Link`."""

    def __init__(self, clients: Clients, network: ClusterNetwork, node_id: int, link: Link) -> None:
        self.incarnation = 0
        self._link: Link | None = link
        self._space = bytearray(BUFFER_BYTES)
        self._inbox = bytearray()
        self._is_open = False
        self._unsent: list[tuple[bytes, bool]] = []
        self._pipe = network.connect(clients, f"node{node_id}", 9092, self)

    def send(self, data: bytes, request: object, outcome: RequestOutcome, *, may_outlive: bool) -> None:
        """Send a request. Unless it may outlive the connection, it is lost when the client closes the connection."""
        self._unsent.append((data, may_outlive))
        if self._is_open:
            self.opened()

    def opened(self) -> None:
        """The connection is open (`Peer`)."""
        self._is_open = True
        unsent, self._unsent = self._unsent, []
        for data, may_outlive in unsent:
            self._pipe.send([data], lambda may_outlive=may_outlive: may_outlive or self._link is not None)

    def space(self) -> memoryview:
        """Where the next bytes are received to (`Peer`)."""
        return memoryview(self._space)

    def filled(self, count: int) -> None:
        """Bytes were received (`Peer`)."""
        self._inbox += self._space[:count]
        if len(self._inbox) < 4 or len(self._inbox) < 4 + int.from_bytes(self._inbox[:4], "big"):
            return
        data, self._inbox = bytes(self._inbox), bytearray()
        if self._link is not None:
            self._link.take(self, data)

    def ended(self, _: OSError | None) -> None:
        """The connection is lost (`Peer`)."""
        link, self._link = self._link, None
        if link is not None:
            link.lost(self)

    def close(self) -> None:
        """The client closes the connection."""
        self._link = None
        self._pipe.close()


class NodeLinks:
    """What a `Link` needs to connect to one node."""

    def __init__(self, links: ClusterLinks, node_id: int) -> None:
        self.environment: Environment = links.clients.environment
        self._links = links
        self._node_id = node_id

    def connect(self, link: Link) -> ClusterWire:
        """Open a connection."""
        return ClusterWire(self._links.clients, self._links.network, self._node_id, link)


class Coordinator(NamedTuple):
    """A request is for the coordinator of this key."""

    key_type: int
    key: str


class Leader(NamedTuple):
    """A request is for the leader of this partition."""

    topic: str
    index: int


class ClusterLinks:
    """The connections of all processes."""

    def __init__(self, clients: Clients, network: ClusterNetwork, brokers: list[int]) -> None:
        self.clients = clients
        self.network = network
        self.brokers = brokers
        self.leadership: Callable[[Coordinator | Leader | None, int], object] = lambda _target, _node_id: None
        """What identifies the leadership of a node over what a request is for; None unless it leads, and knows it."""

    def link(self, client_id: str, lane: str) -> Link | RoutedLink:
        """The connections of a process for one purpose."""
        if lane.startswith(DIRECTLY):
            return self.to_node(client_id, int(lane.removeprefix(DIRECTLY)))
        return RoutedLink(self, client_id)

    def to_node(self, client_id: str, node_id: int) -> Link:
        """A connection to one node."""
        return Link(NodeLinks(self, node_id), client_id)


class RoutedLink:
    """A client's end for requests to any broker: one at a time."""

    def __init__(self, links: ClusterLinks, client_id: str) -> None:
        self._links = links
        self._random = links.clients.environment.random
        self._client_id = client_id
        self._nodes: dict[int, Link] = {}
        self._known: dict[Coordinator | Leader, int] = {}
        self._epochs: dict[Leader, int] = {}
        """The newest leader epochs that were heard of: a client does not go back to an earlier leader."""
        self.incarnation: object = None
        self.is_current = False

    def _node(self, node_id: int) -> Link:
        if node_id not in self._nodes:
            self._nodes[node_id] = self._links.to_node(self._client_id, node_id)
        return self._nodes[node_id]

    def _any(self) -> int:
        return self._random.choice(self._links.brokers)

    def ask(
        self,
        request: Message,
        version: int,
        on_response: ResponseCallback,
        timeout_s: float,
        *,
        may_outlive: bool = True,
    ) -> None:
        """Send a request to the responsible broker; the response is None if that broker cannot be found."""
        target = target_of(request)

        def answered(response: Message | None) -> None:
            if target is not None and (response is None or has_error(response)):
                self._known.pop(target, None)
            on_response(response)

        def found(node: int | None) -> None:
            if node is None:
                on_response(None)
            else:
                before = self._links.leadership(target, node)

                def answered_by(response: Message | None) -> None:
                    self.incarnation = self._links.leadership(target, node)
                    self.is_current = before is not None and before == self.incarnation
                    answered(response)

                self._node(node).ask(request, version, answered_by, timeout_s, may_outlive=may_outlive)

        if target is None:
            found(self._any())
        elif target in self._known:
            found(self._known[target])
        elif isinstance(target, Coordinator):
            self._find_coordinator(target, found)
        else:
            self._find_leader(target, found)

    def _find_coordinator(self, target: Coordinator, then: Callable[[int | None], None]) -> None:
        def answered(response: Any) -> None:
            node = None
            if response is not None and not response.coordinators[0].error_code:
                node = self._known[target] = response.coordinators[0].node_id
            then(node)

        request = g.FindCoordinatorRequest(coordinator_keys=[target.key], key_type=target.key_type)
        self._node(self._any()).ask(request, FIND_COORDINATOR, answered, LOOKUP_S)

    def _find_leader(self, target: Leader, then: Callable[[int | None], None]) -> None:
        def answered(response: Any) -> None:
            partitions = [] if response is None else response.topics[0].partitions
            for partition in partitions:
                leader = Leader(target.topic, partition.partition_index)
                if partition.leader_id >= 0 and partition.leader_epoch >= self._epochs.get(leader, -1):
                    self._known[leader], self._epochs[leader] = partition.leader_id, partition.leader_epoch
            then(self._known.get(target))

        topics = [md.MetadataRequestTopic(name=target.topic)]
        request = md.MetadataRequest(topics=topics, allow_auto_topic_creation=False)
        self._node(self._any()).ask(request, METADATA, answered, LOOKUP_S)

    def close(self) -> None:
        """Close all connections."""
        for node in self._nodes.values():
            node.close()


def target_of(request: Any) -> Coordinator | Leader | None:
    """The coordinator or leader that is responsible for a request; None: any broker."""
    match request:
        case p.ProduceRequest():
            topic = request.topic_data[0]
            return Leader(topic.name, topic.partition_data[0].index)
        case f.FetchRequest():
            topic = request.topics[0]
            return Leader(topic.topic, topic.partitions[0].partition)
        case g.FindCoordinatorRequest() | md.MetadataRequest():
            return None
    groups = getattr(request, "groups", None)
    group = groups[0].group_id if groups else getattr(request, "group_id", None)
    name = "v3_and_below_transactional_id"
    transactional_id = getattr(request, name, None) or getattr(request, "transactional_id", None)
    if transactional_id is not None and not hasattr(request, "topics"):
        return Coordinator(TRANSACTION_KEY, transactional_id)
    return None if group is None else Coordinator(GROUP_KEY, group)


def has_error(message: Any) -> bool:
    """Whether there is any error in a response."""
    for name in message.__slots__:
        value = getattr(message, name)
        if name.endswith("error_code") and value:
            return True
        if isinstance(value, list) and any(hasattr(item, "__slots__") and has_error(item) for item in value):
            return True
    return False
