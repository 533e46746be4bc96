"""The nodes of a cluster as its supervisor starts them: their directories, config keys and processes.

The directory of a cluster has one for each node (`broker-1`, `controller-3000`), its output (`broker-1.log`) and
`cluster.json`. A later start finds the cluster id and the kind of controllers there, or else in the nodes' directories.
"""

from __future__ import annotations

import base64
import os
import random
import socket
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from barnabas.broker.config.keys.own import METRICS_LISTENER
from barnabas.supervise import kafka_controllers, plan
from barnabas.supervise.node import Body, Lifeline, fork
from barnabas.supervise.options import KAFKA, OURS, ClusterOptions
from barnabas.supervise.plan import Controller, PlanError
from barnabas.supervise.recovery import check_metadata, find_again
from barnabas.supervise.state import FILE, ClusterState, NoCluster, NodeState, Unreadable, read_all, requests_file
from barnabas.terminal.notes import note

# --- ports: those after the first one, or free ones
RANGE = range(20_000, 32_000)
"""Below the ephemeral ports: a node that is started again must find its port free, and an outgoing connection of
another process could have taken an ephemeral one meanwhile."""
LAST = 65_535


def free_port(host: str, used: Collection[int] = ()) -> int:
    """A port that nothing listens on now; any free one if the range is used up."""
    for port in random.sample(RANGE, 200):
        if port not in used and is_free(host, port):
            return port
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def node_ports(host: str, first: int, count: int) -> list[int]:
    """The ports of `count` brokers: `first` and those after it, or free ones if it is 0. ValueError above 65535."""
    if first:
        if first + count - 1 > LAST:
            raise ValueError(f"{count} brokers from port {first} on would need ports above {LAST}")
        return list(range(first, first + count))
    ports: list[int] = []
    for _ in range(count):
        ports.append(free_port(host, ports))
    return ports


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def is_free(host: str, port: int) -> bool:
    """Whether a port can be listened on now."""
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


# --- the nodes

LOOPBACK = "127.0.0.1"


