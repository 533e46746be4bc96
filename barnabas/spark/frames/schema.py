"""Decodes records into typed columns and separates those that do not match the schema.

`parsed` decides once for each record: `reason` is null, or says why the record is a dead letter: the field, and the
start of what it held. Every record of the source is either in `fitting` or in `dead_letters`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StringType, StructField, StructType, VariantType

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.misfits import Misfit, first_kind, first_reason, kinds_of, shortened
from barnabas.spark.frames.sql import named, sql
from barnabas.spark.progress import REASONS
from barnabas.spark.settings.config import Schema
from barnabas.spark.settings.ddl import column_types
from barnabas.spark.topics.kafka import HEADERS_TYPE, source_position

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

CORRUPT = "_barnabas_corrupt"
PARSED = "_barnabas_parsed"
END_MARK = bytes.fromhex("b5c1a7e20f9d4c38a96e71d35082fb4c")
"""An end mark appended to each Avro value."""
REGISTRY_HEADER_BYTES = 5
NO_OBJECT = "not a JSON object"
HELD_BYTES = 16
"""How many bytes of an Avro value a reason shows."""
ORIGIN = {"_topic": "topic", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}
"""Columns with the position of a record in its topic."""
RESERVED = {*ORIGIN, CORRUPT, PARSED, "_record", "_misfit", "_text"}
"""Reserved names of fields."""


def parsed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The records with three more columns: `data`, a struct of typed fields, `kind` and `reason` (`with_reasons`).

    MistakeError for an invalid schema.
    """
    empty = Misfit("the value is empty", f.coalesce(f.length("value"), f.lit(0)) == 0)
    frame, misfits, required = _json(frame, schema) if schema.format == "json" else _avro(frame, schema)
    missing = [Misfit(f"{name} is missing", f.col("data").getField(name).isNull()) for name in required]
    return _checked(frame, [empty, *misfits, *missing], schema.rules)


def _json(frame: DataFrame, schema: Schema) -> tuple[DataFrame, list[Misfit], list[str]]:
    fields = read_fields(schema.fields)
    required = [field.name for field in fields.fields if not field.nullable]
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if schema.timestamp_format:
        options["timestampFormat"] = schema.timestamp_format
    text = f.col("value").cast("string")
    columns = StructType(list(fields.fields)).add(CORRUPT, StringType())
    is_corrupt = f.col("data").isNull() | f.col("data." + CORRUPT).isNotNull()
    misfits = [
        Misfit("not UTF-8", ~f.is_valid_utf8(text)),
        Misfit("", is_corrupt | ~_is_one_value(text), inner=tuple(_json_misfits(text, fields, options))),
    ]
    return _decoded(frame, f.from_json(text, columns, options)), misfits, required


def _json_misfits(text: Column, fields: StructType, options: dict[str, str]) -> Iterator[Misfit]:
    """Why a value is not JSON of these fields; found by decoding it again with one field at a time."""
    plain = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    held = shortened(f.regexp_replace(text, r"\p{Cntrl}", " "))
    yield Misfit(NO_OBJECT, _is_corrupt(text, StructField(PARSED, VariantType()), plain), held)
    for field in fields.fields:
        kind = f"{field.name} is not {_name_of(field.dataType)}"
        yield Misfit(kind, _is_corrupt(text, field, options), shortened(_content(text, field.name, plain)))
    yield Misfit("something follows the JSON value", ~_is_one_value(text), held)
    yield Misfit(NO_OBJECT, f.lit(True), held)


def _content(text: Column, name: str, options: dict[str, str]) -> Column:
    """What a field held, as in the value: a text in quotation marks, a number with its digits."""
    as_json = f.to_json(_alone(text, name, VariantType(), options))
    return f.when(as_json.startswith('"'), as_json).otherwise(_alone(text, name, StringType(), options))


def _alone(text: Column, name: str, kind: DataType, options: dict[str, str]) -> Column:
    return f.from_json(text, StructType([StructField(name, kind)]), options)[name]


def _is_corrupt(text: Column, field: StructField, options: dict[str, str]) -> Column:
    """Whether a value cannot be decoded with this field alone."""
    alone = StructType([StructField(field.name, field.dataType), StructField(CORRUPT, StringType())])
    return f.from_json(text, alone, options)[CORRUPT].isNotNull()


def _name_of(kind: DataType) -> str:
    """A type as in a declaration; a nested one without its parts."""
    return kind.simpleString().partition("<")[0].upper()


def _decoded(frame: DataFrame, data: Column) -> DataFrame:
    """Add `data`, decoded once per record.

    Spark's optimizer copies an expression to every place where its column is used, so a filter on a decoded column
    would decode each value once per condition. It does not do that across an explode.
    """
    return frame.select("*", f.explode(f.array(data)).alias("data"))


def _is_one_value(text: Column) -> Column:
    """Whether nothing follows the first JSON value, where Spark's parser stops.

    Nothing follows if the first closing brace is the last character; any other value is parsed a second time.
    """
    is_flat = f.instr(text, "}") == f.length(f.rtrim(text))
    both = f.json_array_length(f.concat(f.lit("["), text, f.lit(",0]")))
    return is_flat | (f.coalesce(both, f.lit(0)) == 2)


def read_fields(fields: str) -> StructType:
    """The columns that this text declares; MistakeError if it is invalid."""
    try:
        declared = cast("StructType", StructType.fromDDL(fields))
    except PySparkException as error:
        where = str(error).strip().splitlines()[0].removeprefix("[PARSE_SYNTAX_ERROR] ")
        raise MistakeError(
            f'[schema] fields cannot be read: {where} Write "name TYPE, name TYPE NOT NULL", with Spark SQL\'s types'
        ) from error
    _check_names([field.name for field in declared.fields], "fields")
    return declared


