"""analytics: tumbling and overlapping windows, keys, late events, final and changing results."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError
from pyspark.sql import functions as f

from barnabas.spark.frames.schema import fitting, parsed
from barnabas.spark.jobs.analytics import AnalyticsConfig, state_of, timed_schema, transform
from barnabas.spark.progress import read_batch
from barnabas.spark.report.results import CHANGES, as_json_records, show, table_text
from tests.pipeline.records import mistake, records
from tests.support.spark.session import frame_of

FIELDS = "at STRING, who STRING, amount DOUBLE"


def config(size="10 minutes", slide="", watermark="10 minutes", **more):
    return AnalyticsConfig.model_validate(
        {
            "source": {"topic": "in"},
            "schema": {"fields": FIELDS},
            "window": {"time": "at", "size": size, "slide": slide, "watermark": watermark, **more.pop("window", {})},
            "keys": {"who": "who"},
            "aggregates": {"n": "count(*)", "total": "sum(amount)"},
            "output": {"topic": "out"},
            "dead_letters": {"topic": "dead"},
            **more,
        }
    )


def event(minute, who="a", amount=1.0, second=0):
    return f'{{"at": "2026-01-31T12:{minute:02}:{second:02}Z", "who": "{who}", "amount": {amount}}}'


def at(minute, hour=12):
    return datetime(2026, 1, 31, hour, minute, tzinfo=UTC).replace(tzinfo=None)


def results(spark, values, job):
    frame = transform(fitting(parsed(records(spark, values), timed_schema(job))), job)
    return frame.orderBy("window_start", *job.keys).collect()


def test_tumbling_windows_by_key(spark):
    rows = results(spark, [event(0), event(9, second=59), event(10), event(5, "b", 0.5), event(19, "b", 4)], config())
    assert [tuple(row) for row in rows] == [
        (at(0), at(10), "a", 2, 2.0, 2), (at(0), at(10), "b", 1, 0.5, 1),
        (at(10), at(20), "a", 1, 1.0, 1), (at(10), at(20), "b", 1, 4.0, 1),
    ]  # fmt: skip


def test_windows_that_overlap_count_an_event_in_each(spark):
    rows = results(spark, [event(7), event(12)], config(slide="5 minutes"))
    assert [(row.window_start, row.n) for row in rows] == [(at(0), 1), (at(5), 2), (at(10), 1)]


def test_no_keys_make_one_row_a_window(spark):
    rows = results(spark, [event(0), event(1, "b"), event(10)], config(keys={}))
    assert [(row.window_start, row.n, row.total) for row in rows] == [(at(0), 2, 2.0), (at(10), 1, 1.0)]


def test_keys_and_numbers_may_have_any_name_and_null_is_a_key(spark):
    job = config(keys={"who.is": "who", "big one": "amount > 2"}, aggregates={"max.amount": "max(amount)"})
    frame = transform(fitting(parsed(records(spark, ['{"at": "2026-01-31T12:00:00Z"}']), timed_schema(job))), job)
    assert frame.columns == ["window_start", "window_end", "who.is", "big one", "max.amount", CHANGES]
    (row,) = as_json_records(frame, "job", ["window_start", "who.is"]).collect()
    assert json.loads(row.key) == {"window_start": "2026-01-31T12:00:00.000Z"}
    assert json.loads(row.value)["window_end"] == "2026-01-31T12:10:00.000Z"


def test_events_without_a_time_are_dead_letters(spark):
    values = ['{"who": "a"}', '{"at": "yesterday", "who": "a"}', event(0)]
    checked = parsed(records(spark, values), timed_schema(config())).collect()
    assert [row.reason is None for row in checked] == [False, False, True]
    assert all(row.reason.startswith("rule violated: ") for row in checked[:2])


def test_the_id_of_a_result_is_its_windows_its_keys_and_its_state(spark):
    def ids(values, name="job"):
        frame = transform(fitting(parsed(records(spark, values), timed_schema(config()))), config())
        rows = as_json_records(frame, name, ["window_start", "who"]).collect()
        return [(row.key, row.event_id) for row in rows]

    ((key, first),), ((_, again),) = ids([event(0)]), ids([event(0)])
    ((same_key, more),), ((_, other),) = ids([event(0), event(1)]), ids([event(0)], "other")
    assert json.loads(key) == {"window_start": "2026-01-31T12:00:00.000Z", "who": "a"}
    assert (key, first) == (same_key, again)
    assert len({first, more, other}) == 3


class Stream:
    """The job's transform over files that are added one by one, a batch per file."""

    def __init__(self, spark, job, where, mode):
        where.joinpath("in").mkdir()
        self.where, self.number, self.batches = where, 0, []
        lines = spark.readStream.text(str(where / "in"), wholetext=False)
        columns = records(spark, []).columns
        expressions = {
            "key": "CAST(NULL AS BINARY)", "value": "CAST(value AS BINARY)", "topic": "'in'", "partition": "0",
            "offset": "0L", "timestamp": "TIMESTAMP'2026-01-31'", "timestampType": "0",
            "headers": "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>)",
        }  # fmt: skip
        frame = lines.select(*[f.expr(expressions[name]).alias(name) for name in columns])
        frame = transform(fitting(parsed(frame, timed_schema(job))), job)
        self.query = (
            frame.observe("rows_out", f.count(f.lit(1)).alias("rows"))
            .writeStream.outputMode(mode)
            .option("checkpointLocation", str(where / "checkpoint"))
            .foreachBatch(lambda batch, _: self.batches.append(batch.collect()))
            .start()
        )

    def feed(self, *values):
        """The rows written until all input is processed."""
        self.number += 1
        fresh = self.where / f"{self.number}.txt"
        fresh.write_text("\n".join(values))
        fresh.rename(self.where / "in" / fresh.name)
        self.batches.clear()
        self.query.processAllAvailable()
        return sorted((row.window_start, row.who, row.n) for batch in self.batches for row in batch)


