"""Faults on a real cluster under load, in an order by seed: kills of brokers, of the controller, of all, pauses, cuts.

Also controlled shutdowns, replicas that are taken away and given back empty, leaders' disks (`disk_faults`), what
administrators do (`admin_faults`), and second supervisors of a cluster of `serve --brokers` (`supervisor_faults`).

`python -m tests.cluster.faults --kills 100 --controller-kills 20 --pauses 20 --whole 5 --controllers ours --seed 1`
`python -m tests.cluster.faults --unregistrations 10 --configs 10 --controllers kafka`
`python -m tests.cluster.faults --damages 10 --full-disks 10 --read-errors 10 --dead-disks 5 --controllers kafka`
`python -m tests.cluster.faults --supervisors 10 --kills 5 --controllers kafka`
`python -m tests.cluster.faults --work transactions,groups,share,streams --client mixed --kills 6`

After each fault the cluster is healed and must acknowledge again; at the end nothing may be lost, doubled or out of
order, and all replicas of every partition have the same bytes. With `--work` clients of coordinators work beside the
writers (`coordinator_work`): they must make progress after each fault, and the checker must accept their histories.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.client.admin.reassignments import reassign
from compat.checker.finding import Finding
from tests.cluster.disturbances.admin_faults import AdminFaults
from tests.cluster.disturbances.disk_faults import DISK_FAULTS, DiskFaults
from tests.cluster.disturbances.faulty_broker import FaultyNode
from tests.cluster.disturbances.supervised import SupervisedCluster
from tests.cluster.disturbances.supervisor_faults import SupervisorFaults
from tests.cluster.load import coordinator_work
from tests.cluster.load.coordinator_work import CoordinatorWork
from tests.cluster.load.replicas import differences
from tests.cluster.load.resent import take_resent
from tests.cluster.load.work import PARTITIONS, Work, create_topic
from tests.cluster.rolling import behind, end_in_order
from tests.support.cluster.asking import client, is_in_sync, leader, partitions
from tests.support.cluster.clusters import BrokerNode, Cluster
from tests.support.cluster.links import CUTS, Links
from tests.support.waiting import ANY_ERROR, wait_for

SETTLE_S = 90.0
OPTIONS = {
    "kills": "kill",
    "controller-kills": "controller",
    "pauses": "pause",
    "cuts": "cut",
    "stops": "stop",
    "moves": "move",
    "damages": "damage",
    "full-disks": "full",
    "read-errors": "unreadable",
    "dead-disks": "dead",
    "unregistrations": "unregister",
    "configs": "configure",
    "supervisors": "supervisor",
}
"""How often a fault happens, by option."""
HELP = {
    "supervisors": "a second `serve --brokers 3` on the cluster's directory, beside the first or after it was killed; "
    "not with disk faults, cuts and --software",
}


@dataclass(slots=True)
class Outcome:
    """The faults and findings of a run; times in seconds."""

    seed: int
    faults: dict[str, int] = field(default_factory=dict)
    acknowledged: int = 0
    waits: list[float] = field(default_factory=list)
    """From each kill of a broker to the next acknowledgement of a partition that it led."""
    moves: dict[str, list[float]] = field(default_factory=dict)
    """By fault of a leader's disk: from the fault to another leader."""
    returns: dict[str, list[float]] = field(default_factory=dict)
    """By situation of two supervisors: from the ready line of the one that serves to the next acknowledgement."""
    seconds: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    """Of the coordinators' clients."""
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        done = ", ".join(f"{count} {name}" for name, count in self.faults.items())
        waits = sorted(self.waits)
        worst = f", longest wait {waits[-1]:.1f} s, half within {waits[len(waits) // 2]:.1f} s" if waits else ""
        for name, moves in self.moves.items():
            moves.sort()
            worst += f"; {name}: others led after {moves[len(moves) // 2]:.1f} s, {moves[-1]:.1f} s at most"
        for name, returns in self.returns.items():
            returns.sort()
            worst += f"; {name}: acknowledged after {returns[len(returns) // 2]:.1f} s, {returns[-1]:.1f} s at most"
        counts = "".join(f", {count} {name}" for name, count in self.counts.items())
        return (
            f"seed {self.seed}: {done or 'nothing'}; {self.acknowledged} acknowledged{counts} in {self.seconds:.0f} s"
            f"{worst}; {len(self.findings)} findings"
        )


