"""`barnabas group seek`: each way to say where to, files, exports and mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cases import for_each


@pytest.fixture
def group(call, topic) -> str:
    """A group at offset 5 of both partitions of `topic`, which have 10 and 6 records."""
    call("topic", "create", topic, "-p", "2").ok()
    for partition, count in (("0", 10), ("1", 6)):
        call("produce", topic, "-p", partition, stdin="x\n" * count).ok()
    name = f"group-of-{topic}"
    call("group", "seek", name, "--to", "5", "-t", topic).ok()
    return name


def _offsets(call, group: str) -> list[int]:
    return [row["committed"] for row in call("group", "offsets", group, "-o", "json").ok().json]


@for_each(
    ("options", "after"),
    [
        (("--shift-by", "-2"), [3, 3]),
        (("--shift-by", "+1"), [6, 6]),
        (("--shift-by", "3"), [8, 6]),
        (("--to-current",), [5, 5]),
        (("--to", "current"), [5, 5]),
        (("--to-datetime", "1970-01-01T00:00"), [0, 0]),
        (("--to-datetime", "2990-01-01"), [10, 6]),
        (("--by-duration", "1h"), [0, 0]),
        (("--by-duration", "PT2H"), [0, 0]),
        (("--all-topics", "--to", "latest"), [10, 6]),
        (("-t", "{topic}:0=7", "-t", "{topic}:1=-1"), [7, 5]),
        (("-t", "{topic}:1=2"), [5, 2]),
        (("-t", "{topic}:0,1", "--to", "1"), [1, 1]),
        (("-t", "{topic}:0=earliest", "-t", "{topic}:1", "--to", "4"), [0, 4]),
    ],
)
def test_ways_to_say_where_to(call, topic, group, options: tuple[str, ...], after: list[int]) -> None:
    arguments = [option.format(topic=topic) for option in options]
    dry = call("group", "seek", group, *arguments, "--dry-run", "-o", "json").ok()
    assert "dry run: nothing was changed" in dry.stderr
    assert _offsets(call, group) == [5, 5]
    rows = call("group", "seek", group, *arguments, "-o", "json").ok().json
    assert rows == dry.json
    assert [row["after"] - 5 for row in rows] == [row["change"] for row in rows]
    assert _offsets(call, group) == after


def test_offsets_outside_a_partition_are_moved_with_a_note(call, topic, group) -> None:
    ran = call("group", "seek", group, "--to", "8").ok()
    assert ran.stderr == f"{topic}-1: 8 is after the end; 6 is used\n"
    assert _offsets(call, group) == [8, 6]
    ran = call("group", "seek", group, "--shift-by", "-7").ok()
    assert ran.stderr == f"{topic}-1: -1 is before the first record; 0 is used\n"
    assert _offsets(call, group) == [1, 0]


def test_export_and_import(call, topic, group, tmp_path: Path) -> None:
    exported = call("group", "offsets", group, "--export").ok().stdout
    assert exported == f"{topic},0,5\n{topic},1,5\n"
    planned = call("group", "seek", group, "--to", "earliest", "--export").ok().stdout
    assert planned == f"{topic},0,0\n{topic},1,0\n"
    assert _offsets(call, group) == [5, 5], "an export changes nothing"
    (tmp_path / "offsets.csv").write_text(f'"{topic}",0,3\n{topic},1,4\n')
    call("group", "seek", group, "--from-file", str(tmp_path / "offsets.csv")).ok()
    assert _offsets(call, group) == [3, 4]
    call("group", "seek", group, "--from-file", "-", stdin=exported).ok()
    assert _offsets(call, group) == [5, 5]
    (tmp_path / "groups.csv").write_text(f"{group},{topic},0,1\nanother,{topic},0,2\n")
    call("group", "seek", group, "--from-file", str(tmp_path / "groups.csv")).ok()
    assert _offsets(call, group) == [1, 5]
    other = call("group", "seek", "somebody-else", "--from-file", str(tmp_path / "groups.csv"))
    assert (other.code, "has no offsets of group 'somebody-else'" in other.stderr) == (2, True)


def test_offsets_of_another_group(call, topic, group) -> None:
    copy = f"copy-of-{topic}"
    call("group", "seek", copy, "--to-group", group).ok()
    assert _offsets(call, copy) == [5, 5]
    call("group", "seek", group, "--to", "latest").ok()
    call("group", "seek", copy, "--to-group", group, "-t", f"{topic}:1").ok()
    assert _offsets(call, copy) == [5, 6]
    missing = call("group", "seek", copy, "--to-group", f"{group}x")
    assert missing.code == 3
    assert missing.stderr.endswith(f"did you mean {group}?\n")


def test_mistakes_of_seek(call, topic, group) -> None:
    similar = call("group", "seek", f"{group}s", "--to", "latest")
    assert (similar.code, f"did you mean {group}?" in similar.stderr) == (2, True)
    assert call("group", "seek", group).code == 2
    for options in (
        ("--to", "1", "--shift-by", "1"),
        ("--to", "1", "--to-group", "x"),
        ("--to", "sideways"),
        ("--shift-by", "one"),
        ("--by-duration", "soon"),
        ("--to-datetime", "yesterday"),
        ("--to", "1", "-t", topic, "--all-topics"),
        ("-t", f"{topic}:x=1"),
        ("-t", f"{topic}:0=2", "-t", f"{topic}:1"),
        ("--from-file", "/no/such/file"),
    ):
        ran = call("group", "seek", group, *options)
        assert (ran.code, len(ran.stderr.splitlines())) == (2, 1), (options, ran.stderr)
    assert call("group", "seek", group, "-t", f"{topic}:7=1").code == 3
    assert call("group", "seek", group, "-t", f"{topic}-x=1").code == 3
    fresh = call("group", "seek", f"fresh-{topic}", "-t", topic, "--shift-by", "1")
    assert (fresh.code, "no committed offset" in fresh.stderr) == (1, True)
    assert _offsets(call, group) == [5, 5]
