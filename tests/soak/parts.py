"""The parts of the proof by volume, as data: simulations, crash states, clusters, floods, planted bugs, tests.

The parts that run first when nothing is on record come first: short parts of different kinds. A call takes two minutes
at most where it can be cut so; seconds were measured on two slow cores without other work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby, zip_longest

from tests.soak.marked import files_with_mark, files_with_sizes
from tests.soak.part import Count, Part
from tests.soak.records import ROOT

JAVA = ("java", "javac", "mvn")
_LONG_PYTEST = "python -m pytest -q -o faulthandler_timeout=0"
"""Tests of large sizes have no limit of time."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number of the evidence: the sum of one count over some parts, or over all."""

    name: str
    count: str
    parts: tuple[str, ...] = ()


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
    _fault("damaged batches", "damage"),
    _fault("full disks", "full"),
    _fault("unreadable logs", "unreadable"),
    _fault("dead disks", "dead"),
    _fault("unregistered brokers", "unregister"),
    _fault("changed configs", "configure"),
    _fault("second supervisors", "supervisor"),
)


def _simulation(kind: str, runs: int, seconds: float, errors: int = 0) -> Part:
    return Part(
        f"simulation-{kind}" + ("-disk-errors" if errors else ""),
        "",
        f"python -m tests.simulation --kind {kind} --seeds {runs} --seed {{seed}}"
        + (f" --disk-errors {errors}" if errors else ""),
        (Count("runs", rf"^{kind}: (\d+) runs"),),
        seconds,
    )


CLUSTER_SIMULATIONS = tuple(
    _simulation(kind, runs, 45, errors)
    for kind, runs, errors in (
        ("cluster", 80, 0),
        ("cluster-transactions", 40, 0),
        ("cluster-groups", 30, 0),
        ("cluster-share", 30, 0),
        ("cluster", 80, 4),
        ("cluster-transactions", 40, 4),
        ("cluster-groups", 30, 4),
        ("cluster-share", 30, 4),
    )
)
SIMULATIONS = tuple(
    _simulation(kind, runs, 40, errors)
    for errors in (0, 4)
    for kind, runs in (("transactions", 300), ("consumer", 250), ("groups", 200), ("migration", 200), ("share", 300))
)
LATE_REQUESTS = Part(
    "simulation-late-requests",
    "requests of earlier transactions arrive late",
    f"BARNABAS_SEED={{seed}} BARNABAS_SEEDS=1000 {_LONG_PYTEST} tests/simulation/test_simulation.py"
    " -k late_requests_do_not_affect",
    (Count("tests", r"(\d+) passed\b.* in [\d.]+s"),),
    40,
)

DISKS = (
    Part(
        "crash-states",
        "states of the disk after a crash",
        "python -m tests.crash --states 20000 --seed {seed}",
        (Count("states", r"^(\d+) states of"),),
        40,
    ),
    Part(
        "fault-sweep",
        "one operation of the disk fails",
        "python -m tests.crash --faults --cases 50 --jobs 1 --seed {seed}",
        (Count("cases", r"(\d+) cases"),),
        60,
    ),
)

STOPS = (
    Part(
        "stopped-commands",
        "SIGTERM to a command's process group at random moments",
        "python -m tests.stopping serve serve-console serve-brokers consume produce record console --moments 12"
        " --seed {seed}",
        (Count("stops", r"^(\d+) stops"),),
        120,
    ),
    Part(
        "stopped-jobs",
        "SIGTERM to the process group of a pipeline's job at random moments",
        "python -m tests.stopping pipeline --moments 10 --seed {seed}",
        (Count("stops", r"^(\d+) stops"),),
        200,
        needs=JAVA,
    ),
)

METADATA_IMAGES = Part(
    "metadata-images",
    "metadata logs whose image Kafka's classes make as well",
    "python -m compat.kafka.metadata_images 4000 {seed}",
    (Count("logs", r"^(\d+) of \d+ logs have the same image"),),
    60,
    needs=JAVA,
)

COPIES = (
    Count("committed transactions", r"(\d+) answered commits"),
    Count("records copied", r"(\d+) records in"),
    Count("kills of the broker", r"(\d+) kills of the broker"),
    Count("kills of clients", r"and (\d+) of clients"),
)

