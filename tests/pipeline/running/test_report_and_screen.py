"""The output of a run: lines, JSON, the table and the HTML page, with their figures and special characters in names."""

from __future__ import annotations

import json
import math
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from rich.console import Console

from barnabas.spark import activity
from barnabas.spark.errors import MistakeError, PipelineError
from barnabas.spark.job import BatchCounts
from barnabas.spark.jobs import find_job
from barnabas.spark.jobs.restore import ArchiveToRead, RestoreConfig
from barnabas.spark.progress import Batch, Totals, read_batch
from barnabas.spark.report.numbers import column_texts
from barnabas.spark.report.report import files_since
from barnabas.spark.report.screen import COLUMNS, NARROW, Screen
from barnabas.spark.run import Run
from barnabas.spark.settings.config import JobConfig
from tests.support.lazy import lazy

report = lazy("barnabas.spark.report.report")

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOWHERE = "127.0.0.1:1"
NASTY = "<b>&\"' [red] [/x] $x_{$ --> %"
OPTIONAL_ENDS = {"tr", "td", "th", "p", "html", "meta", "br"}


def batch(query, number, rows_in=1000, rows_out=990, late=0):
    at = AT + timedelta(seconds=number)
    return Batch(
        query, number, at, rows_in, rows_out, late, 250, {"in": {0: 1000 * (number + 1)}}, {"in": {0: 1000 * number}},
        {"id is missing": 10, "not a JSON object": 10 * (number == 1)}, {"addBatch": 200, "getBatch": 1},
    )  # fmt: skip


def a_run(name="orders", batches=3):
    config = JobConfig(name=name)
    job = replace(find_job("etl"), files=lambda _: ("parquet", "out"))
    run = Run(job, config, NOWHERE, began=100.0, ended=102.5, outputs={"parquet": "out", "dead-letters": "topic dead"},
              phases={"start of Spark": 8.25})  # fmt: skip
    run.progress.batches = [batch(f"{name}.parquet", n, late=n) for n in range(batches)]
    for progress in run.progress.batches:
        run.progress.totals.setdefault(progress.query, Totals()).add(progress)
    run.progress.totals[f"{name}.dead-letters"] = Totals()
    return run


