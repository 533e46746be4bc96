"""The output of a run: lines, JSON, the table and the HTML page, with their figures and special characters in names."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest

from barnabas.pipeline.config import JobConfig
from barnabas.pipeline.errors import MistakeError, PipelineError
from barnabas.pipeline.job import BatchCounts
from barnabas.pipeline.jobs import find_job
from barnabas.pipeline.progress import Batch, Totals, read_batch
from barnabas.pipeline.report import check_writable, write_report
from barnabas.pipeline.run import Run
from barnabas.pipeline.screen import Screen, lag_text

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOWHERE = "127.0.0.1:1"
NASTY = "<b>&\"' [red] [/x] $x_{$ --> %"
OPTIONAL_ENDS = {"tr", "td", "th", "p", "html", "meta", "br"}


def batch(query, number, rows_in=1000, rows_out=990, late=0):
    at = AT + timedelta(seconds=number)
    return Batch(query, number, at, rows_in, rows_out, late, 250, {"in": {0: 1000 * (number + 1)}})


def a_run(name="orders", batches=3):
    run = Run(find_job("etl"), JobConfig(name=name), NOWHERE, began=100.0, ended=102.5)
    run.progress.batches = [batch(f"{name}.parquet", n, late=n) for n in range(batches)]
    for one in run.progress.batches:
        run.progress.totals.setdefault(one.query, Totals()).add(one)
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
    write_report(run, error, path)
    return Page(path.read_text(encoding="utf-8"))


def test_the_page_has_the_figures_and_is_well_formed(tmp_path):
    page = page_of(a_run(), None, tmp_path / "below" / "report.html")
    text = "|".join(part.strip() for part in page.text if part.strip())
    assert "orders|done after 2.5 s, at 127.0.0.1:1, job etl" in text
    assert "parquet|3|3,000|2,970|3|1,200|250 ms" in text
    assert "dead-letters|0|0|0|0|0|0 ms" in text
    assert page.tags.count("svg") == 3


def test_names_and_errors_are_escaped(tmp_path):
    page = page_of(a_run(NASTY), PipelineError("<script>alert(1)</script>"), tmp_path / "report.html")
    assert "script" not in page.tags
    assert "b" not in page.tags
    text = "".join(page.text)
    assert NASTY in text
    assert "<script>alert(1)</script>" in text
    assert "failed after" in text


def test_a_run_without_batches_has_a_page_too(tmp_path):
    run = Run(find_job("restore"), JobConfig(), NOWHERE, counts=BatchCounts(12345, 7))
    page = page_of(run, None, tmp_path / "report.html")
    assert "12,345 records read, 7 written." in "".join(page.text)
    assert "svg" not in page.tags


def test_a_report_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "report.html", tmp_path):
        with pytest.raises(
            MistakeError, match=r"the report .* cannot be written: (Not a directory|Is a directory|File)"
        ):
            check_writable(path)


def test_a_line_for_each_batch_and_the_table_at_the_end(capsys):
    run = a_run(NASTY)
    with Screen(NOWHERE, "text") as screen:
        screen.watch(run, run.progress.batches[1:])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"12:00:01 {NASTY}.parquet batch 1: 1,000 in, 990 out, 1 too late, 250 ms, 4,000 rows/s"
    assert len(lines) == 2


def test_names_in_the_table_are_escaped():
    from rich.console import Console

    console = Console(width=140, record=True, file=__import__("io").StringIO())
    console.print(Screen(NOWHERE, "text")._table(a_run(NASTY)))
    text = console.export_text()
    assert NASTY in text
    assert "3,000" in text
    assert "2,970" in text


def test_json_lines(capsys):
    run = a_run()
    with Screen(NOWHERE, "json") as screen:
        screen.watch(run, run.progress.batches[:1])
    line = json.loads(capsys.readouterr().err)
    assert line == {
        "event": "batch", "query": "orders.parquet", "batch": 0, "at": "2026-01-31T12:00:00+00:00", "rows_in": 1000,
        "rows_out": 990, "late": 0, "duration_ms": 250, "offsets": {"in": {"0": 1000}},
    }  # fmt: skip
    facts = Screen(NOWHERE, "json")._facts(run, PipelineError("no"))
    assert json.loads(json.dumps(facts))["queries"]["orders.parquet"]["rows_in"] == 3000
    assert (facts["event"], facts["error"], facts["seconds"]) == ("failed", "no", 2.5)


def test_lag_by_partition():
    assert lag_text(None) == lag_text({}) == "-"
    assert lag_text({"b": {0: 5}, "a": {1: 2, 0: 12}}) == "a 12 2; b 5"


def progress(**more):
    """Spark's progress of a micro-batch."""
    source = {"endOffset": '{"in":{"1":7,"0":12}}'}
    return {
        "batchId": 3, "timestamp": "2026-01-31T12:00:00.000Z", "numInputRows": 5, "durationMs": {"triggerExecution": 9},
        "stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}], "sources": [source],
        "observedMetrics": {"rows_out": {"rows": 4}}, **more,
    }  # fmt: skip


def test_a_batch_from_sparks_progress():
    assert read_batch("q", progress()) == Batch("q", 3, AT, 5, 4, 3, 9, {"in": {0: 12, 1: 7}})
    quiet = progress(observedMetrics={}, stateOperators=[], durationMs={}, sources=[{"endOffset": None}])
    assert read_batch("q", quiet) == Batch("q", 3, AT, 5, 0, 0, 0, {})
    assert read_batch("q", progress(observedMetrics={"rows_out": {"rows": None}})).rows_out == 0
    assert read_batch("q", progress(sources=[{"endOffset": '{"logOffset":3}'}, {"endOffset": "-"}])).offsets == {}
