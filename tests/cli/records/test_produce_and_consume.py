"""`barnabas produce` and `barnabas consume` against a broker; in processes where pipes and signals are the subject."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from barnabas.wire.clients.partitioners import partition_for_key
from tests.support.processes.commands import COMMAND


def _read(run, topic: str, *options: str) -> list[str]:
    return run("consume", topic, "-e", *options).ok().lines


def test_lines_come_back_in_order(run, topic) -> None:
    sent = run("produce", topic, stdin="one\ntwo\r\n\nthree").ok()
    assert sent.stdout == ""
    created, acknowledged = sent.stderr.splitlines()
    assert created.startswith(f"created topic {topic} with ")
    assert acknowledged.startswith(f"4 records acknowledged by {topic} in ")
    assert _read(run, topic) == ["one", "two", "", "three"]


def test_nothing_in_is_nothing_out(run, topic) -> None:
    run("topic", "create", topic).ok()
    assert run("produce", topic).ok().stderr.startswith("0 records acknowledged")
    assert _read(run, topic) == []


def test_file_of_many_batches(run, topic, tmp_path: Path) -> None:
    lines = [f"line {number} {'x' * (number % 50)}" for number in range(50_000)]
    (tmp_path / "input").write_text("\n".join(lines) + "\n")
    run("produce", topic, "-f", str(tmp_path / "input")).ok()
    assert _read(run, topic) == lines


@pytest.mark.parametrize(
    ("compression", "acks"),
    [("none", "0"), ("none", "1"), ("gzip", "all"), ("snappy", "0"), ("lz4", "1"), ("zstd", "all")],
)
def test_every_codec_and_acks(call, topic, compression: str, acks: str) -> None:
    lines = [str(number) for number in range(2000)]
    call("produce", topic, "-z", compression, "--acks", acks, "-q", stdin="\n".join(lines)).ok()
    assert call("consume", topic, "-n", "2000").ok().lines == lines


def test_without_idempotence(call, topic) -> None:
    call("produce", topic, "--no-idempotent", stdin="a\nb\n").ok()
    assert _read(call, topic) == ["a", "b"]


def test_keys_headers_and_tombstones(call, topic) -> None:
    call("produce", topic, "-K", r"\t", "-Z", "-H", "trace=7", "-H", "flag=", stdin="k1\tv1\nk2\t\n\tv3\n").ok()
    read = call("consume", topic, "-e", "-f", r"%k|%v|%K|%S|%h\n").ok()
    assert read.lines == [
        "k1|v1|2|2|trace=7,flag=NULL",
        "k2||2|-1|trace=7,flag=NULL",
        "|v3|-1|2|trace=7,flag=NULL",
    ]


def test_one_key_for_all(call, topic) -> None:
    call("produce", topic, "-k", "same", stdin="a\nb\n").ok()
    assert _read(call, topic, "-f", r"%k=%v\n") == ["same=a", "same=b"]


def test_line_without_its_delimiter_is_named(call, topic) -> None:
    ran = call("produce", topic, "-K", ":", stdin="a:1\nb\n")
    assert ran.code == 2
    assert "line 2 has no ':' between key and value (-K); 1 record is in" in ran.stderr
    assert "go on with --skip 1" in ran.stderr
    assert _read(call, topic) == ["1"], "the lines before it have been sent"


def test_json_lines(call, topic) -> None:
    call("produce", topic, "-k", "k", "-H", "h=1", stdin=b"text\n\xff\xfe\n").ok()
    text, binary = [json.loads(line) for line in _read(call, topic, "--json")]
    assert (text["topic"], text["partition"], text["offset"], text["key"]) == (topic, 0, 0, "k")
    assert text["value"] == "text"
    assert text["headers"] == [{"name": "h", "value": "1"}]
    assert binary["value_base64"] == "//4="


@pytest.mark.parametrize("partitioner", ["murmur2", "sticky", "load-aware"])
def test_keys_go_where_every_kafka_client_sends_them(call, topic, partitioner: str) -> None:
    call("topic", "create", topic, "-p", "5").ok()
    keys = [f"key-{number}" for number in range(40)]
    call("produce", topic, "-K", ":", "--partitioner", partitioner, stdin="".join(f"{key}:v\n" for key in keys)).ok()
    partitions = dict(line.split() for line in _read(call, topic, "-f", r"%k %p\n"))
    assert partitions == {key: str(partition_for_key(key.encode(), 5)) for key in keys}


def test_round_robin_gives_every_partition_its_turn(call, topic) -> None:
    call("topic", "create", topic, "-p", "3").ok()
    call("produce", topic, "--partitioner", "round-robin", stdin="".join(f"{n}\n" for n in range(9))).ok()
    assert sorted(_read(call, topic, "-f", r"%p\n")) == list("000111222")


@pytest.mark.parametrize("partitioner", ["sticky", "load-aware"])
def test_records_without_a_key_stay_together_for_a_batch(call, topic, partitioner: str) -> None:
    call("topic", "create", topic, "-p", "8").ok()
    call("produce", topic, "--partitioner", partitioner, stdin="".join(f"{n}\n" for n in range(50))).ok()
    assert len(set(_read(call, topic, "-f", r"%p\n"))) == 1


@pytest.mark.parametrize("partitioner", ["murmur2", "sticky", "load-aware"])
def test_much_data_without_keys_reaches_every_partition(call, topic, partitioner: str) -> None:
    call("topic", "create", topic, "-p", "2").ok()
    lines = "".join(f"{n:0100}\n" for n in range(5000))
    call("produce", topic, "--partitioner", partitioner, "--batch-size", "2000", stdin=lines).ok()
    assert set(_read(call, topic, "-f", r"%p\n")) == {"0", "1"}


def test_chosen_partition(call, topic) -> None:
    call("topic", "create", topic, "-p", "3").ok()
    call("produce", topic, "-p", "2", "-K", ":", stdin="a:1\nb:2\n").ok()
    assert _read(call, topic, "-p", "2") == ["1", "2"]
    assert _read(call, topic, "-p", "0", "-p", "1") == []


def test_partition_that_does_not_exist(call, topic) -> None:
    call("topic", "create", topic, "-p", "3").ok()
    assert call("produce", topic, "-p", "3", stdin="a\n").code == 3
    ran = call("consume", topic, "-p", "3")
    assert (ran.code, ran.stderr) == (3, f"barnabas: topic '{topic}' has no partition 3; it has 3\n")


@pytest.mark.parametrize(
    ("where", "read"),
    [
        ("beginning", list("0123456789")),
        ("end", []),
        ("7", list("789")),
        ("-2", list("89")),
        ("-20", list("0123456789")),
        ("99", []),
        ("2:5", list("234")),
        (":3", list("012")),
        ("8:end", list("89")),
        ("@0", list("0123456789")),
        ("@-1h", list("0123456789")),
        ("@9999999999999", []),
    ],
)
def test_places(call, topic_of_ten, where: str, read: list[str]) -> None:
    assert _read(call, topic_of_ten, "-o", where) == read


@pytest.fixture(scope="module")
def topic_of_ten(broker) -> str:
    from tests.support.processes.commands import run_command

    name = f"topic-of-ten-{os.getpid()}"
    run_command("produce", name, stdin="".join(f"{n}\n" for n in range(10)), bootstrap=broker.bootstrap).ok()
    return name


def test_record_at_or_after_a_time(call, topic) -> None:
    for value in ("early", "late"):
        call("produce", topic, "-q", stdin=value).ok()
    times = _read(call, topic, "-f", r"%T\n")
    assert _read(call, topic, "-o", f"@{times[1]}") == ["late"]
    assert _read(call, topic, "-o", f"@{times[0]}:@{times[1]}") == ["early"]


def test_count_stops(call, topic_of_ten) -> None:
    assert call("consume", topic_of_ten, "-n", "3").ok().lines == ["0", "1", "2"]


def test_several_topics(call, topic_name) -> None:
    names = [topic_name("a"), topic_name("b")]
    for name in names:
        call("produce", name, stdin=f"from {name}\n").ok()
    assert sorted(call("consume", *names, "-e").ok().lines) == sorted(f"from {name}" for name in names)


class Consuming:
    """A running `barnabas consume`."""

    def __init__(self, broker, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [*COMMAND, "consume", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
            bufsize=0,  # unbuffered, so that bytes after the line stay in the pipe
        )

    def __enter__(self) -> Consuming:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate()

    def line(self) -> str:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], 30)[0]
        return self.process.stdout.readline().decode().rstrip("\n")


def test_consume_goes_on_until_interrupted(run, broker, topic) -> None:
    run("produce", topic, stdin="first\n").ok()
    with Consuming(broker, topic) as consuming:
        assert consuming.line() == "first"
        run("produce", topic, stdin="second\n").ok()
        assert consuming.line() == "second"
        consuming.process.send_signal(signal.SIGINT)
        _, err = consuming.process.communicate(timeout=30)
        assert consuming.process.returncode == 130
        assert err.startswith(b"barnabas: interrupted: 2 records in ")


def test_reader_that_leaves_is_no_error(broker, run, topic) -> None:
    run("produce", topic, stdin="".join(f"{n}\n" for n in range(100_000))).ok()
    with Consuming(broker, topic, "-e") as consuming:
        assert consuming.line() == "0"
        assert consuming.process.stdout is not None
        consuming.process.stdout.close()
        assert consuming.process.wait(30) == 0
        assert consuming.process.stderr is not None
        assert consuming.process.stderr.read() == b""


def test_typed_lines_go_off_while_the_input_stays_open(broker, run, topic) -> None:
    run("topic", "create", topic).ok()
    producing = subprocess.Popen(
        [*COMMAND, "produce", topic],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    with Consuming(broker, topic, "-n", "2") as consuming:
        assert producing.stdin is not None
        for line in ("typed", "and more"):
            producing.stdin.write(f"{line}\n".encode())
            producing.stdin.flush()
            assert consuming.line() == line
    producing.communicate(timeout=30)
    assert producing.returncode == 0


def test_too_large_record_is_refused_with_a_sentence(call, topic) -> None:
    call("topic", "create", topic, "-c", "max.message.bytes=1000").ok()
    ran = call("produce", topic, stdin="x" * 2000)
    assert ran.code == 1
    assert f"{topic}-0 refused a batch: MESSAGE_TOO_LARGE" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_unreadable_input_file_is_one_sentence(call, topic) -> None:
    ran = call("produce", topic, "-f", "/no/such/file")
    assert ran.code == 2
    assert "/no/such/file" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_consumer_survives_a_restart_of_the_broker(start_broker, topic) -> None:
    from tests.support.processes.commands import run_command

    broker = start_broker()
    run_command("produce", topic, stdin="before\n", bootstrap=broker.bootstrap).ok()
    with Consuming(broker, topic) as consuming:
        assert consuming.line() == "before"
        broker.kill9()
        broker.restart()
        run_command("produce", topic, stdin="after\n", bootstrap=broker.bootstrap).ok()
        assert consuming.line() == "after"


def test_producer_survives_a_kill_of_the_broker(start_broker, topic) -> None:
    """Each line is stored once, in order: batches in flight at the kill are sent again (I1, I5)."""
    from tests.support.processes.commands import run_command

    broker = start_broker()
    run_command("topic", "create", topic, bootstrap=broker.bootstrap).ok()
    lines = [str(number) for number in range(60_000)]
    producing = subprocess.Popen(
        [*COMMAND, "produce", topic, "--batch-size", "2000"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    assert producing.stdin is not None
    for start in range(0, 60_000, 20_000):
        producing.stdin.write("".join(f"{line}\n" for line in lines[start : start + 20_000]).encode())
        producing.stdin.flush()
        if start < 40_000:
            run_command("consume", topic, "-o", str(start), "-n", "1", bootstrap=broker.bootstrap).ok()
            broker.kill9()
            broker.restart()
    _, err = producing.communicate(timeout=60)
    assert producing.returncode == 0, err.decode()
    assert run_command("consume", topic, "-e", bootstrap=broker.bootstrap).ok().lines == lines