class Faults:
    """One run on a started cluster."""

    def __init__(
        self,
        cluster: Cluster | SupervisedCluster,
        folder: Path,
        seed: int,
        library: str,
        links: Links | None,
        rate: int = 300,
        work: Sequence[str] = (),
    ) -> None:
        self.cluster, self.links = cluster, links
        self.chance = random.Random(seed)
        self.topic = f"faults-{seed}"
        self.outcome = Outcome(seed)
        writer = "confluent" if library == "mixed" else library
        self.work = Work(cluster, folder, self.topic, client=writer, writers=2, rate=rate)
        kinds = [kind for kind in work if kind != coordinator_work.RECORDS]
        self.coordinators = CoordinatorWork(cluster, folder, seed, kinds, library)
        self._kinds: dict[str, Callable[[], None]] = {
            "kill": self._kill_broker,
            "controller": self._kill_controller,
            "pause": self._pause_broker,
            "cut": self._cut,
            "stop": self._stop_broker,
            "move": self._move,
            "whole": self._kill_all,
            **DiskFaults(cluster, self.chance, self.topic, self.work, self.outcome.moves).kinds,
            **AdminFaults(cluster, self.chance, self.topic, self.work).kinds,
        }
        if isinstance(cluster, SupervisedCluster):
            self._kinds |= SupervisorFaults(cluster, self.chance, self.work, self.outcome.returns).kinds

    def __call__(self, counts: dict[str, int]) -> Outcome:
        """Run these faults in a random order."""
        began = time.monotonic()
        create_topic(self.cluster.bootstrap, self.topic)
        plan = [kind for kind, count in counts.items() for _ in range(count)]
        self.chance.shuffle(plan)
        with self.work as work, self.coordinators as coordinators:
            work.go_on()
            coordinators.go_on()
            for number, kind in enumerate(plan, 1):
                print(f"{number}/{len(plan)} {kind}", flush=True)
                with coordinators.disturbed():
                    self._kinds[kind]()
                    self.outcome.faults[kind] = self.outcome.faults.get(kind, 0) + 1
                    self._settle()
                work.go_on(self.chance.randrange(50, 300), SETTLE_S)
                coordinators.go_on(self.chance.randrange(1, 10))
            self.outcome.findings += coordinators.finish()
            self.outcome.counts = coordinators.counts()
            self.outcome.acknowledged = work.acknowledged()
            self.outcome.findings += work.finish()
        self._compare()
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def _settle(self) -> None:
        wait_for(
            lambda: is_in_sync(self.cluster.bootstrap, self.topic, 3),
            "three replicas in sync",
            SETTLE_S,
            errors=ANY_ERROR,
        )
        wait_for(
            lambda: not behind(self.cluster.bootstrap), "all replicas of all topics in sync", SETTLE_S, errors=ANY_ERROR
        )

    def _compare(self) -> None:
        dirs = {broker: node.data_dir for broker, node in self.cluster.brokers.items()}
        take_resent(self.outcome.findings, next(iter(dirs.values())))
        try:
            wait_for(lambda: not differences(dirs), "replicas with the same bytes", 20.0, errors=ANY_ERROR)
        except AssertionError:
            self.outcome.findings += [Finding("different-replicas", line) for line in differences(dirs)]

    def _victim(self) -> int:
        """Mostly a leader of a partition of the topic; with clients of coordinators any broker, since each has some."""
        if self.coordinators.loads:
            return self.chance.choice(sorted(self.cluster.brokers))
        if self.chance.random() < 0.7:
            index = self.chance.randrange(PARTITIONS)
            return max(1, leader(self.cluster.bootstrap, self.topic, index))
        return self.chance.choice(sorted(self.cluster.brokers))

    def _kill_broker(self) -> None:
        node = self.cluster.brokers[self._victim()]
        time.sleep(self.chance.uniform(0, 0.2))
        node.kill9()
        if self.chance.random() < 0.5:
            self.outcome.waits.append(self.work.go_on(self.chance.randrange(600, 900), SETTLE_S))
        node.restart()

    def _kill_controller(self) -> None:
        node = self.cluster.quorum.active
        node.kill9()
        time.sleep(self.chance.uniform(0, 3.0))
        node.restart()

    def _pause_broker(self) -> None:
        node = self.cluster.brokers[self._victim()]
        node.pause()
        time.sleep(self.chance.choice((0.5, 2.0, 5.0)))  # shorter and longer than a session
        node.resume()

    def _cut(self) -> None:
        assert self.links is not None, "the cluster was started without links"
        source, target = self.links.any_pair(self.chance)
        kind = self.chance.choice(CUTS)
        print(f"  {kind} from {source} to {target}", flush=True)
        with self.links.broken(source, target, kind):
            time.sleep(self.chance.choice((0.5, 2.0, 6.0)))

    def _stop_broker(self) -> None:
        """A controlled shutdown: acknowledgements go on without a session's end."""
        node = self.cluster.brokers[self._victim()]
        if (code := node.stop()) != 0:
            self.outcome.findings.append(Finding("unclean-stop", f"{node.data_dir.name} ended with {code}"))
        self.work.go_on(self.chance.randrange(50, 300), SETTLE_S)
        node.restart()

    def _move(self) -> None:
        """Take a partition's replica from a broker and give it back, empty, while another broker may be killed."""
        index = self.chance.randrange(PARTITIONS)
        replicas = self.chance.sample(sorted(self.cluster.brokers), len(self.cluster.brokers))
        node = self.cluster.brokers[self.chance.choice(replicas)]
        self._reassign(index, replicas[:2])
        self._reassign(index, replicas)
        if self.chance.random() < 0.5:
            node.kill9()
            node.restart()

    def _reassign(self, index: int, replicas: list[int]) -> None:
        def has_moved() -> bool:
            partition = partitions(self.cluster.bootstrap, self.topic)[index]
            return sorted(partition.replica_nodes) == sorted(replicas) and set(partition.isr_nodes) >= set(replicas[:2])

        with client(self.cluster.bootstrap) as asking:
            reassign(asking, {(self.topic, index): replicas})
        wait_for(has_moved, f"the replicas {replicas} of partition {index}", SETTLE_S, errors=ANY_ERROR)

    def _kill_all(self) -> None:
        self.cluster.kill_all()
        self.cluster.start()


