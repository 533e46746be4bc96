"""`read_topic` and `write_topic`: their results, and mistakes as one sentence without Java's trace."""

from __future__ import annotations

import socket
import traceback

import pytest

from barnabas.pipeline import deduplicated, read_topic, write_topic
from barnabas.spark.errors import BrokerUnavailableError, MistakeError, NotFoundError, PipelineError
from tests.pipeline.runs import consume
from tests.support.spark.session import frame_of


@pytest.fixture
def refused():
    """An address without a listener."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def sentence(kind, call):
    """The sentence of an error, which is all that Python and IPython show of what caused it."""
    with pytest.raises(kind) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value))
    assert "direct cause" not in shown
    assert "During handling" not in shown
    assert "\n" not in str(caught.value)
    assert caught.value._render_traceback_() == [f"{kind.__name__}: {caught.value}"]
    return str(caught.value)


def test_rows_written_are_read(spark, broker, topic_name, capsys):
    name = topic_name()
    rows = frame_of(spark, [("a", 1), ("b", 2)], "key STRING, n INT")
    write_topic(rows, name, bootstrap=broker.bootstrap)
    assert f"created topic {name}" in capsys.readouterr().err
    write_topic(rows.selectExpr("key", "CAST(n AS STRING) AS value"), name, bootstrap=broker.bootstrap)
    assert "created" not in capsys.readouterr().err
    assert sorted(message.value() for message in consume(broker, name)) == [b"1", b"2", b'{"n":1}', b'{"n":2}']
    frame = read_topic(name, bootstrap=broker.bootstrap, spark=spark)
    assert frame.count() == 4
    assert read_topic([name], bootstrap=broker.bootstrap, end="2020-01-01T00:00:00Z", spark=spark).count() == 0


def test_mistakes_of_reading(spark, broker, refused, create):
    there = create()

    def read(topic=there, bootstrap=broker.bootstrap, **more):
        return lambda: read_topic(topic, bootstrap=bootstrap, spark=spark, **more)

    assert f"no broker answers at {refused}" in sentence(BrokerUnavailableError, read(bootstrap=refused))
    assert "did you mean" in sentence(NotFoundError, read(topic=there[:-1]))
    assert sentence(MistakeError, read(bootstrap=9092)) == "bootstrap: it should be HOST:PORT, not 9092"
    assert "write HOST:PORT" in sentence(MistakeError, read(bootstrap="localhost"))
    assert sentence(MistakeError, read(topic=7)) == "topic: it should be a name, or a list of names, not 7"
    assert "start: it should be earliest, latest, a time" in sentence(MistakeError, read(start="soon"))
    assert "start: it should be earliest, latest, a time" in sentence(MistakeError, read(end=12))


def test_mistakes_of_writing(spark, broker, refused, create):
    there = create()

    def write(columns, topic=there, bootstrap=broker.bootstrap, **more):
        frame = spark.range(1).selectExpr(*columns) if isinstance(columns, tuple) else columns
        return lambda: write_topic(frame, topic, bootstrap=bootstrap, **more)

    text = ("'x' AS value",)
    assert f"no broker answers at {refused}" in sentence(BrokerUnavailableError, write(text, bootstrap=refused))
    assert "write_topic needs a DataFrame of Spark, not builtins.list" in sentence(MistakeError, write([1]))
    assert "the column value is BIGINT and should be STRING or BINARY: CAST it" in sentence(
        MistakeError, write(("id AS value",))
    )
    assert "the column key is BIGINT" in sentence(MistakeError, write(("id AS key", "1 AS n")))
    assert "the column headers is STRING and should be ARRAY" in sentence(
        MistakeError, write(("'x' AS value", "'h' AS headers"))
    )
    assert "write_topic needs a column value" in sentence(MistakeError, write(("'k' AS key",)))
    assert "topic: it should be a name, not None" in sentence(MistakeError, write(text, topic=None))
    assert "is a stream: start it with writeStream" in sentence(
        MistakeError, write(read_topic(there, bootstrap=broker.bootstrap, spark=spark, stream=True))
    )
    failing = spark.range(1).selectExpr("CAST(raise_error('no luck') AS STRING) AS value")
    assert "no luck" in sentence(PipelineError, write(failing))


def test_deduplicated_needs_the_columns_of_a_topic(spark):
    with pytest.raises(MistakeError, match="there is no column topic"):
        deduplicated(spark.range(1))
