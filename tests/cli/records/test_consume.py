"""Ends, filters, isolation, patterns and notes of `barnabas consume`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import click
import pytest
from confluent_kafka import Producer

from barnabas.cli.options.duration import Duration
from barnabas.cli.records import consume_run
from barnabas.cli.records.consume_run import Limits, Run
from barnabas.client.errors import TimedOut
from barnabas.client.records.expression import Filter
from barnabas.wire.batches.records import Record
from tests.support.cases import for_each
from tests.support.processes.commands import COMMAND, run_command


@pytest.fixture(scope="module")
def orders(broker) -> str:
    """Ten orders as JSON with the key a or b, then a text and bytes that are no UTF-8."""
    name = f"orders-{os.getpid()}"
    lines = [f'{"ab"[n % 2]}:{{"amount": {n * 20}, "tags": ["x", "y{n}"]}}' for n in range(10)]
    run_command("produce", name, "-K", ":", stdin="\n".join(lines), bootstrap=broker.bootstrap).ok()
    run_command("produce", name, stdin=b"plain text\n\xff\x1b[31m\n", bootstrap=broker.bootstrap).ok()
    return name


@pytest.fixture(scope="module")
def empty(broker) -> str:
    name = f"empty-{os.getpid()}"
    run_command("topic", "create", name, bootstrap=broker.bootstrap).ok()
    return name


def test_count_that_is_not_reached_is_a_timeout(call, empty) -> None:
    ran = call("consume", empty, "-n", "1", "--timeout", "2")
    assert (ran.code, ran.stdout) == (4, "")
    assert len(ran.stderr.splitlines()) == 1


def test_idle_stops(call, empty) -> None:
    assert call("consume", empty, "--idle", "200ms").ok().stdout == ""


class Scripted:
    """A source of twelve records. Then `seconds` pass, and it waits, for a hundred times at most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.monkeypatch = monkeypatch
        self.seconds = seconds
        self.closed = False

    def records(self, on_idle: Callable[[], None]) -> Iterator[tuple[tuple[str, int], Record]]:
        on_idle()
        yield from ((("t", 0), Record(offset, 0, None, b"value", [], -1)) for offset in range(12))
        on_idle()
        later = consume_run.monotonic() + self.seconds
        self.monkeypatch.setattr(consume_run, "monotonic", lambda: later)
        for _ in range(100):
            on_idle()
        raise AssertionError("it does not end")

    def progress(self) -> tuple[int, int | None]:
        return 12, None

    def processed(self, partition: tuple[str, int], offset: int) -> None:
        pass

    def close(self, commit: bool = True) -> None:
        self.closed = True


def _run(source: Scripted, limits: Limits) -> tuple[list[str], Run]:
    notes: list[str] = []
    run = Run(source, lambda _, record: record.value or b"", limits, note=notes.append)
    try:
        run.run()
    finally:
        assert source.closed
    return notes, run


def test_what_was_read_before_the_timeout_is_printed(monkeypatch, capfdbinary) -> None:
    with pytest.raises(TimedOut, match=r"^12 of 99 records read in 5 s \(--timeout\)$"):
        _run(Scripted(monkeypatch, 6), Limits(99, None, 5.0))
    with pytest.raises(TimedOut, match="not the end of every partition"):
        _run(Scripted(monkeypatch, 6), Limits(None, None, 5.0, has_end=True))
    assert capfdbinary.readouterr().out == b"value" * 24


def test_a_limited_time_of_following_is_no_failure(monkeypatch, capfdbinary) -> None:
    notes, run = _run(Scripted(monkeypatch, 6), Limits(None, None, 5.0))
    assert (notes, run.printed) == ([], 12)
    assert capfdbinary.readouterr().out == b"value" * 12


def test_idle_is_counted_from_the_last_record(monkeypatch, capfdbinary) -> None:
    assert _run(Scripted(monkeypatch, 3), Limits(None, 2.0, None))[1].printed == 12
    with pytest.raises(AssertionError, match="does not end"):
        _run(Scripted(monkeypatch, 1), Limits(None, 2.0, None))


def test_durations(call, empty) -> None:
    seconds = {"2": 2, "2s": 2, "500ms": 0.5, "1.5m": 90, ".5h": 1800, "7d": 604_800, "PT1H30M": 5400, "P1DT1S": 86_401}
    assert {text: Duration().convert(text, None, None) for text in seconds} == seconds
    for wrong in ("2 weeks", "-1", "0", "", "s", "P", "PT"):
        with pytest.raises(click.BadParameter, match="is not a duration such as 2s"):
            Duration().convert(wrong, None, None)
    assert call("consume", empty, "--idle", "soon").code == 2


def test_offset_outside_is_moved_and_said(call, orders) -> None:
    ran = call("consume", orders, "-e", "-o", "99").ok()
    assert ran.stdout == ""
    assert ran.stderr == f"barnabas: offset 99 is beyond the end of {orders}-0 (12); reading begins at the end there\n"
    ran = call("consume", orders, "-o", "11:99", "-f", r"%o\n").ok()
    assert (ran.lines, "offset 99 is beyond the end" in ran.stderr) == (["11"], True)
    assert "no record at or after that time" in call("consume", orders, "-e", "-o", "@9999999999999").ok().stderr
    assert call("consume", orders, "-e", "-o", "99", "-q").ok().stderr == ""


