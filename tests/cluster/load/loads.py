"""Clients at work while nodes of a cluster are replaced: what each does, how far it is, and what it found at the end.

A load is made on a running cluster, started, asked for its progress, and finished; its findings come from what its
clients have seen. The loads here come from `compat.exactly_once`: idempotent writers, copies in transactions, groups of
both protocols, and a share group, with librdkafka and the Java client.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compat.checker.finding import Finding
from compat.exactly_once.group_run import GroupRun
from compat.exactly_once.run import Run
from compat.exactly_once.share_run import ShareRun
from tests.support.waiting import Advance, wait_for_all

if TYPE_CHECKING:
    from compat.exactly_once.run import KilledCluster

SESSION_MS = "10000"
"""The session of classic members: a slow machine must not look like members that have died."""

SILENCE_S = 45.0
"""After how long a client of librdkafka that writes nothing counts as hung."""


class Load(ABC):
    """One kind of clients on a cluster. `records` and `transactions` are figures, known at the end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.records = 0
        self.transactions = 0
        self.notes: Counter[str] = Counter()
        """Events of clients that are no findings, counted by text: retries, transactions that were started again."""

    @abstractmethod
    def start(self) -> None:
        """Make the topics, and start the clients."""

    @abstractmethod
    def progress(self) -> int:
        """Steps that were answered so far."""

    @abstractmethod
    def check(self) -> None:
        """RuntimeError when a client has ended by itself."""

    def disturbed(self) -> None:  # noqa: B027 - most loads need not know
        """A node is about to be replaced: leaders move until `settled`."""

    def settled(self) -> None:  # noqa: B027
        """All replicas are in sync again, and leaders are where they belong."""

    @abstractmethod
    def stop_writing(self) -> None:
        """Write nothing more; the others go on with what was written."""

    @abstractmethod
    def finish(self) -> list[Finding]:
        """Stop writing, wait until everything is read, stop, and check."""

    @abstractmethod
    def kill(self) -> None:
        """End the clients that still run."""


def go_on(loads: Sequence[Load], steps: int, silence_s: float) -> None:
    """Wait until each load has made so many further steps. AssertionError if one has made none in `silence_s`."""
    advances = [Advance(load.progress, steps, load.name, silence_s) for load in loads]
    wait_for_all(advances, lambda: [load.check() for load in loads])


class Copies(Load):
    """A writer, two copiers in transactions and a reader.

    With `share` as protocol a writer and a share group, with `group` a writer and a plain group of two, with
    `consumer-group` one of the consumer protocol.
    """

    def __init__(
        self,
        name: str,
        cluster: KilledCluster,
        folder: Path,
        seed: int,
        *,
        client: str,
        rate: int,
        protocol: str = "classic",
    ) -> None:
        super().__init__(name)
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        if protocol == "share":
            self._run: Run = ShareRun(cluster, client, self.folder, seed, rate)
        elif protocol.endswith("group"):
            more = {"session_ms": SESSION_MS, "protocol": "consumer" if protocol == "consumer-group" else "classic"}
            self._run = GroupRun(cluster, client, self.folder, seed, rate, **more)
        else:
            more = {"session_ms": SESSION_MS, "protocol": protocol}
            self._run = Run(cluster, client, self.folder, seed, rate, **more)
        if client == "confluent":
            self._run.silence_s = SILENCE_S

    def start(self) -> None:
        """Start the clients."""
        self._run.start()

    def progress(self) -> int:
        """Answered commits, or acknowledgements of the share group."""
        return self._run.progress.update()

    def check(self) -> None:
        """RuntimeError when a client has ended by itself."""
        self._run.check_clients()

    def disturbed(self) -> None:
        """As a killed broker for the checker: a new leader of a share partition has no locks."""
        self._run.driver.write("killed", victim="broker")

    def settled(self) -> None:
        """The brokers are there again."""
        self._run.driver.write("restarted")

    def stop_writing(self) -> None:
        """Stop the writer."""
        self._run.stop_writing()

    def finish(self) -> list[Finding]:
        """The checker's verdict."""
        outcome = self._run.finish()
        self.records = outcome.records
        self.transactions = outcome.steps if self._run.step == "committed" else 0
        self.notes = notes_of(self.folder)
        if self._run.hung:
            self.notes["a client hung (librdkafka) and was replaced"] = self._run.hung
        return outcome.findings

    def kill(self) -> None:
        """End the clients."""
        self._run.kill()


def notes_of(folder: Path) -> Counter[str]:
    """The notes in the histories of a folder, without the names of processes and transactions before a colon."""
    notes: Counter[str] = Counter()
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            if '"note"' in line and (event := json.loads(line))["type"] == "note":
                notes[event["text"].partition(": ")[2] or event["text"]] += 1
    return notes
