"""Avro to typed columns: with and without a registry's header, of other schemas, truncated and empty."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import to_avro

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.schema import declared_types, fitting, parsed
from barnabas.spark.settings.config import Schema
from tests.pipeline.records import plain, records
from tests.support.spark.session import frame_of

SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "text", "type": ["null", "string"], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}
NULLS = {
    "type": "record",
    "name": "Empty",
    "fields": [
        {"name": "a", "type": ["null", "long"], "default": None},
        {"name": "b", "type": ["null", "string"], "default": None},
    ],
}
HEADER = b"\x00\x00\x00\x00\x07"
WRONG = "not an Avro value of this schema"


@pytest.fixture
def schema_file(tmp_path):
    """`schema_file(schema) -> path`: write an `.avsc` file."""

    def write(schema):
        path = tmp_path / "schema.avsc"
        path.write_text(schema if isinstance(schema, str) else json.dumps(schema))
        return str(path)

    return write


def encoded(spark, rows, schema):
    """The Avro bytes of rows, encoded by Spark."""
    names = [field["name"] for field in schema["fields"]]
    types = {"id": "BIGINT", "text": "STRING", "at": "TIMESTAMP", "tags": "ARRAY<STRING>", "a": "BIGINT", "b": "STRING"}
    frame = frame_of(spark, rows, ", ".join(f"{name} {types[name]}" for name in names))
    result = frame.select(to_avro(f.struct(*names), json.dumps(schema)).alias("made"))
    return [bytes(row.made) for row in result.collect()]


def fields_or_reason(spark, values, **schema):
    """For each value: the fields, or the kind of its reason."""
    rows = parsed(records(spark, values), Schema(format="avro", **schema)).collect()
    assert len(rows) == len(values)
    return [row.kind or plain(row.data) for row in rows]


def test_avro_without_a_header(spark, schema_file):
    whole, nothing = encoded(spark, [(5, "x", None, ["a", "b"]), (-1, None, None, [])], SCHEMA)
    values = [whole, nothing, whole[:-1], whole[:1], b"", None, b"\xff" * 40, HEADER + whole]
    results = fields_or_reason(spark, values, avro_schema=schema_file(SCHEMA))
    assert results == [
        {"id": 5, "text": "x", "at": None, "tags": ["a", "b"]}, {"id": -1, "text": None, "at": None, "tags": []},
        WRONG, WRONG, "the value is empty", "the value is empty", WRONG, WRONG,
    ]  # fmt: skip


def test_avro_with_the_header_of_a_registry(spark, schema_file):
    (whole,) = encoded(spark, [(5, "x", None, [])], SCHEMA)
    values = [HEADER + whole, HEADER + whole[:-1], HEADER, HEADER[:3], b"\x01\x00\x00\x00\x07" + whole, b""]
    results = fields_or_reason(spark, values, avro_schema=schema_file(SCHEMA), avro_header=True)
    assert results == [{"id": 5, "text": "x", "at": None, "tags": []}, WRONG, WRONG, WRONG, WRONG, "the value is empty"]


def test_a_record_whose_fields_are_all_null_fits(spark, schema_file):
    (value,) = encoded(spark, [(None, None)], NULLS)
    assert fields_or_reason(spark, [value, value[:1]], avro_schema=schema_file(NULLS)) == [
        {"a": None, "b": None},
        WRONG,
    ]


def test_a_reason_shows_the_first_bytes(spark, schema_file):
    rows = parsed(records(spark, [b"\xff\x01", b"\xff" * 40]), Schema(format="avro", avro_schema=schema_file(SCHEMA)))
    assert [row.reason for row in rows.collect()] == [f"{WRONG}: 0xFF01", f"{WRONG}: 0x{'FF' * 16}..."]


def test_rules_hold_for_avro_too_and_the_columns_are_the_schemas(spark, schema_file):
    values = encoded(spark, [(5, "x", None, []), (-5, "y", None, [])], SCHEMA)
    schema = Schema(format="avro", avro_schema=schema_file(SCHEMA), rules=["id > 0"])
    judged_frame = parsed(records(spark, values), schema)
    assert [row.reason for row in judged_frame.collect()] == [None, 'rule violated: id > 0: {"id":-5}']
    columns = dict(fitting(judged_frame).dtypes)
    assert [name for name in columns if not name.startswith("_")] == ["id", "text", "at", "tags"]
    assert (columns["id"], columns["at"], columns["tags"]) == ("bigint", "timestamp", "array<string>")


def test_declared_types_are_the_files(schema_file):
    assert declared_types(Schema(format="avro", avro_schema=schema_file(NULLS))) == {
        "a": '["null", "long"]', "b": '["null", "string"]',
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not the schema of an Avro record"),
        ('"string"', "is not the schema of an Avro record"),
        ("[1]", "is not the schema of an Avro record"),
        ({"type": "record", "name": "X", "fields": [{"name": "a", "type": "lung"}]}, "lung"),
        ({"type": "record", "name": "X", "fields": [{"nam": "a", "type": "long"}]}, "is not the schema"),
        ({"type": "record", "name": "X", "fields": [{"name": "_topic", "type": "long"}]}, "_topic is reserved"),
    ],
)
def test_an_invalid_schema_file_is_one_sentence(spark, schema_file, content, message):
    with pytest.raises(MistakeError, match=message) as caught:
        fields_or_reason(spark, [b"x"], avro_schema=schema_file(content))
    assert "\n" not in str(caught.value)


def test_a_missing_schema_file_is_one_sentence(spark, tmp_path):
    with pytest.raises(MistakeError, match=r"none\.avsc: No such file"):
        fields_or_reason(spark, [b"x"], avro_schema=str(tmp_path / "none.avsc"))
