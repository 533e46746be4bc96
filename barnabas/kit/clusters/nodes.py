"""Several brokers and their controller in one process, as one virtual cluster (`Broker.open(brokers=3)`).

Each node is a whole `Server`, which speaks with the others over sockets as in processes of their own. A node that is
killed closes its sockets and flushes nothing: its files are as the page cache of a machine has them after its process
was killed. Nodes that start again have their addresses and directories. Timers between brokers are in real time.

A snapshot is taken between two turns, so it has all nodes at one moment; it is served as after a clean stop of all.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from barnabas.broker.config.keys.general import BROKER_SESSION_TIMEOUT_MS
from barnabas.broker.net.acceptor import bind
from barnabas.broker.server import Server
from barnabas.broker.start.start_errors import StartError
from barnabas.broker.world import World
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.kit.clusters.data_copy import EmptyLogs, copy_open_logs, copy_what_has_data
from barnabas.kit.clusters.directories import new_directory, new_path, remove
from barnabas.kit.clusters.leaders import Leaders
from barnabas.kit.clusters.local_client import LocalClient
from barnabas.kit.clusters.snapshots import NodesState
from barnabas.kit.clusters.virtual_cluster import VirtualCluster, check_whole, remove_in_thread
from barnabas.kit.errors import ControlError, NotFoundError, WaitedTooLongError
from barnabas.storage.files import UnsyncedFiles
from barnabas.supervise.plan import (
    CONTROLLER_LISTENER,
    OUR_CONTROLLER,
    Controller,
    broker_keys,
    controller_keys,
    replication_defaults,
)
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.cluster import BrokerHeartbeatRequest
from barnabas.wire.messages.records.metadata_records import BrokerEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.replicas.partition import Partition
    from barnabas.kit.clusters.options import Options
    from barnabas.kit.clusters.snapshots import Snapshot
    from barnabas.wire.schema import Message
    from barnabas.wire.types import Uuid

HOST: Final = "127.0.0.1"
LISTENER: Final = "PLAINTEXT"
BACKLOG: Final = 128
MAX_BROKERS: Final = 9
FAST: Final = {
    "broker.heartbeat.interval.ms": "200",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
    "offsets.topic.num.partitions": "6",
    "share.coordinator.state.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
}
"""Defaults for tests: internal topics, of which every broker has a replica, are made quickly, and have coordinators on
all brokers nevertheless."""
MISSED_S: Final = 1.0
"""How long after its end a killed broker is fenced. Sessions have Kafka's nine seconds, unless the config says
otherwise: no broker is fenced because the machine is busy."""

KNOWN_S: Final = 10.0
"""How long brokers may take to learn of a change, seconds."""
LOOK_S: Final = 0.01

Sockets = dict[str, socket.socket]


class Node:
    """One broker of the cluster, running or not."""

    def __init__(self, node_id: int) -> None:
        self.id = node_id
        self.port = 0
        """Its port, once it has started for the first time."""
        self.server: Server | None = None
        self.scope: trio.CancelScope | None = None
        self.ended = trio.Event()


class Beginning(NamedTuple):
    """The directories and sockets that the nodes begin with."""

    folder: Path
    """Has their directories; it is removed at their end."""
    state: NodesState | None = None
    """Of the snapshot that they begin with."""
    sockets: Mapping[int, Sockets] = {}
    """Listening sockets of before, by node."""


class Nodes(VirtualCluster):
    """A virtual cluster of several brokers."""

    def __init__(
        self, number: int, options: Options, config_of: Callable[[Mapping[str, str]], ServerConfig], descriptors: int
    ) -> None:
        """`config_of` gives the configuration of a node with these keys. ControlError for too many brokers."""
        brokers = options.brokers or 0
        if not 1 <= brokers <= MAX_BROKERS:
            raise ControlError(f"brokers must be 1 to {MAX_BROKERS}, not {brokers}")
        super().__init__(number, None, options.release())
        self.options = options
        self._config_of = config_of
        self._descriptors = descriptors
        self._user = {**FAST, **replication_defaults(brokers), **options.keys}
        self._nodes = {node_id: Node(node_id) for node_id in range(1, brokers + 1)}
        self._controllers: list[Controller] = []
        self._controller: Server
        self._nursery: trio.Nursery
        self._cluster_id = ""
        self._folder: Path
        self._next: Beginning | None = None
        self._failure: Exception | None = None
        self.leaders = Leaders(self)

    def _new_server(self, keys: Mapping[str, str]) -> Server:
        return Server(self._config_of(keys), self._descriptors, is_temporary=True, world=World(files=UnsyncedFiles()))

    def _directory(self, node_id: int) -> str:
        """The name of a node's directory, as `barnabas serve --brokers` has it."""
        return f"controller-{node_id}" if node_id == OUR_CONTROLLER else f"broker-{node_id}"

    # -- start and end

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Start it, and serve until it is closed. StartError, ConfigError and ControlError if it cannot start."""
        try:
            await self._serve_from(await self._beginning(self._first), task_status.started)
            while (beginning := self._next) is not None:
                self._next = None
                if self._is_closed:
                    _discard(beginning)
                    return
                await self._serve_again(beginning)
        finally:
            self._is_closed = True
            self._replaced.set()
            self.ended.set()

    async def _serve_again(self, beginning: Beginning) -> None:
        """Serve the data of a snapshot; if that does not start, `_failure` says why."""
        try:
            await self._serve_from(beginning, self._replaced.set)
        except (StartError, ConfigError, ControlError) as error:
            self._failure = error

    async def _beginning(self, snapshot: Snapshot | None) -> Beginning:
        """ControlError if the directories cannot be made."""
        if snapshot is not None:
            folder = await snapshot.copy_to_temporary()
            self.clock.set_state(snapshot.clock)
            return Beginning(folder, snapshot.nodes)
        folder = new_path()
        with new_directory(folder):
            return Beginning(folder)

    async def _serve_from(self, beginning: Beginning, ready: Callable[[], None]) -> None:
        failure: Exception | None = None
        controller = None
        self._folder = beginning.folder
        try:
            controller = self._start_controller(beginning)
            async with trio.open_nursery() as self._nursery:
                self._scope = self._nursery.cancel_scope
                controller.run_in(self._nursery)
                self._nursery.start_soon(self.clock.run)
                try:
                    await self._start_brokers(beginning)
                    ready()
                except (ControlError, ConfigError, StartError) as error:
                    failure = error  # the nursery would make a group of it
                    self._nursery.cancel_scope.cancel()
        finally:
            if controller is not None:
                self.clock.remove(controller)
                controller.close(is_killed=True)
            _close(beginning.sockets)
            await remove_in_thread([str(beginning.folder)])
        if failure is not None:
            raise failure

    def _start_controller(self, beginning: Beginning) -> Server:
        """StartError and ConfigError if it cannot start."""
        sockets = beginning.sockets.get(OUR_CONTROLLER) or {CONTROLLER_LISTENER: _any_port()}
        self._controllers = [Controller(OUR_CONTROLLER, HOST, sockets[CONTROLLER_LISTENER].getsockname()[1])]
        directory = str(self._folder / self._directory(OUR_CONTROLLER))
        try:
            controller = self._new_server(controller_keys(OUR_CONTROLLER, directory, self._controllers, self._user))
        except BaseException:
            sockets[CONTROLLER_LISTENER].close()
            raise
        controller.inherited = sockets
        self.clock.add(controller)
        try:
            controller.start()
        except BaseException:
            self.clock.remove(controller)
            raise
        controller.reactor.linger_s = 0.0
        self._controller = controller
        self._cluster_id = controller.broker.cluster_id
        return controller

    async def _start_brokers(self, beginning: Beginning) -> None:
        """Start the brokers that are to run, one after the other; partitions have the leaders that they had."""
        state = beginning.state
        if state is None:
            for node_id in self._nodes:
                await self.start_node(node_id)
            return
        sockets = {node.id: beginning.sockets.get(node.id) or _bound(node.port) for node in self._nodes.values()}
        try:
            await self._announce({node_id: own[LISTENER].getsockname()[1] for node_id, own in sockets.items()})
            for node in self._nodes.values():
                if node.id in state.running:  # else it would wait until its last session has ended
                    self._controller.broker.active_controller.local.end_session(node.id)
                else:
                    self._nursery.start_soon(self._miss, node)
            for node_id in state.running:
                await self.start_node(node_id, sockets.pop(node_id))
        finally:
            _close(sockets)
        for server in self.running():
            check_whole(server)
        await self.leaders.return_to(state.led)

    async def _announce(self, ports: Mapping[int, int]) -> None:
        """Have the metadata of a snapshot name the ports of these brokers, before one looks for the others.

        The ports in it may be ports of the cluster that the snapshot was taken of.
        """
        controller = self._controller.broker.active_controller
        records: list[Message] = []
        for node_id, port in ports.items():
            self._nodes[node_id].port = port
            record = self._controller.broker.image.brokers[node_id].to_record()
            record.end_points = [
                BrokerEndpoint(name=end.name, host=end.host, port=port, security_protocol=end.security_protocol)
                for end in record.end_points
            ]
            records.append(record)
        done = trio.Event()
        failures: list[object] = []

        def answered(outcome: object) -> None:
            failures.extend([outcome] if isinstance(outcome, KafkaError) else [])
            done.set()

        controller.commit(lambda: Outcome(records, None), answered)
        await done.wait()
        if failures:
            raise ControlError(f"The metadata cannot be written: {failures[0]}")

    async def start_node(self, node_id: int, sockets: Sockets | None = None) -> None:
        """Start a broker that does not run, and wait until it is unfenced. ControlError if it cannot start."""
        node = self._node(node_id)
        if node.server is not None:
            raise ControlError(f"Broker {node_id} is running")
        directory = str(self._folder / self._directory(node_id))
        server = self._new_server(broker_keys(node_id, HOST, node.port, directory, self._controllers, self._user))
        server.config.cluster_id = self._cluster_id
        server.dispatcher = self.traffic.dispatcher
        server.inherited = sockets or {}
        self.clock.add(server)
        node.ended = trio.Event()
        self._controller.broker.active_controller.local.end_session(node_id)  # its listener before it was killed
        try:
            await self._nursery.start(self._run_node, node, server)
        except StartError as error:
            raise ControlError(f"Broker {node_id} cannot be started: {error}") from error

    async def _run_node(self, node: Node, server: Server, task_status: trio.TaskStatus[None]) -> None:
        try:
            server.start()
        except BaseException:
            self.clock.remove(server)
            raise
        server.reactor.linger_s = 0.0
        changed = self.follow(server.broker)
        server.broker.partitions.on_role_change.append(changed)
        node.server, node.port = server, server.addresses[0].port
        has_joined = False
        try:
            with trio.CancelScope() as node.scope:
                async with trio.open_nursery() as nursery:
                    server.run_in(nursery)
                    _, never = trio.open_memory_channel[int](0)
                    if await server.has_joined(never):
                        has_joined = True
                        task_status.started()
                    else:
                        nursery.cancel_scope.cancel()
        finally:
            node.server = None
            self.clock.remove(server)
            server.close(is_killed=True)
            node.ended.set()
        if server.mistake is not None:
            raise server.mistake
        if not has_joined:
            raise StartError(server.broker.halt_reason or "it was ended")

    async def kill_node(self, node_id: int) -> None:
        """End a broker as a killed process does."""
        node = self._node(node_id)
        if node.server is None or node.scope is None:
            raise ControlError(f"Broker {node_id} is not running")
        node.scope.cancel()
        await node.ended.wait()
        self._nursery.start_soon(self._miss, node)

    async def _miss(self, node: Node) -> None:
        """Have the controller fence a broker that was killed, unless it is started again before."""
        controller = self._controller
        if controller.config[BROKER_SESSION_TIMEOUT_MS] != BROKER_SESSION_TIMEOUT_MS.default:
            return  # its session ends by itself
        ended = node.ended
        await trio.sleep(MISSED_S)
        broker = controller.broker.image.brokers.get(node.id)
        if broker is None or broker.fenced or node.ended is not ended:
            return
        heartbeat = BrokerHeartbeatRequest(
            broker_id=node.id,
            broker_epoch=broker.epoch,
            current_metadata_offset=controller.broker.image.offset,
            want_fence=True,
        )
        controller.broker.active_controller.request(heartbeat, heartbeat.max_version, _ignore)

    def _node(self, node_id: int) -> Node:
        try:
            return self._nodes[node_id]
        except KeyError:
            raise NotFoundError(f"There is no broker {node_id}: they are 1 to {len(self._nodes)}") from None

    # -- snapshots

    async def take_snapshot(self) -> int:
        """Take a snapshot of all nodes, once no work is in progress and the replicas in sync have all records.

        ControlError if it cannot be written, WaitedTooLongError if the replicas have not all records in time.
        """
        with trio.move_on_after(KNOWN_S) as limit:
            while True:
                await self.clock.settle()
                if (lagging := self.leaders.lagging()) is None:
                    break
                await trio.sleep(LOOK_S)
        if limit.cancelled_caught:
            raise WaitedTooLongError(f"Replicas in sync of {lagging} have not all its records after {KNOWN_S:g} s")
        ids = (OUR_CONTROLLER, *self._nodes)
        running = tuple(node.id for node in self._nodes.values() if node.server is not None)
        directories = {node_id: self._directory(node_id) for node_id in ids}
        state = NodesState(self._cluster_id, directories, running, self.leaders.now())
        return await self.snapshots.take(self.options, self.clock.state(), self._copy, state)

    def _copy(self, target: Path, empty: EmptyLogs) -> None:
        servers = {OUR_CONTROLLER: self._controller} | {server.config.node_id: server for server in self.running()}
        for node_id in (OUR_CONTROLLER, *self._nodes):
            name = self._directory(node_id)
            (target / name).mkdir(mode=0o700)
            if node_id not in servers:
                copy_what_has_data(self._folder / name, target / name, empty)  # as it was killed
                continue
            broker = servers[node_id].broker
            epoch = -1 if node_id == OUR_CONTROLLER else broker.lifecycle.broker_epoch
            copy_open_logs(broker.log_dirs, target / name, empty, epoch)

    async def restore(self, snapshot: Snapshot) -> None:
        """Begin again with the data of a snapshot, at the same addresses. Connections are closed.

        ControlError if it is of another cluster, or cannot be copied: then nothing has changed; or if its nodes do not
        start: then the cluster has ended.
        """
        if snapshot.nodes is None or not set(self._nodes) < set(snapshot.nodes.directories):
            raise ControlError(f"The snapshot is not of a cluster of {len(self._nodes)} brokers")
        async with self._restoring:
            self._check_open()
            beginning = await self._beginning(snapshot)
            try:
                self._check_open()
            except NotFoundError:
                _discard(beginning)
                raise
            servers = {node_id: self._nodes[node_id].server for node_id in snapshot.nodes.running}
            servers[OUR_CONTROLLER] = self._controller
            sockets = {
                node_id: server.duplicate_listeners() for node_id, server in servers.items() if server is not None
            }
            self._next = beginning._replace(sockets=sockets)
            self._replaced = trio.Event()
            assert self._scope is not None
            self._scope.cancel()
            with trio.CancelScope(shield=True):  # the client may go; the next restore has to wait nevertheless
                await self._replaced.wait()
            if self._failure is not None:
                raise ControlError(f"The cluster has ended, since the snapshot cannot be served: {self._failure}")

    # -- its brokers

    def running(self) -> list[Server]:
        """The brokers that run, by id."""
        return [node.server for node in self._nodes.values() if node.server is not None]

    def is_running(self, node_id: int) -> bool:
        """Whether a broker runs. NotFoundError if there is none with this id."""
        return self._node(node_id).server is not None

    @property
    def server(self) -> Server:
        """The first broker that runs. ControlError if none does."""
        return self._some_running()[0]

    def _some_running(self) -> list[Server]:
        running = self.running()
        if not running:
            raise ControlError("No broker of this cluster is running: start one")
        return running

    def clients(self) -> list[LocalClient]:
        """A client of each broker that runs."""
        return [LocalClient(server) for server in self.running()]

    def client_on(self, broker: int) -> LocalClient:
        """A client of one of its brokers, by id. NotFoundError if there is no such broker, or it does not run."""
        server = self._node(broker).server
        if server is None:
            raise NotFoundError(f"Broker {broker} is not running")
        return LocalClient(server)

    def partitions_of(self, topic: str) -> Iterable[Partition]:
        """The partitions of a topic, where they are led."""
        led: dict[int, Partition] = {}
        for server in self._some_running():
            for partition in server.broker.partitions.of_topic(topic):
                other = led.get(partition.index)
                if partition.is_leader and (other is None or other.leader_epoch < partition.leader_epoch):
                    led[partition.index] = partition
        return led.values()

    def client_of(self, topic_id: Uuid, index: int) -> LocalClient:
        """A client of the broker that leads a partition."""
        for server in self.running():
            for partition in server.broker.partitions:
                if partition.is_leader and partition.topic_id == topic_id and partition.index == index:
                    return LocalClient(server)
        return self.client

    async def coordinator(self, key: str, *, of_transactions: bool = False) -> Server:
        """The broker that coordinates a group, or a transactional id, once it does. WaitedTooLongError.

        Any broker while the topic of the coordinators does not exist: then there is no coordinator.
        """
        coordinators: list[Server] = []

        def is_known() -> bool:
            coordinators[:] = self._coordinators(key, of_transactions=of_transactions)
            return bool(coordinators)

        await self.until(is_known, f"{key!r} has no coordinator")
        return coordinators[0]

    def _coordinators(self, key: str, *, of_transactions: bool) -> Iterator[Server]:
        """The brokers that lead the partition of a key; all while there is no such topic."""
        is_there = False
        for server in self.running():
            broker = server.broker
            runtime = broker.transaction_coordinators if of_transactions else broker.group_coordinators
            if runtime.topic in broker.image.topics:
                is_there = True
                partition = broker.partitions.find(runtime.topic, runtime.partition_of(key))
                if partition is not None and partition.is_leader:
                    yield server
        if not is_there:
            yield from self.running()

    def _knows(self, topic: str) -> list[Server]:
        return [server for server in self.running() if topic in server.broker.image.topics]

    async def until_led(self, topic: str, *, is_new: bool = False) -> None:
        """Wait until all brokers know a topic, and its partitions are led by brokers that run. WaitedTooLongError.

        A topic that no broker knows is waited for only if it `is_new`.
        """
        if self._knows(topic) or is_new:
            await self.until(lambda: self._is_led(topic), f"Not all partitions of {topic} have a leader")

    def _is_led(self, topic: str) -> bool:
        knowing = self._knows(topic)
        if len(knowing) < max(1, len(self.running())):
            return False
        count = max(len(server.broker.image.topics[topic].partitions) for server in knowing)
        return sum(1 for _ in self.partitions_of(topic)) == count

    async def until(self, condition: Callable[[], bool], what_else: str) -> None:
        """Wait until a condition holds. WaitedTooLongError, with `what_else`, if it takes longer than `KNOWN_S`."""
        with trio.move_on_after(KNOWN_S) as limit:
            while not condition():
                changed = trio.Event()
                self.metadata_waiters[changed] = changed.set
                with trio.move_on_after(LOOK_S):  # logs and high watermarks have no waiter
                    await changed.wait()
                del self.metadata_waiters[changed]
        if limit.cancelled_caught:
            raise WaitedTooLongError(f"{what_else} after {KNOWN_S:g} s")

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, HOST:PORT with commas."""
        return ",".join(f"{HOST}:{node.port}" for node in self._nodes.values())


def _ignore(_: object) -> None:
    """Ignore an answer: its effect is seen in the metadata."""


def _any_port() -> socket.socket:
    """A listening socket. StartError."""
    try:
        return bind(HOST, 0, BACKLOG)
    except OSError as error:
        raise StartError(f"Cannot listen on {HOST}: {error.strerror}") from error


def _bound(port: int) -> Sockets:
    """The socket of a broker's listener, which refuses connections yet. ControlError."""
    try:
        return {LISTENER: bind(HOST, port, None)}
    except OSError as error:
        raise ControlError(f"Cannot listen on {HOST}:{port}: {error.strerror}") from error


def _close(sockets: Mapping[int, Sockets]) -> None:
    """Close sockets that no node has taken."""
    for of_node in sockets.values():
        for listening in of_node.values():
            listening.close()


def _discard(beginning: Beginning) -> None:
    """Close the sockets that no node has taken, and remove the directories."""
    _close(beginning.sockets)
    remove(beginning.folder)
