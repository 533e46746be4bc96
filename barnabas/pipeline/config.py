"""What the TOML file of a job may say: every key with its meaning, checked before Spark starts.

A job's own file is a subclass of `JobConfig` with the tables that it needs; `read_config` makes one sentence of the
first mistake. The tables of keys in `docs/pipeline.md` are made from these declarations.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from barnabas.pipeline.errors import MistakeError
from barnabas.terminal.suggestion import suggestion


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _no_number(value: object) -> object:
    """A number could be an offset or a time in any unit, so it is neither."""
    if isinstance(value, int | float) or (isinstance(value, str) and value.replace(".", "").lstrip("-").isdecimal()):
        raise ValueError("a number is no time")
    return value


Start = (
    Literal["earliest", "latest"]
    | Annotated[datetime, BeforeValidator(_no_number), AfterValidator(_utc)]
    | dict[str, dict[int, int]]
)
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
    broker_wait_s: int = Field(
        60,
        ge=0,
        description="How many seconds a job that starts waits for a broker that does not answer; then it ends with "
        "exit code 1.",
    )
    spark: SparkTable = Field(SparkTable(), description="How Spark runs.")


Config = TypeVar("Config", bound=JobConfig)


def read_config(path: Path, kind: type[Config]) -> Config:
    """The file, checked. MistakeError, one sentence, for the first thing that is wrong with it."""
    try:
        return kind.model_validate(read_toml(path))
    except ValidationError as error:
        raise MistakeError(f"{path}: {_sentence(error, kind)}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; MistakeError when there are none."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MistakeError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MistakeError(f"{path} is not TOML: {error}") from error


def _sentence(error: ValidationError, kind: type[JobConfig]) -> str:
    """The first mistake, with the key's place in the file."""
    errors = error.errors(include_url=False)
    first = next((told for told in errors if told["type"] == "extra_forbidden"), errors[0])  # a misspelt key first
    where = _place(first["loc"], kind)
    table, key = where[:-1], where[-1] if where else ""
    place = f"[{'.'.join(table)}] " if table else ""
    if first["type"] == "extra_forbidden":
        known = list(_keys(_table_at(kind, table)))
        what = f"{place}has no key {key}" if table else f"there is no key or table {key}"
        return f"{what}{suggestion(key, known)}; there are {', '.join(known)}"
    description = _description(_table_at(kind, table), key)
    if first["type"] == "missing":
        is_table = _table_at(kind, where) is not _table_at(kind, table)
        what = f"the table [{'.'.join(where)}]" if is_table else f"{place}{key}"
        return f"{what} is missing: {description}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        whole = f"[{'.'.join(where)}] " if where else ""
        return f"{whole}{message}"
    if first["type"] in ("model_type", "model_attributes_type"):
        return f"{key} is a table, [{'.'.join(where)}], not {first['input']!r}"
    message = EXPECTED.get(key, message[:1].lower() + message[1:])
    return f"{place}{key}: {message}, not {_shown(first['input'])}"


EXPECTED = {
    "start": "it should be earliest, latest, a time like 2026-01-31T12:00:00Z or offsets like "
    '{orders = {"0" = 12, "1" = 0}}',
    "topic": "it should be a name, or a list of names",
}
"""Of keys that may be of several kinds, what they may be."""


def _shown(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def _place(loc: tuple[int | str, ...], kind: type[BaseModel]) -> list[str]:
    """Tables and key of a mistake; what else pydantic tells of its place (which kind of a union) is left out."""
    where: list[str] = []
    parts = map(str, loc)
    for part in parts:
        where.append(part)
        field = _keys(kind).get(part)
        inner = next(_tables_of(field.annotation), None) if field else None
        if inner is None:
            if field is not None and get_origin(field.annotation) is dict:  # a table with names of the user's own
                where.extend(islice(parts, 1))
            break
        kind = inner
    return where


def _keys(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    """A table's keys by the names that they have in the file."""
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _description(kind: type[BaseModel], key: str) -> str:
    field = _keys(kind).get(key)
    text = (field.description if field else None) or "see docs/pipeline.md"
    return text[:1].lower() + text[1:].split(". ")[0].rstrip(".")


def _table_at(kind: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """The table at this place of the file, or the nearest around it."""
    for name in path:
        field = _keys(kind).get(name)
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
