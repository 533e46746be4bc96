"""The keys of a job's TOML file, with their documentation. Keys and values are checked before Spark starts.

Each job has a subclass of `JobConfig` with its tables. `read_config` reports the first mistake in one sentence.
`docs/reference/pipeline-keys.md` is generated from these declarations.
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

from barnabas.spark.errors import MistakeError
from barnabas.spark.settings.ddl import unknown_type
from barnabas.spark.settings.security import SECRETS, SecurityTable
from barnabas.terminal.suggestion import suggestion


def _utc(value: datetime) -> datetime:
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _no_number(value: object) -> object:
    """Refuse numbers: they could be offsets or times in any unit."""
    if isinstance(value, int | float) or (isinstance(value, str) and value.replace(".", "").lstrip("-").isdecimal()):
        raise ValueError("a number is not a time")
    return value


Start = (
    Literal["earliest", "latest"]
    | Annotated[datetime, BeforeValidator(_no_number), AfterValidator(_utc)]
    | dict[str, dict[int, int]]
)
"""A start position: `earliest`, `latest`, a time, or offsets by topic and partition."""
Delivery = Literal["at_least_once", "transactional"]


class Table(BaseModel):
    """A table of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Source(Table):
    """The source of the records."""

    topic: str | list[str] = Field("", description="The topic to read, or a list of topics.")
    pattern: str = Field(
        "", description="A Java regular expression instead of `topic`: all matching topics, including new ones."
    )
    start: Start = Field(
        "earliest",
        description="Where the first run starts: `earliest`, `latest`, a time (records from then on) or offsets, "
        '`{orders = {"0" = 12}}`. Later runs continue from the checkpoint.',
    )
    max_records_per_batch: int | None = Field(
        None, gt=0, description="Maximum number of records in a micro-batch, over all partitions. Unlimited if not set."
    )
    read_uncommitted: bool = Field(False, description="Also read records of open and aborted transactions.")
    fail_on_data_loss: bool = Field(
        True, description="Fail if records were deleted before they were read; false continues without them."
    )

    @model_validator(mode="after")
    def _one_of(self) -> Source:
        if bool(self.topic) == bool(self.pattern):
            raise ValueError("needs either topic or pattern")
        return self

    @property
    def topics(self) -> list[str]:
        """The topics by name; none when there is a pattern."""
        if not self.topic:
            return []
        return [self.topic] if isinstance(self.topic, str) else self.topic


class Schema(Table):
    """The schema of the values. Records that do not match it are sent to the dead-letter topic."""

    format: Literal["json", "avro"] = Field("json", description="Encoding of the values: `json` or `avro`.")
    fields: str = Field(
        "", description='For JSON: the columns as a Spark SQL declaration, `"id BIGINT NOT NULL, at TIMESTAMP"`.'
    )
    avro_schema: str = Field("", description="For Avro: the file with the schema (`.avsc`).")
    avro_header: bool = Field(
        False, description="For Avro: values start with the five bytes of a schema registry, which are skipped."
    )
    timestamp_format: str = Field("", description="For JSON: format of timestamps, if not ISO 8601.")
    rules: list[str] = Field(
        [], description='SQL conditions that must be true, `["amount >= 0"]`; null counts as false.'
    )

    @model_validator(mode="after")
    def _fits(self) -> Schema:
        if self.format == "json" and not self.fields:
            raise ValueError("needs fields, the columns of a JSON value")
        if self.format == "avro" and not self.avro_schema:
            raise ValueError("needs avro_schema, the file with the schema")
        if unknown := unknown_type(self.fields):
            raise ValueError(f"fields: {unknown}")
        return self


class DeadLetters(Table):
    """The topic for records that do not match the schema."""

    topic: str = Field(description="The topic; created if it does not exist. Headers have reason and origin.")


class TopicOutput(Table):
    """A topic to write to."""

    topic: str = Field(description="The topic; created if it does not exist.")
    partitions: int = Field(1, gt=0, description="Number of partitions, if the topic is created.")
    delivery: Delivery = Field(
        "at_least_once",
        description="`at_least_once`: a crash may repeat records, with the same event id; `transactional`: exactly "
        "once for readers with read_committed.",
    )


class FileOutput(Table):
    """Parquet files to write, each record exactly once."""

    path: str = Field(description="The directory, or a URL that Spark can write to.")
    partition_by: list[str] = Field([], description="Columns to partition the directories by.")


