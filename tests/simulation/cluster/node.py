"""A node of a simulated cluster: a real broker, or the real controller, on a disk that a power failure cuts.

Everything happens in turns, as in `tests.simulation.broker.node`. A node that is killed keeps what the page cache has,
one whose power fails keeps what was synced and any of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.builder import load_logs, open_member
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.controller_builder import open_controller
from barnabas.storage import layout
from barnabas.wire.errors import KafkaError
from tests.simulation.broker.node import check_disks, write_checkpoints
from tests.simulation.cluster.network import ClusterNetwork, Pipe, new_buffers
from tests.support.disks.faulty_disk import Fault, FaultyDisk
from tests.support.disks.survivors import Kind, Survivors
from tests.support.world import simulated_world

if TYPE_CHECKING:
    from barnabas.broker.cluster_member import ClusterMember, RemoteController
    from barnabas.broker.context import Broker
    from barnabas.broker.net.outgoing import Peer, Transport
    from barnabas.broker.world import World
    from tests.simulation.broker.node import Errors
    from tests.simulation.environment import Environment

CONTROLLER_ID = 3000
CLUSTER_ID = "c2ltdWxhdGlvbi1jbHVzdA"
SYNC_S = (0.0002, 0.02)
SLOW_SYNC_S = (0.05, 1.0)
CHECKPOINT_S = 2.0
PATHS = ("/data",)
RESTART_S = (0.05, 0.5, 5.0, 15.0)


class Turning(Protocol):
    """A node that connections belong to: a broker, or the clients."""

    node_id: int
    incarnation: int

    def turn_with(self, work: Callable[[], None]) -> None:
        """Do work in a turn."""


class ClusterNode:
    """One node and its restarts."""

    def __init__(
        self,
        environment: Environment,
        network: ClusterNetwork,
        node_id: int,
        settings: Mapping[str, str],
        errors: Errors,
    ) -> None:
        self._environment = environment
        self._clock = environment.clock
        self._network = network
        self._settings = settings
        self._errors = errors
        self.node_id = node_id
        self.is_controller = node_id == CONTROLLER_ID
        self.incarnation = 0
        self.broker: Broker | None = None
        self.member: ClusterMember | None = None
        self.is_listening = False
        self.buffers = new_buffers()
        self.active: dict[Pipe, None] = {}
        """Connections to which the node may have written in this turn."""
        self.after_turn: list[Callable[[ClusterNode], None]] = []
        self.on_start: list[Callable[[ClusterNode], None]] = []
        self._disk = FaultyDisk()
        self._remote: RemoteController | None = None
        self._is_stopping = False
        self._resumes_at = 0.0
        self._disk_is_slow_until = 0.0
        network.nodes[node_id] = self

    # ---- start and stop

    def start(self) -> None:
        """Open the node on its disk."""
        if self.broker is not None:
            return
        self.incarnation += 1
        self._environment.trace.note("started", self.node_id, self.incarnation)
        try:
            self._open()
        except (OSError, KafkaError):
            if not self._disk.failed:
                raise
            self._end_process()
            self._clock.after(0.5, self.start)
            return
        incarnation = self.incarnation
        self._clock.after(CHECKPOINT_S, lambda: self._checkpoint(incarnation))
        self._end_turn()

    def _open(self) -> None:
        if self.is_controller:
            self._open_controller()
        else:
            self._open_broker()

    def _world(self) -> World:
        environment = self._environment
        return simulated_world(environment, self, files=self._disk, random_bytes=environment.random.randbytes)

    def _open_controller(self) -> None:
        self.broker = open_controller(
            load(self._settings, {"CLUSTER_ID": CLUSTER_ID}, None, "dev"),
            PATHS,
            self._world(),
            [Endpoint("CONTROLLER", f"node{self.node_id}", 9093)],
        )
        self.is_listening = True

    def _open_broker(self) -> None:
        def connect(_: Broker) -> Callable[[str, int, Peer], Transport]:
            return lambda host, port, peer: self._network.connect(self, host, port, peer)

        broker, member, remote = open_member(
            load(self._settings, {"CLUSTER_ID": CLUSTER_ID}, None, "dev"),
            PATHS,
            self._world(),
            connect,
        )
        self.broker, self.member, self._remote = broker, member, remote
        for callback in self.on_start:
            callback(self)

        def open_logs() -> None:
            load_logs(broker)
            self.is_listening = True

        def joined(failure: Exception | None) -> None:
            if failure is not None:
                assert self._disk.failed, failure
                self._clock.after(0.0, self._restart)

        def caught_up() -> None:
            remote.metadata.loader.apply_dynamic_configs()
            member.begin_joining([Endpoint("PLAINTEXT", f"node{self.node_id}", 9092)], open_logs, joined)

        remote.observer.on_caught_up.append(caught_up)
        remote.observer.start()

    def kill(self, *, power_fails: bool) -> None:
        """The process is killed, or its machine loses power."""
        if self.broker is None:
            return
        self._environment.trace.note("power fails" if power_fails else "killed", self.node_id)
        random = self._environment.random
        kind = random.choice([kind for kind in Kind if kind is not Kind.KEPT]) if power_fails else Kind.KEPT
        survivors = Survivors(self._disk)
        for operation in self._disk.operations:
            survivors.take(operation)
        self._disk = FaultyDisk(survivors.image(kind, random))
        self._end_process()

    def lose_disk(self, *, keeps_name: bool) -> None:
        """The machine is lost; what starts in its place has an empty disk, or one with the name of the old one."""
        self._environment.trace.note("disk is lost", self.node_id, keeps_name)
        content = self._disk.content().get(PATHS[0].removeprefix("/"), {})
        assert isinstance(content, dict)
        name = {one: data for one, data in content.items() if keeps_name and one == layout.META_PROPERTIES}
        self._disk = FaultyDisk({PATHS[0].removeprefix("/"): name})
        if self.broker is not None:
            self._end_process()

    def stop(self, then: Callable[[], None]) -> None:
        """A controlled shutdown, and the clean end of the process; `then` is called unless the node fails first."""
        member = self.member
        if member is None or not self.is_listening or self._is_stopping:
            return
        self._environment.trace.note("stops", self.node_id)
        self._is_stopping = True
        incarnation = self.incarnation

        def stopped(_: bool) -> None:
            self._clock.after(0.0, lambda: self._close(then) if self.incarnation == incarnation else None)

        self.turn_with(lambda: member.lifecycle.begin_controlled_shutdown(stopped))

    def _close(self, then: Callable[[], None]) -> None:
        """Close as the server does; logs that are closed cleanly also survive a power failure afterwards."""
        broker, member, remote = self.broker, self.member, self._remote
        assert broker is not None
        assert member is not None
        assert remote is not None
        epoch = member.lifecycle.broker_epoch
        remote.close()
        member.close()
        try:
            broker.log_dirs.close(epoch)
        except (OSError, KafkaError):
            assert self._disk.failed
            self.kill(power_fails=False)
        else:
            self._environment.trace.note("stopped", self.node_id)
            self.kill(power_fails=self._environment.random.random() < 0.5)
        then()

    def _end_process(self) -> None:
        self.broker = self.member = self._remote = None
        self.is_listening = self._is_stopping = False
        self.active.clear()
        self.incarnation += 1
        self._network.node_down(self.node_id)

    def fail_disk(self, fault: Fault) -> None:
        """Let one of the next operations of the disk fail."""
        self._environment.trace.note("disk fails", self.node_id, *fault)
        self._disk.arm(fault)

    def heal_disk(self) -> None:
        """No operation of the disk fails any more; offline partitions are served again after a restart."""
        self._disk.heal()
        if self.broker is not None and not self.is_controller and self.broker.partitions.offline:
            self._restart()

    def _restart(self) -> None:
        if self.broker is None:
            return
        self.kill(power_fails=False)
        self._clock.after(0.5, self.start)

    def pause(self, seconds: float) -> None:
        """Stop the process for a while (SIGSTOP)."""
        self._environment.trace.note("paused", self.node_id, seconds)
        self._resumes_at = max(self._resumes_at, self._clock.now + seconds)

    def slow_disk(self, seconds: float) -> None:
        """What waits for the disk takes up to a second for a while."""
        self._environment.trace.note("disk is slow", self.node_id, seconds)
        self._disk_is_slow_until = self._clock.now + seconds

    # ---- turns

    def turn_with(self, work: Callable[[], None]) -> None:
        """Run one turn of the node's loop with this work, when it is not paused."""
        if self.broker is None:
            return
        if self._clock.now < self._resumes_at:
            incarnation = self.incarnation
            later = self._resumes_at - self._clock.now
            self._clock.after(later, lambda: self.turn_with(work) if self.incarnation == incarnation else None)
            return
        work()
        self._end_turn()

    def _end_turn(self) -> None:
        broker = self.broker
        assert broker is not None
        broker.loop.end_turn()
        self._errors.check()
        if broker.halt_reason is not None and self._disk.failed:
            self._restart()
            return
        assert broker.halt_reason is None, broker.halt_reason
        with self._disk.paused():
            while self.active:
                active, self.active = self.active, {}
                for pipe in active:
                    pipe.send_responses()
            for callback in self.after_turn:
                callback(self)

    def next_deadline(self) -> float:
        """When the next timer of the node is due, or infinity."""
        return inf if self.broker is None else max(self.broker.loop.timers.next_deadline(), self._resumes_at)

    def fire_timers(self) -> None:
        """Fire the timers that are due."""
        broker = self.broker
        if broker is not None:
            self.turn_with(lambda: broker.loop.timers.fire(self._clock.now) and None)

    def submit(self, work: Callable[[], None], then: Callable[[Exception | None], None]) -> None:
        """Work that waits for the disk, in parallel to the loop."""
        incarnation = self.incarnation

        def run() -> None:
            if self.incarnation == incarnation and self.broker is not None:
                failure: Exception | None = None
                try:
                    work()
                except Exception as error:
                    failure = error
                self.turn_with(lambda: then(failure))

        is_slow = self._clock.now < self._disk_is_slow_until
        self._clock.after(self._environment.random.uniform(*(SLOW_SYNC_S if is_slow else SYNC_S)), run)

    def _checkpoint(self, incarnation: int) -> None:
        """Write the checkpoints periodically, as a broker does."""
        if self.incarnation != incarnation or self.broker is None:
            return
        write_checkpoints(self.broker)
        self.turn_with(self._check_disk)
        self._clock.after(CHECKPOINT_S, lambda: self._checkpoint(incarnation))

    def _check_disk(self) -> None:
        broker = self.broker
        if broker is not None and not self.is_controller and self.is_listening:
            check_disks(broker)
