"""copy: the records written after conditions, columns and functions, and their event ids."""

from __future__ import annotations

import pytest

from barnabas.spark.jobs.copy import CopyConfig, transform
from barnabas.spark.topics.kafka import EVENT_ID, with_event_id
from tests.pipeline.records import mistake, plain, record, records


def config(transform=None, **target):
    return CopyConfig.model_validate(
        {"source": {"topic": "in"}, "transform": transform or {}, "target": {"topic": "out", **target}}
    )


RECORDS = [
    record("one", 0, key=b"a", headers=[("h", b"\x00\xff"), ("h", None)]),
    record(None, 1, key=b"b", partition=2),
    record(b"\xff\xfe", 2),
]


def copied(spark, job, rows=RECORDS):
    return [plain(row) for row in transform(records(spark, rows), job).orderBy("position").collect()]


def test_records_are_copied_unchanged(spark):
    rows = copied(spark, config())
    assert [(row["key"], row["value"], row["event_id"]) for row in rows] == [
        (b"a", b"one", "in/0/0"), (None, b"\xff\xfe", "in/0/2"), (b"b", None, "in/2/1"),
    ]  # fmt: skip
    headers = [(header["key"], header["value"]) for header in rows[0]["headers"]]
    assert headers == [("h", b"\x00\xff"), ("h", None)]
    assert all("partition" not in row for row in rows)


def test_partitions_may_be_kept_or_set(spark):
    assert [row["partition"] for row in copied(spark, config(keep_partition=True))] == [0, 0, 2]
    assert [row["partition"] for row in copied(spark, config({"columns": {"partition": "offset % 2"}}))] == [0, 0, 1]


def test_conditions_and_columns(spark):
    tables = {
        "where": "value IS NOT NULL AND offset < 2",
        "columns": {"value": "upper(value)", "key": "concat(key, '!')"},
    }
    (row,) = copied(spark, config(tables))
    assert (row["key"], row["value"], row["event_id"]) == (b"a!", b"ONE", "in/0/0")


def test_columns_are_computed_from_the_original_record(spark):
    (row,) = copied(spark, config({"columns": {"value": "key", "key": "value"}}), RECORDS[:1])
    assert (row["key"], row["value"]) == (b"one", b"a")


def test_headers_may_be_changed_and_values_become_tombstones(spark):
    (row,) = copied(spark, config({"columns": {"headers": "NULL", "value": "NULL"}}), RECORDS[:1])
    assert (row["headers"], row["value"]) == (None, None)


def test_a_copy_of_a_copy_keeps_the_first_id_once(spark):
    first = with_event_id(transform(records(spark, RECORDS[:1]), config())).first()
    rows = [record("one", 7, topic="out", headers=[(h.key, h.value) for h in first.headers])]
    second = with_event_id(transform(records(spark, rows), config())).first()
    assert [(h.key, bytes(h.value or b"")) for h in second.headers] == [
        ("h", b"\x00\xff"), ("h", b""), (EVENT_ID, b"in/0/0"),
    ]  # fmt: skip


FUNCTIONS = """
from pyspark.sql import functions as f

def twice(records):
    return records.withColumn("value", f.concat("value", "value"))

def few(records):
    return records.select("key", "value")

def nothing(records):
    pass
"""


@pytest.fixture
def own_functions(tmp_path, monkeypatch):
    tmp_path.joinpath("own_transforms.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_function_is_applied_first(spark, own_functions):
    tables = {"function": "own_transforms:twice", "where": "value = 'oneone'", "columns": {"value": "upper(value)"}}
    assert [row["value"] for row in copied(spark, config(tables))] == [b"ONEONE"]


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            {"function": "own_transforms:few"},
            r"own_transforms:few lost the column headers: change columns with withCol",
        ),
        ({"function": "own_transforms:nothing"}, "own_transforms:nothing returned NoneType, not a DataFrame"),
        ({"where": "value IS NOT"}, r"\[transform\] where: 'value IS NOT' is not SQL"),
        ({"where": "valeu IS NULL"}, "names `valeu`, which is not a column; there are value"),
        ({"where": "offset"}, "Spark cannot run the job's file"),
        ({"columns": {"value": "upper("}}, r"\[transform\] value: 'upper\(' is not SQL"),
        ({"columns": {"value": "offset + 1"}}, r"\[transform\] value is BIGINT and should be STRING or BINARY"),
        ({"columns": {"headers": "value"}}, r"\[transform\] headers is BINARY and should be"),
        ({"columns": {"partition": "key"}}, r"\[transform\] partition is BINARY and should be"),
    ],
)
def test_a_mistake_is_one_sentence(spark, own_functions, tables, message):
    with mistake(message):
        transform(records(spark, RECORDS), config(tables))
