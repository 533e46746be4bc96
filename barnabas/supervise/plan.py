"""Which nodes a cluster has, and the config keys that the supervisor sets for each. Pure.

Brokers have the ids 1 to N, our controller 3000, Kafka's 3001 to 3003. The user can set all keys, for all nodes or for
one, but those that make a node part of this cluster (its id, roles, addresses, directory).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

OUR_CONTROLLER = 3000
KAFKA_CONTROLLERS = (3001, 3002, 3003)
CONTROLLER_LISTENER = "CONTROLLER"
MAX_REPLICAS = 3
PLANNED = frozenset(
    {
        "advertised.listeners",
        "broker.id",
        "controller.listener.names",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.voters",
        "listeners",
        "log.dir",
        "log.dirs",
        "metadata.log.dir",
        "node.id",
        "process.roles",
    }
)
"""Keys that the supervisor sets for each node."""


class PlanError(Exception):
    """The cluster cannot be as the options say; the text is one sentence."""


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller and the address of its listener."""

    node_id: int
    host: str
    port: int

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return f"{self.host}:{self.port}"


def replication_defaults(brokers: int) -> dict[str, str]:
    """Defaults of the dev profile for a cluster: three replicas where there are as many brokers, two in sync."""
    replicas = min(MAX_REPLICAS, brokers)
    in_sync = 2 if replicas == MAX_REPLICAS else 1
    return {
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync),
        "offsets.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync),
        "transaction.state.log.replication.factor": str(replicas),
    }


def check_user_keys(sets: Iterable[str]) -> None:
    """PlanError if a key is set on the command line that the supervisor sets."""
    for key in sorted(PLANNED.intersection(sets)):
        raise PlanError(f"with --brokers {key} is different for each node and cannot be set")


def broker_keys(
    node_id: int, host: str, port: int, directory: str, controllers: Sequence[Controller], user: Mapping[str, str]
) -> dict[str, str]:
    """The config keys of a broker: the user's keys, and the keys that make it part of the cluster."""
    return {**user, **_common(node_id, directory, controllers, user), **_of_broker(host, port)}


def controller_keys(
    node_id: int, directory: str, controllers: Sequence[Controller], user: Mapping[str, str]
) -> dict[str, str]:
    """The config keys of a controller."""
    own = next(controller for controller in controllers if controller.node_id == node_id)
    keys = {**user, **_common(node_id, directory, controllers, user)}
    return keys | {"process.roles": "controller", "listeners": f"{CONTROLLER_LISTENER}://{own.address}"}


def _of_broker(host: str, port: int) -> dict[str, str]:
    name = f"[{host}]" if ":" in host else host
    return {"process.roles": "broker", "listeners": f"PLAINTEXT://{name}:{port}"}


def _common(node_id: int, directory: str, controllers: Sequence[Controller], user: Mapping[str, str]) -> dict[str, str]:
    """The keys that every node has. The controller's listener gets a protocol unless the user's map has one."""
    protocols = user.get("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT")
    if f"{CONTROLLER_LISTENER}:" not in protocols:
        protocols = f"{CONTROLLER_LISTENER}:PLAINTEXT,{protocols}"
    return {
        "node.id": str(node_id),
        "log.dirs": directory,
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.bootstrap.servers": ",".join(controller.address for controller in controllers),
        "controller.quorum.voters": ",".join(
            f"{controller.node_id}@{controller.address}" for controller in controllers
        ),
        "listener.security.protocol.map": protocols,
    }


def metrics_address(address: str, node_id: int) -> str:
    """The address of a broker's metrics: each broker has the next port after the previous broker's; 0 stays 0."""
    host, colon, port = address.rpartition(":")
    if not port.isdecimal() or port == "0":
        return address
    return f"{host}{colon}{int(port) + node_id - 1}"


def dial_address(host: str, port: int) -> str:
    """HOST:PORT for a client on this machine."""
    if host in ("", "0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
