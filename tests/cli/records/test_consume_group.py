"""`barnabas consume -g`: a member that balances with others, commits what it printed, and leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from barnabas.client.groups.member import assign_range, assign_round_robin
from tests.support.processes.commands import COMMAND
from tests.support.waiting import wait_for

DEADLINE_S = 90


@pytest.fixture
def filled(call, topic) -> str:
    """A topic of four partitions with ten records each."""
    call("topic", "create", topic, "-p", "4").ok()
    call("produce", topic, "--partitioner", "round-robin", stdin="".join(f"{n}\n" for n in range(40))).ok()
    return topic


class Member:
    """A running `consume -g`; its output is in files."""

    def __init__(self, broker, tmp_path: Path, name: str, *arguments: str) -> None:
        self.out, self.err = tmp_path / f"{name}.out", tmp_path / f"{name}.err"
        with self.out.open("wb") as out, self.err.open("wb") as err:
            self.process = subprocess.Popen(
                [*COMMAND, "consume", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
            )

    def wait_for(self, text: str, file: Path | None = None) -> None:
        """Wait until stderr (or another file) has a text."""
        self._wait(lambda: text in (file or self.err).read_text(), text)

    def wait_for_lines(self, count: int) -> list[str]:
        self._wait(lambda: len(self.out.read_text().splitlines()) >= count, f"{count} lines")
        return self.out.read_text().splitlines()

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds while the command runs."""
        wait_for(
            lambda: holds() or self.process.poll() is not None,
            lambda: f"{what} of {self.out.read_text()!r}: {self.err.read_text()}",
            DEADLINE_S,
        )
        assert holds() or self.process.poll() is None, self.err.read_text()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(DEADLINE_S) == 130, self.err.read_text()


@pytest.fixture
def member(broker, tmp_path: Path) -> Iterator:
    running: list[Member] = []

    def start(name: str, *arguments: str) -> Member:
        running.append(Member(broker, tmp_path, name, *arguments))
        return running[-1]

    yield start
    for process in running:
        process.process.kill()
        process.process.wait()


def _lags(call, group: str) -> dict[int, int]:
    rows = call("group", "describe", group, "-o", "json").ok().json[0]["partitions"]
    return {row["partition"]: row["lag"] for row in rows}


def test_only_what_was_printed_is_committed(call, filled) -> None:
    first = call("consume", filled, "-g", filled, "-n", "15").ok()
    assert len(first.lines) == 15
    assert f"{filled}-0, {filled}-1, {filled}-2, {filled}-3 assigned" in first.stderr
    rest = call("consume", filled, "-g", filled, "-e").ok()
    assert sorted(map(int, first.lines + rest.lines)) == list(range(40))
    assert _lags(call, filled) == dict.fromkeys(range(4), 0)
    described = call("group", "describe", filled, "-o", "json").ok().json[0]
    assert described["members"] == [], "it has left"


def test_it_leaves_when_the_reader_of_its_output_is_gone(call, broker, filled) -> None:
    """What was not delivered is not committed, and the partitions are free at once."""
    process = subprocess.Popen(
        [*COMMAND, "consume", filled, "-g", filled, "-f", f"%v {'x' * 10_000}\\n"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(DEADLINE_S) == 0, process.stderr.read()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    described = call("group", "describe", filled, "-o", "json").ok().json[0]
    assert described["members"] == []
    assert all(row["committed"] in (None, 0) for row in described["partitions"])


def test_where_a_new_group_begins(call, filled) -> None:
    assert call("consume", filled, "-g", f"{filled}-late", "-o", "end", "-e").ok().lines == []
    assert len(call("consume", filled, "-g", f"{filled}-early", "-e").ok().lines) == 40


def test_it_shares_with_librdkafka_and_takes_over(call, broker, filled, member) -> None:
    """Assignment by either leader; the one that leaves gives its partitions to the other."""
    ours = member("ours", filled, "-g", filled, "-f", r"%p %v\n")
    ours.wait_for(f"{filled}-3 assigned")
    ours.wait_for_lines(40)
    other = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": filled, "auto.offset.reset": "earliest"})
    try:
        other.subscribe([filled])
        end = time.monotonic() + DEADLINE_S
        while len(other.assignment()) != 2:
            assert other.poll(0.1) is None, "what was printed is committed before the partitions are given up"
            assert time.monotonic() < end, ours.err.read_text()
        ours.wait_for(" revoked")
        theirs = {partition.partition for partition in other.assignment()}
        lines = "".join(f"{n}\n" for n in range(100, 140))
        call("produce", filled, "--partitioner", "round-robin", stdin=lines).ok()
        read = [line.split() for line in ours.wait_for_lines(60)[40:]]
        assert {int(partition) for partition, _ in read} == set(range(4)) - theirs
        values = []
        while len(values) < 20:
            assert time.monotonic() < end
            message = other.poll(0.1)
            if message is not None and message.error() is None:
                values.append(message.value())
    finally:
        other.close()
    ours.wait_for("generation 3)")
    call("produce", filled, "-p", str(min(theirs)), stdin="after\n").ok()
    ours.wait_for("after", ours.out)
    ours.interrupt()
    assert "interrupted: 61 records" in ours.err.read_text()
    assert _lags(call, filled) == dict.fromkeys(range(4), 0)


def test_new_partitions_and_topics_of_a_pattern_are_read(call, broker, topic_name, member, monkeypatch) -> None:
    name = topic_name("pattern-a")
    call("topic", "create", name).ok()
    ours = member("ours", f"^{name}", "-g", name)
    ours.wait_for(f"{name}-0 assigned")
    call("topic", "create", f"{name}-b").ok()
    call("produce", f"{name}-b", stdin="hello\n").ok()
    ours.wait_for("hello", ours.out)
    ours.interrupt()


def test_static_member_keeps_its_partitions(call, filled) -> None:
    options = ("consume", filled, "-g", filled, "--instance-id", "one")
    call(*options, "-n", "1").ok()
    described = call("group", "describe", filled, "-o", "json").ok().json[0]
    assert len(described["members"]) == 1, "a static member does not leave"
    again = call(*options, "-n", "1").ok()
    assert "assigned (generation 1)" in again.stderr, "no rebalance"


def test_joining_ends_with_the_timeout(call, filled, broker) -> None:
    """Another member that never polls holds a rebalance up; the command ends nevertheless."""
    other = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": filled, "session.timeout.ms": 45_000})
    try:
        other.subscribe([filled])
        end = time.monotonic() + DEADLINE_S
        while not other.assignment():
            other.poll(0.1)
            assert time.monotonic() < end
        ran = call("consume", filled, "-g", filled, "-n", "1", "--timeout", "3")
        assert (ran.code, ran.stdout) == (4, "")
    finally:
        other.close()


def test_assignors() -> None:
    """As Kafka's RangeAssignor and RoundRobinAssignor."""
    subscriptions = {"a": ["t", "u"], "b": ["t"], "c": ["t", "u"]}
    counts = {"t": 5, "u": 3}
    assert assign_range(subscriptions, counts) == {
        "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)],
        "b": [("t", 2), ("t", 3)],
        "c": [("t", 4), ("u", 2)],
    }
    assert assign_round_robin(subscriptions, counts) == {
        "a": [("t", 0), ("t", 3), ("u", 1)],
        "b": [("t", 1), ("t", 4)],
        "c": [("t", 2), ("u", 0), ("u", 2)],
    }