class SparkTable(Table):
    """Settings of Spark."""

    master: str | None = Field(None, description="Spark's master. Default: all cores of this machine.")
    packages: bool = Field(
        False, description="Download the connector with Spark (`spark.jars.packages`) instead of Maven."
    )
    settings: dict[str, str | int | float | bool] = Field(
        {}, description='Additional Spark settings: `"spark.driver.memory" = "4g"`.'
    )


class JobConfig(Table):
    """The keys of every job's file."""

    name: str = Field("", description="Name of the run, in Spark's UI and in event ids. Default: the job's name.")
    checkpoint: str = Field(
        "",
        description="The directory with the job's progress. The next run continues from it; without it, the job starts "
        "from the beginning.",
    )
    broker_wait_s: int = Field(
        60,
        ge=0,
        description="How many seconds a starting job waits for a broker that does not answer, before it ends with "
        "exit code 1, or 4 if something accepts connections there.",
    )
    spark: SparkTable = Field(SparkTable(), description="Settings of Spark.")
    security: SecurityTable = Field(SecurityTable(), description="TLS and SASL.")


Config = TypeVar("Config", bound=JobConfig)


def read_config(path: Path, kind: type[Config]) -> Config:
    """Read and check a file. MistakeError with one sentence for the first mistake."""
    try:
        return kind.model_validate(read_toml(path))
    except ValidationError as error:
        raise MistakeError(f"{path}: {_sentence(error, kind)}") from error


class _AnyJob(JobConfig):
    """A job's file of which only the keys of every job are read."""

    model_config = ConfigDict(extra="ignore", frozen=True, hide_input_in_errors=True)


def read_security(path: Path) -> SecurityTable:
    """The [security] of a file, whichever job it is for. MistakeError with one sentence for a mistake."""
    return read_config(path, _AnyJob).security


def argument_mistake(error: ValidationError) -> MistakeError:
    """The first mistake of a table that was made from a function's arguments."""
    first = error.errors(include_url=False)[0]
    key = str(first["loc"][0]) if first["loc"] else "topic"
    return MistakeError(f"{key}: {EXPECTED.get(key, first['msg'])}, not {_shown(first['input'])}")


def security_mistake(error: ValidationError) -> str:
    """The first mistake of a [security] that was made from a function's argument."""
    return _sentence(error, SecurityTable)


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; MistakeError if it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise MistakeError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise MistakeError(f"{path} is not TOML: {error}") from error


def _sentence(error: ValidationError, kind: type[BaseModel]) -> str:
    """The first mistake, with its table and key."""
    errors = error.errors(include_url=False)
    first = next(
        (mistake for mistake in errors if mistake["type"] == "extra_forbidden"), errors[0]
    )  # report a misspelt key first
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
        return f"{key} is a table, [{'.'.join(where)}]" + ("" if key == "security" else f", not {first['input']!r}")
    message = EXPECTED.get(key, message[:1].lower() + message[1:])
    return f"{place}{key}: {message}" + ("" if key in SECRETS else f", not {_shown(first['input'])}")


EXPECTED = {
    "start": "it should be earliest, latest, a time like 2026-01-31T12:00:00Z or offsets like "
    '{orders = {"0" = 12, "1" = 0}}',
    "topic": "it should be a name, or a list of names",
}
"""What to say is expected for keys that have several types."""


def _shown(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)


def _place(loc: tuple[int | str, ...], kind: type[BaseModel]) -> list[str]:
    """Tables and key of a mistake, from pydantic's location without the branches of unions."""
    where: list[str] = []
    parts = map(str, loc)
    for part in parts:
        where.append(part)
        field = _keys(kind).get(part)
        inner = next(_tables_of(field.annotation), None) if field else None
        if inner is None:
            if field is not None and get_origin(field.annotation) is dict:  # a table with keys chosen by the user
                where.extend(islice(parts, 1))
            break
        kind = inner
    return where


def _keys(kind: type[BaseModel]) -> dict[str, FieldInfo]:
    """A table's keys, by their names in the file."""
    return {field.alias or name: field for name, field in kind.model_fields.items()}


def _description(kind: type[BaseModel], key: str) -> str:
    field = _keys(kind).get(key)
    text = (field.description if field else None) or "see docs/pipeline.md"
    return text[:1].lower() + text[1:].split(". ")[0].rstrip(".")


def _table_at(kind: type[BaseModel], path: list[str]) -> type[BaseModel]:
    """The table at this path of the file, or the innermost table around it."""
    for name in path:
        field = _keys(kind).get(name)
        table = next(iter(_tables_of(field.annotation)), None) if field else None
        if table is None:
            return kind
        kind = table
    return kind


def _tables_of(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _tables_of(inner)
