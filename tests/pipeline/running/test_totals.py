"""What a run knows at its end, for summary and report: rows, dead letters by reason, offsets, outputs and files."""

from __future__ import annotations

from barnabas.spark.report.report import files_since
from tests.pipeline.runs import consume, header, produce, run_here

ETL = """
checkpoint = "{where}/checkpoint"
[source]
topic = "{topic}"
[schema]
fields = "id BIGINT NOT NULL, amount DOUBLE"
rules = ["amount >= 0"]
[output]
path = "{where}/out"
[dead_letters]
topic = "{topic}-dead"
"""
VALUES = ['{"id": 1, "amount": 1}', '{"id": "x1"}', '{"id": "x2"}', '{"amount": 3}', '{"id": 2, "amount": -1}', "no"]
REASONS = {"id is not BIGINT": 2, "id is missing": 1, "rule violated: amount >= 0": 1, "not a JSON object": 1}


def test_the_totals_of_a_run(spark, broker, create, tmp_path):
    topic = create()
    (tmp_path / "job.toml").write_text(ETL.format(where=tmp_path, topic=topic))
    produce(broker, topic, [(None, value.encode()) for value in VALUES])
    run = run_here(spark, "etl", broker.bootstrap, tmp_path / "job.toml")

    good, dead = run.progress.totals["etl.parquet"], run.progress.totals["etl.dead-letters"]
    assert (good.rows_in, good.rows_out, dead.rows_in, dead.rows_out) == (6, 1, 6, 5)
    assert (dict(good.reasons), dict(dead.reasons)) == ({}, REASONS)
    for totals in (good, dead):
        assert (totals.starts, totals.offsets) == ({topic: {0: 0}}, {topic: {0: 6}})
        assert totals.phases_ms["addBatch"] > 0
    assert run.outputs == {"parquet": f"{tmp_path}/out", "dead-letters": f"topic {topic}-dead"}
    assert run.phases.keys() == {"checks", "start of Spark", "queries"}
    files = files_since(f"{tmp_path}/out", run.started_at)
    assert files is not None
    assert files.number == len(list((tmp_path / "out").glob("*.parquet")))
    assert files.size == sum(path.stat().st_size for path in (tmp_path / "out").glob("*.parquet"))
    assert [header(message, "barnabas-reason") for message in consume(broker, f"{topic}-dead")] == [
        'id is not BIGINT: "x1"', 'id is not BIGINT: "x2"', "id is missing",
        'rule violated: amount >= 0: {"amount":-1.0}', "not a JSON object: no",
    ]  # fmt: skip
