"""Decodes records into typed columns and separates those that do not match the schema.

`parsed` decides once for each record: `reason` is null, or says why the record is a dead letter. Every record of the
source is either in `fitting` or in `dead_letters`.
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
from pyspark.sql.types import StringType, StructType

from barnabas.pipeline.config import Schema
from barnabas.pipeline.errors import MistakeError
from barnabas.pipeline.kafka import HEADERS_TYPE, source_position
from barnabas.pipeline.sql import sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CORRUPT = "_barnabas_corrupt"
PARSED = "_barnabas_parsed"
END_MARK = bytes.fromhex("b5c1a7e20f9d4c38a96e71d35082fb4c")
"""An end mark appended to each Avro value."""
REGISTRY_HEADER_BYTES = 5
ORIGIN = {"_topic": "topic", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}
"""Columns with the position of a record in its topic."""
RESERVED = {*ORIGIN, CORRUPT, PARSED, "_record", "_misfit", "_reason"}
"""Reserved names of fields."""


def parsed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The records with two more columns: `data`, a struct of typed fields, and `reason`, null if the record matches.

    MistakeError for an invalid schema.
    """
    reasons = [f.when(f.coalesce(f.length("value"), f.lit(0)) == 0, "the value is empty")]
    if schema.format == "json":
        frame, required = _json(frame, schema)
        text = f.col("value").cast("string")
        reasons.append(f.when(~f.is_valid_utf8(text), "not UTF-8"))
        is_corrupt = f.col("data").isNull() | f.col("data." + CORRUPT).isNotNull()
        reasons.append(f.when(is_corrupt | ~_is_one_value(text), "not JSON, or a field of another type"))
    else:
        frame, required = _avro(frame, schema)
        is_whole = f.coalesce(f.col("data." + PARSED) == f.lit(END_MARK), f.lit(False))
        reasons.append(f.when(~is_whole, "not an Avro value of this schema"))
    reasons += [f.when(f.col("data").getField(name).isNull(), f"{name} is missing") for name in required]
    return _with_reason(frame, reasons, schema.rules)


def _json(frame: DataFrame, schema: Schema) -> tuple[DataFrame, list[str]]:
    fields = read_fields(schema.fields)
    required = [field.name for field in fields.fields if not field.nullable]
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if schema.timestamp_format:
        options["timestampFormat"] = schema.timestamp_format
    wanted = StructType(list(fields.fields)).add(CORRUPT, StringType())
    return _decoded(frame, f.from_json(f.col("value").cast("string"), wanted, options)), required


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
    declared = [re.match(r"\s*(`[^`]+`|[^\s:]+)\s*:?\s+(.+)", text, re.DOTALL) for text in _top_level(schema.fields)]
    found = {part[1].strip("`"): part[2] for part in declared if part is not None}
    return {name: re.sub(r"(?i)\s+(NOT\s+NULL|COMMENT\s.*)$", "", kind).strip().upper() for name, kind in found.items()}


def _top_level(fields: str) -> list[str]:
    """Split at commas outside brackets."""
    parts, depth = [""], 0
    for char in fields:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _avro(frame: DataFrame, schema: Schema) -> tuple[DataFrame, list[str]]:
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
    try:
        return _decoded(frame, from_avro(ended, marked, {"mode": "PERMISSIVE"})), []
    except Py4JJavaError as error:  # from Avro's own parser
        message = str(error.java_exception.getMessage()).splitlines()[0]
        raise MistakeError(f"{place} is not the schema of an Avro record: {message}") from error


def _with_reason(frame: DataFrame, reasons: list[Column], rules: list[str]) -> DataFrame:
    """Evaluate the rules on the fields alone, because their names may also be columns of the record."""
    checks = [
        f.when(~f.coalesce(sql(rule, "[schema] rules"), f.lit(False)), f"rule violated: {rule}") for rule in rules
    ]
    both = frame.select(f.struct("*").alias("_record"), "data.*", f.coalesce(*reasons).alias("_misfit"))
    with_reason = both.withColumn("_reason", f.coalesce(f.col("_misfit"), *checks))
    return with_reason.select("_record.*", f.col("_reason").alias("reason"))


def fitting(frame: DataFrame) -> DataFrame:
    """The parsed records that match: their fields and position (`_topic`, `_partition` ...)."""
    origin = [f.col(column).alias(name) for name, column in ORIGIN.items()]
    columns = frame.where("reason IS NULL").select("data.*", *origin)
    return columns.drop(CORRUPT, PARSED)


def dead_letters(frame: DataFrame) -> DataFrame:
    """The parsed records that do not match: key, value and headers unchanged, and headers with the reason."""
    columns = {"reason": "reason", "topic": "topic", "partition": "partition", "offset": "offset"}
    more = [
        f.struct(f.lit(f"barnabas-{name}").alias("key"), f.col(column).cast("string").cast("binary").alias("value"))
        for name, column in columns.items()
    ]
    headers = f.concat(f.coalesce("headers", f.array().cast(HEADERS_TYPE)), f.array(*more).cast(HEADERS_TYPE))
    return frame.where("reason IS NOT NULL").select(
        "key", "value", headers.alias("headers"), source_position().alias("event_id")
    )
