"""logs: lines of every format, results by service and window, and alerts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from barnabas.spark.frames.schema import fitting
from barnabas.spark.jobs.logs import (
    FORMATS,
    Alerts,
    Lines,
    _numbered,
    alerts,
    check_pattern,
    parsed_lines,
    transform,
)
from barnabas.spark.jobs.logs import LogsConfig as Config
from tests.pipeline.records import mistake, plain, records

NO_TIME = "its time cannot be read"


def at(hour, minute=0, second=0, micro=0):
    return datetime(2026, 1, 31, hour, minute, second, micro, tzinfo=UTC).replace(tzinfo=None)


def fields_or_reason(spark, lines, **options):
    """For each line: (time, service, is_error, latency), or the kind of the reason."""
    rows = parsed_lines(records(spark, lines), Lines(**options)).collect()
    return [row.kind or tuple(plain(row.data).values()) for row in rows]


STAMP = "[31/Jan/2026:12:00:00 +0100]"


def test_access_logs_of_apache_and_nginx(spark):
    expected = {
        f'web1 - - {STAMP} "GET /a HTTP/1.1" 200 12': (at(11), "web1", False, None),
        f'10.0.0.1 - bob {STAMP} "POST /a?b=c HTTP/2.0" 503 -': (at(11), "10.0.0.1", True, None),
        f'::1 - - {STAMP} "GET / HTTP/1.1" 404 5 "http://r" "agent (x; y)"': (at(11), "::1", False, None),
        f'web1 - - {STAMP} "GET / HTTP/1.1" 500 5 "-" "agent" 0.25': (at(11), "web1", True, 0.25),
        f'web1 - - {STAMP} "GET / HTTP/1.1" 200 5 12': (at(11), "web1", False, 12.0),
        f'web1 - - {STAMP} "GET /\\"x\\" HTTP/1.1" 200 5 "-" "a \\"q\\" b" 3.5': (at(11), "web1", False, 3.5),
        f'web1 - - {STAMP} "-" 400 0': (at(11), "web1", False, None),
        f'web1 - - {STAMP} "" 400 0 "-" "-"': (at(11), "web1", False, None),
        f'web1 - - {STAMP} "\\x16\\x03\\x01" 400 0 "-" "-"': (at(11), "web1", False, None),
        'web1 - - [31/Foo/2026:12:00:00 +0100] "GET / HTTP/1.1" 200 5': NO_TIME,
        'web1 - - [2026-01-31T12:00:00Z] "GET / HTTP/1.1" 200 5': NO_TIME,
        f'web1 - - {STAMP} "GET / HTTP/1.1" abc 5': "not a line of the format access",
        "": "not a line of the format access",
        "something else": "not a line of the format access",
    }
    assert dict(zip(expected, fields_or_reason(spark, list(expected)), strict=True)) == expected
    assert fields_or_reason(spark, [None]) == ["the line is empty"]


def test_latencies_in_seconds(spark):
    line = f'web1 - - {STAMP} "GET / HTTP/1.1" 200 5 "-" "agent" 0.25'
    assert fields_or_reason(spark, [line], latency_unit="s") == [(at(11), "web1", False, 250.0)]


def test_application_logs(spark):
    expected = {
        "2026-01-31T12:00:00Z INFO api hello": (at(12), "api", False, None),
        "2026-01-31 12:00:00,123 ERROR [api] boom": (at(12, 0, 0, 123000), "api", True, None),
        "2026-01-31T12:00:00.5+01:00 WARN  api: slow": (at(11, 0, 0, 500000), "api", False, None),
        "2026-01-31T12:00:00+0100 FATAL api: x": (at(11), "api", True, None),
        "2026-01-31T12:00:00 CRITICAL api: x": (at(12), "api", True, None),
        "2026-01-31T12:00:00Z INFO api: done latency=12.5": (at(12), "api", False, 12.5),
        "2026-01-31T12:00:00Z INFO api: done, duration_ms=5 of it": (at(12), "api", False, 5.0),
        "2026-01-31T12:00:00Z INFO api: it took 30ms": (at(12), "api", False, 30.0),
        "2026-01-31T12:00:00Z INFO api: took it": (at(12), "api", False, None),
        "2026-13-31T12:00:00Z INFO api: x": NO_TIME,
        "2026-01-31T25:00:00Z INFO api: x": NO_TIME,
        "12:00:00 INFO api: x": "not a line of the format application",
    }
    assert dict(zip(expected, fields_or_reason(spark, list(expected), format="application"), strict=True)) == expected


def test_levels_that_count_as_errors_in_any_case(spark):
    lines = ["2026-01-31T12:00:00Z WARN api x", "2026-01-31T12:00:00Z ERROR api x"]
    rows = fields_or_reason(spark, lines, format="application", error_levels=["warn"])
    assert [row[2] for row in rows] == [True, False]


def test_a_reason_shows_the_line_or_its_time(spark):
    lines = ["something else", "2026-13-31T12:00:00Z INFO api: x", "x" * 101]
    rows = parsed_lines(records(spark, lines), Lines(format="application")).collect()
    assert [row.reason for row in rows] == [
        "not a line of the format application: something else", f"{NO_TIME}: 2026-13-31T12:00:00Z",
        f"not a line of the format application: {'x' * 100}...",
    ]  # fmt: skip


def test_a_custom_pattern(spark):
    options = {
        "format": "pattern",
        "pattern": r"^(?:\[x\] )?((?<service>\w+)?)[|(](?<level>\w+)[)|] (?<time>\S+)(?: (?<latency>\d+))?",
        "time_format": "yyyyMMdd-HHmmss",
        "latency_unit": "s",
    }
    lines = ["[x] api|ERROR| 20260131-120000 3", "api(INFO) 20260131-120000", "|INFO| 20260131-120000", "api|INFO| now"]
    assert fields_or_reason(spark, lines, **options) == [
        (at(12), "api", True, 3000.0), (at(12), "api", False, None), "it names no service", NO_TIME,
    ]  # fmt: skip


PATTERNS = [
    r"(?<a>x)(y)(?:z)(?<=q)(?<!q)(?=x)(?!y)(?<b>z)",
    r"[(](?<a>x)[\](](?<b>[(\])]+)",
    r"[[a-z](](?<a>x)",
    r"[a-z&&[^(]](?<a>x)",
    r"[]()](?<a>x)[^]()](?<b>)",
    r"\Q(((\E(?<a>x)\((?<b>\))",
    r"\\(?<a>x)\\\((?<b>)",
    r"(?i)(?<a1>x)(?>y)(?i:z)(w)(?<b>)",
    r"((((?<a>))))(?<b>)",
    *(pattern for pattern, _ in FORMATS.values()),
]


def test_groups_have_the_numbers_of_java(spark):
    pattern_class = spark.sparkContext._jvm.java.util.regex.Pattern
    for pattern in PATTERNS:
        for name, number in _numbered(pattern).items():
            # The n-th group of a pattern is the last group of the part before its end.
            upto = pattern[: pattern.index(f"(?<{name}>")]
            closed = upto + f"(?<{name}>)" + ")" * _open(upto)
            assert pattern_class.compile(closed).matcher("").groupCount() == number, (pattern, name)
        assert _numbered(pattern), pattern


def _open(text):
    """The number of open groups at the end of a prefix of a pattern."""
    import re

    plain_text = re.sub(r"\\Q.*?\\E|\\.|\[\^?\]?(?:\\.|\[[^\]]*\]|[^\]\\])*\]", "", text)
    return plain_text.count("(") - plain_text.count(")")


def test_a_pattern_that_java_cannot_read_is_one_sentence(spark):
    with mistake(r"\[lines\] pattern is not a Java regular expression: Unclosed group"):
        check_pattern(spark, Lines(format="pattern", pattern="(?<time>.)(?<service>.)("))


def config(**more):
    tables = {"source": {"topic": "in"}, "output": {"topic": "out"}, "alerts": {"topic": "al"}}
    return Config.model_validate({**tables, "dead_letters": {"topic": "dead"}, **more})


def line(second, status=200, latency="", service="web"):
    return f'{service} - - [31/Jan/2026:12:00:{second:02} +0000] "GET / HTTP/1.1" {status} 5 {latency}'


def test_results_by_service_and_window_and_alerts(spark):
    lines = [line(n % 60, 500 if n == 0 else 200, n + 1) for n in range(100)]
    lines += [line(0, 500, service="few")] * 9 + [line(0, service="ok")] * 10 + [line(0, 503, service="bad")] * 10
    numbers = transform(fitting(parsed_lines(records(spark, lines), Lines())), config()).cache()
    by_service = {row.service: row for row in numbers.collect()}
    web, few, ok = by_service["web"], by_service["few"], by_service["ok"]
    assert (web.window_start, web.window_end) == (at(12), at(12, 1))
    assert (web.requests, web.errors, web.error_rate) == (100, 1, 0.01)
    assert (web.p50_ms, web.p95_ms, web.p99_ms) == (50.0, 95.0, 99.0)
    assert (few.errors, few.error_rate, few.p99_ms) == (9, 1.0, None)
    assert (ok.errors, ok.error_rate) == (0, 0.0)

    def alerts_of(**when):
        return {row.service: row.reason for row in alerts(numbers, Alerts(topic="al", **when)).collect()}

    assert alerts_of() == {"bad": "error rate of 0.05 or more"}
    assert alerts_of(min_requests=1) == {"bad": "error rate of 0.05 or more", "few": "error rate of 0.05 or more"}
    assert alerts_of(p99_ms=99) == {"bad": "error rate of 0.05 or more", "web": "p99 of 99 ms or more"}
    assert alerts_of(p99_ms=100) == {"bad": "error rate of 0.05 or more"}
    assert alerts_of(error_rate=0.01, p99_ms=50) == {
        "bad": "error rate of 0.01 or more", "web": "error rate of 0.01 or more, p99 of 50 ms or more",
    }  # fmt: skip
    numbers.unpersist()


@pytest.mark.parametrize("settings", [{"window": "a minute"}, {"watermark": "soon"}])
def test_an_invalid_window_is_one_sentence(spark, settings):
    with mistake("a minute|soon"):
        transform(fitting(parsed_lines(records(spark, [""]), Lines())), config(**settings)).collect()