def software_of(option: str) -> dict[int, str]:
    """Which brokers run what, of `1=kafka,2=kafka`."""
    return {int(broker): name for broker, _, name in (part.partition("=") for part in option.split(",") if part)}


def main(arguments: list[str]) -> int:
    """Run the command; the exit code is 0 without findings."""
    end_in_order()
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.faults")
    for name, kind in OPTIONS.items():
        parser.add_argument(f"--{name}", dest=kind, type=int, default=0, metavar="N", help=HELP.get(name))
    parser.add_argument("--whole", type=int, default=0, metavar="N", help="kills of all processes at once")
    parser.add_argument("--controllers", choices=("ours", "kafka"), default="ours")
    parser.add_argument("--client", choices=("confluent", "java", "mixed"), default="confluent")
    parser.add_argument("--work", default="records", help="also transactions, groups, share, streams, with commas")
    parser.add_argument("--rate", type=int, default=300, help="records per second of each of the two writers")
    parser.add_argument(
        "--software", default="", help="brokers of Apache Kafka, as 1=kafka,2=kafka; with its controllers"
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--folder", type=Path)
    options = vars(parser.parse_args(arguments))
    names = ("seed", "client", "controllers", "folder", "rate", "work")
    seed, library, kind, folder, rate, work = (options.pop(name) for name in names)
    software = software_of(options.pop("software"))
    folder = folder or Path(tempfile.mkdtemp(prefix="faults-"))
    print(f"seed {seed}, {folder}", flush=True)
    links = Links() if options["cut"] else None
    running: Cluster | SupervisedCluster
    if options["supervisor"]:
        if software or any(options[name] for name in ("cut", *DISK_FAULTS)):
            parser.error("--supervisors is not for --software, --cuts and faults of disks")
        running = SupervisedCluster(folder / "cluster", kind=kind, config=coordinator_work.CONFIG)
    else:
        running = Cluster(
            folder / "cluster",
            kind="kafka" if software else kind,
            config=coordinator_work.CONFIG,
            links=links,
            software=software,
            default_format=bool(software),
            broker_node=FaultyNode if any(options[name] for name in DISK_FAULTS) else BrokerNode,
        )
    with running as cluster:
        outcome = Faults(cluster, folder / "histories", seed, library, links, rate, work.split(","))(options)
    print(outcome)
    for finding in outcome.findings[:20]:
        print(finding)
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
