"""Inputs of `barnabas produce`, and what it says about a run that does not get to its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from barnabas.client.cluster import Cluster
from barnabas.client.errors import ClientError
from barnabas.client.producer import Producer
from barnabas.client.records.record_json import json_line, parse_record, shown_json
from barnabas.wire.batches.records import Record
from barnabas.wire.clients.partitioners import RoundRobin
from barnabas.wire.errors import KafkaError
from tests.cli.scripted_broker import ScriptedBroker
from tests.support.cases import for_each
from tests.support.processes.commands import COMMAND, run_command


def _values(call, topic: str, *options: str) -> list[str]:
    return call("consume", topic, "-e", *options).ok().lines


def _without_place(text: str) -> list[dict[str, object]]:
    """Records of `consume --json` without topic and offset."""
    records = [json.loads(line) for line in text.splitlines()]
    return [{name: value for name, value in record.items() if name not in ("topic", "offset")} for record in records]


def test_json_lines_are_copied_exactly(call, topic_name) -> None:
    source, copy = topic_name("source"), topic_name("copy")
    for name in (source, copy):
        call("topic", "create", name, "-p", "3").ok()
    lines = [
        {"key": "k", "value": "ü", "timestamp": 1_700_000_000_000, "headers": [{"name": "h", "value": "1"}]},
        {"key": None, "value": None, "timestamp": 1_700_000_000_001, "partition": 2},
        {"key_base64": "/w==", "value_base64": "AP8=", "timestamp": 5, "headers": [{"name": "n", "value": None}]},
        {"key": "", "value": "", "timestamp": 0, "headers": [{"name": "b", "value_base64": "/w=="}, {"name": "b"}]},
        {"value": {"amount": 5}, "headers": {"x": "y"}},
    ]  # fmt: skip
    call("produce", source, "--json", stdin="\n\n".join(json.dumps(line) for line in lines)).ok()
    first = call("consume", source, "-e", "--json").ok().stdout
    assert [record["partition"] for record in _without_place(first) if record["timestamp"] == 1_700_000_000_001] == [2]
    assert any(record["value"] == '{"amount":5}' for record in _without_place(first) if "value" in record)
    call("produce", copy, "--json", stdin=first).ok()
    second = call("consume", copy, "-e", "--json").ok().stdout
    assert sorted(map(str, _without_place(second))) == sorted(map(str, _without_place(first)))
    assert len(first.splitlines()) == 5


@for_each(
    ("line", "said"),
    [
        ("nonsense", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ('{"valu": 1}', "did you mean value?"),
        ('{"key": "a"}', "has neither value nor value_base64"),
        ('{"amount": 5}', "has an unknown field 'amount': each line is a record"),
        ('{"value_base64": "$"}', "is not base64"),
        ('{"value": "a", "value_base64": "YQ=="}', "has both value and value_base64"),
        ('{"value": "a", "partition": -1}', "partition that is not an integer"),
        ('{"value": "a", "timestamp": "now"}', "timestamp that is not an integer"),
        ('{"value": "a", "timestamp": true}', "timestamp that is not an integer"),
        ('{"value": "a", "headers": [1]}', "header that is not of the form"),
        ('{"value": "\\ud800"}', "surrogate"),
    ],
)
def test_json_that_is_no_record(line: str, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("$", r"\$")):
        parse_record(line.encode())


def test_a_record_comes_back_from_its_json() -> None:
    for record in (
        Record(1, 2, b"k", None, [("a", b"\xff"), ("b", None)], -1),
        Record(1, -1, None, b"\x00\xfe", [], -1),
    ):
        parsed = parse_record(json_line(("t", 3), record))
        assert (parsed.key, parsed.value, parsed.headers) == (record.key, record.value, record.headers)
        assert (parsed.partition, parsed.timestamp) == (3, record.timestamp)


def test_json_on_a_terminal_controls_nothing_and_means_the_same() -> None:
    record = Record(1, 2, "k\x9b\U000e0001".encode(), b"\x7f\x1b[31m\n\xc3\xbc", [], -1)
    line = json_line(("t", 0), record)
    shown = shown_json(line)
    assert json.loads(shown) == json.loads(line)
    assert shown.decode()[:-1].isprintable()
    assert "ü" in shown.decode()
    assert parse_record(shown).key == record.key


def test_partition_of_json_that_does_not_exist(call, topic) -> None:
    call("topic", "create", topic).ok()
    lines = '{"value": "a", "partition": 0}\n{"value": "b", "partition": 7}\n'
    ran = call("produce", topic, "--json", stdin=lines)
    assert ran.code == 3
    assert "record 1" in ran.stderr or "record 2" in ran.stderr
    assert "--partitioner NAME" in ran.stderr
    assert call("produce", topic, "--json", "--partitioner", "murmur2", "-q", stdin=lines).ok().stderr == ""


def test_delimiter(call, topic) -> None:
    call("produce", topic, "-D", r"\0", stdin="one\0two\r\nthree\0\0last").ok()
    shown = call("consume", topic, "-e", "-f", r"[%v]").ok().stdout
    assert shown == "[one][two\r\nthree][][last]"


def test_lines_of_a_file(call, topic, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\ntwo\n")
    for options in ([str(tmp_path / "lines")], ["-f", str(tmp_path / "lines")]):
        call("produce", topic, *options).ok()
    assert _values(call, topic) == ["one", "two"] * 2


def test_files(call, topic, tmp_path: Path) -> None:
    contents = [b"\x00\xff" * 1000, b"a\nb\n"]
    for number, content in enumerate(contents):
        (tmp_path / str(number)).write_bytes(content)
    paths = [str(tmp_path / "0"), str(tmp_path / "1")]
    call("produce", topic, "--file-per-record", "-k", "key", *paths).ok()
    records = [json.loads(line) for line in _values(call, topic, "--json")]
    assert [record["key"] for record in records] == ["key", "key"]
    assert parse_record(json.dumps(records[0]).encode()).value == contents[0]
    assert records[1]["value"] == "a\nb\n"


@for_each(
    ("arguments", "said"),
    [
        (["-H", "bad"], "must be NAME=VALUE, not 'bad'"),
        (["-H", "=x"], "must be NAME=VALUE"),
        (["-k", "a", "-K", ":"], "exclude each other"),
        (["--json", "-K", ":"], "leave out -K and -D"),
        (["--file-per-record"], "needs the names of files"),
        (["README.md", "CHANGES.md"], "--file-per-record, which sends each as one record"),
        (["--timestamp", "yesterday"], "is not a time"),
        (["-K", ""], "must not be empty"),
        (["--transactional-id", "x", "-a", "1"], "a transaction needs"),
    ],
)
def test_wrong_options(call, topic, arguments: list[str], said: str, monkeypatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
    ran = call("produce", topic, *arguments)
    assert ran.code == 2
    assert said in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_timestamp_and_null_headers(call, topic) -> None:
    call("produce", topic, "--timestamp", "2026-01-02T03:04:05", "-Z", "-H", "a=", "-H", "b=1", stdin="x\n\n").ok()
    first, second = (json.loads(line) for line in _values(call, topic, "--json"))
    assert first["timestamp"] == second["timestamp"] == 1767323045000
    assert first["headers"] == [{"name": "a", "value": None}, {"name": "b", "value": "1"}]
    assert second["value"] is None


def test_refused_record_says_what_is_stored_and_how_to_go_on(call, topic) -> None:
    call("topic", "create", topic, "-c", "max.message.bytes=1000").ok()
    lines = ["1", "2", "3", "x" * 2000, "5"]
    ran = call(
        "produce",
        topic,
        "--batch-size",
        "1",
        "--json",
        stdin="\n".join(json.dumps({"value": value}) for value in lines),
    )
    assert ran.code == 1
    assert "MESSAGE_TOO_LARGE" in ran.stderr
    assert f"3 records are in {topic}; go on with --skip 3" in ran.stderr
    lines[3] = "4"
    call("produce", topic, "--skip", "3", stdin="\n".join(lines)).ok()
    assert _values(call, topic) == ["1", "2", "3", "4", "5"]


def test_more_to_skip_than_there_is(call, topic) -> None:
    ran = call("produce", topic, "--skip", "5", stdin="a\nb\n")
    assert ran.code == 2
    assert "the input has only 2 of the 5 records to skip" in ran.stderr


def test_interrupted_says_what_is_stored(run, broker, topic) -> None:
    run("topic", "create", topic).ok()
    process = subprocess.Popen(
        [*COMMAND, "produce", topic, "--skip", "1"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    assert process.stdin is not None
    process.stdin.write(b"zero\none\ntwo\n")
    process.stdin.flush()
    assert run("consume", topic, "-n", "2").ok().lines == ["one", "two"]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.decode() == f"barnabas: interrupted: 2 records are in {topic}; go on with --skip 3\n"


def test_interrupted_while_the_broker_does_not_answer(start_broker, topic) -> None:
    """Acknowledged records are counted, those in flight are unknown; the command ends in bounded time."""
    broker = start_broker()
    run_command("topic", "create", topic, bootstrap=broker.bootstrap).ok()
    process = subprocess.Popen(
        [*COMMAND, "produce", topic],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    assert process.stdin is not None
    process.stdin.write(b"stored\n")
    process.stdin.flush()
    assert run_command("consume", topic, "-n", "1", bootstrap=broker.bootstrap).ok().lines == ["stored"]
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        process.stdin.write(b"lost\n")
        process.stdin.flush()
        while _unread(process.stdin.fileno()):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert process.returncode == 130
    assert f"1 record is in {topic}" in errors.decode()
    assert errors.decode().endswith("go on with --skip 1\n")


def _unread(pipe: int) -> int:
    """Bytes in a pipe that its reader has not taken."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4), "little")


