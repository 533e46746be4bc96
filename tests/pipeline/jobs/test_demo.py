"""The demonstration with a part of its data: exit code, results, and cleanup."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.jobs import NAMES, find_job
from barnabas.spark.settings.config import read_config
from tests.support.lazy import lazy, skip_without

skip_without("pandas")
checks, flights, page, run, steps, topics = (
    lazy(f"barnabas.spark.demo.{name}") for name in ("checks", "flights", "page", "run", "steps", "topics")
)
ROOT = Path(__file__).resolve().parents[3]
FLIGHTS = 5000
PATIENCE_S = 290


@pytest.mark.soak
def test_every_job_is_correct_for_a_part_of_the_flights(spark_jars: Path, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "barnabas", "pipeline", "demo", "--flights", str(FLIGHTS), "--report-dir", "report"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "14 of 14 checks passed" in done.stdout
    assert "5,000 of 5,000 flights in Parquet" in done.stdout
    for name in ("index", *NAMES):
        assert (tmp_path / "report" / f"{name}.html").read_text().startswith("<!doctype html>")
    assert not list(temporary.glob("barnabas-demo-*"))


def test_a_wrong_result_is_detected() -> None:
    assert checks.matching("etl", "things", {"a": 1, "b": 2}, {"a": 1, "b": 2}).passed
    for counts in ({"a": 1}, {"a": 1, "b": 3}, {"a": 1, "b": 2, "c": 3}):
        assert not checks.matching("etl", "things", counts, {"a": 1, "b": 2}).passed
    assert not checks.equal("etl", "things", 1, 2).passed


def test_the_flights_are_complete_and_in_order() -> None:
    frame = flights.load()
    assert len(frame) == 336_776
    assert frame["at"].is_monotonic_increasing
    assert sum(1 for _ in flights.events(frame.tail(10))) == 10 + len(flights.BROKEN_EVENTS)


def test_the_files_of_the_jobs_match_the_demonstration(tmp_path: Path) -> None:
    for name in NAMES:
        file = run.job_file(name, tmp_path)
        config = read_config(file, find_job(name).config)
        assert {needed.topic for needed in find_job(name).topics(config)} <= set(topics.OUTPUTS)
    logs: Any = read_config(tmp_path / "jobs" / "logs.toml", find_job("logs").config)
    assert (logs.alerts.error_rate, logs.alerts.min_requests) == (checks.ERROR_RATE, checks.MIN_REQUESTS)


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(MistakeError, match="not empty"):
        run.run_demo(bootstrap=None, data_dir=tmp_path, report_dir=tmp_path, count=10, progress="text")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def demo(**arguments: Any) -> int:
    defaults: dict[str, Any] = {"bootstrap": None, "report_dir": Path("report"), "count": None, "progress": "text"}
    return run.run_demo(**{**defaults, **arguments})


def test_only_a_demonstration_can_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(MistakeError, match="--resume needs the --data-dir"):
        demo(data_dir=None, resume=True)
    steps.Steps.begin(tmp_path, 5)
    with pytest.raises(MistakeError, match="is not empty: choose a new directory, or continue its demonstration with"):
        demo(data_dir=tmp_path)


def test_steps_that_are_done_are_not_done_again(tmp_path: Path) -> None:
    first, timing = steps.Steps.begin(tmp_path, 5), page.Timing("etl", 7, 1.5)
    assert first.run("etl", lambda: timing) == timing
    assert first.run("logs", lambda: None) is None
    again = steps.Steps.resume(tmp_path)
    assert again.count == 5
    assert (again.is_done("etl"), again.is_done("logs")) == (True, False)
    assert again.run("etl", lambda: pytest.fail("done before")) == timing
    (tmp_path / "demo.json").write_text("{")
    with pytest.raises(MistakeError, match="is not the directory of a demonstration"):
        steps.Steps.resume(tmp_path)


def test_a_failed_demonstration_keeps_its_directory_and_says_how_to_continue() -> None:
    with pytest.raises(PipelineError) as caught, run._work_directory(None, "127.0.0.1:9", resume=False) as work:
        raise PipelineError("Spark failed")
    try:
        assert str(caught.value) == (
            f"Spark failed; to continue: barnabas pipeline demo --data-dir {work} --bootstrap 127.0.0.1:9 --resume"
        )
        assert work.is_dir()
    finally:
        work.rmdir()


def test_a_demonstration_that_ends_leaves_no_directory() -> None:
    with run._work_directory(None, None, resume=False) as work:
        (work / "file").touch()
    assert not work.exists()