def _check_names(names: list[str], key: str) -> None:
    lower = [name.lower() for name in names]
    for name in names:
        if lower.count(name.lower()) > 1:
            raise MistakeError(f"[schema] {key}: {name} is declared twice (case is ignored)")
        if name.lower() in RESERVED:
            raise MistakeError(f"[schema] {key}: {name} is reserved: choose another name")


def declared_types(schema: Schema) -> dict[str, str]:
    """The declared columns and types, without Spark; empty if the declaration is invalid."""
    if schema.format == "avro":
        try:
            fields = json.loads(Path(schema.avro_schema).read_text())["fields"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {field["name"]: json.dumps(field["type"], sort_keys=True) for field in fields}
    return column_types(schema.fields)


def _avro(frame: DataFrame, schema: Schema) -> tuple[DataFrame, list[Misfit], list[str]]:
    """Decode with an end mark after each value, as an additional field.

    The mark is found only if exactly the whole value was read. Avro alone would accept values with bytes left over.
    """
    place = f"[schema] avro_schema: {schema.avro_schema}"
    try:
        declared = json.loads(Path(schema.avro_schema).read_text(encoding="utf-8"))
        fields = declared["fields"]
        names = [str(field["name"]) for field in fields]
    except OSError as error:
        raise MistakeError(f"{place}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise MistakeError(f"{place} is not the schema of an Avro record") from error
    _check_names(names, "avro_schema")
    mark = {"name": PARSED, "type": {"type": "fixed", "name": PARSED, "size": len(END_MARK)}}
    marked = json.dumps({**declared, "fields": [*fields, mark]})
    value = f.col("value")
    if schema.avro_header:
        has_header = (f.length(value) >= REGISTRY_HEADER_BYTES) & (f.substring(value, 1, 1) == f.lit(b"\x00"))
        value = f.when(has_header, f.substring(value, REGISTRY_HEADER_BYTES + 1, 1 << 30))
    ended = f.concat(value, f.lit(END_MARK))
    is_whole = f.coalesce(f.col("data." + PARSED) == f.lit(END_MARK), f.lit(False))
    more = f.when(f.length("value") > HELD_BYTES, "...").otherwise("")
    held = f.concat(f.lit("0x"), f.hex(f.substring("value", 1, HELD_BYTES)), more)
    misfits = [Misfit("not an Avro value of this schema", ~is_whole, held)]
    try:
        return _decoded(frame, from_avro(ended, marked, {"mode": "PERMISSIVE"})), misfits, []
    except Py4JJavaError as error:  # from Avro's own parser
        message = str(error.java_exception.getMessage()).splitlines()[0]
        raise MistakeError(f"{place} is not the schema of an Avro record: {message}") from error


def _checked(frame: DataFrame, misfits: list[Misfit], rules: list[str]) -> DataFrame:
    """Evaluate the rules on the fields alone, because their names may also be columns of the record."""
    names = [name for name in frame.select("data.*").columns if name not in (CORRUPT, PARSED)]
    checks = [Misfit(f"rule violated: {rule}", ~f.coalesce(sql(rule, "[schema] rules"), f.lit(False)),
                     _held_by(rule, names)) for rule in rules]  # fmt: skip
    both = frame.select(
        f.struct("*").alias("_record"),
        "data.*",
        first_kind(misfits).alias("_misfit"),
        first_reason(misfits).alias("_text"),
    )  # fmt: skip
    kinds = kinds_of([*misfits, *checks])
    return both.select(
        "_record.*",
        f.coalesce("_misfit", first_kind(checks)).alias("kind", metadata={"kinds": kinds}),
        f.coalesce("_text", first_reason(checks)).alias("reason"),
    )


def _held_by(rule: str, names: list[str]) -> Column | None:
    """What the fields that a rule names held, as JSON."""
    used = [name for name in names if re.search(rf"(?i)\b{re.escape(name)}\b", rule)]
    return shortened(f.to_json(f.struct(*map(named, used)), {"ignoreNullFields": "false"})) if used else None


def fitting(frame: DataFrame) -> DataFrame:
    """The parsed records that match: their fields and position (`_topic`, `_partition` ...)."""
    origin = [f.col(column).alias(name) for name, column in ORIGIN.items()]
    columns = frame.where("reason IS NULL").select("data.*", *origin)
    return columns.drop(CORRUPT, PARSED)


def dead_letters(frame: DataFrame) -> DataFrame:
    """The parsed records that do not match: key, value and headers unchanged, and headers with the reason.

    They are counted by kind, for the progress of the run.
    """
    kinds = frame.schema["kind"].metadata["kinds"]
    counted = frame.where("reason IS NOT NULL").observe(
        REASONS, *[f.count_if(f.col("kind") == f.lit(kind)).alias(kind) for kind in kinds]
    )
    columns = {"reason": "reason", "topic": "topic", "partition": "partition", "offset": "offset"}
    more = [
        f.struct(f.lit(f"barnabas-{name}").alias("key"), f.col(column).cast("string").cast("binary").alias("value"))
        for name, column in columns.items()
    ]
    headers = f.concat(f.coalesce("headers", f.array().cast(HEADERS_TYPE)), f.array(*more).cast(HEADERS_TYPE))
    return counted.select("key", "value", headers.alias("headers"), source_position().alias("event_id"))
