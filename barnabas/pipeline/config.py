"""What the TOML file of a job may say: every key with its meaning, checked before Spark starts.

A job's own file is a subclass of `JobConfig` with the tables that it needs; `read_config` makes one sentence of the
first mistake. The tables of keys in `docs/pipeline.md` are made from these declarations.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from barnabas.cli.light import suggestion
from barnabas.pipeline.errors import MistakeError


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


Start = Literal["earliest", "latest"] | Annotated[datetime, AfterValidator(_utc)] | dict[str, dict[int, int]]
"""Where to begin: an end of the topic, a time, or offsets by topic and partition."""
Delivery = Literal["at_least_once", "transactional"]


class Table(BaseModel):
    """One table of the file; a key that it does not have is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Table):
    """Where records come from."""

    topic: str | list[str] = Field("", description="The topic to read, or a list of topics.")
    pattern: str = Field(
        "", description="A Java regular expression instead of `topic`: every topic that fits, new ones too."
    )
    start: Start = Field(
        "earliest",
        description="Where the first run begins: `earliest`, `latest`, a time (records from then on) or offsets, "
        '`{orders = {"0" = 12}}`. Later runs go on where the checkpoint is.',
    )
    max_records_per_batch: int | None = Field(
        None, gt=0, description="The most records that one micro-batch takes, over all partitions. No limit unless set."
    )
    read_uncommitted: bool = Field(
        False, description="Also take records of transactions that are open or were aborted."
    )
    fail_on_data_loss: bool = Field(
        True, description="End with an error when records are gone before they were read; false goes on without them."
    )

    @model_validator(mode="after")
    def _one_of(self) -> Source:
        if bool(self.topic) == bool(self.pattern):
            raise ValueError("wants either topic or pattern")
        return self

    @property
    def topics(self) -> list[str]:
        """The topics by name; none when there is a pattern."""
        if not self.topic:
            return []
        return [self.topic] if isinstance(self.topic, str) else self.topic


class Schema(Table):
    """What a record's value must look like. One that does not goes to the dead-letter topic."""

    format: Literal["json", "avro"] = Field("json", description="How values are encoded: `json` or `avro`.")
    fields: str = Field(
        "", description='For JSON: the columns as Spark SQL declares them, `"id BIGINT NOT NULL, at TIMESTAMP"`.'
    )
    avro_schema: str = Field("", description="For Avro: the file with the schema (`.avsc`).")
    avro_header: bool = Field(
        False, description="For Avro: values begin with the five bytes of a schema registry, which are skipped."
    )
    timestamp_format: str = Field("", description="For JSON: how timestamps are written, if not as ISO 8601.")
    rules: list[str] = Field(
        [], description='SQL conditions that must hold, `["amount >= 0"]`. One that is null does not.'
    )

    @model_validator(mode="after")
    def _fits(self) -> Schema:
        if self.format == "json" and not self.fields:
            raise ValueError("wants fields, the columns of a JSON value")
        if self.format == "avro" and not self.avro_schema:
            raise ValueError("wants avro_schema, the file with the schema")
        return self


class DeadLetters(Table):
    """Where records go that do not fit the schema."""

    topic: str = Field(description="The topic; made when it does not exist. Headers tell reason and origin.")


class TopicOutput(Table):
    """A topic to write to."""

    topic: str = Field(description="The topic; made when it does not exist.")
    partitions: int = Field(1, gt=0, description="How many partitions a topic gets that does not exist.")
    delivery: Delivery = Field(
        "at_least_once",
        description="`at_least_once`: a crash may repeat records, under the same event id; `transactional`: each once "
        "for readers with read_committed.",
    )


class FileOutput(Table):
    """Parquet files to write, each record exactly once."""

    path: str = Field(description="The directory, or a URL that Spark can write to.")
    partition_by: list[str] = Field([], description="Columns that become directories.")


class SparkTable(Table):
    """How Spark runs."""

    master: str | None = Field(None, description="Spark's master. All cores of this machine unless set.")
    packages: bool = Field(False, description="Let Spark fetch the connector (`spark.jars.packages`) instead of Maven.")
    settings: dict[str, str | int | float | bool] = Field(
        {}, description='Further Spark settings: `"spark.driver.memory" = "4g"`.'
    )


class JobConfig(Table):
    """What every job's file has."""

    name: str = Field("", description="The name of the run, in Spark's UI and in event ids. The job's name unless set.")
    checkpoint: str = Field(
        "",
        description="The directory that knows how far the job has come. Keep it: with it a job goes on, without it "
        "it starts anew.",
    )
    spark: SparkTable = Field(SparkTable(), description="How Spark runs.")


Config = TypeVar("Config", bound=JobConfig)


def read_config(path: Path, kind: type[Config]) -> Config:
    """The file, checked. MistakeError, one sentence, for the first thing that is wrong with it."""
    try:
        text = path.read_text()
    except OSError as error:
        raise MistakeError(f"{path} cannot be read: {error.strerror or error}") from error
    try:
        return kind.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise MistakeError(f"{path} is not TOML: {error}") from error
    except ValidationError as error:
        raise MistakeError(f"{path}: {_sentence(error, kind)}") from error


def _sentence(error: ValidationError, kind: type[JobConfig]) -> str:
    """The first mistake, with the key's place in the file."""
    first = error.errors(include_url=False)[0]
    where = [str(part) for part in first["loc"] if isinstance(part, str)]
    table, key = where[:-1], where[-1] if where else ""
    place = f"[{'.'.join(table)}] " if table else ""
    if first["type"] == "extra_forbidden":
        known = list(_table_at(kind, table).model_fields)
        return f"{place}has no key {key}{suggestion(key, known)}; its keys are {', '.join(known)}"
    if first["type"] == "missing":
        what = "a table" if _table_at(kind, where) is not kind else "a value"
        return f"{place}{key} is missing: it needs {what}, {_description(_table_at(kind, table), key)}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        whole = f"[{'.'.join(where)}] " if where else ""
        return f"{whole}{message}"
    return f"{place}{key}: {message[:1].lower() + message[1:]}, not {first['input']!r}"


def _description(kind: type[BaseModel], key: str) -> str:
    field = kind.model_fields.get(key)
    text = (field.description if field else None) or "see docs/pipeline.md"
    return text[:1].lower() + text[1:].split(". ")[0].rstrip(".")


def _table_at(kind: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """The table at this place of the file; `kind` itself when there is none."""
    for name in path:
        field = kind.model_fields.get(name)
        found = next(iter(_tables_of(field.annotation)), None) if field else None
        if found is None:
            return kind
        kind = found
    return kind


def _tables_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _tables_of(inner)
