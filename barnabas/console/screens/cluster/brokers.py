"""The brokers of the cluster, and the nodes of `serve --brokers N`, which are started, stopped and killed."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Literal

from barnabas.client.admin.cluster import (
    Feature,
    describe_cluster,
    describe_features,
    describe_quorum,
    is_offline,
    is_under_replicated,
)
from barnabas.client.admin.reassignments import Reassignment, ongoing
from barnabas.client.admin.topics import list_topics
from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.console.collector import views
from barnabas.console.console import Call
from barnabas.console.failures import Refused, answer, unless_refused
from barnabas.console.jobs import Job
from barnabas.console.resources import Done, action, resource
from barnabas.supervise import drains
from barnabas.supervise.control import ControlError, ask, look
from barnabas.supervise.state import ClusterState, NoCluster, NodeState
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse, MetadataResponseTopic

log = logging.getLogger(__name__)

ALTER = 7
"""The operation Alter among the authorized operations of a response, which are bits (KIP-430)."""
MOVES_MAX = 100
"""Partitions on the move that are listed."""


@dataclass(frozen=True)
class ClusterBroker:
    """One broker."""

    node_id: int
    state: str
    """online, draining, fenced or offline."""
    address: str
    rack: str | None
    is_controller: bool
    version: str
    leaders: int
    replicas: int
    behind: int
    """Its replicas that are not in sync."""
    cpu: float | None
    memory_bytes: float | None
    disk: float | None
    messages_per_s: float | None
    uptime_s: float | None
    node: Node | None


@dataclass(frozen=True)
class Node:
    """A process of `serve --brokers N`."""

    node_id: int
    role: str
    state: str
    """starting, running, stopping, stopped or died."""
    pid: int | None
    detail: str
    """How it ended."""
    log: str


@dataclass(frozen=True)
class Move:
    """A partition on the move."""

    topic: str
    partition: int
    replicas: list[int]
    adding: list[int]
    removing: list[int]


@dataclass(frozen=True)
class ClusterView:
    """The cluster."""

    cluster_id: str
    controller: int
    """The leader of the quorum; -1 if it is not known. It need not be a broker."""
    failure: str
    """Why no broker answers; empty if one does."""
    brokers: list[ClusterBroker]
    controllers: list[Node]
    """The controllers of `serve --brokers N`."""
    has_nodes: bool
    """Whether nodes can be started and ended from here."""
    partitions: int
    under_replicated: int
    offline: int
    features: list[Feature]
    moves: list[Move]
    moving: int
    jobs: list[Job] = field(default_factory=list)


@resource("/cluster", template="cluster/brokers.html", summary="Brokers, nodes, features, partitions on the move.")
def cluster_view(cluster: Cluster, call: Call) -> ClusterView:
    """With a supervisor also when no broker answers."""
    known = nodes_of(call)
    if known is not None:
        cluster.timeout_s = min(cluster.timeout_s, 3.0)
    try:
        return _view(cluster, call, known)
    except (ClientError, KafkaError, ProtocolError) as error:
        if known is None:
            raise
        log.info("no broker answers: %s", error)
        return _without_brokers(call, known, answer(error).text)


def nodes_of(call: Call) -> ClusterState | None:
    """What the supervisor of `serve --brokers N` tells; None without one."""
    if call.settings.data_dir is None:
        return None
    try:
        return look(call.settings.data_dir, log.info)
    except (NoCluster, ControlError) as error:
        log.warning("the nodes of %s are not known: %s", call.settings.data_dir, error)
        return None


def _view(cluster: Cluster, call: Call, known: ClusterState | None) -> ClusterView:
    described = describe_cluster(cluster)
    topics = list_topics(cluster)
    partitions = [partition for topic in topics for partition in topic.partitions]
    moves: dict[tuple[str, int], Reassignment] = unless_refused(lambda: ongoing(cluster), {})
    controller = unless_refused(lambda: describe_quorum(cluster).topics[0].partitions[0].leader_id, -1)
    loads = call.collector.read(lambda figures, _: views.broker_rows(figures))
    return ClusterView(
        cluster_id=described.cluster_id,
        controller=controller,
        failure="",
        brokers=_brokers(described, topics, loads, known, controller),
        controllers=_nodes(known, "controller"),
        has_nodes=known is not None,
        partitions=len(partitions),
        under_replicated=sum(is_under_replicated(each) and not is_offline(each) for each in partitions),
        offline=sum(map(is_offline, partitions)),
        features=[feature for feature in describe_features(cluster) if feature.level],
        moves=[
            Move(topic, index, move.replicas, move.adding, move.removing)
            for (topic, index), move in sorted(moves.items())[:MOVES_MAX]
        ],
        moving=len(moves),
        jobs=call.console.jobs.all(),
    )


def _without_brokers(call: Call, known: ClusterState, failure: str) -> ClusterView:
    brokers = [_offline_broker(node) for node in known.brokers]
    controllers = _nodes(known, "controller")
    return ClusterView(
        known.cluster_id, -1, failure, brokers, controllers, True, 0, 0, 0, [], [], 0, call.console.jobs.all()
    )


def _brokers(
    described: DescribeClusterResponse,
    topics: list[MetadataResponseTopic],
    loads: list[views.BrokerRow],
    known: ClusterState | None,
    controller: int,
) -> list[ClusterBroker]:
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    behind: Counter[int] = Counter()
    for topic in topics:
        for partition in topic.partitions:
            leaders[partition.leader_id] += 1
            replicas.update(partition.replica_nodes)
            behind.update(set(partition.replica_nodes).difference(partition.isr_nodes))
    by_id = {load.broker: load for load in loads}
    draining = drains.drained(known) if known is not None else set()
    nodes = {} if known is None else {node.node_id: node for node in known.brokers}
    rows: dict[int, ClusterBroker] = {}
    for broker in described.brokers:
        number = broker.broker_id
        load = by_id.get(number)
        state = "fenced" if broker.is_fenced else "draining" if number in draining else "online"
        node = nodes.get(number)
        rows[number] = ClusterBroker(
            node_id=number,
            state="offline" if node is not None and node.pid is None else state,
            address=f"{broker.host}:{broker.port}",
            rack=broker.rack,
            is_controller=number == controller,
            version=load.version if load else "",
            leaders=leaders[number],
            replicas=replicas[number],
            behind=behind[number],
            cpu=load.cpu if load else None,
            memory_bytes=load.memory_bytes if load else None,
            disk=load.disk if load else None,
            messages_per_s=load.messages_per_s if load else None,
            uptime_s=load.uptime_s if load else None,
            node=None if node is None else _node(node),
        )
    for number, node in nodes.items():
        rows.setdefault(number, _offline_broker(node))
    return [rows[number] for number in sorted(rows)]


def _offline_broker(node: NodeState) -> ClusterBroker:
    return ClusterBroker(
        node.node_id, "offline", node.address, None, False, "", 0, 0, 0, None, None, None, None, None, _node(node)
    )


def _nodes(known: ClusterState | None, role: str) -> list[Node]:
    return [] if known is None else [_node(node) for node in known.nodes if node.role == role]


def _node(node: NodeState) -> Node:
    return Node(node.node_id, node.role, node.state, node.pid, node.detail, node.log)


@dataclass(frozen=True)
class ChangeNode:
    """What is done with a node."""

    node: int
    what: Literal["start", "stop", "kill"]


@action(
    "/cluster/nodes/{node}/{what}",
    summary="Start, stop (as SIGTERM does) or kill (SIGKILL) a node of 'serve --brokers N'.",
    timeout_s=120,
)
def change_node(cluster: Cluster, call: Call, form: ChangeNode) -> Done:
    """Waits until it serves, or has ended."""
    _check_rights(cluster, call)
    result = ask(_directory(call), form.what, node=form.node)
    name = f"{result['role'].capitalize()} {form.node}"
    if form.what == "start":
        return Done(f"{name} runs on {result['address']} (pid {result['pid']}).", "/cluster")
    if form.what == "kill":
        return Done(f"{name} (pid {result['pid']}) is killed.", "/cluster")
    if result["state"] != "stopped":
        raise Refused(
            HTTPStatus.CONFLICT,
            f"{name} ended, but not by a clean stop: {result['detail']}; its output is {result['log']}",
        )
    return Done(f"{name} (pid {result['pid']}) is stopped.", "/cluster")


@dataclass(frozen=True)
class AddBroker:
    """Nothing has to be said."""


@action("/cluster/nodes", summary="Start another broker of 'serve --brokers N' with the next id.", timeout_s=120)
def add_broker(cluster: Cluster, call: Call, form: AddBroker) -> Done:  # noqa: ARG001 - an action has a form
    """It has no partitions at first."""
    _check_rights(cluster, call)
    result = ask(_directory(call), "add")
    return Done(
        f"Broker {result['node_id']} runs on {result['address']}. A rebalance gives it partitions.",
        "/cluster",
    )


def _check_rights(cluster: Cluster, call: Call) -> None:
    """`Refused` if a user who has logged in may not Alter the cluster: the supervisor itself asks nobody."""
    if not call.session.is_login:
        return
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    response = cluster.call(request, DescribeClusterResponse)
    if not response.cluster_authorized_operations >> ALTER & 1:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            f"user {call.session.user} may not start and end nodes: it needs the operation Alter on the cluster",
        )


def _directory(call: Call) -> str:
    directory = call.settings.data_dir
    if directory is None:
        raise Refused(
            HTTPStatus.CONFLICT,
            "nodes are started and ended here only for a cluster of 'barnabas serve --brokers N --console'",
        )
    return directory
