"""Clients of coordinators that work while a cluster is broken: transactions, groups, a share group, Kafka Streams.

They are the loads of `tests.cluster.load.loads`, which write histories that the checker judges. Here they are
chosen by name, informed of faults (share groups have no locks after one), and counted.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from compat.checker.finding import Finding
from compat.exactly_once.share_run import SHARE_BROKER
from tests.cluster.load.loads import Copies, Load, go_on
from tests.cluster.load.stream_loads import Streams
from tests.support.cluster.clusters import Cluster

RECORDS = "records"
KINDS = ("transactions", "groups", "share", "streams")
LIBRARIES = ("confluent", "kafka-python", "aiokafka")
"""Of the plain groups with `--client mixed`; each has a group of its own."""
RATE = 60
"""Records per second of the writer of each load."""
PATIENCE_S = 150.0
CONFIG = {
    **SHARE_BROKER,
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
}
"""Keys of the brokers: short sessions and locks, few partitions of internal topics."""
COUNTED = ("transactions", "offset commits", "share acks", "words")


class CoordinatorWork:
    """The loads of a run; none with `records` alone."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int, kinds: Sequence[str], library: str) -> None:
        """`library` is `mixed`, or the one of the groups and transactions."""
        self.folder = folder
        self.loads: list[Load] = []
        for kind in kinds:
            self.loads += _made(kind, cluster, folder, 10 * seed + len(self.loads), library)

    def __enter__(self) -> CoordinatorWork:
        try:
            for load in self.loads:
                load.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        for load in self.loads:
            load.kill()

    @contextlib.contextmanager
    def disturbed(self) -> Iterator[None]:
        """A fault, until all brokers work again: what share groups have locked meanwhile is not certain."""
        for load in self.loads:
            load.disturbed()
        yield
        for load in self.loads:
            load.settled()

    def go_on(self, steps: int = 1) -> None:
        """Wait until every load has made so many further steps. AssertionError if one has made none in `PATIENCE_S`."""
        go_on(self.loads, steps, PATIENCE_S)

    def finish(self) -> list[Finding]:
        """Let all finish and stop them; the findings of their checks."""
        for load in self.loads:
            load.stop_writing()
        return [
            Finding(finding.kind, f"{load.name}: {finding.text}") for load in self.loads for finding in load.finish()
        ]

    def counts(self) -> dict[str, int]:
        """Counts of responses by name, known at the end; empty without loads."""
        if not self.loads:
            return {}
        totals = dict.fromkeys(COUNTED, 0)
        for load in self.loads:
            if isinstance(load, Streams):
                totals["words"] += load.records
            else:
                _count(self.folder / load.name, totals)
        return {name: count for name, count in totals.items() if count}


def _made(kind: str, cluster: Cluster, folder: Path, seed: int, library: str) -> Iterator[Load]:
    library_client = "confluent" if library == "mixed" else library
    if kind == "transactions":
        yield Copies(kind, cluster, folder, seed, client=library_client, rate=RATE)
    elif kind == "share":
        members = "confluent" if library == "confluent" else "java"
        yield Copies(kind, cluster, folder, seed, client=members, rate=RATE, protocol="share")
    elif kind == "streams":
        settings = ("consumer.session.timeout.ms=10000",)
        yield Streams(kind, cluster.bootstrap, folder, seed, settings=settings)
    elif kind == "groups":
        yield Copies(
            "consumer-group", cluster, folder, seed, client=library_client, rate=RATE, protocol="consumer-group"
        )
        for at, name in enumerate(LIBRARIES if library == "mixed" else (library_client,), 1):
            client = name.replace("-", "_")
            yield Copies(
                f"classic-group-{name}", cluster, folder, seed + at, client=client, rate=RATE, protocol="group"
            )
    else:
        raise ValueError(f"there is no work {kind!r}, only {', '.join((RECORDS, *KINDS))}")


def _count(folder: Path, counts: dict[str, int]) -> None:
    """Add the answered events in the histories of a folder."""
    for path in folder.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            if '"committed' in line or '"acknowledged"' in line:
                event = json.loads(line)
                if event["type"] == "committed":
                    counts["transactions"] += 1
                elif event["type"] == "committed_offsets" and "txn" not in event:
                    counts["offset commits"] += 1
                elif event["type"] == "acknowledged":
                    counts["share acks"] += len(event["records"])
