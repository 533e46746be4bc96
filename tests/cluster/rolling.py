"""Nodes of a cluster replaced one by one under load: the conditions between two steps, and the verdict at the end.

A step replaces one node. Before and after it every replica of every partition must be in sync, and every load must make
progress; the preferred leaders are elected, so that each node leads and coordinates again. At the end the loads finish
and check, all replicas must have the same bytes, and no log of ours may have a traceback.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.client.admin.reassignments import elect_leaders
from barnabas.client.admin.topics import list_topics
from compat.checker.finding import Finding
from tests.cluster.load.loads import Load, go_on
from tests.cluster.load.replicas import differences
from tests.cluster.load.resent import take_resent
from tests.support.cluster.asking import client
from tests.support.waiting import ANY_ERROR, wait_for

SETTLE_S = 240.0
STEPS_BETWEEN = 5
"""Answered steps of each load between two replacements."""
Step = tuple[str, Callable[[], None]]
"""What it replaces by what, and the replacement."""


@dataclass(slots=True)
class Outcome:
    """The steps and findings of a run; times in seconds."""

    seed: int
    steps: list[tuple[str, float]] = field(default_factory=list)
    """Each replacement with the time until all replicas were in sync again."""
    loads: list[Load] = field(default_factory=list)
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        records = sum(load.records for load in self.loads)
        transactions = sum(load.transactions for load in self.loads)
        return (
            f"seed {self.seed}: {len(self.steps)} nodes replaced, {records} records and {transactions} transactions of "
            f"{', '.join(load.name for load in self.loads)} in {self.seconds:.0f} s, {len(self.findings)} findings"
        )

    def tell(self) -> None:
        """Print figures, notes and findings."""
        print(self)
        for load in self.loads:
            for text, count in load.notes.most_common(5):
                print(f"  note of {load.name}, {count} times: {text}")
        for finding in self.findings[:20]:
            print(f"  {finding}")


class Rolling:
    """One run on a started cluster."""

    def __init__(self, bootstrap: str, loads: list[Load], seed: int) -> None:
        self.bootstrap = bootstrap
        self.outcome = Outcome(seed, loads=loads)

    def __call__(
        self, steps: Iterable[Step], data_dirs: Callable[[], Mapping[int, Path]], logs: Callable[[], Mapping[str, str]]
    ) -> Outcome:
        """Run all steps; `data_dirs` returns the directories of the brokers, `logs` the output of our nodes by name."""
        began = time.monotonic()
        loads = self.outcome.loads
        try:
            for load in loads:
                load.start()
            self.go_on()
            for what, replace in steps:
                since = time.monotonic()
                for load in loads:
                    load.disturbed()
                replace()
                self.settle()
                for load in loads:
                    load.settled()
                self.outcome.steps.append((what, time.monotonic() - since))
                print(f"{what}: in sync after {self.outcome.steps[-1][1]:.1f} s", flush=True)
                self.go_on()
            for load in loads:
                load.stop_writing()
            for load in loads:
                self.outcome.findings += [
                    Finding(finding.kind, f"{load.name}: {finding.text}") for finding in load.finish()
                ]
                print(f"{load.name}: {load.records} records, {len(self.outcome.findings)} findings so far", flush=True)
        finally:
            for load in loads:
                load.kill()
        self._let_resent_pass(next(iter(data_dirs().values())))
        self.outcome.findings += _different(data_dirs())
        self.outcome.findings += [
            Finding("traceback", f"{name}: {text.partition('Traceback')[2][:500]}")
            for name, text in logs().items()
            if "Traceback" in text
        ]
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def _let_resent_pass(self, data_dir: Path) -> None:
        """Count the findings that are a known defect of librdkafka as a note."""
        taken = take_resent(self.outcome.findings, data_dir)
        if taken:
            self.outcome.loads[0].notes["written again in a new epoch (librdkafka, issue 4953)"] += len(taken)

    def settle(self) -> None:
        """Wait until every replica is in sync, and have the preferred leaders lead."""
        wait_for(lambda: not behind(self.bootstrap), "all replicas in sync", SETTLE_S, errors=ANY_ERROR)
        with client(self.bootstrap, 30.0) as asking:
            elect_leaders(asking, None)
        wait_for(lambda: not behind(self.bootstrap), "all replicas in sync", SETTLE_S, errors=ANY_ERROR)

    def go_on(self) -> None:
        """Wait until every load has made some further steps."""
        go_on(self.outcome.loads, STEPS_BETWEEN, SETTLE_S)


def end_in_order() -> None:
    """Have SIGTERM end this process as an exception does: clients and nodes are ended too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def behind(bootstrap: str) -> list[str]:
    """The partitions that have no leader, or replicas out of sync."""
    with client(bootstrap, 30.0) as asking:
        return [
            f"{topic.name}-{partition.partition_index}"
            for topic in list_topics(asking)
            for partition in topic.partitions
            if partition.leader_id < 0 or set(partition.isr_nodes) != set(partition.replica_nodes)
        ]


def _different(data_dirs: Mapping[int, Path]) -> list[Finding]:
    """Replicas with other bytes than each other, once nothing is written any more."""
    with contextlib.suppress(AssertionError):
        wait_for(lambda: not differences(data_dirs), "replicas with the same bytes", 60.0, errors=ANY_ERROR)
        return []
    return [Finding("different-replicas", line) for line in differences(data_dirs)]
