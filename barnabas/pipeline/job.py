"""What a job is: a name, the keys of its file, and the flows it makes of them.

A job's module has its transform, a pure function from DataFrame to DataFrame, and `flows`, the thin wiring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.pipeline.config import DeadLetters, JobConfig, Source, TopicOutput
from barnabas.pipeline.schema import dead_letters
from barnabas.pipeline.sinks import Sink, TopicSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Flow:
    """One streaming query: rows and where they go. Its checkpoint is a directory of its name."""

    name: str
    frame: DataFrame
    sink: Sink
    output_mode: str = "append"


@dataclass(frozen=True)
class TopicToMake:
    """A topic that the job writes to, made when it does not exist."""

    topic: str
    partitions: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    bootstrap: str = ""
    """Another cluster than the source's."""


def dead_letter_flow(records: DataFrame, where: DeadLetters) -> Flow:
    """The query that keeps those of parsed records that do not fit."""
    return Flow("dead-letters", dead_letters(records), TopicSink(TopicOutput(topic=where.topic)))


def output_topic(config: Any) -> str:
    """The output of a job whose results go to the topic of its [output]."""
    return str(config.output.topic)


class BatchCounts(NamedTuple):
    """What a job that is no stream has done."""

    rows_in: int
    rows_out: int


@dataclass(frozen=True)
class Job:
    """One job of the pipeline."""

    name: str
    summary: str
    config: type[JobConfig]
    flows: Callable[[SparkSession, str, Any], list[Flow]] = lambda *_: []
    """Of a session, the source's broker and the file: the queries to start."""
    topics: Callable[[Any], list[TopicToMake]] = lambda _: []
    """The topics that it writes to."""
    fields: Callable[[Any], dict[str, str]] = lambda _: {}
    """What must stay as it is while a checkpoint is in use; see `checkpoint.py`."""
    output: Callable[[Any], str] = lambda _: ""
    """Where results go, for the checkpoint's owner."""
    files: Callable[[Any], tuple[str, str] | None] = lambda _: None
    """For a job that writes files: the flow and its directory."""
    run: Callable[[SparkSession, str, Any], BatchCounts] | None = None
    """For a job that is no stream: all of it."""

    def source(self, config: JobConfig) -> Source | None:
        """Where it reads from; None when that is no topic."""
        found = getattr(config, "source", None)
        return found if isinstance(found, Source) else None
