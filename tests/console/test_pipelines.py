"""Pipelines: checkpoints, logs and dead letters of a folder, as runs leave them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.console.pipelines.folder import find_pipelines
from tests.support.console.browser import Browser
from tests.support.console.running import RunningConsole, running_console
from tests.support.processes.commands import call_command

BATCH = {
    "event": "batch",
    "query": "etl.parquet",
    "batch": 0,
    "at": "2026-11-21T21:38:12.000+00:00",
    "rows_in": 5007,
    "rows_out": 5000,
    "late": 0,
    "duration_ms": 1840,
    "offsets": {"flights": {"0": 3}},
    "starts": {},
    "reasons": {"<b>bad</b> time": 7},
    "phases_ms": {},
}
DONE = {
    "event": "done",
    "job": "etl",
    "name": "etl",
    "seconds": 12.5,
    "error": None,
    "queries": {
        "etl.parquet": {
            "batches": 1, "rows_in": 5007, "rows_out": 5000, "late": 0, "dead_letters": {"<b>bad</b> time": 7},
            "busy_ms": 1, "lag": {},
        },
        "etl": {"rows_in": 5007, "rows_out": 5000},
    },
}  # fmt: skip


def _lines(*events: object) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def folder(tmp_path: Path, topic: str) -> Path:
    """What a run of `etl` leaves; its next offset is 3 of a topic with five records."""
    checkpoint = tmp_path / "checkpoints" / "etl"
    for name in ("offsets", "commits"):
        (checkpoint / "etl.parquet" / name).mkdir(parents=True)
    (checkpoint / "etl.parquet" / "metadata").write_text("{}")
    offsets = json.dumps({topic: {"0": 3}})
    for batch in ("0", "1"):
        (checkpoint / "etl.parquet" / "offsets" / batch).write_text(f"v1\n{{}}\n{offsets}\n")
    (checkpoint / "etl.parquet" / "commits" / "0").write_text("v1\n{}")
    owner = {"job": "etl", "name": "etl", "source": topic, "output": "out", "fields": {}, "topic_ids": {}}
    (checkpoint / "barnabas-job.json").write_text(json.dumps(owner))
    job = f'checkpoint = "checkpoints/etl"\n[dead_letters]\ntopic = "{topic}-dead"\n'
    (tmp_path / "etl.toml").write_text(job)
    (tmp_path / "etl.html").write_text("<!doctype html><title>etl: done</title>")
    (tmp_path / "etl.jsonl").write_text(_lines({"event": "activity", "what": "starting", "seconds": 0}, BATCH, DONE))
    return tmp_path


@pytest.fixture
def piped(broker, folder: Path, topic: str) -> Iterator[RunningConsole]:
    """A console that shows the folder."""
    for name, lines in ((topic, "a\nb\nc\nd\ne\n"), (f"{topic}-dead", "x\ny\n")):
        options = () if name == topic else ("-H", "barnabas-reason=<i>no price</i>")
        ran = call_command("produce", name, *options, stdin=lines, bootstrap=broker.bootstrap)
        assert ran.code == 0, ran.stderr
    with running_console(broker.bootstrap, pipelines=str(folder)) as console:
        yield console


def test_a_run_is_shown_with_progress_and_dead_letters_by_reason(piped: RunningConsole, topic: str) -> None:
    (row,) = piped.json("/pipelines")["pipelines"]["rows"]
    assert (row["name"], row["lag"], row["outcome"], row["dead_letters"]) == ("etl", 2, "done", 7)
    view = piped.json("/pipelines/checkpoints%2Fetl")
    assert view["queries"][0]["unfinished"]
    assert [(each["offset"], each["end"], each["lag"]) for each in view["progress"]] == [(3, 5, 2)]
    assert view["dead_letter_topic"] == f"{topic}-dead"
    assert [(each["reason"], each["count"]) for each in view["reasons"]] == [("<i>no price</i>", 2)]
    assert view["runs"][0]["rows_in"] == 5007
    page = piped.html("/pipelines/checkpoints%2Fetl")
    assert "<i>no price</i>" not in page
    assert "<b>bad</b>" not in page
    assert f'href="/messages/{topic}-dead"' in page
    assert "etl.html" in page


def test_paths_lead_nowhere_else(piped: RunningConsole) -> None:
    for path in ("..%2F..", "%2Fetc", "checkpoints", "checkpoints%2F..%2Fcheckpoints%2Fetl"):
        assert "there is no pipeline" in piped.json(f"/pipelines/{path}", status=404)["error"]


def test_files_that_are_incomplete_or_of_others_are_left_out(folder: Path) -> None:
    (folder / "bad.toml").write_text("checkpoint = ")
    (folder / "bad.jsonl").write_text('{"event": "batch", "query": "etl.parquet"}\n{"event": "done"}')
    (folder / "list.json").write_text("[1, 2]")
    (folder / "running.jsonl").write_text(_lines(BATCH) + '{"event": "ba')
    (folder / "other").mkdir()
    (folder / "other" / "barnabas-job.json").write_text("{")
    (folder / "outside").symlink_to("/etc")
    (pipeline,) = find_pipelines(folder)
    assert sorted(run.outcome for run in pipeline.runs) == ["done", "running"]
    assert pipeline.runs[1].dead_letters == {"<b>bad</b> time": 7}
    offsets = folder / "checkpoints" / "etl" / "etl.parquet" / "offsets" / "0"
    offsets.write_text("v1\n{}\n{incomplete")
    assert find_pipelines(folder)[0].queries[0].offsets == {}


def test_without_a_folder_one_sentence_says_how_to_get_it(console: RunningConsole, broker, tmp_path: Path) -> None:
    assert "--pipelines DIR" in console.text("/pipelines")
    with running_console(broker.bootstrap, pipelines=str(tmp_path / "none")) as other:
        assert "No such file" in other.json("/pipelines", status=404)["error"]


@pytest.mark.browser
def test_pipelines_in_the_browser(piped: RunningConsole, chromium: Browser) -> None:
    chromium.at(piped.url)
    chromium.open("/pipelines")
    chromium.click("tbody a")
    chromium.shows("<i>no price</i>")
    chromium.looks("/pipelines/checkpoints%2Fetl", "pipeline")
    chromium.looks("/pipelines", "pipelines")
