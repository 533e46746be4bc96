"""From bytes to typed columns, and what becomes of records that do not fit.

`parsed` decides once for each record: `reason` is null, or says why the record is a dead letter. Nothing is dropped
here, so that every record of the source is either in `fitting` or in `dead_letters`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, cast

from pyspark.errors import PySparkException
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StringType, StructType

from barnabas.pipeline.config import Schema
from barnabas.pipeline.errors import MistakeError
from barnabas.pipeline.kafka import HEADERS_TYPE, source_position

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CORRUPT = "_barnabas_corrupt"
PARSED = "_barnabas_parsed"
REGISTRY_HEADER_BYTES = 5
ORIGIN = {"_topic": "topic", "_partition": "partition", "_offset": "offset", "_timestamp": "timestamp"}
"""Columns that say where a fitting record came from."""


def parsed(frame: DataFrame, schema: Schema) -> DataFrame:
    """The records with two more columns: `data`, a struct of typed fields, and `reason`, null when they fit.

    MistakeError when the schema itself cannot be read.
    """
    reasons = [f.when(f.col("value").isNull(), "the value is empty")]
    if schema.format == "json":
        frame, required = _json(frame, schema)
        reasons.append(f.when(f.col("data." + CORRUPT).isNotNull(), "not JSON, or a field of another type"))
    else:
        frame, required = _avro(frame, schema)
        reasons.append(f.when(f.col("data." + PARSED).isNull(), "not Avro of this schema"))
    reasons += [f.when(f.col(f"data.`{name}`").isNull(), f"{name} is missing") for name in required]
    return _with_reason(frame, reasons, schema.rules)


def _json(frame: DataFrame, schema: Schema) -> tuple[DataFrame, list[str]]:
    fields = read_fields(schema.fields)
    required = [field.name for field in fields.fields if not field.nullable]
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    if schema.timestamp_format:
        options["timestampFormat"] = schema.timestamp_format
    wanted = StructType(list(fields.fields)).add(CORRUPT, StringType())
    return frame.withColumn("data", f.from_json(f.col("value").cast("string"), wanted, options)), required


def read_fields(fields: str) -> StructType:
    """The columns that this text declares; MistakeError when it is not a declaration."""
    try:
        return cast("StructType", StructType.fromDDL(fields))
    except PySparkException as error:
        where = str(error).strip().splitlines()[0].removeprefix("[PARSE_SYNTAX_ERROR] ")
        raise MistakeError(
            f'[schema] fields cannot be read: {where} Write "name TYPE, name TYPE NOT NULL", with Spark SQL\'s types'
        ) from error


def declared_types(schema: Schema) -> dict[str, str]:
    """The columns and their types as declared, without asking Spark; nothing for what cannot be read."""
    if schema.format == "avro":
        try:
            fields = json.loads(Path(schema.avro_schema).read_text())["fields"]
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return {field["name"]: json.dumps(field["type"], sort_keys=True) for field in fields}
    declared = [text.split(maxsplit=1) for text in _top_level(schema.fields)]
    found = {parts[0].strip("`"): parts[1] for parts in declared if len(parts) > 1}
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
    """Decoded with one more field that has a default: it is null only where nothing could be decoded."""
    try:
        text = Path(schema.avro_schema).read_text()
        declared = json.loads(text)
        fields = declared["fields"]
    except OSError as error:
        raise MistakeError(f"[schema] avro_schema: {schema.avro_schema}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise MistakeError(f"[schema] avro_schema: {schema.avro_schema} is not the schema of an Avro record") from error
    wanted = {**declared, "fields": [*fields, {"name": PARSED, "type": "boolean", "default": True}]}
    value = f.col("value")
    if schema.avro_header:
        value = f.when(f.length(value) > REGISTRY_HEADER_BYTES, f.substring(value, REGISTRY_HEADER_BYTES + 1, 1 << 30))
    options = {"mode": "PERMISSIVE", "avroSchema": json.dumps(wanted)}
    return frame.withColumn("data", from_avro(value, text, options)), []


def _with_reason(frame: DataFrame, reasons: list[Column], rules: list[str]) -> DataFrame:
    """Rules speak of the fields by their names, so they are judged beside the record, not among its columns."""
    checks = [f.when(~f.coalesce(f.expr(rule), f.lit(False)), f"not so: {rule}") for rule in rules]
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
