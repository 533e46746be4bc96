"""The session of the pipeline: failed tasks are tried again, and nothing is left in the working directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from barnabas.pipeline.spark import log_file


def test_a_failed_task_is_tried_again(spark, tmp_path):
    mark = tmp_path / "failed"

    def once(value):
        if not mark.exists():
            mark.touch()
            raise OSError("only the first time")
        return value

    assert spark.sparkContext.parallelize([7], 1).map(once).collect() == [7]
    assert mark.exists()


def test_spark_makes_no_directories_in_the_working_directory(spark):
    spark.range(3).count()
    left = {"artifacts", "spark-warehouse", "metastore_db", "derby.log"}
    assert not left & {path.name for path in Path.cwd().iterdir()}


def test_the_errors_of_a_task_are_in_sparks_log(spark, capfd):
    log = log_file()
    assert log is not None
    before = log.stat().st_size

    def fail(value):
        raise OSError("a failure for the log")

    with pytest.raises(Py4JJavaError, match="a failure for the log"):
        spark.sparkContext.parallelize([7], 1).map(fail).collect()
    assert "a failure for the log" in log.read_text()[before:]
    assert "a failure for the log" not in "".join(capfd.readouterr())
