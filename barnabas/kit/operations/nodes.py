"""Operations on the brokers of a cluster that has several."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.kit.clusters.nodes import Nodes
from barnabas.kit.errors import ControlError
from barnabas.kit.operations.registry import operation

if TYPE_CHECKING:
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.kit.values import Values


def _nodes(cluster: VirtualCluster) -> Nodes:
    if not isinstance(cluster, Nodes):
        raise ControlError("This cluster has one broker: open one with brokers=3")
    return cluster


@operation("kill_broker", "broker")
async def kill(cluster: VirtualCluster, values: Values) -> object:
    """End a broker as a killed process does: its sockets are closed, and nothing is flushed."""
    await _nodes(cluster).kill_node(values.integer("broker"))
    return {}


@operation("start_broker", "broker")
async def start(cluster: VirtualCluster, values: Values) -> object:
    """Start a broker that was killed, on its address and its directory; answered when it is unfenced."""
    await _nodes(cluster).start_node(values.integer("broker"))
    return {}


@operation("elect", "topic", "partition", "broker")
async def elect(cluster: VirtualCluster, values: Values) -> object:
    """Have a replica lead a partition; answered when all brokers know of it."""
    await _nodes(cluster).leaders.elect(values.text("topic"), values.integer("partition", 0), values.integer("broker"))
    return {}
