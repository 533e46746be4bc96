"""etl: typed and additional columns, and settings that must not change while a checkpoint is in use."""

from __future__ import annotations

from datetime import date

import pytest

from barnabas.spark.frames.schema import declared_types, fitting, parsed
from barnabas.spark.jobs.etl import EtlConfig, state_of, transform
from barnabas.spark.settings.config import Schema
from tests.pipeline.records import mistake, plain, records
from tests.support.cases import for_each

ORIGIN = ["_topic", "_partition", "_offset", "_timestamp"]


def config(fields="id BIGINT NOT NULL, at TIMESTAMP, `a.b` STRING", **more):
    return EtlConfig.model_validate(
        {
            "source": {"topic": "in"},
            "schema": {"fields": fields},
            "output": {"path": "out", "partition_by": more.pop("partition_by", [])},
            "dead_letters": {"topic": "dead"},
            **more,
        }
    )


def transformed(spark, values, job):
    return transform(fitting(parsed(records(spark, values), job.record)), job)


def test_additional_columns_are_between_fields_and_position(spark):
    job = config(columns={"day": "to_date(at)", "twice": "id * 2", "up": "upper(`a.b`)"})
    frame = transformed(spark, ['{"id": 1, "at": "2026-01-31T23:59:59Z", "a.b": "x"}', "no"], job)
    assert frame.columns == ["id", "at", "a.b", "day", "twice", "up", *ORIGIN]
    (row,) = frame.drop("at").collect()
    assert plain(row) == {"id": 1, "a.b": "x", "day": date(2026, 1, 31), "twice": 2, "up": "X"}


def test_an_expression_that_fails_on_a_record_gives_null(spark):
    job = config(columns={"part": "10 / id", "number": "CAST(`a.b` AS INT)"})
    frame = transformed(spark, ['{"id": 0, "a.b": "x"}', '{"id": 5, "a.b": "7"}'], job)
    assert [(row.part, row.number) for row in frame.collect()] == [(None, None), (2.0, 7)]


def test_a_column_may_replace_a_field(spark):
    frame = transformed(spark, ['{"id": 1}'], config(columns={"id": "CAST(id AS STRING)"}))
    assert frame.columns == ["id", "at", "a.b", *ORIGIN]
    assert frame.first().id == "1"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"columns": {"day": "to_date(at"}}, r"\[columns\] day: 'to_date\(at' is not SQL: "),
        ({"columns": {"day": "to_dat(at)"}}, "to_dat"),
        ({"columns": {"day": "to_date(att)"}}, "names `att`, which is not a column; there are .*at"),
        ({"schema": {"fields": "id INT", "rules": ["id >"]}}, r"\[schema\] rules: 'id >' is not SQL"),
        ({"schema": {"fields": "id INT", "rules": ["ID2 > 1"]}}, "names `ID2`, which is not a column; there are id"),
        ({"schema": {"fields": "id INT", "rules": ["id + 1"]}}, "Spark cannot run the job's file"),
    ],
)
def test_a_mistake_in_sql_is_one_sentence(spark, settings, message):
    with mistake(message):
        transformed(spark, ["{}"], config(**settings))


def test_types_and_directories_may_not_change():
    state = state_of(config(fields="id BIGINT NOT NULL, tags array<string>, m map<string, int> COMMENT 'x, y'"))
    assert state == {
        "type of id": "BIGINT", "type of tags": "ARRAY<STRING>", "type of m": "MAP<STRING, INT>",
        "[output] partition_by": "",
    }  # fmt: skip


@for_each(
    ("fields", "types"),
    [
        ("id INT", {"id": "INT"}),
        ("id: INT, b DECIMAL(5,2)", {"id": "INT", "b": "DECIMAL(5,2)"}),
        ("`a b` INT NOT NULL", {"a b": "INT"}),
        ("a STRUCT<x: INT, y: ARRAY<STRING>>, b INT", {"a": "STRUCT<X: INT, Y: ARRAY<STRING>>", "b": "INT"}),
        ("a INT COMMENT 'one, two', b INT", {"a": "INT", "b": "INT"}),
    ],
)
def test_declared_types_without_spark(fields, types):
    assert declared_types(Schema(fields=fields)) == types