class Page(HTMLParser):
    """Text and tags of a page; checks that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags = [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in OPTIONAL_ENDS:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in OPTIONAL_ENDS:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("style", "title"):
            self.text.append(data)


def page_of(run, error, path):
    report.write_report(run, error, path)
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_has_the_figures_and_is_well_formed(tmp_path):
    page = page_of(a_run(), None, tmp_path / "below" / "report.html")
    text = "|".join(part.strip() for part in page.text if part.strip())
    assert "orders|done after 2.5 s, at 127.0.0.1:1, job etl" in text
    assert "|parquet|3|3,000|2,970|3|1,200|250|dead-letters|0|0|0|0|0|0|" in text
    assert "|reason|records|% of the records read|id is missing|30|1.000|not a JSON object|10|0.333|" in text
    assert "|in|0|0|3,000|3,000|" in text
    assert "|parquet|out|2,970|dead-letters|topic dead|0|" in text
    assert text.endswith("|phase|milliseconds|start of Spark|8,250|parquet: processing and writing|600")
    assert page.tags.count("svg") == 0


def test_a_run_of_several_batches_has_plots(tmp_path):
    assert page_of(a_run(batches=4), None, tmp_path / "report.html").tags.count("svg") == 3


def test_files_are_counted_from_the_log_of_files(tmp_path):
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    begun = datetime.now(UTC)

    def entry(name, size, at):
        modified = round(at.timestamp() * 1000)
        return json.dumps({"path": f"file:///{name}", "size": size, "modificationTime": modified, "action": "add"})

    assert files_since(str(tmp_path / "none"), begun) is None
    assert files_since(str(tmp_path), begun) == (0, 0)
    before, after = begun - timedelta(minutes=5), begun + timedelta(seconds=5)
    (log / "8").write_text("v1\n" + entry("a", 1, before))
    (log / "9.compact").write_text("v1\n" + "\n".join([entry("a", 1, before), entry("b", 20, after)]))
    (log / "10").write_text("v1\n" + entry("c", 300, after))
    assert files_since(str(tmp_path), begun) == (2, 320)


def test_names_and_errors_are_escaped(tmp_path):
    page = page_of(a_run(NASTY), PipelineError("<script>alert(1)</script>"), tmp_path / "report.html")
    assert "script" not in page.tags
    assert "b" not in page.tags
    text = "".join(page.text)
    assert NASTY in text
    assert "<script>alert(1)</script>" in text
    assert "failed after" in text


def test_a_run_without_batches_has_a_page_too(tmp_path):
    config = RestoreConfig(archive=ArchiveToRead(path="a", topic="orders"))
    run = Run(find_job("restore"), config, NOWHERE, counts=BatchCounts(12345, 7))
    page = page_of(run, None, tmp_path / "report.html")
    assert "12,345 records read, 7 written." in "".join(page.text)
    assert "restoretopic orders7" in "".join(page.text).replace("\n", "").replace(" " * 2, "")
    assert "svg" not in page.tags


def test_a_report_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "report.html", tmp_path):
        with pytest.raises(
            MistakeError, match=r"the report .* cannot be written: (Not a directory|Is a directory|File)"
        ):
            report.check_writable(path)


def test_a_line_for_each_batch_and_the_table_at_the_end(capsys):
    run = a_run(NASTY)
    with Screen(NOWHERE, "text") as screen:
        screen.watch(run, run.progress.batches[1:])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"12:00:01 {NASTY}.parquet batch 1: 1,000 in, 990 out, 1 too late, 250 ms, 4,000 rows/s"
    assert len(lines) == 2


def test_the_summary_fits_the_terminal_and_names_are_not_markup(capsys):
    run = a_run(NASTY)
    screen = Screen(NOWHERE, "text")
    screen.summary(run, None)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(NASTY)
    assert lines[1].split() == " ".join(COLUMNS).upper().split()
    assert lines[2].split() == ["parquet", "3", "3,000", "2,970", "3", "1,200", "1,188", "250", "-"]
    assert lines[4:] == [
        "dead letters, id is missing: 30", "dead letters, not a JSON object: 10",
        f"{NASTY} done after 2.5 s and 8.2 s for the start of Spark",
    ]  # fmt: skip


@pytest.mark.parametrize(("width", "columns"), [(60, NARROW), (100, COLUMNS), (160, COLUMNS)])
def test_the_live_table_has_fewer_columns_on_a_narrow_terminal(monkeypatch, width, columns):
    monkeypatch.setenv("COLUMNS", str(width))
    screen = Screen(NOWHERE, "live")
    screen._console = Console(force_terminal=True, width=width)
    lines = str(screen._table(a_run())).splitlines()
    assert lines[1].split() == " ".join(columns).upper().split()
    assert max(map(len, lines)) <= width


def test_a_busy_query_without_a_batch_is_reported(capsys, monkeypatch):
    monkeypatch.setattr("barnabas.spark.activity.EVERY_S", 0)
    run = a_run()
    run.doing = {"orders.parquet": "Processing new data"}
    with Screen(NOWHERE, "text") as screen:
        screen.watch(run, [])
    with Screen(NOWHERE, "json") as screen:
        screen.watch(run, [])
    text, event = capsys.readouterr().err.splitlines()
    assert text == "orders.parquet: processing new data, 2 s"
    assert json.loads(event) == {"event": "activity", "what": "orders.parquet: processing new data", "seconds": 2.5}


def test_an_activity_is_reported_until_it_ends(monkeypatch):
    monkeypatch.setattr("barnabas.spark.activity.EVERY_S", 0.001)
    reports, again = [], threading.Event()

    def printer(what, seconds):
        reports.append((what, seconds > 0))
        if seconds:
            again.set()

    activity.say_by(printer)
    try:
        with activity.saying("waiting", " for it"):
            assert again.wait(60)
        count = len(reports)
    finally:
        activity.say_by(None)
    assert reports[:2] == [("waiting for it", False), ("waiting", True)]
    assert len(reports) == count


def test_numbers_of_a_column_have_one_form():
    assert column_texts([1, 1234567, None]) == ["1", "1,234,567", "-"]
    assert column_texts([0.5, 12.25, 12345.678, 3]) == ["0.500", "12.250", "12,345.678", "3.000"]
    assert column_texts([9.0, 52.94]) == ["9.00", "52.94"]
    assert column_texts([0.00001, math.inf, math.nan, 0.0]) == ["0.0000", "inf", "nan", "0.0000"]
    assert column_texts(["a", True, 2]) == ["a", "True", "2"]


def test_json_lines(capsys):
    run = a_run()
    with Screen(NOWHERE, "json") as screen:
        screen.watch(run, run.progress.batches[:1])
    line = json.loads(capsys.readouterr().err)
    assert line == {
        "event": "batch", "query": "orders.parquet", "batch": 0, "at": "2026-01-31T12:00:00+00:00", "rows_in": 1000,
        "rows_out": 990, "late": 0, "duration_ms": 250, "offsets": {"in": {"0": 1000}}, "starts": {"in": {"0": 0}},
        "reasons": {"id is missing": 10, "not a JSON object": 0}, "phases_ms": {"addBatch": 200, "getBatch": 1},
    }  # fmt: skip
    facts = Screen(NOWHERE, "json")._facts(run, PipelineError("no"))
    assert json.loads(json.dumps(facts))["queries"]["orders.parquet"]["rows_in"] == 3000
    assert (facts["event"], facts["error"], facts["seconds"]) == ("failed", "no", 2.5)


def progress(**more):
    """Spark's progress of a micro-batch."""
    source = {"startOffset": '{"in":{"1":7,"0":2}}', "endOffset": '{"in":{"1":7,"0":12}}'}
    return {
        "batchId": 3, "timestamp": "2026-01-31T12:00:00.000Z", "numInputRows": 5,
        "durationMs": {"triggerExecution": 9, "addBatch": 5, "getBatch": 0},
        "stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}], "sources": [source],
        "observedMetrics": {"rows_out": {"rows": 4}, "reasons": {"id is missing": 2, "not UTF-8": 0}}, **more,
    }  # fmt: skip


def test_a_batch_from_sparks_progress():
    assert read_batch("q", progress()) == Batch(
        "q", 3, AT, 5, 4, 3, 9, {"in": {0: 12, 1: 7}}, {"in": {0: 2, 1: 7}}, {"id is missing": 2}, {"addBatch": 5}
    )
    quiet = progress(
        observedMetrics={}, stateOperators=[], durationMs={}, sources=[{"startOffset": None, "endOffset": None}]
    )
    assert read_batch("q", quiet) == Batch("q", 3, AT, 5, 0, 0, 0, {})
    assert read_batch("q", progress(observedMetrics={"rows_out": {"rows": None}})).rows_out == 0
    assert (
        read_batch(
            "q", progress(sources=[{"startOffset": None, "endOffset": end} for end in ('{"logOffset":3}', "-")])
        ).offsets
        == {}
    )
