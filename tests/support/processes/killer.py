"""Kills one broker of a cluster with SIGKILL every so many seconds, while a suite of tests uses the cluster.

The order follows from a seed. A broker is started again at once or a few seconds later, and no other one is killed
before all replicas are in sync again, so that `min.insync.replicas` of 2 stays possible with three brokers. The
cluster that was taken last is the one that is killed, since it is the one that a test uses. A test may stop its cluster
at any time: the killer then does nothing until it runs again.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

SETTINGS = {"broker.session.timeout.ms": "4000", "broker.heartbeat.interval.ms": "500"}
"""Keys of a cluster that is killed: brokers are fenced while they are down, and replaced as leaders."""
LONGEST_PAUSE_S = 7.0
"""Longer than a session."""
PATIENCE_S = 90.0
"""How long replicas may take until they are in sync after a kill, seconds."""
POLL_S = 0.25


class Killed(Protocol):
    """A cluster of `barnabas serve --brokers N`."""

    brokers: int
    data_dir: Path

    @property
    def is_running(self) -> bool: ...


@dataclass(slots=True)
class Plan:
    """Which broker is killed next, and how long it stays down."""

    seed: int
    chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def next(self, brokers: int) -> tuple[int, float]:
        """The id of one of so many brokers, and the seconds until it is started again: none for half of the kills."""
        broker = self.chance.randint(1, brokers)
        is_quick = self.chance.random() < 0.5
        pause_s = self.chance.uniform(1.0, LONGEST_PAUSE_S)
        return broker, 0.0 if is_quick else round(pause_s, 1)


def is_in_sync(cluster: Killed) -> bool:
    """Whether every broker runs and says of every partition that all its replicas are in sync."""
    from barnabas.client.admin.topics import list_topics
    from barnabas.client.cluster import Cluster
    from barnabas.client.errors import ClientError
    from barnabas.supervise.state import NoCluster, read
    from barnabas.wire.errors import KafkaError

    try:
        nodes = read(str(cluster.data_dir)).brokers
        if len(nodes) < cluster.brokers or any(node.state != "running" for node in nodes):
            return False
        for node in nodes:
            with Cluster(node.address, software_version="killer", timeout_s=5.0) as client:
                for topic in list_topics(client):
                    if any(
                        sorted(partition.isr_nodes) != sorted(partition.replica_nodes) for partition in topic.partitions
                    ):
                        return False
                if len(client.nodes) < cluster.brokers:
                    return False
    except (ClientError, KafkaError, NoCluster, OSError):
        return False
    return True


class Killer:
    """Kills brokers of the clusters that it has taken, in a thread of its own."""

    def __init__(self, every_s: float, seed: int, say: Callable[[str], object] = print) -> None:
        self.every_s = every_s
        self.kills = 0
        self.findings: list[str] = []
        """Brokers that could not be started again, replicas that were not in sync in time."""
        self._plan = Plan(seed)
        self._say = say
        self._clusters: list[Killed] = []
        self._busy = threading.Lock()
        """Held from a kill until all are in sync again."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def take(self, cluster: Killed) -> None:
        """Kill brokers of this cluster from now on."""
        self._clusters.append(cluster)

    def leave(self, cluster: Killed) -> None:
        """Kill no more brokers of this cluster. AssertionError if it runs and its replicas are not in sync in time."""
        if cluster not in self._clusters:
            return
        with self._busy:
            self._clusters.remove(cluster)
        if cluster.is_running:
            assert self._wait_in_sync(cluster), f"not all replicas are in sync in {PATIENCE_S:g} s after the kills"

    def _run(self) -> None:
        due = time.monotonic() + self.every_s
        while not self._over.wait(POLL_S):
            if time.monotonic() < due:
                continue
            with self._busy:
                cluster = self._clusters[-1] if self._clusters else None
                if cluster is None or not cluster.is_running or not is_in_sync(cluster):
                    continue
                due = time.monotonic() + self.every_s
                try:
                    self._kill(cluster)
                except Exception as error:
                    self.findings.append(f"{type(error).__name__}: {error}")

    def _kill(self, cluster: Killed) -> None:
        """One kill, until all replicas are in sync again or the cluster has been stopped."""
        from barnabas.supervise.control import ControlError, ask

        broker, pause_s = self._plan.next(cluster.brokers)
        directory = str(cluster.data_dir)
        with contextlib.suppress(ControlError):  # the test stops the cluster just now
            ask(directory, "kill", node=broker)
            self.kills += 1
            then = f"it stays down for {pause_s:g} s" if pause_s else "it is started at once"
            self._say(f"kill {self.kills}: broker {broker}, {then}")
            time.sleep(pause_s)
        try:
            ask(directory, "start", node=broker)
        except ControlError as error:
            is_refused = any(text in str(error) for text in ("could not start", "has not answered"))
            if is_refused and "(exit code 0)" not in str(error):  # 0: it was told to stop while it started
                self.findings.append(f"broker {broker}: {error}")
            return  # else the test has stopped the cluster meanwhile, or started it again with all brokers
        if not self._wait_in_sync(cluster) and cluster.is_running:
            self.findings.append(f"after kill {self.kills} not all replicas were in sync in {PATIENCE_S:g} s")

    def _wait_in_sync(self, cluster: Killed) -> bool:
        deadline = time.monotonic() + PATIENCE_S
        while not is_in_sync(cluster):
            if not cluster.is_running or time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True