@pytest.mark.soak
def test_final_results_are_written_once_and_later_events_are_counted_as_late(spark, tmp_path):
    stream = Stream(spark, config(watermark="5 minutes"), tmp_path, "append")
    try:
        assert stream.feed(event(1), event(9), event(12)) == []
        assert stream.feed(event(8)) == []
        assert stream.feed(event(16)) == [(at(0), "a", 3)]
        assert stream.feed(event(2), event(17)) == []
        late = [read_batch("q", progress).late for progress in stream.query.recentProgress]
        assert sum(late) == 1
        assert stream.feed(event(59)) == [(at(10), "a", 3)]
    finally:
        stream.query.stop()


def test_updates_are_written_each_time_a_window_changes(spark, tmp_path):
    stream = Stream(spark, config(emit="updates"), tmp_path, "update")
    try:
        assert stream.feed(event(1), event(11)) == [(at(0), "a", 1), (at(10), "a", 1)]
        assert stream.feed(event(2)) == [(at(0), "a", 2)]
    finally:
        stream.query.stop()


def test_the_terminal_shows_the_latest_results_whatever_is_in_them(spark, capsys):
    rows = frame_of(spark, [(n, "[/red] [b]x", 1.5, None) for n in range(5)], "n INT, t STRING, d DOUBLE, z INT")
    show(rows, 2, ["n"])
    text = capsys.readouterr().out
    assert "[/red] [b]x" in text
    assert [line.split()[0] for line in text.splitlines() if "x" in line] == ["3", "4"]
    assert table_text(["a"], [["\x1b[31mred"]]) == "A\n\\x1b[31mred"
    show(rows.where("n > 9"), 2, ["n"])
    assert capsys.readouterr().out == ""


def test_settings_of_open_windows_may_not_change():
    first, other = state_of(config()), state_of(config(size="1 hour"))
    assert list(first) == ["[window]", "[keys]", "[aggregates]"]
    assert first["[keys]"] == other["[keys]"]
    assert first["[window]"] != other["[window]"]


def test_duplicate_names_are_refused():
    for settings in (
        {"keys": {"n": "who"}},
        {"keys": {"window_start": "who"}},
        {"aggregates": {"_changes": "count(*)"}},
    ):
        with pytest.raises(ValidationError, match="is used already"):
            config(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"keys": {"x": "whom"}}, "names `whom`, which is not a column; there are .*who"),
        ({"aggregates": {"x": "sum("}}, r"\[aggregates\] x: 'sum\(' is not SQL"),
        ({"aggregates": {"x": "amount"}}, "amount"),
        ({"window": {"time": "at +"}}, "is not SQL"),
        ({"size": "an hour"}, "an hour"),
        ({"slide": "1 hour"}, "Spark cannot run the job's file"),
        ({"watermark": "soon"}, "soon"),
    ],
)
def test_a_mistake_in_sql_is_one_sentence(spark, settings, message):
    with mistake(message):
        results(spark, ["{}"], config(**settings))
