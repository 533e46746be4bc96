"""events: states by key over batches and restarts, in the configured order, with tombstones and versions."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import PySparkException

from barnabas.spark.failures import WorkerNotStartedError, sentence_of
from barnabas.spark.frames.schema import fitting, parsed
from barnabas.spark.jobs.events import EventsConfig, as_records, keyed_schema, state_of, transform
from barnabas.spark.session.spark import ATTEMPTS
from tests.pipeline.records import mistake, record, records
from tests.support.spark.session import frame_of

FIELDS = "who STRING, text STRING, n INT, at TIMESTAMP"


def config(state=None, **more):
    return EventsConfig.model_validate(
        {
            "source": {"topic": "in"},
            "schema": {"fields": FIELDS},
            "state": {"key": "who", **(state or {"fields": {"n": "count()", "last": "last(text)", "sum": "sum(n)"}})},
            "output": {"topic": "out"},
            "dead_letters": {"topic": "dead"},
            **more,
        }
    )


def event(who, text, n=1, at="2026-01-31T12:00:00Z"):
    return json.dumps({"who": who, "text": text, "n": n, "at": at})


class Stream:
    """The job's transform as a stream over Parquet files of records, a batch per file."""

    def __init__(self, spark, job, where):
        self.spark, self.job, self.where, self.offset = spark, job, where, 0
        records(spark, []).write.parquet(str(where / "in"))

    def feed(self, *batches):
        """The output of each batch, `{key: (state, version)}`; the query is restarted for the batches."""
        collected = []
        query = self._start(collected)
        try:
            outputs = []
            for batch in batches:
                self._write(batch)
                collected.clear()
                query = self._processed(query, collected)
                rows = [row for rows in collected for row in rows]
                outputs.append({row.key: (row.state and json.loads(row.state), row.version) for row in rows})
            return outputs
        finally:
            query.stop()

    def _start(self, collected):
        schema = records(self.spark, []).schema
        frame = self.spark.readStream.schema(schema).parquet(str(self.where / "in"))
        frame = transform(fitting(parsed(frame, keyed_schema(self.job))), self.job)
        return (
            frame.writeStream.outputMode("update")
            .option("checkpointLocation", str(self.where / "checkpoint"))
            .foreachBatch(lambda batch, _: collected.append(batch.collect()))
            .start()
        )

    def _write(self, batch):
        rows = [value if isinstance(value, tuple) else record(value, self.offset + n) for n, value in enumerate(batch)]
        self.offset += len(batch)
        records(self.spark, rows).coalesce(1).write.mode("append").parquet(str(self.where / "in"))

    def _processed(self, query, collected):
        """Wait for the batch; if a Python worker did not start in time, with a new query, as a run does. The query."""
        for _ in range(ATTEMPTS - 1):
            try:
                query.processAllAvailable()
            except PySparkException as error:
                if not isinstance(sentence_of(error, "here"), WorkerNotStartedError):
                    raise
                collected.clear()
                query = self._start(collected)
            else:
                return query
        query.processAllAvailable()
        return query


@pytest.mark.soak
def test_states_are_kept_over_batches_and_restarts(spark, tmp_path):
    stream = Stream(spark, config(), tmp_path)
    first = [event("a", "x", 2), event("b", "y"), event("a", "z", 3), "no JSON", event(None, "x")]
    assert stream.feed(first, [event("a", None, None)]) == [
        {"a": ({"last": "z", "n": 2, "sum": 5}, 2), "b": ({"last": "y", "n": 1, "sum": 1}, 1)},
        {"a": ({"last": "z", "n": 3, "sum": 5}, 3)},
    ]
    assert stream.feed([event("b", "w", 9)]) == [{"b": ({"last": "w", "n": 2, "sum": 10}, 2)}]


@pytest.mark.soak
def test_a_function_may_remove_a_key_and_start_again(spark, tmp_path):
    stream = Stream(spark, config({"function": "tests.pipeline.folds:until_closed"}), tmp_path)
    assert stream.feed(
        [event("a", "open"), event("a", "pay")],
        [event("a", "close")],
        [event("a", "open")],
        [event("a", "close"), event("a", "again")],
    ) == [
        {"a": ({"texts": ["open", "pay"]}, 2)}, {"a": (None, 3)}, {"a": ({"texts": ["open"]}, 4)},
        {"a": ({"texts": ["again"]}, 6)},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("order_by", "events"),
    [
        (
            "n",
            [event("a", "last", 10), event("a", "first", 9), event("b", "last", 1), event("b", "first", None),
             event("c", "first", 1), event("c", "last", 1)],
        ),
        ("at", [event("a", "last", at="2026-01-31T12:00:00.5Z"), event("a", "first", at="2026-01-31T12:00:00Z")]),
    ],
)  # fmt: skip
def test_the_order_of_a_keys_events_in_a_batch(spark, tmp_path, order_by, events):
    """Numbers and times are not compared as text; equal events keep the topic's order."""
    job = config({"fields": {"first": "first(text)", "last": "last(text)"}, "order_by": order_by})
    rows = [record(value, offset) for offset, value in enumerate(events)]
    (states,) = Stream(spark, job, tmp_path).feed(rows[::-1])
    assert {key: state for key, (state, _) in states.items()} == {
        key: {"first": "first", "last": "last"} for key in states
    }
    assert len(states) == len(events) // 2


def test_a_removed_state_is_a_tombstone_and_each_version_has_its_id(spark):
    rows = [("a", '{"n": 1}', 1), ("a", None, 2), ("b", '{"n": 1}', 1)]
    snapshots = frame_of(spark, rows, "key STRING, state STRING, version BIGINT")
    records = as_records(snapshots, "job").collect()
    assert [(row.key, row.value) for row in records] == [("a", '{"n": 1}'), ("a", None), ("b", '{"n": 1}')]
    again = as_records(snapshots, "job").collect()
    assert [row.event_id for row in records] == [row.event_id for row in again]
    assert len({row.event_id for row in records}) == 3
    assert {row.event_id for row in as_records(snapshots, "other").collect()}.isdisjoint(r.event_id for r in records)


def test_events_without_a_key_are_dead_letters(spark):
    checked = parsed(records(spark, [event(None, "x"), event("a", "x"), "{}"]), keyed_schema(config())).collect()
    rule = "rule violated: (who) IS NOT NULL"
    without = (rule, rule + ': {"who":null}')
    assert [(row.kind, row.reason) for row in checked] == [without, (None, None), without]


def test_settings_of_states_may_not_change():
    assert state_of(config()) != state_of(config({"fields": {"n": "count()"}}))
    assert state_of(config()) == state_of(config(source={"topic": "in", "start": "latest"}))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"fields": {"x": "last(txt)"}}, r"\[state.fields\] x: there is no column txt; there are who, text, n, at"),
        ({"fields": {"x": "sum(text)"}}, "sum needs a number"),
        ({"key": "who +", "fields": {"x": "count()"}}, r"\[state\] key: 'who \+' is not SQL"),
        ({"order_by": "n n n", "fields": {"x": "count()"}}, r"\[state\] order_by: 'n n n' is not SQL"),
    ],
)
def test_a_mistake_is_one_sentence(spark, state, message):
    job = config(state)
    with mistake(message):
        transform(fitting(parsed(records(spark, ["{}"]), keyed_schema(job))), job)
