"""`barnabas topic alter|add-partitions|trim|analyze`, patterns, and what deletion asks."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.support.cases import for_each
from tests.support.processes.commands import COMMAND


@pytest.fixture
def topics(call, topic_name) -> list[str]:
    """Three topics with one stem: NAME-a, NAME-b with two partitions, and NAME-c."""
    stem = topic_name()
    names = [f"{stem}-{letter}" for letter in "abc"]
    call("topic", "create", *names, "-p", "2").ok()
    return names


@pytest.fixture
def ten_records(call, topic) -> str:
    """A topic with ten records in partition 0, and none in partition 1."""
    call("topic", "create", topic, "-p", "2").ok()
    call("produce", topic, "-p", "0", stdin="x\n" * 10).ok()
    return topic


def _names(ran) -> list[str]:
    return [row["topic"] for row in ran.ok().json]


def test_lists_match_globs_and_regular_expressions(call, topics) -> None:
    first, second, third = topics
    stem = first[:-2]
    assert _names(call("topic", "list", f"{stem}-[ab]", "-o", "json")) == [first, second]
    assert _names(call("topic", "list", first, third, "-o", "json")) == [first, third]
    assert _names(call("topic", "list", "-r", f"{stem}-(b|c)", "-o", "json")) == [second, third]
    assert _names(call("topic", "list", "-r", "-o", "json", stem)) == []  # the whole name must match
    nothing = call("topic", "list", f"{stem}-x*")
    assert (nothing.code, nothing.stdout, nothing.stderr) == (0, "", f"no topic matches {stem}-x*\n")
    assert "is not a regular expression" in call("topic", "list", "-r", "(").stderr
    rows = call("topic", "list", "-d", f"{stem}-a", "-o", "json").ok().json
    assert [(row["topic"], row["partition"], row["leader"], row["isr"]) for row in rows] == [
        (first, 0, 1, [1]),
        (first, 1, 1, [1]),
    ]


def test_patterns_describe_alter_and_delete(call, topics) -> None:
    stem = topics[0][:-2]
    assert _names(call("topic", "describe", f"{stem}-*", "-o", "json")) == topics
    call("topic", "alter", f"{stem}-*", "--set", "retention.ms=1234").ok()
    for described in call("topic", "describe", f"{stem}-*", "--configs", "-o", "json").ok().json:
        assert ("retention.ms", "1234") in [(row["key"], row["value"]) for row in described["configs"]]
    refused = call("topic", "delete", f"{stem}-[ab]")
    assert (refused.code, "confirm it with -y" in refused.stderr, topics[1] in refused.stderr) == (2, True, True)
    assert call("topic", "delete", f"{stem}-[ab]", "-y").ok().lines == [f"deleted topic {name}" for name in topics[:2]]
    missing = call("topic", "delete", f"{stem}-[ab]", "-y")
    assert (missing.code, missing.stderr) == (3, f"barnabas: no topic matches '{stem}-[ab]'\n")


def test_nothing_is_deleted_when_one_name_is_wrong(call, topics) -> None:
    ran = call("topic", "delete", "-y", topics[0], f"{topics[0]}x")
    assert (ran.code, ran.stderr) == (3, f"barnabas: there is no topic '{topics[0]}x'; did you mean {topics[0]}?\n")
    assert _names(call("topic", "describe", topics[0], "-o", "json")) == [topics[0]]


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_deletion_asks_on_a_terminal(broker, call, topic, answer: str, code: int) -> None:
    call("topic", "create", topic).ok()
    ours, theirs = pty.openpty()
    environment = os.environ | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap, "TERM": "xterm", "COLUMNS": "200"}
    process = subprocess.Popen(
        [*COMMAND, "topic", "delete", topic], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    assert f"Delete topic {topic} with all records?" in shown.decode()
    os.write(ours, answer.encode())
    stdout, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == code
    assert stdout.decode() == (f"deleted topic {topic}\n" if code == 0 else "")
    assert (call("topic", "describe", topic).code == 3) is (code == 0)


def test_alter_sets_deletes_appends_and_subtracts(call, topic) -> None:
    call("topic", "create", topic, "-c", "retention.ms=1000").ok()
    changed = call(
        "topic",
        "alter",
        topic,
        "--set",
        "segment.ms=5000",
        "--delete",
        "retention.ms",
        "--append",
        "cleanup.policy=compact",
    ).ok()
    assert changed.lines == [
        f"topic {topic}: retention.ms is reset to its default",
        f"topic {topic}: segment.ms=5000",
        f"topic {topic}: compact is added to cleanup.policy",
    ]

    def values() -> dict[str, str]:
        rows = call("config", "get", "topic", topic, "-o", "json").ok().json
        return {row["key"]: row["value"] for row in rows if row["source"] == "topic"}

    assert values() == {"segment.ms": "5000", "cleanup.policy": "delete,compact"}
    dry = call("topic", "alter", topic, "--subtract", "cleanup.policy=compact", "--dry-run").ok()
    assert dry.stdout == f"topic {topic}: compact would be removed from cleanup.policy\n"
    assert dry.stderr == "dry run: nothing was changed\n"
    assert values()["cleanup.policy"] == "delete,compact"
    call("topic", "alter", topic, "--subtract", "cleanup.policy=compact").ok()
    assert values()["cleanup.policy"] == "delete"


def test_mistakes_of_alter(call, topic) -> None:
    call("topic", "create", topic).ok()
    unknown = call("topic", "alter", topic, "--set", "retntion.ms=1")
    assert unknown.code == 1
    assert unknown.stderr.endswith("retntion.ms; did you mean retention.ms?\n")
    assert call("topic", "alter", topic).code == 2
    assert call("topic", "alter", topic, "--set", "retention.ms").code == 2
    assert call("topic", "alter", topic, "--delete", "retention.ms=1").code == 2
    twice = call("topic", "alter", topic, "--set", "retention.ms=1", "--delete", "retention.ms")
    assert (twice.code, "two changes of retention.ms" in twice.stderr) == (2, True)


def test_partitions_are_added(call, topic) -> None:
    call("topic", "create", topic).ok()
    assert call("topic", "add-partitions", topic, "-n", "2", "--dry-run").ok().stdout == (
        f"topic {topic} would have 3 partitions, 2 more than before\n"
    )
    assert call("topic", "add-partitions", topic, "-n", "2").ok().stdout == (
        f"topic {topic} has 3 partitions, 2 more than before\n"
    )
    assert call("topic", "add-partitions", topic, "--total", "4").ok().stdout == (
        f"topic {topic} has 4 partitions, 1 more than before\n"
    )
    fewer = call("topic", "add-partitions", topic, "--total", "2")
    assert (fewer.code, "INVALID_PARTITIONS" in fewer.stderr) == (1, True)
    assert call("topic", "add-partitions", topic).code == 2
    assert call("topic", "add-partitions", topic, "-n", "0").code == 2
    assert call("topic", "add-partitions", f"{topic}-x", "-n", "1").code == 3


def _starts(call, topic: str) -> list[int]:
    (described,) = call("topic", "describe", topic, "-o", "json").ok().json
    return [partition["start_offset"] for partition in described["partitions"]]


@for_each(("where", "start"), [("3", 3), ("-2", 8), ("end", 10), ("@-1h", 0), ("beginning", 0)])
def test_trim_to_a_position(call, ten_records, where: str, start: int) -> None:
    dry = call("topic", "trim", f"{ten_records}:0", "--to", where, "--dry-run", "-o", "json").ok()
    assert [(row["before"], row["after"], row["deleted"]) for row in dry.json] == [(0, start, start)]
    assert "dry run" in dry.stderr
    assert _starts(call, ten_records) == [0, 0]
    call("topic", "trim", "-y", f"{ten_records}:0", "--to", where).ok()
    assert _starts(call, ten_records) == [start, 0]


def test_trim_beyond_the_end_deletes_nothing(call, ten_records) -> None:
    """An offset after the end would delete every record of the partition: it is more likely a mistake."""
    ran = call("topic", "trim", "-y", ten_records, "--to", "5")
    assert (ran.code, f"{ten_records}-1 ends at offset 0" in ran.stderr) == (1, True)
    assert call("topic", "trim", "-y", f"{ten_records}:0", "--to", "11").code == 1
    assert _starts(call, ten_records) == [0, 0]


def test_topics_that_cannot_be_trimmed(call, topic) -> None:
    call("topic", "create", topic, "-c", "cleanup.policy=compact").ok()
    call("produce", topic, "-K", ":", stdin="k:v\n").ok()
    ran = call("topic", "trim", "-y", topic, "--to", "end")
    assert (ran.code, "POLICY_VIOLATION: the topic's cleanup.policy does not have delete" in ran.stderr) == (1, True)


def test_internal_topics_are_not_deleted_by_a_script_that_does_not_say_so(call, topic) -> None:
    call("topic", "create", topic).ok()
    call("group", "seek", f"group-of-{topic}", "--to", "0", "-t", topic).ok()
    ran = call("topic", "delete", "__consumer_offsets")
    assert (ran.code, "confirm it with -y" in ran.stderr) == (2, True)
    assert call("group", "offsets", f"group-of-{topic}", "-o", "json").ok().json[0]["committed"] == 0


def test_trim_from_files(call, ten_records, tmp_path: Path) -> None:
    lines = tmp_path / "offsets.csv"
    lines.write_text(f"# topic, partition, offset\n{ten_records},0,4\n")
    call("topic", "trim", "-y", "--from-file", str(lines)).ok()
    assert _starts(call, ten_records) == [4, 0]
    document = tmp_path / "offsets.json"
    document.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": ten_records, "partition": 0, "offset": -1}]})
    )
    call("topic", "trim", "-y", "--from-file", str(document)).ok()
    assert _starts(call, ten_records) == [10, 0]


@for_each(
    ("text", "sentence"),
    [
        ("orders 1 3\n", "line 1 of"),
        ("a,0,1\nb,x,1\n", "line 2 of"),
        ("a,0,1\na,0,2\n", "a-0 twice"),
        ("\n", "has no offsets"),
        ('{"partitions": [{"topic": "a"}]}', "is not {"),
        ("a,0,-7\n", "offset from -1"),
    ],
)
def test_mistakes_in_files_of_offsets(call, tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "offsets").write_text(text)
    ran = call("topic", "trim", "-y", "--from-file", str(tmp_path / "offsets"))
    assert (ran.code, sentence in ran.stderr, len(ran.stderr.splitlines())) == (2, True, 1)


def test_mistakes_of_trim(call, topic, tmp_path: Path) -> None:
    assert call("topic", "trim", topic, "--to", "end").code == 3
    call("topic", "create", topic).ok()
    assert call("topic", "trim", topic).code == 2
    assert call("topic", "trim", "--to", "end").code == 2
    assert call("topic", "trim", topic, "--to", "tomorrow").code == 2
    assert call("topic", "trim", f"{topic}:x", "--to", "end").code == 2
    missing = call("topic", "trim", f"{topic}:4", "--to", "end")
    assert (missing.code, missing.stderr) == (3, f"barnabas: topic '{topic}' has no partition 4, only partition 0\n")
    assert call("topic", "trim", "--from-file", str(tmp_path / "none")).code == 2


def test_analyze_counts_batches_and_records(call, ten_records) -> None:
    call("produce", ten_records, "-p", "0", "-z", "zstd", stdin="y" * 400 + "\n").ok()
    (analyzed,) = call("topic", "analyze", ten_records, "-o", "json").ok().json
    first, second = analyzed["by_partition"]
    assert (analyzed["records"], first["records"], second["records"]) == (11, 11, 0)
    assert analyzed["batches"] == first["batches"] >= 2
    assert analyzed["compression"] == ["none", "zstd"]
    assert first["p25"] <= first["p50"] <= first["p99"] <= first["max"] < analyzed["bytes"]
    assert analyzed["record_bytes"] == round(analyzed["bytes"] / 11, 1)
    assert (first["leader"], second["batches_per_s"]) == (1, None)

    described = call("topic", "describe", ten_records, "--sizes", "--offsets", "-o", "json").ok().json[0]["partitions"]
    assert [row["bytes"] for row in described] == [analyzed["bytes"], 0]
    assert [(row["stable_offset"], row["offsets"]) for row in described] == [(11, 11), (0, 0)]


def test_analyze_of_a_range_and_of_the_first_batches(call, ten_records) -> None:
    for _ in range(2):
        call("produce", ten_records, "-p", "0", stdin="z\n").ok()
    limited = call("topic", "analyze", ten_records, "-n", "1", "-t", "10:", "-o", "json").ok()
    assert limited.json[0]["batches"] == 1
    assert f"only the first 1 batches of {ten_records}-0 were read" in limited.stderr
    (last,) = call("topic", "analyze", ten_records, "-t", "-1", "-o", "json").ok().json
    assert (last["batches"], last["records"]) == (1, 1)
    nothing = call("topic", "analyze", ten_records, "-t", "@-2h:@-1h").ok()
    assert "there are no records in @-2h:@-1h" in nothing.stderr
    assert call("topic", "analyze", f"{ten_records}-x").code == 3
    assert call("topic", "analyze", ten_records, "-t", "soon").code == 2


def test_tables_fit_60_columns(call, ten_records) -> None:
    """With a topic name of ten characters; the test's topic name is longer."""
    longer = len(ten_records) - 10
    for arguments in (
        ("topic", "describe", ten_records),
        ("topic", "describe", ten_records, "-s"),
        ("topic", "describe", ten_records, "-a"),
        ("topic", "list", "-d", ten_records),
        ("topic", "trim", ten_records, "--to", "beginning"),
        ("topic", "analyze", ten_records),
    ):
        for line in call(*arguments).ok().lines:
            assert len(line) - (longer if ten_records in line or line.startswith("TOPIC") else 0) <= 60, line
