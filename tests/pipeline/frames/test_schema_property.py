"""For any bytes, a record either matches or is an unchanged dead letter."""

from __future__ import annotations

import json
import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.spark.frames.misfits import LONGEST_HELD
from barnabas.spark.frames.schema import dead_letters, fitting, parsed
from barnabas.spark.settings.config import Schema
from barnabas.spark.topics.kafka import EVENT_ID, with_event_id
from tests.pipeline.records import record, records

EXAMPLES = int(os.environ.get("BARNABAS_EXAMPLES", "0")) // 100 or 8
FIELDS = "id BIGINT NOT NULL, text STRING, ratio DOUBLE, tags ARRAY<STRING>, inner STRUCT<x: INT>"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "text", "x"]), inner),
    max_leaves=5,
)
NEARLY = st.fixed_dictionaries(
    {"id": st.integers(-5, 5) | JSON},
    optional={"text": st.text() | JSON, "ratio": st.floats() | JSON, "tags": JSON, "inner": JSON},
)
ENCODED = st.builds(lambda value: json.dumps(value).encode(), NEARLY | JSON)
CUT = st.builds(lambda value, at: value[:at], ENCODED, st.integers(0, 40))
VALUES = st.none() | ENCODED | CUT | st.binary(max_size=40) | st.builds(lambda a, b: a + b, ENCODED, ENCODED)
HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)
RECORDS = st.lists(st.tuples(st.none() | st.binary(max_size=5), VALUES, HEADERS), min_size=20, max_size=120)


def strictly_json(value):
    """Whether these bytes are one JSON object in UTF-8; Spark also accepts single quotes, and is never stricter."""
    try:
        return isinstance(json.loads(value.decode()), dict)
    except (ValueError, RecursionError):
        return False


def generated():
    """The records of all examples: Spark takes as long for one list as for all of them."""
    cases = []

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(RECORDS)
    def collect(more):
        cases.extend(more)

    collect()
    return cases


def test_every_record_is_either_a_match_or_a_dead_letter(spark):
    cases = generated()
    rows = [
        record(value, n, key=key, headers=headers, partition=n % 3) for n, (key, value, headers) in enumerate(cases)
    ]
    checked = parsed(records(spark, rows), Schema(fields=FIELDS, rules=["id <> 3"])).cache()
    good = {row._offset: row for row in fitting(checked).collect()}
    bad = {int(row.event_id.split("/")[2]): row for row in with_event_id(dead_letters(checked), "event_id").collect()}
    checks = checked.select("kind", "reason").collect()
    kinds = checked.schema["kind"].metadata["kinds"]
    checked.unpersist()
    for check in checks:
        assert (check.kind is None) == (check.reason is None)
        assert check.kind is None or (check.kind in kinds and check.reason.startswith(check.kind))
        assert len(check.reason or "") <= max(map(len, kinds)) + LONGEST_HELD + len(": ...")

    assert not good.keys() & bad.keys()
    assert good.keys() | bad.keys() == set(range(len(cases)))
    for n in good:
        assert cases[n][1] is not None
        assert cases[n][1].lstrip().startswith(b"{"), cases[n]
        assert good[n].id is not None, cases[n]
        assert good[n].id != 3, cases[n]
    for n, row in bad.items():
        key, value, headers = cases[n]
        assert (row.key, row.value) == (key, value)
        assert [(h.key, h.value) for h in row.headers][: len(headers or [])] == (headers or [])
        more = {h.key: bytes(h.value).decode() for h in row.headers[len(headers or []) :]}
        assert more.pop("barnabas-reason"), cases[n]
        assert more == {
            "barnabas-topic": "in", "barnabas-partition": str(n % 3), "barnabas-offset": str(n),
            EVENT_ID: f"in/{n % 3}/{n}",
        }  # fmt: skip
    for n, (_, value, _) in enumerate(cases):
        if value is not None and strictly_json(value) and fits(json.loads(value)):
            assert n in good, value


def fits(fields):
    """Values that must match; others may or may not."""
    id_, text = fields.get("id"), fields.get("text")
    known = fields.keys() <= {"id", "text"} and isinstance(text, str | None)
    return known and type(id_) is int and -(2**63) <= id_ < 2**63 and id_ != 3
