"""Three brokers of `barnabas serve --brokers 3`: as `clusters.Cluster` for faults, with the supervisor as a process.

Nodes are ended and started through `barnabas cluster`, or killed by the process ids that the supervisor reports. They
end with their supervisor, the controllers last.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from barnabas.supervise import control
from barnabas.supervise.plan import KAFKA_CONTROLLERS, OUR_CONTROLLER
from barnabas.supervise.state import ClusterState, NodeState, of_values
from barnabas.supervise.supervisor import STOP_S
from tests.support.cluster.asking import quorum_leader
from tests.support.cluster.clusters import FAST
from tests.support.cluster.quorums import HOST
from tests.support.processes.commands import clean_environment, run_barnabas
from tests.support.processes.ports import free_ports
from tests.support.waiting import wait_for

BROKERS = 3
START_S = 300.0
"""How long a start may take, seconds: with Kafka's controllers three JVMs format, then three JVMs start."""
COMMAND_S = START_S
"""How long a command may take, seconds: a start and a stop are waited for."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended."""

    code: int
    told: str
    """Its output on stderr."""


class Serving:
    """A process of `barnabas serve --brokers 3`; its output goes to files that begin with `path`."""

    def __init__(self, path: Path, arguments: list[str]) -> None:
        self.ready, self._err = path.with_name(f"{path.name}.ready"), path.with_name(f"{path.name}.err")
        self.ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "barnabas", *arguments, "--ready-file", str(self.ready)]
        with self._err.open("wb") as err, path.with_name(f"{path.name}.out").open("ab") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=clean_environment()
            )

    def told(self) -> str:
        """Its output on stderr so far."""
        return self._err.read_text()

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self.process.poll() is not None

    def end(self) -> Answer:
        """How it ends by itself; it is waited for."""
        try:
            return Answer(self.process.wait(STOP_S + START_S), self.told())
        finally:
            self.kill9()

    def kill9(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.wait()


class SupervisedNode:
    """A node of the cluster, with the names of `tests.support.processes.server.Server`."""

    def __init__(self, cluster: SupervisedCluster, node_id: int, role: str, address: str = "") -> None:
        self._cluster, self._node_id = cluster, node_id
        self.data_dir = cluster.data_dir / f"{role}-{node_id}"
        self.bootstrap = address

    @property
    def pid(self) -> int | None:
        """Its process, as the supervisor reports it; None if it does not run."""
        return self._cluster.state().node(self._node_id).pid

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self.pid is not None

    def kill9(self) -> None:
        """Kill its processes with SIGKILL, and wait until the supervisor knows it."""
        self._signal(signal.SIGKILL)
        wait_for(lambda: not self.is_running, f"the end of {self.data_dir.name}")

    def stop(self) -> int:
        """`barnabas cluster stop`; its exit code, which is 0 after a controlled shutdown."""
        return self._cluster.command("stop", str(self._node_id)).code

    def restart(self) -> None:
        """`barnabas cluster start`."""
        outcome = self._cluster.command("start", str(self._node_id))
        assert outcome.code == 0, outcome.told

    def pause(self) -> None:
        """SIGSTOP."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        pid = self.pid
        assert pid is not None, f"{self.data_dir.name} does not run"
        os.killpg(pid, number)

    def log(self) -> str:
        """Its output."""
        path = self.data_dir.with_name(f"{self.data_dir.name}.log")
        return path.read_text(errors="replace") if path.exists() else ""


class SupervisedQuorum:
    """The controllers."""

    def __init__(self, cluster: SupervisedCluster) -> None:
        self._cluster = cluster
        ids = KAFKA_CONTROLLERS if cluster.kind == "kafka" else (OUR_CONTROLLER,)
        self.servers = {node_id: SupervisedNode(cluster, node_id, "controller") for node_id in ids}

    @property
    def active(self) -> SupervisedNode:
        """The active one."""
        if self._cluster.kind != "kafka":
            return self.servers[OUR_CONTROLLER]
        nodes = self._cluster.state().nodes
        return self.servers[quorum_leader(n.address for n in nodes if n.role == "controller" and n.pid is not None)]


class SupervisedCluster:
    """Brokers 1 to 3 of one supervisor, whose ports stay the same."""

    def __init__(self, folder: Path, *, kind: str = "ours", config: Mapping[str, str] | None = None) -> None:
        """`kind` is the kind of the controllers, `ours` or `kafka`; `config` is for all nodes."""
        self.kind = kind
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.data_dir = folder / "cluster"
        ports = free_ports(BROKERS)
        self.arguments = ["serve", "--brokers", str(BROKERS), "--listen", f"{HOST}:{ports[0]}"]
        self.arguments += ["--data-dir", str(self.data_dir), "--controllers", kind]
        for key, value in (FAST | dict(config or {})).items():
            self.arguments += ["--set", f"{key}={value}"]
        self.brokers = {
            number: SupervisedNode(self, number, "broker", f"{HOST}:{port}") for number, port in enumerate(ports, 1)
        }
        self.quorum = SupervisedQuorum(self)
        self.supervisor: Serving | None = None
        """The one that serves."""
        self._begun: list[Serving] = []

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.bootstrap for node in self.brokers.values())

    def state(self) -> ClusterState:
        """The supervisor's report of its nodes. NotRunning."""
        return of_values(control.ask(str(self.data_dir), "state"))[0]

    def running(self) -> list[NodeState]:
        """The nodes that run."""
        return [node for node in self.state().nodes if node.pid is not None]

    def command(self, *arguments: str) -> Answer:
        """`barnabas cluster ...` with this cluster's directory."""
        full = ["cluster", *arguments, "--data-dir", str(self.data_dir)]
        done = run_barnabas(full, clean_environment(), timeout=COMMAND_S)
        return Answer(done.returncode, done.stderr.decode())

    def begin(self, name: str) -> Serving:
        """Begin a supervisor on the directory, without waiting; its output has this name."""
        self._begun = [serving for serving in self._begun if not serving.has_ended]
        self._begun.append(Serving(self.folder / name, self.arguments))
        return self._begun[-1]

    def start(self) -> SupervisedCluster:
        """Start a supervisor, and wait until all brokers serve."""
        serving = self.begin("supervisor")
        try:
            return self.serve_with(serving)
        except BaseException:
            serving.kill9()  # its nodes end with it
            raise

    def serve_with(self, serving: Serving) -> SupervisedCluster:
        """Wait until this started supervisor serves. AssertionError if it ends."""
        self.supervisor = serving
        wait_for(lambda: serving.ready.exists() or serving.has_ended, "the ready file", START_S)
        assert not serving.has_ended, serving.told()
        return self

    def stop(self) -> None:
        """End the supervisor with its nodes; AssertionError if a node did not end in order."""
        for serving in self._begun:
            serving.process.terminate()
        answers = {serving: serving.end() for serving in self._begun}
        if (outcome := answers.get(self.supervisor)) is not None:
            assert outcome.code == 0, outcome.told
        self._begun, self.supervisor = [], None

    def kill_all(self) -> None:
        """Kill the supervisor and every node at once, as a power failure of the machine does."""
        assert self.supervisor is not None
        nodes = self.running()
        self.supervisor.process.send_signal(signal.SIGSTOP)  # it must not see them end
        processes = [pid for node in nodes for pid in (node.pid, *children(node.pid))]
        for node in nodes:
            os.killpg(node.pid, signal.SIGKILL)
        self.supervisor.kill9()
        wait_for(lambda: not any(map(runs, processes)), "the end of all processes")

    def log(self) -> str:
        """The ends of the nodes' logs, and the output of the supervisor."""
        output = "" if self.supervisor is None else self.supervisor.told()
        nodes = [*self.quorum.servers.values(), *self.brokers.values()]
        return output + "".join(f"--- {node.data_dir.name}\n{node.log()[-3000:]}\n" for node in nodes)

    def __enter__(self) -> SupervisedCluster:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


def runs(pid: int) -> bool:
    """Whether a process has not ended; a zombie has ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
