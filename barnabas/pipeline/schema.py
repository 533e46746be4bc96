"""From bytes to typed columns, and what becomes of records that do not fit.

`parsed` decides once for each record: `reason` is null, or says why the record is a dead letter. Nothing is dropped
here, so that every record of the source is either in `fitting` or in `dead_letters`.
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
"""Put behind an Avro value; of no meaning."""
REGISTRY_HEADER_BYTES = 5
ORIGIN = {"_topic": "topic", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}
"""Columns that say where a fitting record came from."""
RESERVED = {*ORIGIN, CORRUPT, PARSED, "_record", "_misfit", "_reason"}
"""Names that no field may have."""


def parsed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The records with two more columns: `data`, a struct of typed fields, and `reason`, null when they fit.

    MistakeError when the schema itself cannot be read.
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
        reasons.append(f.when(~is_whole, "not Avro of this schema"))
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
    """The records with `data`, decoded once for each.

    Spark's optimizer puts an expression wherever its column is used, so that a filter over a decoded column decodes
    each value once for every condition. It does not look through an explode.
    """
    return frame.select("*", f.explode(f.array(data)).alias("data"))


def _is_one_value(text: Column) -> Column:
    """Whether nothing follows behind the first JSON value, where Spark's parser stops to look.

    Surely not where the first closing brace is the last character; anything else is read a second time.
    """
    is_flat = f.instr(text, "}") == f.length(f.rtrim(text))
    both = f.json_array_length(f.concat(f.lit("["), text, f.lit(",0]")))
    return is_flat | (f.coalesce(both, f.lit(0)) == 2)


def read_fields(fields: str) -> StructType:
    """The columns that this text declares; MistakeError when it is not a declaration."""
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
            raise MistakeError(f"[schema] {key}: {name} is there twice (upper and lower case are the same)")
        if name.lower() in RESERVED:
            raise MistakeError(f"[schema] {key}: {name} is a column that jobs add themselves: name it otherwise")


def declared_types(schema: Schema) -> dict[str, str]:
    """The columns and their types as declared, without asking Spark; nothing for what cannot be read."""
    if schema.format == "avro":
        try:
            fields = json.loads(Path(schema.avro_schema).read_text())["fields"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {field["name"]: json.dumps(field["type"], sort_keys=True) for field in fields}
    declared = [re.match(r"\s*(`[^`]+`|[^\s:]+)\s*:?\s+(.+)", text, re.DOTALL) for text in _top_level(schema.fields)]
    found = {part[1].strip("`"): part[2] for part in declared if part is not None}
    return {name: re.sub(r"(?i)\s+(NOT\s+NULL|COMMENT\s.*)$", "", told).strip().upper() for name, told in found.items()}


def _top_level(fields: str) -> list[str]:
    """The declarations between commas that are in no brackets."""
    parts, depth = [""], 0
    for char in fields:
        depth += (char in "<(") - (char in ">)")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def _avro(frame: DataFrame, schema: Schema) -> tuple[DataFrame, list[str]]:
    """Decoded with an end mark behind each value, as one more field, which is found there only when all of the value
    was read and no more: Avro itself is content with bytes that are left over, and takes any for a number.
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
        said = str(error.java_exception.getMessage()).splitlines()[0]
        raise MistakeError(f"{place} is not the schema of an Avro record: {said}") from error


def _with_reason(frame: DataFrame, reasons: list[Column], rules: list[str]) -> DataFrame:
    """Rules speak of the fields by their names, so they are judged beside the record, not among its columns."""
    checks = [f.when(~f.coalesce(sql(rule, "[schema] rules"), f.lit(False)), f"not so: {rule}") for rule in rules]
    both = frame.select(f.struct("*").alias("_record"), "data.*", f.coalesce(*reasons).alias("_misfit"))
    judged = both.withColumn("_reason", f.coalesce(f.col("_misfit"), *checks))
    return judged.select("_record.*", f.col("_reason").alias("reason"))


def fitting(frame: DataFrame) -> DataFrame:
    """Of parsed records those that fit: their fields, and where they came from (`_topic`, `_partition` ...)."""
    origin = [f.col(column).alias(name) for name, column in ORIGIN.items()]
    columns = frame.where("reason IS NULL").select("data.*", *origin)
    return columns.drop(CORRUPT, PARSED)


def dead_letters(frame: DataFrame) -> DataFrame:
    """Of parsed records those that do not fit: key, value and headers as they came, and headers with the reason."""
    told = {"reason": "reason", "topic": "topic", "partition": "partition", "offset": "offset"}
    more = [
        f.struct(f.lit(f"barnabas-{name}").alias("key"), f.col(column).cast("string").cast("binary").alias("value"))
        for name, column in told.items()
    ]
    headers = f.concat(f.coalesce("headers", f.array().cast(HEADERS_TYPE)), f.array(*more).cast(HEADERS_TYPE))
    return frame.where("reason IS NOT NULL").select(
        "key", "value", headers.alias("headers"), source_position().alias("event_id")
    )
