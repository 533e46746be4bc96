"""What fails because the machine is busy is tried again: tasks by Spark, the start of a Python worker by us."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from barnabas.spark.checkpoint import Checkpoint
from barnabas.spark.errors import PipelineError
from barnabas.spark.failures import sentence_of
from barnabas.spark.jobs import find_job
from barnabas.spark.run import Run, _execute
from barnabas.spark.session.spark import ATTEMPTS, with_retries
from barnabas.spark.settings.config import JobConfig
from tests.support.cases import for_each

BUSY = "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat org.apache.spark.api.python"


@for_each(
    ("master", "wanted"),
    [
        ("local", "local[1,4]"), ("local[2]", "local[2,4]"), ("local[*]", "local[*,4]"), ("local[2,1]", "local[2,1]"),
        ("yarn", "yarn"), ("local-cluster[1,1,512]", "local-cluster[1,1,512]"),
    ],
)  # fmt: skip
def test_tasks_of_one_machine_are_tried_again(master, wanted):
    assert with_retries(master) == wanted


def failing(times, text=BUSY):
    """A run whose queries fail as often, and the list of its attempts."""
    attempts = []

    def flows(*_):
        attempts.append(len(attempts) + 1)
        if len(attempts) <= times:
            raise PySparkException(text)
        return []

    return Run(replace(find_job("copy"), flows=flows), JobConfig(), "127.0.0.1:1"), attempts


def execute(run, path):
    _execute(run, SimpleNamespace(), Checkpoint(str(path)), {"availableNow": True}, lambda *_: None)


def test_queries_continue_if_a_python_worker_did_not_start(tmp_path, capsys):
    run, attempts = failing(ATTEMPTS - 1)
    execute(run, tmp_path)
    assert attempts == [1, 2, 3, 4]
    first, *_ = capsys.readouterr().err.splitlines()
    assert first == (
        "a Python worker of Spark did not start within 10 s: the machine is busy; "
        "copy continues where it was, attempt 2 of 4"
    )


def test_the_attempts_have_an_end(tmp_path):
    run, attempts = failing(ATTEMPTS)
    with pytest.raises(
        PipelineError, match=r"^a Python worker of Spark did not start within 10 s: the machine is busy"
    ):
        execute(run, tmp_path)
    assert attempts == [1, 2, 3, 4]


def test_other_failures_are_not_repeated(tmp_path):
    run, attempts = failing(1, "No space left on device")
    with pytest.raises(PipelineError, match="the disk is full"):
        execute(run, tmp_path)
    assert attempts == [1]


def test_the_sentence_names_sparks_log(tmp_path):
    error = sentence_of(PySparkException(BUSY), "127.0.0.1:1")
    error.log = tmp_path / "spark.log"
    assert str(error).endswith(f"the machine is busy (Spark's log: {tmp_path}/spark.log)")