def test_outcome_of_records_without_an_answer() -> None:
    """Records sent without a response are unknown; unsent ones are missing; the first gap ends the complete part."""
    with ScriptedBroker(["ok", "lose-answer", "fail"]) as broker, Cluster(broker.bootstrap, timeout_s=5) as cluster:
        producer = Producer(cluster, RoundRobin, idempotent=False)
        producer.send("t", b"0")
        producer.send("t", b"1")
        producer.flush()
        producer.send("t", b"2")
        with pytest.raises((KafkaError, ClientError)):
            producer.flush()
        producer.send("t", b"3")
        outcome = producer.outcome()
    assert (outcome.acknowledged, outcome.complete) == (2, 2)
    assert outcome.unknown == 1, "its answer was lost, and then it was refused"
    assert outcome.missing == 1


def test_transaction_is_all_or_nothing(call, topic) -> None:
    read = ("--isolation", "read_committed")
    options = ("-K", ":", "--transactional-id", topic, "--batch-size", "1")
    wrong = call("produce", topic, *options, stdin="a:1\nb:2\nwrong\n")
    assert wrong.code == 2
    assert f"the transaction is aborted: none of its records counts in {topic}" in wrong.stderr
    assert _values(call, topic, *read) == []
    assert _values(call, topic) == ["1", "2"], "they were sent"
    right = call("produce", topic, *options, stdin="a:1\nb:2\n").ok()
    assert right.stderr.startswith(f"2 records committed by {topic}")
    assert _values(call, topic, *read) == ["1", "2"]


def test_transaction_over_several_partitions_and_batches(call, topic) -> None:
    call("topic", "create", topic, "-p", "3").ok()
    lines = [str(number) for number in range(3000)]
    options = ("--partitioner", "round-robin", "--batch-size", "500", "--transactional-id", topic)
    call("produce", topic, *options, stdin="\n".join(lines)).ok()
    assert sorted(_values(call, topic, "--isolation", "read_committed"), key=int) == lines
