"""The parts of a job: a name, the keys of its file, and its flows.

A job's module has a transform, a pure function from DataFrame to DataFrame, and `flows`, which pairs DataFrames with
sinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.spark.frames.schema import dead_letters
from barnabas.spark.settings.config import DeadLetters, JobConfig, Source, TopicOutput
from barnabas.spark.topics.broker import Broker
from barnabas.spark.topics.sinks import Sink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Flow:
    """One streaming query: a DataFrame and its sink. Its checkpoint is in a directory with its name."""

    name: str
    frame: DataFrame
    sink: Sink
    output_mode: str = "append"


@dataclass(frozen=True)
class TopicToMake:
    """A topic that the job writes to; created if it does not exist."""

    topic: str
    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    broker: Broker | None = None
    """The cluster; None for the source's."""


def dead_letter_flow(records: DataFrame, where: DeadLetters) -> Flow:
    """The query that writes records that do not match the schema to the dead-letter topic."""
    return Flow("dead-letters", dead_letters(records), TopicSink(TopicOutput(topic=where.topic)))


class BatchCounts(NamedTuple):
    """Record counts of a batch job."""

    rows_in: int
    rows_out: int


@dataclass(frozen=True)
class Job:
    """One job of the pipeline."""

    name: str
    summary: str
    config: type[JobConfig]
    flows: Callable[[SparkSession, Broker, Any], list[Flow]] = lambda *_: []
    """From the session, the source's broker and the file: the queries to start."""
    topics: Callable[[Any], list[TopicToMake]] = lambda _: []
    """The topics that it writes to."""
    fields: Callable[[Any], dict[str, str]] = lambda _: {}
    """Settings that must not change while a checkpoint is in use; see `checkpoint.py`."""
    output: Callable[[Any], str] = lambda config: str(config.output.topic)
    """The output, for the checkpoint's owner; by default the topic of its [output]."""
    files: Callable[[Any], tuple[str, str] | None] = lambda _: None
    """For a job that writes files: the flow's name and the directory."""
    run: Callable[[SparkSession, Broker, Any], BatchCounts] | None = None
    """For a batch job: runs it."""

    def source(self, config: JobConfig) -> Source | None:
        """The topics that it reads; None if it reads no topic."""
        source = getattr(config, "source", None)
        return source if isinstance(source, Source) else None
