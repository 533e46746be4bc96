"""Pipelines: the runs of `barnabas pipeline` in a folder, their progress, and their dead letters by reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.offsets import TopicPartition, end_offsets, start_offsets
from barnabas.client.reader import Reader
from barnabas.console.console import Call
from barnabas.console.failures import Refused
from barnabas.console.pipelines.folder import Pipeline, Run, find_pipelines
from barnabas.console.resources import resource
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.wire.errors import KafkaError

NOT_AVAILABLE: Final = (
    "'barnabas serve --console --pipelines DIR' and 'barnabas console -b ADDRESS --pipelines DIR' show the runs of "
    "'barnabas pipeline' whose checkpoints are in DIR."
)
REASON: Final = "barnabas-reason"
"""The header of a dead letter."""
MAX_LETTERS: Final = 1_000
"""Dead letters that are read, the last ones."""
MAX_REASONS: Final = 50
MAX_REASON: Final = 500


@dataclass(frozen=True)
class PipelineRow:
    """A pipeline in the list."""

    name: str
    job: str
    path: str
    source: str
    output: str
    completed_ms: int | None
    """Of the last batch of all queries."""
    lag: int | None
    """Records that are not read yet; None if that is not known."""
    outcome: str
    """Of the last run with a log of progress."""
    dead_letters: int | None


@dataclass(frozen=True)
class Pipelines:
    """The pipelines of the folder."""

    available: bool
    why: str
    folder: str
    pipelines: Page[PipelineRow]


@resource("/pipelines", template="pipelines/list.html", summary="The runs of barnabas pipeline in the folder.")
def list_of_pipelines(cluster: Cluster, call: Call, query: TableQuery) -> Pipelines:
    """From their checkpoints and logs; the ends of the topics are asked for now."""
    columns = ("name", "job", "completed_ms", "lag", "outcome", "dead_letters")
    if call.settings.pipelines is None:
        return Pipelines(False, NOT_AVAILABLE, "", paged([], query, columns=columns))
    pipelines = _pipelines(call)
    ends = _ends(cluster, pipelines)
    rows = [_row(pipeline, ends) for pipeline in pipelines]
    page = paged(rows, query, columns=columns, search=lambda row: f"{row.name} {row.job} {row.path}", sort="name")
    return Pipelines(True, "", call.settings.pipelines, page)


def _row(pipeline: Pipeline, ends: dict[TopicPartition, int]) -> PipelineRow:
    run = _last_run(pipeline.runs)
    times = [query.completed_ms for query in pipeline.queries if query.completed_ms is not None]
    read = [position for query in pipeline.queries for position in _positions(query.offsets).items()]
    lags = [max(0, ends[partition] - offset) for partition, offset in read if partition in ends]
    return PipelineRow(
        name=pipeline.name,
        job=pipeline.job,
        path=pipeline.path,
        source=pipeline.source,
        output=pipeline.output,
        completed_ms=max(times, default=None),
        lag=sum(lags) if lags else None,
        outcome="" if run is None else run.outcome,
        dead_letters=None if run is None else sum(run.dead_letters.values()),
    )


def _last_run(runs: list[Run]) -> Run | None:
    return max(runs, key=lambda run: run.at_ms or 0, default=None)


def _positions(offsets: dict[str, dict[int, int]]) -> dict[TopicPartition, int]:
    return {(topic, partition): offset for topic, own in offsets.items() for partition, offset in own.items()}


def _pipelines(call: Call) -> list[Pipeline]:
    folder = call.settings.pipelines
    if folder is None:
        raise Refused(HTTPStatus.NOT_FOUND, NOT_AVAILABLE)
    try:
        return find_pipelines(Path(folder))
    except OSError as error:
        raise Refused(HTTPStatus.NOT_FOUND, f"--pipelines {folder}: {error.strerror or error}") from None


def _ends(cluster: Cluster, pipelines: list[Pipeline]) -> dict[TopicPartition, int]:
    """The ends of the partitions that pipelines read; topics that do not exist are left out."""
    partitions = {
        partition for pipeline in pipelines for query in pipeline.queries for partition in _positions(query.offsets)
    }
    ends: dict[TopicPartition, int] = {}
    for topic in {topic for topic, _ in partitions}:
        try:
            ends |= end_offsets(cluster, [partition for partition in partitions if partition[0] == topic])
        except (NotFound, KafkaError):
            continue
    return ends


@dataclass(frozen=True)
class PipelineQuery:
    """Which one: its path below the folder."""

    path: str


@dataclass(frozen=True)
class ProgressRow:
    """A partition that a query reads."""

    query: str
    topic: str
    partition: int
    offset: int
    """Where it continues."""
    end: int | None
    lag: int | None


@dataclass(frozen=True)
class QueryRow:
    """A query."""

    name: str
    batch: int
    completed_ms: int | None
    unfinished: bool


@dataclass(frozen=True)
class ReasonRow:
    """Dead letters with one reason."""

    reason: str
    count: int
    partition: int
    offset: int
    """Of the last one."""


@dataclass(frozen=True)
class PipelineView:
    """One pipeline."""

    row: PipelineRow
    config_file: str
    queries: list[QueryRow]
    progress: list[ProgressRow]
    runs: list[Run]
    reports: list[str]
    """Their paths."""
    dead_letter_topic: str
    dead_letters_read: int
    reasons: list[ReasonRow]
    """Of the last dead letters in the topic, the most frequent first."""
    why: str
    """Why the dead letters are not known."""


@resource(
    "/pipelines/{path}", template="pipelines/pipeline.html", summary="One pipeline: progress, runs, dead letters."
)
def one_pipeline(cluster: Cluster, call: Call, query: PipelineQuery) -> PipelineView:
    """The path is compared with those that were found, and opens nothing itself."""
    pipeline = next((pipeline for pipeline in _pipelines(call) if pipeline.path == query.path), None)
    if pipeline is None:
        raise NotFound(f"there is no pipeline {query.path!r} in {call.settings.pipelines}")
    ends = _ends(cluster, [pipeline])
    progress = [
        ProgressRow(spark_query.name, topic, partition, offset, end, None if end is None else max(0, end - offset))
        for spark_query in pipeline.queries
        for (topic, partition), offset in sorted(_positions(spark_query.offsets).items())
        for end in [ends.get((topic, partition))]
    ]
    reasons: list[ReasonRow] = []
    read, why = 0, ""
    if pipeline.dead_letter_topic:
        try:
            read, reasons = _reasons(cluster, pipeline.dead_letter_topic)
        except (NotFound, KafkaError) as error:
            why = str(error)
    return PipelineView(
        row=_row(pipeline, ends),
        config_file=pipeline.config_file,
        queries=[
            QueryRow(spark_query.name, spark_query.batch, spark_query.completed_ms, spark_query.unfinished)
            for spark_query in pipeline.queries
        ],
        progress=progress,
        runs=sorted(pipeline.runs, key=lambda run: run.at_ms or 0, reverse=True),
        reports=[str(Path(call.settings.pipelines or "", report)) for report in pipeline.reports],
        dead_letter_topic=pipeline.dead_letter_topic,
        dead_letters_read=read,
        reasons=reasons,
        why=why,
    )


def _reasons(cluster: Cluster, topic: str) -> tuple[int, list[ReasonRow]]:
    """How many dead letters were read, the last ones of each partition, and their reasons."""
    partitions = [(topic, index) for index in range(len(cluster.find_topic(topic).leaders))]
    ends, first = end_offsets(cluster, partitions), start_offsets(cluster, partitions)
    share = max(1, MAX_LETTERS // len(partitions))
    starts = {
        partition: max(first[partition], ends[partition] - share)
        for partition in partitions
        if ends[partition] > first[partition]
    }
    counts: Counter[str] = Counter()
    last: dict[str, tuple[int, int]] = {}
    if starts:
        reader = Reader(cluster, starts, {partition: ends[partition] for partition in starts})
        for (_, index), record in reader.records():
            reason = next((value for name, value in record.headers if name == REASON), None)
            text = "no reason" if reason is None else bytes(reason).decode("utf-8", "replace")[:MAX_REASON]
            counts[text] += 1
            last[text] = index, record.offset
    rows = [ReasonRow(text, count, *last[text]) for text, count in counts.most_common(MAX_REASONS)]
    return counts.total(), rows
