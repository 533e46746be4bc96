"""The steps of the evidence: which command is run how often in which stage, and what its output counts.

A call is one run of a step's command with a seed of its own. Stages contain one another: the calls of `10min` are the
first ones of `hour`, and those the first ones of `night`. The figures are reached by `night`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

STAGES = ("10min", "hour", "night")


@dataclass(frozen=True, slots=True)
class Count:
    """A number in the output of a call: the sum of the first groups of all matches of `pattern`."""

    name: str
    pattern: str
    is_required: bool = True
    """Whether a call without a match has failed; faults that a plan does not have are not printed."""

    def read(self, output: str) -> int | None:
        """The number; None if nothing matches."""
        found = re.findall(self.pattern, output, re.MULTILINE)
        return sum(int(number.replace(",", "")) for number in found) if found else None


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of evidence."""

    name: str
    shows: str
    command: str
    """With `{seed}`; it exits with 0 only if nothing was found."""
    calls: tuple[int, int, int]
    """How many calls each stage has."""
    counts: tuple[Count, ...]
    seeds: int = 1
    """How many seeds a call uses up, from its own on."""
    limit_s: float = 1800.0

    def calls_of(self, stage: str) -> int:
        """How many calls the stage has. ValueError for an unknown stage."""
        return self.calls[STAGES.index(stage)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that the evidence is to reach, as the sum of one count over some steps."""

    name: str
    goal: int
    count: str
    steps: tuple[str, ...]


def _fault(name: str, kind: str) -> Count:
    return Count(name, rf"^seed \d+: .*?(\d+) {kind}[,;]", is_required=False)


FAULTS = (
    Count("acknowledged records", r"^seed \d+: .*?(\d+) acknowledged"),
    _fault("kills of a broker", "kill"),
    _fault("kills of a controller", "controller"),
    _fault("kills of all nodes", "whole"),
    _fault("cuts", "cut"),
    _fault("pauses", "pause"),
    _fault("controlled shutdowns", "stop"),
    _fault("moves of replicas", "move"),
)


def _simulation(kind: str, runs: int, calls: tuple[int, int, int], errors: int = 0) -> Step:
    return Step(
        f"simulation-{kind}" + ("-disk-errors" if errors else ""),
        f"simulation, {kind}" + (", with disk errors" if errors else ""),
        f"python -m tests.simulation --kind {kind} --seeds {runs} --seed {{seed}}"
        + (f" --disk-errors {errors}" if errors else ""),
        calls,
        (Count("runs", rf"^{kind}: (\d+) runs"),),
        seeds=runs,
    )


SIMULATIONS = tuple(
    _simulation(kind, runs, calls, errors)
    for kind, runs, calls, errors in (
        ("cluster", 100, (1, 10, 200), 0),
        ("cluster-transactions", 20, (1, 10, 100), 0),
        ("cluster-transactions", 20, (1, 5, 50), 2),
        ("cluster-groups", 20, (1, 10, 100), 0),
        ("cluster-groups", 20, (1, 5, 50), 2),
        ("cluster-share", 20, (1, 10, 100), 0),
        ("cluster-share", 20, (1, 5, 50), 2),
        ("transactions", 100, (1, 10, 100), 0),
        ("transactions", 100, (1, 5, 50), 4),
        ("consumer", 100, (1, 10, 100), 0),
        ("groups", 100, (1, 10, 100), 0),
        ("migration", 100, (1, 10, 100), 0),
        ("share", 100, (1, 10, 100), 0),
        ("share", 100, (1, 5, 50), 4),
    )
)

ROLLING = (
    Count("replacements of a node", r"^seed \d+: (\d+) nodes replaced"),
    Count("records read", r"^seed \d+: .*?(\d+) records and"),
    Count("transactions committed under replacements", r"^seed \d+: .*? and (\d+) transactions"),
)

COPIES = (
    Count("committed transactions", r"(\d+) answered commits"),
    Count("records copied", r"(\d+) records in"),
    Count("kills of the broker", r"(\d+) kills of the broker"),
    Count("kills of clients", r"and (\d+) of clients"),
)

STEPS = (
    *SIMULATIONS,
    Step(
        "crash-states",
        "states of the disk after a crash",
        "python -m tests.crash --states 2000 --seed {seed}",
        (2, 20, 100),
        (Count("states", r"^(\d+) states of"),),
    ),
    Step(
        "fault-sweep",
        "one operation of the disk fails",
        "python -m tests.crash --faults --cases 20 --seed {seed}",
        (1, 5, 30),
        (Count("cases", r"(\d+) cases"),),
    ),
    Step(
        "copies",
        "exactly-once copies, librdkafka, one broker",
        "python -m compat.exactly_once confluent --broker-kills 5 --client-kills 5 --spacing 150 --rate 2500"
        " --seed {seed}",
        (1, 6, 100),
        COPIES,
    ),
    Step(
        "copies-java",
        "exactly-once copies, Java client, one broker",
        "python -m compat.exactly_once java --broker-kills 4 --client-kills 4 --seed {seed}",
        (1, 3, 20),
        COPIES,
    ),
    Step(
        "share-ledger",
        "share group under kills, Java client, one broker",
        "python -m compat.exactly_once java --share --broker-kills 3 --client-kills 3 --seed {seed}",
        (1, 3, 20),
        (
            Count("acknowledgements", r"(\d+) answered acknowledgements"),
            Count("kills of the broker", r"(\d+) kills of the broker"),
            Count("kills of clients", r"and (\d+) of clients"),
        ),
    ),
    Step(
        "cluster-faults",
        "three brokers, our controller",
        "python -m tests.cluster.faults --kills 10 --cuts 2 --controller-kills 1 --whole 1 --pauses 1 --stops 1"
        " --moves 1 --rate 2000 --seed {seed}",
        (1, 5, 50),
        FAULTS,
    ),
    Step(
        "cluster-faults-kafka-controllers",
        "three brokers, Kafka's controllers",
        "python -m tests.cluster.faults --controllers kafka --kills 6 --cuts 2 --controller-kills 2 --pauses 1"
        " --stops 1 --moves 1 --seed {seed}",
        (1, 3, 20),
        FAULTS,
    ),
    Step(
        "coordinator-faults",
        "transactions, groups, share groups and Streams on three brokers",
        "python -m tests.cluster.faults --work transactions,groups,share,streams --client mixed --kills 6 --cuts 1"
        " --controller-kills 1 --pauses 1 --stops 1 --moves 1 --seed {seed}",
        (1, 4, 30),
        FAULTS,
    ),
    Step(
        "mixed-cluster",
        "two of our brokers and one of Kafka's, Kafka's controllers",
        "python -m tests.cluster.faults --software 1=kafka --kills 6 --stops 2 --pauses 1 --moves 1"
        " --controller-kills 1 --seed {seed}",
        (1, 4, 10),
        FAULTS,
    ),
    Step(
        "rolling-migration",
        "Kafka's brokers replaced by ours one by one and back, all clients",
        "python -m tests.cluster.migration --seed {seed}",
        (0, 1, 5),
        ROLLING,
    ),
    Step(
        "rolling-upgrade",
        "nodes of the previous release replaced one by one and back; needs the history of the repository",
        "python -m tests.cluster.upgrade --seed {seed}",
        (0, 1, 5),
        ROLLING,
    ),
    Step(
        "planted-bugs-sample",
        "planted bugs, those of a day",
        "python -m tests.mutants --sample",
        (1, 1, 1),
        (Count("caught", r"^(\d+) of \d+ mutants caught"), Count("planted", r"^\d+ of (\d+) mutants caught")),
        limit_s=3600,
    ),
    Step(
        "planted-bugs",
        "planted bugs, all",
        "python -m tests.mutants --part {number}/40",
        (0, 4, 40),
        (Count("caught", r"^(\d+) of \d+ mutants caught"), Count("planted", r"^\d+ of (\d+) mutants caught")),
        limit_s=7200,
    ),
    Step(
        "fuzz",
        "mutated and absurd requests",
        "python -m tests.hostile.fuzz --mutated 90000 --absurd 10000 --seed {seed}",
        (1, 10, 100),
        (
            Count("mutated", r"^(\d+) mutated and \d+ absurd requests"),
            Count("absurd", r"^\d+ mutated and (\d+) absurd requests"),
        ),
    ),
)

_REAL_CLUSTERS = ("cluster-faults", "cluster-faults-kafka-controllers", "coordinator-faults", "mixed-cluster")

FIGURES = (
    Figure("simulated runs of the cluster", 20_000, "runs", ("simulation-cluster",)),
    Figure("crash states", 200_000, "states", ("crash-states",)),
    Figure("kills of cluster nodes", 500, "kills of a broker", _REAL_CLUSTERS),
    Figure("cuts between nodes", 100, "cuts", _REAL_CLUSTERS),
    Figure("kills of a controller", 30, "kills of a controller", _REAL_CLUSTERS),
    Figure("kills of a whole cluster", 20, "kills of all nodes", _REAL_CLUSTERS),
    Figure("acknowledged records, none lost", 10_000_000, "acknowledged records", _REAL_CLUSTERS),
    Figure("exactly-once transactions", 100_000, "committed transactions", ("copies", "copies-java")),
    Figure("kills in the mixed cluster", 50, "kills of a broker", ("mixed-cluster",)),
    Figure("mutated requests", 9_000_000, "mutated", ("fuzz",)),
    Figure("absurd requests", 1_000_000, "absurd", ("fuzz",)),
)
"""What the whole evidence is to reach; the stage `night` is made for it."""
