"""A virtual cluster: a whole broker of its own, on a port of its own, in the process of `serve --control`.

It has its own topics, groups, transactions, offsets, ACLs, configs and metadata, in files in memory that go with it
(`memory_files`); nothing is shared with the others but the process. So the code under test uses its usual names, any
client can use it, and no request is rewritten. It takes about 2 ms of CPU to start one, and 0.4 MB to keep it.

Why not one broker that gives names a prefix for each test: every field of every message that has a name,
subscriptions in bytes and regular expressions included, would have to be rewritten, and faults, clocks and snapshots
would concern all tests.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import trio

from barnabas.broker.server import Server
from barnabas.broker.start.start_errors import StartError
from barnabas.broker.world import World
from barnabas.kit.clusters.clock import Clock
from barnabas.kit.clusters.data_copy import EmptyLogs, copy_open_logs
from barnabas.kit.clusters.directories import new_path, remove
from barnabas.kit.clusters.local_client import LocalClient
from barnabas.kit.clusters.memory_files import MemoryFiles
from barnabas.kit.clusters.options import USUAL, Options
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.kit.traffic.capture import Capture
from barnabas.kit.traffic.dispatcher import Traffic
from barnabas.storage.files import UnsyncedFiles
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from barnabas.broker.config.options import Secured
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import Broker
    from barnabas.broker.replicas.partition import Partition
    from barnabas.kit.clusters.sessions import Session
    from barnabas.kit.clusters.snapshots import Snapshot, Snapshots
    from barnabas.kit.traffic.release import Release
    from barnabas.wire.types import Uuid


class VirtualCluster:
    """One virtual cluster, or the broker of the process itself."""

    def __init__(self, number: int, server: Server | None, release: Release | None = None) -> None:
        """`server` has not started; `release` is the Kafka version that it answers as."""
        self.id = number
        self.traffic = Traffic(release)
        self.capture = Capture()
        self.clock = Clock()
        if server is not None:
            self._server = server
            server.dispatcher = self.traffic.dispatcher
            self.clock.add(server)
        self.metadata_waiters: dict[object, Callable[[], None]] = {}
        """Called at the end of a turn in which the metadata has changed; the key is the waiter itself."""
        self.snapshots: Snapshots
        """The snapshots of all clusters of the process."""
        self.fork: Callable[[Snapshot], Awaitable[VirtualCluster]]
        """Opens a cluster that begins with a snapshot."""
        self.options: Options = USUAL
        """The options that it was opened with."""
        self.secured: Secured | None = None
        """The users of SCRAM that it begins with."""
        self.session: Session | None = None
        """The server that clients reach instead of its broker, if their session is recorded or replayed."""
        self.performed: set[str] = set()
        """The operations that the test has asked for."""
        self._scope: trio.CancelScope | None = None
        self._random: Random | None = None
        self._make_config: Callable[[], ServerConfig]
        self._make_server: Callable[[ServerConfig, str | None], Server]
        """Makes a broker, with a directory that has its data already."""
        self._first: Snapshot | None = None
        self._is_fork = False
        self._restoring = trio.Lock()
        self._replacement: Server | None = None
        self._replaced = trio.Event()
        self._is_closed = False
        self.ended = trio.Event()
        """Set when its tasks have ended, and its data was removed."""

    @classmethod
    def of(
        cls, number: int, options: Options, make_config: Callable[[], ServerConfig], descriptors: int
    ) -> VirtualCluster:
        """A cluster of one broker with this configuration, which has not started yet. ControlError."""
        cluster = cls(number, None, options.release())
        cluster.options = options
        cluster._random = random = None if options.seed is None else Random(options.seed)

        def make_server(config: ServerConfig, prepared: str | None) -> Server:
            files = UnsyncedFiles() if prepared is not None else MemoryFiles(str(new_path()))
            world = World(files=files, random_bytes=os.urandom if random is None else random.randbytes)
            server = Server(config, descriptors, is_temporary=True, world=world)
            server.prepared_dir = files.root if isinstance(files, MemoryFiles) else prepared
            return server

        cluster._make_config, cluster._make_server = make_config, make_server
        return cluster

    def begin_with(self, snapshot: Snapshot) -> None:
        """Let it start with the data of a snapshot."""
        self._first = snapshot
        self._is_fork = True

    @property
    def is_untouched(self) -> bool:
        """Whether it is unused: no client has connected, and the test has asked for no operation."""
        if self.performed or self.session is not None or self._is_fork or self.options != USUAL:
            return False
        if self._is_closed or self.ended.is_set() or self.broker.halt_reason is not None:
            return False
        return not self.broker.log_dirs.files.is_published and self.server.is_untouched

    @property
    def server(self) -> Server:
        """Its broker; of several the first one that runs. ControlError if none does."""
        return self._server

    @property
    def broker(self) -> Broker:
        """The parts of its broker."""
        return self.server.broker

    @property
    def client(self) -> LocalClient:
        """A client of its broker."""
        return LocalClient(self.server)

    def clients(self) -> list[LocalClient]:
        """A client of each broker that runs."""
        return [self.client]

    def partitions_of(self, topic: str) -> Iterable[Partition]:
        """The partitions of a topic, where they are led."""
        return self.broker.partitions.of_topic(topic)

    def client_of(self, topic_id: Uuid, index: int) -> LocalClient:  # noqa: ARG002 - there is one broker
        """A client of the broker that leads a partition."""
        return self.client

    def client_on(self, broker: int) -> LocalClient:
        """A client of one of its brokers, by id. NotFoundError if there is no such broker, or it does not run."""
        if broker != self.server.config.node_id:
            raise NotFoundError(f"There is no broker {broker}: this cluster has one, {self.server.config.node_id}")
        return self.client

    async def coordinator(self, key: str, *, of_transactions: bool = False) -> Server:  # noqa: ARG002 - as above
        """The broker that coordinates a group, or a transactional id."""
        return self.server

    async def until_led(self, topic: str, *, is_new: bool = False) -> None:
        """Wait until all brokers know a topic, and its partitions are led by brokers that run. WaitedTooLongError.

        A topic that no broker knows is waited for only if it `is_new`.
        """

    @property
    def bootstrap(self) -> str:
        """Its address for clients on this machine, HOST:PORT."""
        endpoint = self.server.addresses[0]
        host = "127.0.0.1" if endpoint.host in {"", "0.0.0.0", "::"} else endpoint.host
        return f"[{host}]:{endpoint.port}" if ":" in host else f"{host}:{endpoint.port}"

    def follow(self, broker: Broker) -> Callable[[Any], None]:
        """Call `metadata_waiters` after changes of the metadata from now on; return the function that calls them."""

        def changed(_: Any) -> None:
            broker.loop.call_after_turn(self._wake)

        broker.metadata.on_change.append(changed)
        return changed

    def _wake(self) -> None:
        for woken in list(self.metadata_waiters.values()):
            woken()

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Start it, and serve until it is closed. StartError, ConfigError and ControlError if it cannot start."""
        self._server = await self._start(self._first)
        self._first = None
        self._started()
        task_status.started()
        try:
            while True:
                await self._serve()
                replacement, self._replacement = self._replacement, None
                if replacement is None:
                    return
                self.clock.remove(self._server)
                self._server = replacement
                self._started()
                self._wake()
                self._replaced.set()
                if self._is_closed:
                    self._server.close()
                    return
        finally:
            if self._replacement is not None:
                self._replacement.close()
            self._replaced.set()
            self.ended.set()

    def _started(self) -> None:
        self.follow(self.broker)
        self.server.reactor.linger_s = 0.0  # the others are not served while one waits

    async def _serve(self) -> None:
        server = self.server
        try:
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                server.run_in(nursery)
                nursery.start_soon(self.clock.run)
        finally:
            await remove_in_thread(_closed(server))

    async def take_snapshot(self) -> int:
        """Take a snapshot, once no work is in progress; its number. ControlError if it cannot be written."""
        await self.clock.settle()
        seed = None if self._random is None else self._random.getrandbits(64)  # its own ids were given out already
        return await self.snapshots.take(self.options._replace(seed=seed), self.clock.state(), self._copy)

    def _copy(self, target: Path, empty: EmptyLogs) -> None:
        copy_open_logs(self.broker.log_dirs, target, empty)

    async def restore(self, snapshot: Snapshot) -> None:
        """Begin again with the data of a snapshot, at the same address. Connections are closed.

        The listening sockets are kept, so that clients that connect meanwhile are not refused. ControlError if the
        snapshot cannot be served: then the cluster is as it was.
        """
        if snapshot.nodes is not None:
            raise ControlError("The snapshot is of a cluster of several brokers, and this one has one")
        async with self._restoring:
            self._check_open()
            try:
                self._replacement = await self._start(snapshot, self.server)
            except (StartError, ConfigError) as error:
                raise ControlError(f"The cluster is as it was, since the snapshot cannot be served: {error}") from error
            self._replaced = trio.Event()
            assert self._scope is not None
            self._scope.cancel()
            with trio.CancelScope(shield=True):  # the client may go; the next restore has to wait nevertheless
                await self._replaced.wait()

    async def _start(self, snapshot: Snapshot | None, replaced: Server | None = None) -> Server:
        """Start a server with the data of a snapshot, at the address of the server that it replaces.

        StartError, ConfigError and ControlError if it cannot start: then nothing has changed.
        """
        config = self._make_config()
        prepared = None if snapshot is None else await snapshot.copy_to_temporary()
        try:
            self._check_open()
        except NotFoundError:
            if prepared is not None:
                remove(prepared)
            raise
        server = self._make_server(config, None if prepared is None else str(prepared))
        server.secured = self.secured if snapshot is None else None  # a snapshot has its users
        server.dispatcher = self.traffic.dispatcher
        if replaced is not None:
            server.inherited = replaced.duplicate_listeners()
        before = self.clock.state()
        self.clock.add(server)
        if snapshot is not None:
            self.clock.set_state(snapshot.clock)
        try:
            server.start()
            if snapshot is not None:
                check_whole(server)
        except BaseException:
            server.abandon()
            self.clock.remove(server)
            self.clock.set_state(before)
            raise
        return server

    def _check_open(self) -> None:
        if self._is_closed:
            raise NotFoundError(f"Cluster {self.id} has ended")

    def close(self) -> None:
        """Close its connections now, and remove its data as soon as its tasks have ended."""
        self._is_closed = True
        if self._scope is not None:
            self._scope.cancel()


def _closed(server: Server) -> list[str]:
    """Close a server; the directories that it leaves on the disk, which most have never been on."""
    directories: list[str] = []
    server.remove_directory = directories.append
    server.close()
    files = server.broker.log_dirs.files
    if isinstance(files, MemoryFiles):
        files.discard()
    return directories if files.is_published else []


def check_whole(server: Server) -> None:
    """StartError if a server that has started with a snapshot cannot serve all of it."""
    for (topic, index), reason in server.broker.partitions.offline.items():
        raise StartError(f"{topic}-{index} cannot be opened: {reason}")


async def remove_in_thread(directories: Iterable[str]) -> None:
    """Remove directories in a thread: a busy disk takes 0.2 s for the 50 partitions of committed offsets alone."""
    with trio.CancelScope(shield=True):
        for directory in directories:
            await trio.to_thread.run_sync(remove, Path(directory))