KILLS = (
    Part(
        "copies",
        "exactly-once copies, librdkafka, one broker",
        "python -m compat.exactly_once confluent --broker-kills 5 --client-kills 5 --spacing 150 --rate 2500"
        " --seed {seed}",
        COPIES,
        90,
    ),
    Part(
        "copies-java",
        "exactly-once copies, Java client, one broker",
        "python -m compat.exactly_once java --broker-kills 4 --client-kills 4 --seed {seed}",
        COPIES,
        90,
        needs=JAVA,
    ),
    Part(
        "share-ledger",
        "share group under kills, Java client, one broker",
        "python -m compat.exactly_once java --share --broker-kills 3 --client-kills 3 --seed {seed}",
        (
            Count("acknowledgements", r"(\d+) answered acknowledgements"),
            Count("kills of the broker", r"(\d+) kills of the broker"),
            Count("kills of clients", r"and (\d+) of clients"),
        ),
        90,
        needs=JAVA,
    ),
)

ROLLING = (
    Count("replacements of a node", r"^seed \d+: (\d+) nodes replaced"),
    Count("records read", r"^seed \d+: .*?(\d+) records and"),
    Count("transactions committed under replacements", r"^seed \d+: .*? and (\d+) transactions"),
)


def _cluster(
    name: str, shows: str, command: str, counts: tuple[Count, ...], needs: tuple[str, ...], **own: float
) -> Part:
    """A run with several nodes, some of which may be JVMs."""
    limits = {"seconds": 120.0, "limit_s": 1200.0} | own
    return Part(
        name, shows, f"python -m tests.cluster.{command} --seed {{seed}}", counts, **limits, is_heavy=True, needs=needs
    )


CLUSTERS = (
    _cluster(
        "cluster-faults",
        "three brokers, our controller",
        "faults --kills 6 --cuts 1 --controller-kills 1 --whole 1 --pauses 1 --stops 1 --moves 1 --rate 2000"
        " --damages 2 --full-disks 1 --read-errors 1 --dead-disks 1 --unregistrations 1 --configs 1",
        FAULTS,
        (),
    ),
    _cluster(
        "cluster-faults-kafka-controllers",
        "three brokers, Kafka's controllers",
        "faults --controllers kafka --kills 4 --cuts 1 --controller-kills 1 --pauses 1 --stops 1 --moves 1"
        " --damages 2 --full-disks 1 --read-errors 1 --dead-disks 1 --unregistrations 1 --configs 1",
        FAULTS,
        JAVA,
    ),
    _cluster(
        "supervisor-faults",
        "`serve --brokers 3` begun a second time on its directory",
        "faults --supervisors 8 --kills 2 --controller-kills 1 --whole 1 --stops 1 --unregistrations 1 --configs 1",
        FAULTS,
        (),
    ),
    _cluster(
        "supervisor-faults-kafka-controllers",
        "the same with Kafka's controllers",
        "faults --controllers kafka --supervisors 4 --kills 2 --controller-kills 1 --whole 1 --configs 1",
        FAULTS,
        JAVA,
    ),
    _cluster(
        "coordinator-faults",
        "transactions, groups, share groups and Streams on three brokers",
        "faults --work transactions,groups,share,streams --client mixed --kills 3 --cuts 1 --controller-kills 1"
        " --pauses 1 --stops 1 --moves 1",
        FAULTS,
        JAVA,
    ),
    _cluster(
        "mixed-cluster",
        "two of our brokers and one of Kafka's, Kafka's controllers",
        "faults --software 1=kafka --kills 4 --stops 1 --pauses 1 --moves 1 --controller-kills 1"
        " --damages 1 --full-disks 1",
        FAULTS,
        JAVA,
    ),
    _cluster(
        "rolling-migration",
        "Kafka's brokers replaced by ours one by one and back, all clients",
        "migration",
        ROLLING,
        JAVA,
        seconds=240.0,
    ),
    _cluster(
        "rolling-upgrade",
        "nodes of the previous release replaced one by one and back",
        "upgrade",
        ROLLING,
        ("git", "history"),
        seconds=150.0,
    ),
)

BUGS = 60
"""Into how many calls the planted bugs are cut: nine bugs in each."""
FLOODS = 16
"""Into how many calls the floods on all listeners are cut: six in each."""