def test_grep(call, orders) -> None:
    ran = call("consume", orders, "-e", "--grep", "amount.: 1[0-9]*,", "-f", r"%o\n").ok()
    assert ran.lines == ["5", "6", "7", "8", "9"]
    assert "5 of 12 records matched" in ran.stderr
    assert call("consume", orders, "-e", "--grep", "amount", "-v", "-f", r"%o\n").ok().lines == ["10", "11"]
    assert call("consume", orders, "-e", "--grep", "^b$", "-f", r"%o\n").ok().lines == ["1", "3", "5", "7", "9"]


def test_wrong_regex_is_one_sentence(call, empty) -> None:
    ran = call("consume", empty, "-e", "--grep", "(")
    assert ran.code == 2
    assert len(ran.stderr.splitlines()) == 1
    assert "missing )" in ran.stderr


def test_filter(call, orders) -> None:
    ran = call("consume", orders, "-e", "--filter", "value.amount > 100 and key == 'a'", "-f", r"%o\n").ok()
    assert ran.lines == ["6", "8"]
    assert "2 of 12 records matched" in ran.stderr
    assert "2 without a field" in ran.stderr


@for_each(
    ("expression", "said"),
    [
        ("value.amount >", "is not an expression"),
        ("valu.amount > 1", "did you mean value?"),
        ("__import__('os')", "knows no function '__import__'"),
        ("value.__class__()", "knows no method '__class__'"),
        ("[x for x in value]", "ListComp is not possible"),
        ("9 ** 9 ** 9", "Pow is not possible"),
        ("(lambda: 1)", "Lambda is not possible"),
        ("key.startswith('a')()", "only functions of a name"),
        ("", "is not an expression"),
    ],
)
def test_wrong_filter_is_one_sentence(expression: str, said: str) -> None:
    with pytest.raises(ValueError) as caught:
        Filter(expression)
    assert said in str(caught.value)


def test_wrong_filter_at_the_command_line(call, empty) -> None:
    ran = call("consume", empty, "-e", "--filter", "value.amount >")
    assert ran.code == 2
    assert len(ran.stderr.splitlines()) == 1


RECORD = Record(7, 1000, b'{"id": 5}', b'{"amount": 3, "items": [1, 2], "name": "%s"}', [("trace", b"x")], -1)


@for_each(
    ("expression", "matches", "unusable"),
    [
        ("value.items[1] == 2", True, 0),
        ("value['amount'] in [1, 3]", True, 0),
        ("key.id == 5 and headers.trace == 'x'", True, 0),
        ("topic == 't' and partition == 2 and offset == 7 and timestamp == 1000", True, 0),
        ("matches(text, 'amount.*3') and len(value.items) == 2", True, 0),
        ("value.name.startswith('%')", True, 0),
        ("value.missing > 1", False, 1),
        ("value.amount > 'a'", False, 1),
        ("value.name % 5 == ''", False, 1),
        ("value.amount / 0 > 1", False, 1),
        ("not value.amount == 3", False, 0),
        ("value.name.format", False, 1),
        ("value.amount.real", False, 1),
    ],
)
def test_expressions(expression: str, matches: bool, unusable: int) -> None:
    record_filter = Filter(expression)
    assert record_filter(("t", 2), RECORD) is matches
    assert record_filter.unusable == unusable


def test_deep_json_does_not_match_and_does_not_fail() -> None:
    record_filter = Filter("value.a == 1")
    assert not record_filter(("t", 0), Record(0, 0, None, b"[" * 100_000, [], -1))
    assert record_filter.unusable == 1


def test_patterns_of_topics(call, orders, empty) -> None:
    assert len(call("consume", "-r", f"^orders-{os.getpid()}$", "-e", "-f", r"%t\n").ok().lines) == 12
    assert len(call("consume", f"^orders-{os.getpid()}", empty, "-e", "-f", r"%t\n").ok().lines) == 12
    assert call("consume", "^nothing-like-this", "-e").code == 3
    assert call("consume", "^(", "-e").code == 2


def test_isolation(call, broker, topic) -> None:
    """Records of an aborted and of an open transaction are read only with read_uncommitted."""
    call("topic", "create", topic).ok()
    for number, end in enumerate(("commit", "abort", "open")):
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": f"{topic}-{number}"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce(topic, end)
        producer.flush()
        if end != "open":
            getattr(producer, f"{end}_transaction")()
        if end == "open":
            committed = ("consume", topic, "--isolation", "read_committed")
            assert call(*committed, "-n", "1").ok().lines == ["commit"], "its marker is written by now"
            assert call(*committed, "-e").ok().lines == ["commit"]
            assert call("consume", topic, "-e").ok().lines == ["commit", "abort", "open"]
            producer.abort_transaction()
    call("produce", topic, stdin="after\n").ok()
    assert call("consume", topic, "-n", "2", "--isolation", "read_committed").ok().lines == ["commit", "after"]


@pytest.mark.parametrize("options", [["--instance-id", "x"], ["-g", "g", "-p", "0"], ["-v"], ["-g", "g", "-o", "5"]])
def test_options_that_exclude_each_other(call, empty, options: list[str]) -> None:
    assert call("consume", empty, "-e", *options).code == 2


def test_interrupted_with_a_summary(broker, orders) -> None:
    process = subprocess.Popen(
        [*COMMAND, "consume", orders, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    assert process.stdout is not None
    lines: Iterator[bytes] = iter(process.stdout.readline, b"")
    assert [json.loads(next(lines))["offset"] for _ in range(12)] == list(range(12))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.decode().startswith("barnabas: interrupted: 12 records in ")
    assert len(errors.splitlines()) == 1
