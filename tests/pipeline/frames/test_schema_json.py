"""JSON to typed columns: matching values give exactly these columns, all others a reason."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from barnabas.spark.errors import MistakeError
from barnabas.spark.frames.schema import fitting, parsed, read_fields
from barnabas.spark.settings.config import Schema
from barnabas.spark.settings.ddl import TYPES, unknown_type
from tests.pipeline.records import plain, records

FIELDS = (
    "id BIGINT, n INT, text STRING, ratio DOUBLE, price DECIMAL(5,2), at TIMESTAMP, day DATE, flag BOOLEAN, "
    "list ARRAY<INT>, inner STRUCT<x: INT, deep: STRUCT<y: STRING>>, pairs MAP<STRING, INT>, raw BINARY"
)


def fields_or_reason(spark, values, **schema):
    """For each value: the fields that are set, or the reason as a string."""
    rows = parsed(records(spark, values), Schema(**schema)).collect()
    assert len(rows) == len(values)
    return [row.reason or {name: value for name, value in plain(row.data).items() if value is not None} for row in rows]


def at(*parts):
    return datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


FITTING = [
    ('{"id": 1}', {"id": 1}),
    (' \n{"id": 1}\t ', {"id": 1}),
    ("{}", {}),
    ('{"id": null, "text": null}', {}),
    ('{"id": -9223372036854775808}', {"id": -(2**63)}),
    ('{"text": "gr\\u00fc\\u00df \\"x\\" grüß 🙂"}', {"text": 'grüß "x" grüß 🙂'}),
    ('{"text": {"a": [1]}}', {"text": '{"a":[1]}'}),
    ('{"ratio": 1e3}', {"ratio": 1000.0}),
    ('{"price": 12.5}', {"price": Decimal("12.50")}),
    ('{"at": "2026-01-31T12:00:00Z"}', {"at": at(2026, 1, 31, 12)}),
    ('{"at": "2026-01-31T12:00:00.123456+02:00"}', {"at": at(2026, 1, 31, 10, 0, 0, 123456)}),
    ('{"at": "2026-01-31 12:00:00"}', {"at": at(2026, 1, 31, 12)}),
    ('{"at": "2026-01-31"}', {"at": at(2026, 1, 31)}),
    ('{"day": "2026-01-31"}', {"day": date(2026, 1, 31)}),
    ('{"flag": true}', {"flag": True}),
    ('{"list": [1, null, 3]}', {"list": [1, None, 3]}),
    ('{"list": []}', {"list": []}),
    ('{"inner": {"x": 1, "deep": {"y": "z"}, "new": 2}}', {"inner": {"x": 1, "deep": {"y": "z"}}}),
    ('{"pairs": {"a": 1, "b": 2}}', {"pairs": {"a": 1, "b": 2}}),
    ('{"raw": "AAE="}', {"raw": b"\x00\x01"}),
    ('{"id": 1, "unknown": {"a": [1, {"b": "}]"}]}}', {"id": 1}),
    ('{"id": 1, "id": 2}', {"id": 2}),
    ('{"ID": 1}', {}),
    ('{"_barnabas_corrupt": "x", "id": 1}', {"id": 1}),
]
MISFITS = [
    (None, "the value is empty"),
    ("", "the value is empty"),
    (" ", "not a JSON object:  "),
    ("null", "not a JSON object: null"),
    ("1", "not a JSON object: 1"),
    ('"text"', 'not a JSON object: "text"'),
    ("[]", "not a JSON object: []"),
    ('[{"id": 1}]', 'not a JSON object: [{"id": 1}]'),
    ('{"id": 1', 'not a JSON object: {"id": 1'),
    ('{"id": 1,}', 'not a JSON object: {"id": 1,}'),
    ("{id: 1}", "not a JSON object: {id: 1}"),
    ('{"id": 1} x', 'something follows the JSON value: {"id": 1} x'),
    ('{"id": 1}{"id": 2}', 'something follows the JSON value: {"id": 1}{"id": 2}'),
    ('{"id": 1}\n{"id": 2}', 'something follows the JSON value: {"id": 1} {"id": 2}'),
    ('{"id": 1}, {"id": 2}', 'something follows the JSON value: {"id": 1}, {"id": 2}'),
    ('{"id": 1}]', 'something follows the JSON value: {"id": 1}]'),
    ('{"id": 1}}', 'something follows the JSON value: {"id": 1}}'),
    ('{"id": 1}\0', 'something follows the JSON value: {"id": 1} '),
    ('\ufeff{"id": 1}', 'not a JSON object: \ufeff{"id": 1}'),
    (b'{"text": "\xff\xfe"}', "not UTF-8"),
    (b'{"text": "gr\xfc\xdf"}', "not UTF-8"),
    (b"\x00\x01\x02", "not a JSON object:    "),
    ('{"id": "1"}', 'id is not BIGINT: "1"'),
    ('{"id": 1.5}', "id is not BIGINT: 1.5"),
    ('{"id": 1e3}', "id is not BIGINT: 1000.0"),
    ('{"id": 9223372036854775808}', "id is not BIGINT: 9223372036854775808"),
    (
        '{"id": 1' + "0" * 900 + "}",
        "id is not BIGINT: 1" + "0" * 99 + "...",
    ),
    ('{"n": 2147483648}', "n is not INT: 2147483648"),
    ('{"price": 123456.78}', "price is not DECIMAL(5,2): 123456.78"),
    ('{"at": "yesterday"}', 'at is not TIMESTAMP: "yesterday"'),
    ('{"at": "2026-13-01T00:00:00Z"}', 'at is not TIMESTAMP: "2026-13-01T00:00:00Z"'),
    ('{"day": "2026-02-30"}', 'day is not DATE: "2026-02-30"'),
    ('{"flag": "true"}', 'flag is not BOOLEAN: "true"'),
    ('{"flag": 1}', "flag is not BOOLEAN: 1"),
    ('{"list": [1, "x"]}', 'list is not ARRAY: [1,"x"]'),
    ('{"list": 1}', "list is not ARRAY: 1"),
    ('{"inner": {"x": "y"}}', 'inner is not STRUCT: {"x":"y"}'),
    ('{"inner": {"deep": {"y": "z"}, "x": []}}', 'inner is not STRUCT: {"deep":{"y":"z"},"x":[]}'),
    ('{"inner": [1]}', "inner is not STRUCT: [1]"),
    ('{"pairs": {"a": "b"}}', 'pairs is not MAP: {"a":"b"}'),
]


def test_matching_values_give_these_columns(spark):
    results = fields_or_reason(spark, [value for value, _ in FITTING], fields=FIELDS)
    assert dict(zip([value for value, _ in FITTING], results, strict=True)) == dict(FITTING)


def test_other_values_have_a_reason(spark):
    results = fields_or_reason(spark, [value for value, _ in MISFITS], fields=FIELDS)
    assert list(zip([value for value, _ in MISFITS], results, strict=True)) == MISFITS


def test_not_null_fields_are_required(spark):
    values = ['{"id": 1, "x.y": 2}', '{"x.y": 2}', '{"id": null, "x.y": 2}', '{"id": 1}', "{}"]
    results = fields_or_reason(spark, values, fields="id BIGINT NOT NULL, `x.y` INT NOT NULL")
    assert results == [{"id": 1, "x.y": 2}, "id is missing", "id is missing", "x.y is missing", "id is missing"]


def test_rules_must_hold_and_null_does_not(spark):
    values = ['{"a": 1, "b": 1}', '{"a": -1, "b": 1}', '{"b": 1}', '{"a": 1, "b": 0}', '{"a": 0}', "no"]
    results = fields_or_reason(spark, values, fields="a INT, b INT", rules=["a > 0", "10 / b > 1"])
    assert results == [
        {"a": 1, "b": 1}, 'rule violated: a > 0: {"a":-1}', 'rule violated: a > 0: {"a":null}',
        'rule violated: 10 / b > 1: {"b":0}', 'rule violated: a > 0: {"a":0}', "not a JSON object: no",
    ]  # fmt: skip


def test_rules_refer_to_fields_even_if_the_record_has_columns_with_these_names(spark):
    values = ['{"key": "a", "offset": 7, "value": 1, "reason": "r"}', '{"key": "b", "offset": 7}']
    fields = "key STRING, offset INT, value INT, reason STRING"
    results = fields_or_reason(spark, values, fields=fields, rules=["key = 'a' AND offset = 7 AND reason = 'r'"])
    assert results == [
        {"key": "a", "offset": 7, "value": 1, "reason": "r"},
        "rule violated: key = 'a' AND offset = 7 AND reason = 'r'" + ': {"key":"b","offset":7,"reason":null}',
    ]


def test_a_custom_timestamp_format(spark):
    values = ['{"at": "31.01.2026 12:00"}', '{"at": "2026-01-31T12:00:00Z"}']
    results = fields_or_reason(spark, values, fields="at TIMESTAMP", timestamp_format="dd.MM.yyyy HH:mm")
    assert results == [{"at": at(2026, 1, 31, 12)}, 'at is not TIMESTAMP: "2026-01-31T12:00:00Z"']


def test_matching_records_have_their_position(spark):
    (row,) = fitting(parsed(records(spark, [None, '{"id": 5}', "x"]), Schema(fields="id BIGINT"))).collect()
    assert row.asDict() == {
        "id": 5, "_topic": "in", "_partition": 0, "_offset": 1, "_timestamp": at(2026, 1, 31, 12),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("id BIGNT", "BIGNT"),
        ("id BIGINT,, x INT", "fields cannot be read"),
        ("id", "fields cannot be read"),
        ("a INT, A INT", "A is declared twice|a is declared twice"),
        ("_offset BIGINT", "_offset is reserved"),
    ],
)
def test_invalid_fields_are_one_sentence(spark, fields, message):
    with pytest.raises(MistakeError, match=message) as caught:
        read_fields(fields)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("[schema] fields")


def test_the_types_known_without_spark_are_sparks(spark):
    arguments = {"CHAR": "(3)", "CHARACTER": "(3)", "VARCHAR": "(3)", "ARRAY": "<INT>", "MAP": "<STRING, INT>",
                 "STRUCT": "<x: INT>", "INTERVAL": " YEAR"}  # fmt: skip
    for name in TYPES:
        assert read_fields(f"x {name}{arguments.get(name, '')}").names == ["x"]
        assert unknown_type(f"x {name}{arguments.get(name, '')}") is None
    assert unknown_type("x INT, y STRUCT<a: INT, b: INT> NOT NULL, z: LOONG") == (
        "z has the type LOONG, which Spark SQL does not have; did you mean LONG?"
    )
    assert unknown_type("x INT COMMENT 'a, big thing'") is None
