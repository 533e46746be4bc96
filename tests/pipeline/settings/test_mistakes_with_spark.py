"""Mistakes that only Spark can detect, and runs with a suspicious result: one sentence each."""

from __future__ import annotations

import json

import pytest

from barnabas.spark.errors import MistakeError
from barnabas.spark.main import nothing_fits
from tests.pipeline.runs import produce, run_here

ETL = """
checkpoint = "{where}/checkpoint"
[source]
topic = "{topic}"
[schema]
fields = "{fields}"
rules = {rules}
[columns]
{columns}
[output]
path = "{where}/out"
[dead_letters]
topic = "{topic}-dead"
"""
IVY = """<ivysettings><settings defaultResolver="dead"/>
<resolvers><ibiblio name="dead" m2compatible="true" root="http://127.0.0.1:1/"/></resolvers></ivysettings>"""


@pytest.fixture
def topic_of(broker, create):
    """`topic_of(values) -> name`: a topic with these values."""

    def make(values):
        topic = create()
        produce(broker, topic, [(None, value.encode()) for value in values])
        return topic

    return make


@pytest.fixture
def etl(spark, broker, tmp_path):
    """`etl(topic, ...)`: run the job once in the session of the tests."""

    def run(topic, fields="id BIGINT", rules=(), columns=""):
        text = ETL.format(where=tmp_path, topic=topic, fields=fields, rules=json.dumps(list(rules)), columns=columns)
        (tmp_path / "job.toml").write_text(text)
        return run_here(spark, "etl", broker.bootstrap, tmp_path / "job.toml")

    return run


@pytest.mark.soak
def test_mistakes_in_sql_can_be_corrected_and_a_schema_without_matches_is_reported(spark, etl, topic_of, tmp_path):
    topic = topic_of(['{"id": 1}', '{"id": 2}'])
    for settings, message in (
        ({"fields": "id ARRAY<BIGNT>"}, r"^\[schema\] fields"),
        ({"rules": ["id >"]}, r"^\[schema\] rules: 'id >' is not SQL"),
        ({"rules": ["ids > 1"]}, "^an expression names `ids`, which is not a column; there are id"),
        ({"columns": 'day = "to_dat(id)"'}, "to_dat"),
    ):
        with pytest.raises(MistakeError, match=message) as caught:
            etl(topic, **settings)
        assert "\n" not in str(caught.value)

    failure = nothing_fits(etl(topic, fields="id BIGINT, name STRING NOT NULL"))
    assert failure is not None
    assert failure.exit_code == 1
    assert str(failure).startswith(
        f"not one of 2 records matches the schema: they are in {topic}-dead, with the reason in"
    )
    assert spark.read.parquet(str(tmp_path / "out")).count() == 0
    with pytest.raises(MistakeError, match=r"made with another type of id \(BIGINT before, STRING now\)"):
        etl(topic, fields="id STRING")


@pytest.mark.soak
def test_a_restore_without_an_archive_or_into_a_topic_in_use(spark, broker, topic_of, tmp_path):
    used = topic_of(["x"])

    def restore(path, **target):
        more = "".join(f"{key} = {json.dumps(value)}\n" for key, value in target.items())
        (tmp_path / "job.toml").write_text(f'[archive]\npath = "{path}"\ntopic = "orders"\n[target]\n{more}')
        run_here(spark, "restore", broker.bootstrap, tmp_path / "job.toml")

    with pytest.raises(MistakeError, match=r"there is no archive at .*none: name the path of an archive job"):
        restore(tmp_path / "none")
    spark.range(3).write.parquet(str(tmp_path / "else"))
    with pytest.raises(MistakeError, match=r"there are no records of topic orders in .*else"):
        restore(tmp_path / "else")
    columns = "CAST(NULL AS BINARY) key, CAST('a' AS BINARY) value, NULL headers, 0 partition, 0L offset, "
    row = spark.sql(f"SELECT {columns} current_timestamp() timestamp, 0 timestampType, 'orders' topic")
    row.withColumn("headers", row.headers.cast("ARRAY<STRUCT<key: STRING, value: BINARY>>")).write.partitionBy(
        "topic"
    ).parquet(str(tmp_path / "archive"))
    with pytest.raises(MistakeError, match=f"topic {used} has other records: name another .*, or set append = true"):
        restore(tmp_path / "archive", topic=used)


@pytest.mark.soak
def test_packages_that_spark_cannot_download(spark_jars, command_process, broker, create, tmp_path):
    """Without Maven, so that Spark downloads the connector, and without a network."""
    (tmp_path / "ivy.xml").write_text(IVY)
    (tmp_path / "job.toml").write_text(
        f'checkpoint = "{tmp_path}/checkpoint"\n[source]\ntopic = "{create()}"\n[target]\ntopic = "copy"\n'
        f'[spark]\npackages = true\n[spark.settings]\n"spark.jars.ivySettings" = "{tmp_path}/ivy.xml"\n'
        f'"spark.jars.ivy" = "{tmp_path}/ivy"\n'
    )
    done = command_process(
        "run", "copy", "--config", "job.toml", "-b", broker.bootstrap, "--once", "--progress", "text"
    )
    assert done.returncode == 2, done.stderr
    first, *_, line = done.stderr.splitlines()
    assert first.startswith("downloading Spark's Kafka connector and starting Spark; its log is ")
    assert "Spark could not download its Kafka connector (is there a network?): copy the jars to this machine" in line
