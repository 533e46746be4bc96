"""Nothing is destroyed, hidden or made by accident: what commands refuse, and what they say beside their result."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from tests.support.processes.commands import run_command
from tests.support.waiting import wait_for


@pytest.fixture
def ten_records(call, topic) -> str:
    """A topic with ten records in its only partition."""
    call("topic", "create", topic).ok()
    call("produce", topic, stdin="x\n" * 10).ok()
    return topic


def test_nothing_is_deleted_without_a_terminal_or_consent(call, ten_records) -> None:
    for arguments in (("delete", ten_records), ("trim", ten_records, "--to", "end")):
        ran = call("topic", *arguments)
        assert (ran.code, "without a terminal to ask on, confirm it with -y" in ran.stderr) == (2, True)
    assert call("consume", ten_records, "-n", "10", "-f", "%o\n").ok().lines == [str(offset) for offset in range(10)]


def test_durations_and_sizes(call, topic) -> None:
    call("topic", "create", topic, "-c", "retention.ms=1.5d", "-c", "segment.bytes=2MiB").ok()
    call("topic", "alter", topic, "--set", "retention.bytes=1GB", "--set", "max.message.bytes=5000").ok()
    (described,) = call("topic", "describe", topic, "--configs", "-o", "json").ok().json
    values = {row["key"]: row["value"] for row in described["configs"]}
    assert [values[key] for key in ("retention.ms", "segment.bytes", "retention.bytes", "max.message.bytes")] == [
        "129600000",
        "2097152",
        "1000000000",
        "5000",
    ]
    for setting, expected in (("retention.ms=1w", "12h or 7d"), ("retention.bytes=big", "10MB or 1GiB")):
        ran = call("topic", "alter", topic, "--set", setting)
        assert (ran.code, expected in ran.stderr) == (2, True)


def test_more_replicas_than_brokers_are_noted(call, topic) -> None:
    ran = call("topic", "create", topic, "-r", "3").ok()
    assert ran.stderr == f"topic {topic} has 1 replica, not 3: there are no more brokers\n"


def test_a_topic_that_produce_creates_is_named(call, topic) -> None:
    call("topic", "create", topic).ok()
    first = call("produce", f"{topic}x", stdin="a\n").ok()
    assert f"created topic {topic}x with 1 partition; did you mean {topic}?\n" in first.stderr
    assert "created topic" not in call("produce", f"{topic}x", stdin="b\n").ok().stderr


def test_groups_that_read_a_topic_are_named_before_it_is_deleted(broker, call, topic) -> None:
    call("topic", "create", topic, "-p", "3").ok()
    call("produce", topic, "-p", "1", stdin="a\nb\n").ok()
    group = f"group-of-{topic}"
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    wait_for(lambda: consumer.poll(0.1) is not None or None, "a record")
    try:
        first, _, *rows = call("group", "describe", group).ok().lines
        assert first.endswith("total lag 0 and unknown of 1 partition")
        assert [row.split()[1:5] for row in rows] == [["0", "-", "0", "0"], ["1", "-", "2", "-"], ["2", "-", "0", "0"]]
        consumer.commit(asynchronous=False)
        assert call("group", "describe", group).ok().lines[0].endswith("total lag 1")
        refused = call("topic", "delete", topic)
        assert f"topic {topic} is being read by group {group}\n" in refused.stderr
    finally:
        consumer.close()
    assert "is being read by group" not in call("topic", "delete", topic).stderr


def test_data_made_with_secure_is_not_served_in_plaintext_without_a_word(tmp_path) -> None:
    """Only the name of the folder counts, so the start does not read certificates."""
    (tmp_path / "data-secure").mkdir()
    for options, is_warned in ((), True), (("--set", "listeners=SSL://127.0.0.1:0"), False):
        broken = ("--set", "num.io.threads=none")  # so that it does not go on
        ran = run_command("serve", "--data-dir", str(tmp_path / "data"), *options, *broken)
        assert ran.code == 2
        assert ("was made with --secure" in ran.stderr) is is_warned, ran.stderr
