"""Several brokers and their controller in one process, as one virtual cluster (`Broker.open(brokers=3)`).

Each node is a whole `Server`, which speaks with the others over sockets as in processes of their own. A node that is
killed closes its sockets and flushes nothing: its files are as the page cache of a machine has them after its process
was killed. Nodes that start again have their addresses and directories. What brokers owe each other is in real time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from barnabas.broker.net.acceptor import bind
from barnabas.broker.server import Server
from barnabas.broker.start_errors import StartError
from barnabas.cluster.plan import (
    CONTROLLER_LISTENER,
    OUR_CONTROLLER,
    Controller,
    broker_keys,
    controller_keys,
    replication_defaults,
)
from barnabas.control.errors import ControlError, NotFoundError, WaitedTooLongError
from barnabas.control.local_client import LocalClient
from barnabas.control.virtual_cluster import VirtualCluster, remove_in_thread
from barnabas.storage.unsynced_files import UnsyncedFiles
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersRequestTopicPartitions,
    ElectLeadersResponse,
    ReassignablePartition,
    ReassignableTopic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.replicas.partition import Partition
    from barnabas.control.snapshots import Snapshot
    from barnabas.wire.types import Uuid

HOST: Final = "127.0.0.1"
BACKLOG: Final = 128
MAX_BROKERS: Final = 9
FAST: Final = {
    "broker.heartbeat.interval.ms": "200",
    "broker.session.timeout.ms": "1000",
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "200",
}
"""Defaults for tests: a broker that was killed is missed after a second, and not after nine."""


KNOWN_S: Final = 10.0
"""How long brokers may take to learn of a change, seconds."""
LOOK_S: Final = 0.01
PREFERRED: Final = 0


class Node:
    """One broker of the cluster, running or not."""

    def __init__(self, node_id: int, directory: Path) -> None:
        self.id = node_id
        self.directory = directory
        self.port = 0
        """Its port, once it has started for the first time."""
        self.server: Server | None = None
        self.scope: trio.CancelScope | None = None
        self.ended = trio.Event()


class Nodes(VirtualCluster):
    """A virtual cluster of several brokers."""

    def __init__(
        self,
        number: int,
        brokers: int,
        keys: Mapping[str, str],
        config_of: Callable[[Mapping[str, str]], ServerConfig],
        descriptors: int,
    ) -> None:
        """`config_of` gives the configuration of a node with these keys. ControlError for too many brokers."""
        if not 1 <= brokers <= MAX_BROKERS:
            raise ControlError(f"brokers must be 1 to {MAX_BROKERS}, not {brokers}")
        self._folder = Path(tempfile.mkdtemp(prefix="barnabas-"))
        self._config_of = config_of
        self._descriptors = descriptors
        self._user = {**FAST, **replication_defaults(brokers), **keys}
        self._nodes = {node_id: Node(node_id, self._folder / f"node-{node_id}") for node_id in range(1, brokers + 1)}
        listening = bind(HOST, 0, BACKLOG)
        self._controllers = [Controller(OUR_CONTROLLER, HOST, listening.getsockname()[1])]
        directory = str(self._folder / "controller")
        controller = self._server(controller_keys(OUR_CONTROLLER, directory, self._controllers, self._user))
        controller.inherited = {CONTROLLER_LISTENER: listening}
        self._nursery: trio.Nursery
        self._cluster_id = ""
        super().__init__(number, controller)
        self.keys = dict(keys)

    def _server(self, keys: Mapping[str, str]) -> Server:
        return Server(self._config_of(keys), self._descriptors, is_temporary=True, files=UnsyncedFiles())

    # -- start and end

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Start it, and serve until it is closed. StartError and ConfigError if it cannot start."""
        controller = self.server
        has_opened, failure = False, None
        try:
            controller.start()
            has_opened = True
            self._cluster_id = controller.broker.cluster_id
            controller.reactor.linger_s = 0.0
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                self._nursery = nursery
                controller.run_in(nursery)
                nursery.start_soon(self.clock.run)
                try:
                    for node_id in self._nodes:
                        await self.start_node(node_id)
                except ControlError as error:
                    failure = error
                    nursery.cancel_scope.cancel()
                else:
                    task_status.started()
        finally:
            if has_opened:
                controller.close(is_killed=True)
            await remove_in_thread([str(self._folder)])
        if failure is not None:
            raise StartError(str(failure)) from failure

    async def start_node(self, node_id: int) -> None:
        """Start a broker that does not run, and wait until it is unfenced. ControlError if it cannot start."""
        node = self._node(node_id)
        if node.server is not None:
            raise ControlError(f"Broker {node_id} is running")
        keys = broker_keys(node_id, HOST, node.port, str(node.directory), self._controllers, self._user)
        server = self._server(keys)
        server.config.cluster_id = self._cluster_id
        server.dispatcher = self.traffic.dispatcher
        self.clock.add(server)
        node.ended = trio.Event()
        try:
            await self._nursery.start(self._run_node, node, server)
        except StartError as error:
            raise ControlError(f"Broker {node_id} cannot be started: {error}") from error
        self._serve_from_first()

    async def _run_node(self, node: Node, server: Server, task_status: trio.TaskStatus[None]) -> None:
        try:
            server.start()
        except BaseException:
            self.clock.forget(server)
            raise
        server.reactor.linger_s = 0.0
        node.server, node.port = server, server.addresses[0].port
        try:
            with trio.CancelScope() as node.scope:
                async with trio.open_nursery() as nursery:
                    server.run_in(nursery)
                    _, never = trio.open_memory_channel[int](0)
                    if await server.has_joined(never):
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

    async def kill_node(self, node_id: int) -> None:
        """End a broker as a killed process does."""
        node = self._node(node_id)
        if node.server is None or node.scope is None:
            raise ControlError(f"Broker {node_id} is not running")
        node.scope.cancel()
        await node.ended.wait()
        self._serve_from_first()

    def _node(self, node_id: int) -> Node:
        try:
            return self._nodes[node_id]
        except KeyError:
            raise NotFoundError(f"There is no broker {node_id}: they are 1 to {len(self._nodes)}") from None

    def _serve_from_first(self) -> None:
        """Have the operations of the cluster ask the first broker that runs."""
        running = self._running()
        if running and running[0] is not self.server:
            self.server, self.client = running[0], LocalClient(running[0])
            self.follow()

    async def take_snapshot(self) -> int:
        """Refused: ControlError."""
        raise ControlError("Snapshots are of clusters with one broker")

    async def restore(self, snapshot: Snapshot) -> None:  # noqa: ARG002
        """Refused: ControlError."""
        raise ControlError("Snapshots are of clusters with one broker")

    def partitions_of(self, topic: str) -> Iterable[Partition]:
        """The partitions of a topic, where they are led."""
        return [one for server in self._running() for one in server.broker.partitions.of_topic(topic) if one.is_leader]

    def client_of(self, topic_id: Uuid, index: int) -> LocalClient:
        """A client of the broker that leads a partition."""
        for server in self._running():
            if any(
                one.is_leader and one.topic_id == topic_id and one.index == index for one in server.broker.partitions
            ):
                return LocalClient(server)
        return self.client

    def _running(self) -> list[Server]:
        return [node.server for node in self._nodes.values() if node.server is not None]

    async def elect(self, topic: str, index: int, leader: int) -> None:
        """Have a replica lead a partition: it becomes the preferred one, and is elected once it is in sync."""
        if self._node(leader).server is None:
            raise ControlError(f"Broker {leader} is not running")
        described = self.broker.image.topics.get(topic)
        partition = None if described is None else described.partitions.get(index)
        if partition is None:
            raise NotFoundError(f"There is no partition {topic}-{index}")
        if leader not in partition.replicas:
            raise ControlError(
                f"Broker {leader} has no replica of {topic}-{index}; {list(partition.replicas)} have one"
            )
        await self._until(lambda server: leader in server.broker.image.topics[topic].partitions[index].isr)
        order = [leader, *(one for one in partition.replicas if one != leader)]
        wanted = ReassignableTopic(
            name=topic, partitions=[ReassignablePartition(partition_index=index, replicas=order)]
        )
        moved = await self.client.ask(
            AlterPartitionReassignmentsRequest(topics=[wanted]), AlterPartitionReassignmentsResponse
        )
        _check(moved.error_code, moved.error_message)
        for one in (result for response in moved.responses for result in response.partitions):
            _check(one.error_code, one.error_message)
        chosen = ElectLeadersRequestTopicPartitions(topic=topic, partitions=[index])
        elected = await self.client.ask(
            ElectLeadersRequest(election_type=PREFERRED, topic_partitions=[chosen]), ElectLeadersResponse
        )
        _check(elected.error_code, None)
        for result in (result for response in elected.replica_election_results for result in response.partition_result):
            if result.error_code != ErrorCode.ELECTION_NOT_NEEDED:
                _check(result.error_code, result.error_message)
        await self._until(lambda server: server.broker.image.topics[topic].partitions[index].leader == leader)

    async def _until(self, condition: Callable[[Server], bool]) -> None:
        """Wait until all running brokers know of a change."""
        with trio.move_on_after(KNOWN_S) as limit:
            while not all(map(condition, self._running())):
                changed = trio.Event()
                self.metadata_waiters[changed] = changed.set
                with trio.move_on_after(LOOK_S):  # the metadata of the other brokers has no waiter
                    await changed.wait()
                del self.metadata_waiters[changed]
        if limit.cancelled_caught:
            raise WaitedTooLongError(f"Not all brokers have learned of it within {KNOWN_S:g} s")

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, HOST:PORT with commas."""
        return ",".join(f"{HOST}:{node.port}" for node in self._nodes.values())


def _check(code: int, message: str | None) -> None:
    if code:
        raise ControlError(f"{ErrorCode(code).name}: {message or 'refused'}")