PLANTED_BUGS = Part(
    "planted-bugs",
    "planted bugs are caught by their tests",
    "python -m tests.mutants --part {turn}",
    (Count("caught", r"^(\d+) of \d+ mutants caught"), Count("planted", r"^\d+ of (\d+) mutants caught")),
    150,
    turns=tuple(f"{number}/{BUGS}" for number in range(1, BUGS + 1)),
    limit_s=1800.0,
)

TESTS = (Count("tests", r"(\d+) passed\b.* in [\d.]+s", is_required=False),)
MUTATED = (
    Count("mutated", r"(\d+) mutated and \d+ absurd requests from"),
    Count("absurd", r"\d+ mutated and (\d+) absurd requests from"),
)
_NOT_ATTACKS = ("test_fuzz.py", "test_floods.py", "test_costs.py")


def hostile() -> tuple[Part, ...]:
    """Attacks, floods and the fuzz."""
    attacks = sorted(path.name for path in (ROOT / "tests/hostile").glob("test_*.py"))
    return (
        Part(
            "fuzz",
            "mutated and absurd requests",
            "python -m tests.hostile.fuzz --mutated 30000 --absurd 5000 --seed {seed}",
            MUTATED,
            60,
        ),
        Part(
            "fuzz-doors",
            "mutated and absurd requests through TLS and SASL",
            "python -m tests.hostile.fuzz --mutated 20000 --absurd 3000 --door {turn} --seed {seed}",
            MUTATED,
            60,
            turns=("before-login", "after-login", "tls", "tls-records"),
        ),
        Part(
            "floods",
            "attacks that go on for seconds, on every listener, and what a healthy client notices",
            "python -m tests.hostile.floods --seconds 5 --part {turn}",
            (Count("floods", r"^(\d+) floods, "),),
            110,
            turns=tuple(f"{number}/{FLOODS}" for number in range(1, FLOODS + 1)),
            is_alone=True,
        ),
        Part(
            "handshakes",
            "10,000 unfinished handshakes of TLS, one by one and many at once, and what a healthy client notices",
            'python -m tests.hostile.floods --steps 10000 --listener {turn} "TLS begun"',
            (Count("floods", r"^(\d+) floods, "),),
            200,
            turns=("SSL", "SASL_SSL"),
            is_alone=True,
        ),
        Part(
            "attacks",
            "every attack after TLS and a log-in",
            "python -m pytest -q tests/hostile/{turn} --listener SASL_SSL",
            TESTS,
            90,
            turns=tuple(name for name in attacks if name not in _NOT_ATTACKS),
            limit_s=1200.0,
            is_pytest=True,
        ),
    )


SIZES = {
    "BARNABAS_SEEDS": 100,
    "BARNABAS_EXAMPLES": 300,
    "BARNABAS_CRASH_STATES": 1000,
    "BARNABAS_FAULTS": 150,
    "BARNABAS_FUZZ": 80_000,
}
"""How much more tests try than in `make test`."""
_OWN_PARTS = {
    "tests/simulation/test_simulation.py",
    "tests/crash/test_crash_states.py",
    "tests/crash/test_faults.py",
    "tests/hostile/fuzz/test_fuzz.py",
}
"""Test files with the same sizes as the simulations, crash states, fault sweep and fuzz above."""
_SCALED = ("BARNABAS_SEEDS", "BARNABAS_EXAMPLES", "BARNABAS_CRASH_STATES")
"""The sizes of the other ones."""
_NEED_NETWORK = {"tests/clients/libraries/test_projects.py"}


def _sizes(names: Iterable[str]) -> str:
    return " ".join(f"{name}={SIZES[name]}" for name in names)


_HEAVY = re.compile(r"\bmark\.(java|jvm|spark)\b|tests\.clients\.spark\.spark_kit")


def _marked_command(file: str) -> str:
    text = (ROOT / file).read_text()
    sizes = _sizes(name for name in SIZES if name in text)
    return " ".join(filter(None, ["BARNABAS_SEED={seed}", sizes, f"{_LONG_PYTEST} -m soak {file}"]))


