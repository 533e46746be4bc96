"""A node of a simulated cluster: a real broker, or the real controller, on a disk that a power failure cuts.

A node that is killed keeps what the page cache has, one whose power fails keeps what was synced and any of the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.start.builder import load_logs, open_member
from barnabas.broker.start.controller_builder import open_controller
from barnabas.storage import layout
from barnabas.wire.errors import KafkaError
from tests.simulation.cluster.network import ClusterNetwork, Pipe, new_buffers
from tests.simulation.node import PATHS, SYNC_S, Errors, Node
from tests.support.disks.faulty_disk import Fault, FaultyDisk
from tests.support.disks.survivors import Kind

if TYPE_CHECKING:
    from barnabas.broker.cluster_member import ClusterMember, RemoteController
    from barnabas.broker.context import Broker
    from barnabas.broker.net.client.outgoing import Peer, Transport
    from tests.simulation.environment import Environment

CONTROLLER_ID = 3000
CLUSTER_ID = "c2ltdWxhdGlvbi1jbHVzdA"
SLOW_SYNC_S = (0.05, 1.0)
RESTART_S = (0.05, 0.5, 5.0, 15.0)


class Turning(Protocol):
    """A node that connections belong to: a broker, or the clients."""

    node_id: int
    incarnation: int

    def turn_with(self, work: Callable[[], None]) -> None:
        """Do work in a turn."""


class ClusterNode(Node):
    """One node and its restarts."""

    checkpoint_s = 2.0
    disk_errors = Exception

    def __init__(
        self,
        environment: Environment,
        network: ClusterNetwork,
        node_id: int,
        settings: Mapping[str, str],
        errors: Errors,
    ) -> None:
        super().__init__(environment, settings, errors)
        self._network = network
        self.node_id = node_id
        self.is_controller = node_id == CONTROLLER_ID
        self.member: ClusterMember | None = None
        self.is_listening = False
        self.buffers = new_buffers()
        self.active: dict[Pipe, None] = {}
        """Connections to which the node may have written in this turn."""
        self.after_turn: list[Callable[[ClusterNode], None]] = []
        self.on_start: list[Callable[[ClusterNode], None]] = []
        self._remote: RemoteController | None = None
        self._is_stopping = False
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
        self._write_checkpoints_later()
        self._end_turn()

    def _open(self) -> None:
        if self.is_controller:
            self._open_controller()
        else:
            self._open_broker()

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
        self._keep_on_disk(
            random.choice([kind for kind in Kind if kind is not Kind.KEPT]) if power_fails else Kind.KEPT
        )
        self._end_process()

    def lose_disk(self, *, keeps_name: bool) -> None:
        """The machine is lost; what starts in its place has an empty disk, or one with the name of the old one."""
        self._environment.trace.note("disk is lost", self.node_id, keeps_name)
        content = self._disk.content().get(PATHS[0].removeprefix("/"), {})
        assert isinstance(content, dict)
        identity = {name: data for name, data in content.items() if keeps_name and name == layout.META_PROPERTIES}
        self._disk = FaultyDisk({PATHS[0].removeprefix("/"): identity})
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
        """As in `Node`, with a line in the trace."""
        self._environment.trace.note("paused", self.node_id, seconds)
        super().pause(seconds)

    def slow_disk(self, seconds: float) -> None:
        """What waits for the disk takes up to a second for a while."""
        self._environment.trace.note("disk is slow", self.node_id, seconds)
        self._disk_is_slow_until = self._clock.now + seconds

    # ---- turns

    def _run_turn(self, broker: Broker, work: Callable[[], object]) -> None:
        work()
        self._end_turn()

    def _end_turn(self) -> None:
        broker = self.broker
        assert broker is not None
        broker.loop.end_turn()
        self.errors.check()
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

    def _sync_s(self) -> tuple[float, float]:
        return SLOW_SYNC_S if self._clock.now < self._disk_is_slow_until else SYNC_S

    def _check_disk(self) -> None:
        if not self.is_controller and self.is_listening:
            super()._check_disk()