class Members:
    """Makes nodes and starts their processes."""

    def __init__(self, options: ClusterOptions, directory: str) -> None:
        """PlanError if the cluster of the options cannot be made in `directory`."""
        self.options = options
        self.directory = Path(directory).absolute()
        before = _cluster_before(directory)
        if before is not None and before.controllers != options.controllers:
            raise PlanError(
                f"the cluster in {directory} was made with --controllers {before.controllers}, which keep its metadata"
            )
        plan.check_user_keys([*options.sets, *(key for keys in options.node_sets.values() for key in keys)])
        try:
            ports = node_ports(options.host, options.port, options.brokers)
        except ValueError as error:
            raise PlanError(str(error)) from None
        self._ports = dict(enumerate(ports, 1))
        ids = (plan.OUR_CONTROLLER,) if options.controllers == OURS else plan.KAFKA_CONTROLLERS
        check_metadata(directory, ids)
        used = list(ports)
        self._controllers: list[Controller] = []
        for node_id in ids:
            used.append(free_port(LOOPBACK, used))
            self._controllers.append(Controller(node_id, LOOPBACK, used[-1]))
        self.state = ClusterState(
            # existing brokers may have the id of the environment
            cluster_id=before.cluster_id if before else options.environment.get("CLUSTER_ID") or new_cluster_id(),
            controllers=options.controllers,
            pid=os.getpid(),
            control="",
        )
        self.state.nodes = [self._node(each.node_id, "controller", each.address) for each in self._controllers]
        for broker in range(1, options.brokers + 1):
            self.add_broker(broker)
        self._check_ids()
        self.left_out = [] if before is None else [n.name for n in before.brokers if n.node_id > options.brokers]
        """Brokers that an earlier start had in the directory, and this one has not."""
        self._brokers_line, self._controllers_line = Lifeline(), Lifeline()
        self._jars: Path | None = None

    def _check_ids(self) -> None:
        known = {node.node_id for node in self.state.nodes}
        for node_id in self.options.node_sets:
            if node_id not in known:
                ids = ", ".join(map(str, sorted(known)))
                raise PlanError(f"--set {node_id}:...: there is no node {node_id}; there are {ids}")

    def _node(self, node_id: int, role: str, address: str) -> NodeState:
        name = f"{role}-{node_id}"
        return NodeState(node_id, role, address, str(self.directory / name), str(self.directory / f"{name}.log"))

    def add_broker(self, node_id: int) -> NodeState:
        """A further broker, which is not started yet. Its port follows the others, or is a free one."""
        options = self.options
        if node_id not in self._ports:
            first = options.port and options.port + node_id - 1
            self._ports[node_id] = first or free_port(options.host, list(self._ports.values()))
        node = self._node(node_id, "broker", plan.dial_address(options.host, self._ports[node_id]))
        self.state.nodes.append(node)
        return node

    def listener(self, node: NodeState) -> str:
        """The broker's listener, as Kafka writes it."""
        host = f"[{self.options.host}]" if ":" in self.options.host else self.options.host
        return f"PLAINTEXT://{host}:{self._ports[node.node_id]}"

    def prepare(self) -> None:
        """Prepare the nodes before any is started: Kafka's controllers are fetched and formatted. PlanError."""
        if self.options.controllers != KAFKA:
            return
        self._jars = kafka_controllers.jars()
        nodes = {Path(node.directory): self._keys(node) for node in self.state.nodes if node.role == "controller"}
        kafka_controllers.prepare(self._jars, nodes, self.state.cluster_id)

    def start(self, node: NodeState, let_go: list[int]) -> int:
        """Start a node's process; its id. `let_go`: descriptors of the supervisor that it must not keep."""
        Path(self.ready_file(node)).unlink(missing_ok=True)
        Path(requests_file(node)).unlink(missing_ok=True)
        is_broker = node.role == "broker"

        def in_child() -> None:
            for descriptor in let_go:
                os.close(descriptor)
            self._brokers_line.let_go()
            if not is_broker:
                self._controllers_line.let_go()
            (self._brokers_line if is_broker else self._controllers_line).end_with()

        return fork(self._body(node), node.log, in_child)

    def ready_file(self, node: NodeState) -> str:
        """The file that a node writes when it serves."""
        return f"{node.directory}.ready"

    def _body(self, node: NodeState) -> Body:
        if self._jars is not None and node.role == "controller":
            arguments = kafka_controllers.command(self._jars, Path(node.directory))
            return lambda: kafka_controllers.guard(arguments)
        return lambda: self._serve(node)

    def _serve(self, node: NodeState) -> int:
        from barnabas.broker.config.options import ServeOptions
        from barnabas.broker.server import run

        options = self.options
        watched = options.companion if node.role == "broker" else None
        return run(
            ServeOptions(
                sets=self._keys(node),
                defaults=self._defaults(),
                config_file=options.config_file,
                environment={"CLUSTER_ID": self.state.cluster_id, **options.environment},
                profile=options.profile,
                ready_file=self.ready_file(node),
                log_level=options.log_level,
                is_temporary=options.data_dir is None,
                companion=None if watched is None else watched.of_broker(requests_file(node)),
            )
        )

    def _defaults(self) -> Mapping[str, str]:
        return plan.replication_defaults(self.options.brokers) if self.options.profile == "dev" else {}

    def _keys(self, node: NodeState) -> dict[str, str]:
        options = self.options
        user = {**options.sets, **options.node_sets.get(node.node_id, {})}
        if node.role == "controller":
            if options.controllers == KAFKA:
                user = {**self._defaults(), **user}
            return plan.controller_keys(node.node_id, node.directory, self._controllers, user)
        port = self._ports[node.node_id]
        shared = options.sets.get(METRICS_LISTENER.name)
        if shared is not None and user[METRICS_LISTENER.name] == shared:
            user[METRICS_LISTENER.name] = plan.metrics_address(shared, node.node_id)
        return plan.broker_keys(node.node_id, options.host, port, node.directory, self._controllers, user)


def _cluster_before(directory: str) -> ClusterState | None:
    """The cluster that the directory has, by its file, or by the directories of its nodes. PlanError.

    A damaged file is kept beside the new one; a file that cannot be read, because of the disk or its mode, is not
    replaced.
    """
    file = Path(directory) / FILE
    try:
        known, unknown = read_all(directory)
    except NoCluster as error:
        if isinstance(error.__cause__, OSError):
            raise PlanError(f"{file} cannot be read: {error.__cause__.strerror}") from error
        restored = find_again(directory)
        is_damaged = isinstance(error, Unreadable)
        if restored is not None:
            why = f"cannot be read ({error.__cause__})" if is_damaged else "is missing"
            nodes = ", ".join(node.name for node in restored.nodes)
            note(f"barnabas serve: {file} {why} and is written again: {nodes} are of the cluster {restored.cluster_id}")
        if is_damaged:
            file.replace(f"{file}.damaged")
        return restored
    if unknown:
        note(f"barnabas serve: {file} has fields of a later version, which are ignored: {', '.join(unknown)}")
    return known


def new_cluster_id() -> str:
    """A cluster id: a random uuid in Kafka's text form, which begins with no dash."""
    while True:
        text = base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def import_the_broker() -> None:
    """Import the modules that every node needs, once for all of them."""
    import barnabas.broker.server  # noqa: F401

    sys.stdout.flush()
