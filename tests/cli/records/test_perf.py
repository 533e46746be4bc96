"""`barnabas perf`: what it counts. Times are not asserted, only that they are there and in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from math import ceil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.perf.histogram import Histogram
from tests.support.processes.commands import COMMAND

TIMES = ["p50_ms", "p95_ms", "p99_ms", "p99.9_ms", "max_ms"]


def _in_order(result: dict[str, float], prefix: str = "") -> None:
    times = [result[prefix + name] for name in TIMES]
    assert times == sorted(times)
    assert times[0] > 0


@given(st.lists(st.floats(1e-6, 100), min_size=1, max_size=200))
def test_percentiles_are_those_of_the_sorted_values(values: list[float]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.add(value)
    ordered = sorted(values)
    for percent in (1, 50, 99, 99.9, 100):
        exact = ordered[max(0, ceil(len(ordered) * percent / 100) - 1)]
        assert histogram.percentile(percent) == pytest.approx(exact, rel=0.006)
    assert histogram.row()["max_ms"] == round(ordered[-1] * 1000, 3)


def test_histogram_counts_weights_and_nothing() -> None:
    assert Histogram().percentile(50) is None
    assert Histogram().row()["avg_ms"] is None
    histogram = Histogram()
    histogram.add(1.0, 98)
    histogram.add(2.0, 2)
    assert (histogram.percentile(98), histogram.percentile(99), histogram.count) == (1.0, 2.0, 100)


def test_produce_and_consume(call, topic) -> None:
    options = ("-n", "5000", "-s", "50", "--partitions", "3", "--warm-up", "1000", "-o", "json")
    sent = call("perf", "produce", topic, *options).ok().json
    assert 0 < sent["records"] <= 4000
    _in_order(sent)
    assert sent["records_per_s"] > 0
    assert set(call("consume", topic, "-e", "-f", r"%p\n").ok().lines) <= {"0", "1", "2"}
    for decode in ("--decode", "--no-decode"):
        read = call("perf", "consume", topic, decode, "-o", "json").ok().json
        assert read["records"] == 5000
        assert read["bytes"] > 5000 * 50
        _in_order(read, "fetch_")
    values = call("consume", topic, "-e").ok().lines
    assert len(values) == 5000
    assert {len(value) for value in values} == {50}


def test_rate_is_limited(call, topic) -> None:
    """The measured time cannot be shorter than what the rate asks for."""
    sent = call("perf", "produce", topic, "-n", "300", "--throughput", "1000", "-o", "json").ok().json
    assert sent["records"] == 300
    assert sent["seconds"] >= 0.28


def test_values_of_a_file_in_transactions(call, topic, tmp_path: Path) -> None:
    (tmp_path / "values").write_text("one\ntwo\n\nthree\n")
    transactions = ("--transactional-id", topic, "--transaction-duration", "1ms", "--linger", "1ms")
    call("perf", "produce", topic, "-n", "3000", "--payload-file", str(tmp_path / "values"), *transactions).ok()
    read = call("perf", "consume", topic, "--isolation", "read_committed", "-n", "3000", "-o", "json").ok().json
    assert read["records"] >= 3000
    assert call("consume", topic, "-n", "4").ok().lines == ["one", "two", "three", "one"]
    ends = call("cat", "-Q", "-t", f"{topic}:0:-1").ok().stdout
    assert int(ends.split()[-1]) > 3001, "more than one transaction has its marker"


def test_latency(call, topic) -> None:
    result = call("perf", "latency", topic, "-n", "50", "--warm-up", "5", "-o", "json").ok().json
    assert result["records"] == 50
    _in_order(result, "acknowledged_")
    _in_order(result, "end_to_end_")
    assert result["end_to_end_p50_ms"] >= result["acknowledged_p50_ms"]


def test_too_few_records_are_a_timeout(call, topic) -> None:
    call("perf", "produce", topic, "-n", "10").ok()
    ran = call("perf", "consume", topic, "-n", "11")
    assert (ran.code, ran.stdout) == (4, "")
    assert "only 10 of 11 records" in ran.stderr
    ran = call("perf", "consume", topic, "-n", "1", "--from-latest", "--timeout", "1s")
    assert ran.code == 4


@pytest.mark.parametrize(
    "options",
    [
        ("produce", "t", "-n", "5", "--warm-up", "5"),
        ("produce", "t", "--transactional-id", "x", "-a", "1"),
        ("produce", "t", "--payload-file", os.devnull),
        ("consume", "t", "--from-latest"),
    ],
)
def test_wrong_use(call, options: tuple[str, ...]) -> None:
    ran = call("perf", *options)
    assert ran.code == 2
    assert len(ran.stderr.splitlines()) == 1


def test_partitions_of_a_topic_that_exists(call, topic) -> None:
    call("topic", "create", topic).ok()
    assert call("perf", "produce", topic, "-n", "1", "--partitions", "1").code == 0
    ran = call("perf", "produce", topic, "-n", "1", "--partitions", "2")
    assert ran.code == 2
    assert "exists with 1 partition" in ran.stderr


def test_interrupted_prints_what_was_measured(run, broker, topic) -> None:
    process = subprocess.Popen(
        [*COMMAND, "perf", "produce", topic, "-n", "1000000", "--throughput", "100", "-o", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    run("topic", "create", topic)
    assert len(run("consume", topic, "-n", "5").ok().lines) == 5
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert json.loads(out)["records"] > 0