def scaled() -> Part:
    """The tests that try more seeds, examples or states than in `make test`; a call has the files of a folder."""
    files = [name for name in files_with_sizes() if name not in _OWN_PARTS]
    folders = groupby(files, key=lambda name: name.rpartition("/")[0])
    return Part(
        "scaled-tests",
        "tests of properties and random runs, with more of both",
        f"BARNABAS_SEED={{seed}} {_sizes(_SCALED)} {_LONG_PYTEST} --hypothesis-seed={{seed}} {{turn}}",
        TESTS,
        60,
        turns=tuple(" ".join(names) for _, names in folders),
        limit_s=1200.0,
        is_pytest=True,
    )


def marked() -> list[Part]:
    """A part for each test file with the mark `soak`: first one of each folder, then the second ones."""
    files = [list(names) for _, names in groupby(files_with_mark(), key=lambda name: name.rpartition("/")[0])]
    return [
        Part(
            file,
            "",
            _marked_command(file),
            TESTS,
            120,
            limit_s=1800.0,
            is_heavy=file.startswith("tests/cluster/") or _HEAVY.search((ROOT / file).read_text()) is not None,
            needs=("network",) if file in _NEED_NETWORK else (),
            is_pytest=True,
        )
        for files_of_each in zip_longest(*files)
        for file in filter(None, files_of_each)
    ]


def all_parts() -> list[Part]:
    """Every part; parts that were never run are run in this order."""
    fuzz, doors, floods, handshakes, attacks = hostile()
    return [
        CLUSTER_SIMULATIONS[0],
        fuzz,
        DISKS[0],
        SIMULATIONS[0],
        KILLS[0],
        DISKS[1],
        scaled(),
        PLANTED_BUGS,
        CLUSTERS[0],
        floods,
        handshakes,
        attacks,
        doors,
        *CLUSTER_SIMULATIONS[1:],
        *SIMULATIONS[1:],
        LATE_REQUESTS,
        METADATA_IMAGES,
        *STOPS,
        *KILLS[1:],
        *CLUSTERS[1:],
        *marked(),
    ]


_SIMULATED_CLUSTERS = tuple(part.name for part in CLUSTER_SIMULATIONS)
_REAL_CLUSTERS = (
    *("cluster-faults", "cluster-faults-kafka-controllers", "coordinator-faults", "mixed-cluster"),
    *("supervisor-faults", "supervisor-faults-kafka-controllers"),
)

FIGURES = (
    Figure("simulated runs of a cluster", "runs", _SIMULATED_CLUSTERS),
    Figure("simulated runs of one broker", "runs", tuple(part.name for part in SIMULATIONS)),
    Figure("crash states", "states", ("crash-states",)),
    Figure("failed operations of a disk", "cases", ("fault-sweep",)),
    Figure("kills of cluster nodes", "kills of a broker", _REAL_CLUSTERS),
    Figure("cuts between nodes", "cuts", _REAL_CLUSTERS),
    Figure("damaged batches of leaders", "damaged batches", _REAL_CLUSTERS),
    Figure("full disks of leaders", "full disks", _REAL_CLUSTERS),
    Figure("unregistered brokers that return", "unregistered brokers", _REAL_CLUSTERS),
    Figure("second supervisors, refused", "second supervisors", _REAL_CLUSTERS),
    Figure("kills of a controller", "kills of a controller", _REAL_CLUSTERS),
    Figure("kills of a whole cluster", "kills of all nodes", _REAL_CLUSTERS),
    Figure("acknowledged records, none lost", "acknowledged records", _REAL_CLUSTERS),
    Figure("kills in the mixed cluster", "kills of a broker", ("mixed-cluster",)),
    Figure(
        "nodes replaced in rolling upgrades and migrations",
        "replacements of a node",
        ("rolling-migration", "rolling-upgrade"),
    ),
    Figure("metadata logs with Kafka's image", "logs", ("metadata-images",)),
    Figure("exactly-once transactions", "committed transactions", ("copies", "copies-java")),
    Figure("mutated requests", "mutated", ("fuzz", "fuzz-doors")),
    Figure("absurd requests", "absurd", ("fuzz", "fuzz-doors")),
    Figure("floods", "floods", ("floods", "handshakes")),
    Figure("planted bugs, caught", "caught", ("planted-bugs", "planted-bugs-sample")),
    Figure("tests for volume, passed", "tests"),
)
