"""The progress of a run: its micro-batches and its lag.

Taken from Spark's own progress of each query, so no row is processed twice; the lag comes from the broker.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from barnabas.spark.topics.cluster import Cluster, Offsets, read_offsets

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

ROWS = "rows_out"
"""The name of the metric that counts a flow's rows (`DataFrame.observe`)."""
REASONS = "reasons"
"""The name of the metric that counts dead letters by reason."""


@dataclass(frozen=True)
class Batch:
    """One micro-batch of one query."""

    query: str
    batch: int
    at: datetime
    """Its start time."""
    rows_in: int
    rows_out: int
    late: int
    """Rows that arrived after their window was closed."""
    duration_ms: int
    offsets: Offsets
    """The end of what it has read."""
    starts: Offsets = field(default_factory=dict)
    """The beginning of what it has read."""
    reasons: dict[str, int] = field(default_factory=dict)
    """Dead letters by reason."""
    phases_ms: dict[str, int] = field(default_factory=dict)
    """What took how many milliseconds, in Spark's names."""

    def as_json(self) -> str:
        """One line of a structured log."""
        return json.dumps({"event": "batch", **asdict(self), "at": self.at.isoformat()})


@dataclass
class Totals:
    """Totals of a query in this run."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    busy_ms: int = 0
    longest_ms: int = 0
    starts: Offsets = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    phases_ms: Counter[str] = field(default_factory=Counter)

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.batches += 1
        self.rows_in += batch.rows_in
        self.rows_out += batch.rows_out
        self.late += batch.late
        self.busy_ms += batch.duration_ms
        self.longest_ms = max(self.longest_ms, batch.duration_ms)
        self.reasons.update(batch.reasons)
        self.phases_ms.update(batch.phases_ms)
        self.begin(batch.starts)
        self.offsets = batch.offsets or self.offsets

    def begin(self, starts: Offsets) -> None:
        """Offsets that it has read from, for partitions of which none is known yet; Spark omits those of batch 0."""
        for topic, own in starts.items():
            self.starts[topic] = own | self.starts.get(topic, {})


class Progress:
    """The progress of all queries of a run."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.totals: dict[str, Totals] = {}
        self._seen: dict[str, int] = {}
        self._looked_at: dict[str, tuple[str, int]] = {}
        """The last progress of each query at the last call; if it is unchanged, there are no new batches."""

    def look(self, queries: Iterable[StreamingQuery]) -> list[Batch]:
        """The batches that were completed since the last call, without empty ones."""
        fresh = [batch for query in queries for batch in self._fresh(query)]
        for batch in fresh:
            self.totals[batch.query].add(batch)
        self.batches += fresh
        return fresh

    def _fresh(self, query: StreamingQuery) -> Iterator[Batch]:
        name = query.name
        self.totals.setdefault(name, Totals())
        last = query.lastProgress
        if last is None or self._looked_at.get(name) == (last["timestamp"], last["batchId"]):
            return
        self._looked_at[name] = (last["timestamp"], last["batchId"])
        for progress in query.recentProgress:
            if progress["batchId"] <= self._seen.get(name, -1):
                continue
            batch = read_batch(name, progress)
            if batch.rows_in or batch.rows_out:
                self._seen[name] = batch.batch
                yield batch


def read_batch(name: str, progress: Any) -> Batch:
    """A micro-batch from Spark's progress; `progress` is a StreamingQueryProgress or a dict of the same shape."""
    operators, observed = progress["stateOperators"], progress["observedMetrics"]
    rows, reasons = observed.get(ROWS), observed.get(REASONS)
    durations = dict(progress["durationMs"])
    return Batch(
        query=name,
        batch=progress["batchId"],
        at=datetime.fromisoformat(progress["timestamp"]).astimezone(UTC),
        rows_in=progress["numInputRows"],
        rows_out=0 if rows is None else rows["rows"] or 0,
        late=sum(operator["numRowsDroppedByWatermark"] for operator in operators),
        duration_ms=durations.pop("triggerExecution", 0),
        offsets=_offsets(progress, "endOffset"),
        starts=_offsets(progress, "startOffset"),
        reasons={kind: count for kind, count in _as_dict(reasons).items() if count},
        phases_ms={phase: took for phase, took in durations.items() if took},
    )


def _offsets(progress: Any, which: str) -> Offsets:
    return {topic: own for source in progress["sources"] for topic, own in read_offsets(source[which]).items()}


def _as_dict(row: Any) -> dict[str, int]:
    """A row of Spark, or a dict; empty for none."""
    return {} if row is None else dict(row) if isinstance(row, dict) else dict(row.asDict())


def lag(offsets: Offsets, cluster: Cluster) -> dict[str, dict[int, int]]:
    """The number of offsets after these in each partition, without topics that do not exist."""
    known = cluster.topics()
    ends = cluster.ends({topic: known[topic] for topic in offsets if topic in known})
    return {
        topic: {partition: max(0, end - offsets[topic].get(partition, 0)) for partition, end in partitions.items()}
        for topic, partitions in ends.items()
    }
