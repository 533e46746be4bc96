"""`barnabas group describe --members|--state|--watch`, `lag`, patterns, and what deletion asks."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest
from confluent_kafka import Consumer

from tests.support.processes.commands import COMMAND, clean_environment


@pytest.fixture
def groups(call, topic) -> list[str]:
    """Two groups of one topic with ten records in each of two partitions: one lags by 4 and 0, the other by 20."""
    call("topic", "create", topic, "-p", "2").ok()
    for partition in ("0", "1"):
        call("produce", topic, "-p", partition, stdin="x\n" * 10).ok()
    names = [f"{topic}-{letter}" for letter in "ab"]
    call("group", "seek", names[0], "-t", f"{topic}:0=6", "-t", f"{topic}:1=10").ok()
    call("group", "seek", names[1], "-t", topic, "--to", "earliest").ok()
    return names


def test_lag_in_one_line_for_each_group(call, topic, groups) -> None:
    rows = call("group", "lag", f"{topic}-*", "-o", "json").ok().json
    assert [(row["group"], row["members"], row["topics"], row["partitions"], row["lag"]) for row in rows] == [
        (groups[0], 0, 1, 2, 4),
        (groups[1], 0, 1, 2, 20),
    ]
    assert set(groups) <= {row["group"] for row in call("group", "lag", "-o", "json").ok().json}
    header, line = call("group", "lag", groups[0]).ok().lines
    assert header.split() == ["GROUP", "STATE", "MEMBERS", "PARTITIONS", "LAG"]
    assert line.split() == [groups[0], "Empty", "0", "2", "4"]
    (over,) = call("group", "lag", "-r", f"{topic}-.", "--lag-over", "4", "-o", "json").ok().json
    assert over["group"] == groups[1]
    none = call("group", "lag", groups[0], "--lag-over", "4").ok()
    assert (none.stdout, none.stderr) == ("", "no group has a lag of more than 4\n")


def test_partitions_that_lag(call, topic, groups) -> None:
    (described,) = call("group", "describe", groups[0], "--lag-over", "3", "-o", "json").ok().json
    assert [(row["partition"], row["lag"]) for row in described["partitions"]] == [(0, 4)]
    none = call("group", "describe", groups[0], "--lag-over", "4").ok()
    assert (len(none.lines), none.stderr) == (1, "no partition has a lag of more than 4\n")


def test_lists_and_deletion_take_patterns(call, topic, groups) -> None:
    assert [row["group"] for row in call("group", "list", f"{topic}-*", "-o", "json").ok().json] == groups
    assert [
        described["group"] for described in call("group", "describe", "-r", f"{topic}-[ab]", "-o", "json").ok().json
    ] == groups
    assert call("group", "list", "--state", "Stabel").code == 2
    nothing = call("group", "list", f"{topic}-x*").ok()
    assert nothing.stderr == f"no group matches {topic}-x*\n"
    misspelt = call("group", "delete", "-y", groups[0], f"{groups[1]}x")
    assert (misspelt.code, misspelt.stderr) == (
        3,
        f"barnabas: there is no group '{groups[1]}x'; did you mean {groups[1]}?\n",
    )
    refused = call("group", "delete", f"{topic}-*")
    assert (refused.code, "confirm it with -y" in refused.stderr) == (2, True)
    assert call("group", "delete", f"{topic}-*", "-y").ok().lines == [f"deleted group {name}" for name in groups]
    assert call("group", "delete", f"{topic}-*", "-y").code == 3


def test_members_and_state(call, broker, topic, groups) -> None:
    member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": groups[0], "client.id": "the-reader"})
    member.subscribe([topic])
    while len(member.assignment()) < 2:
        member.poll(0.1)
    (row,) = call("group", "describe", groups[0], "--members", "-o", "json").ok().json
    assert (row["client"], row["partitions"], row["assigned"]) == ("the-reader", 2, [f"{topic}:0-1"])
    shown = call("group", "describe", *groups, "--members").ok().lines
    assert shown[0] == f"group {groups[0]}: Stable, 1 member"
    assert shown[-1] == f"group {groups[1]}: Empty, 0 members"
    rows = call("group", "describe", *groups, "--state", "-o", "json").ok().json
    assert [(row["group"], row["state"], row["coordinator"], row["members"]) for row in rows] == [
        (groups[0], "Stable", 1, 1),
        (groups[1], "Empty", 1, 0),
    ]
    member.close()
    assert call("group", "describe", groups[0], "--members", "--lag-over", "1").code == 2
    assert call("group", "describe", f"{topic}-zz", "--members").code == 3


def test_watch_prints_one_block_for_each_round(call, topic, groups) -> None:
    ran = call("group", "describe", groups[0], "--watch", "--interval", "0.1", "--count", "3").ok()
    blocks = ran.stdout.split("\n\n")
    assert len(blocks) == 3
    for block in blocks:
        lines = block.splitlines()
        assert lines[0].startswith("at 20")
        assert lines[1] == f"group {groups[0]}: Empty, 0 members, assignor -, total lag 4"
    assert "\x1b" not in ran.stdout
    assert call("group", "describe", groups[0], "--watch", "--interval", "0").code == 2
    assert call("group", "describe", f"{topic}-zz", "--watch").code == 3


def test_watch_redraws_on_a_terminal_until_ctrl_c(broker, groups) -> None:
    ours, theirs = pty.openpty()
    environment = clean_environment() | {
        "BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap,
        "TERM": "xterm",
        "COLUMNS": "200",
    }
    process = subprocess.Popen(
        [*COMMAND, "group", "describe", groups[0], "--watch", "--interval", "0.1"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    seen = b""
    while seen.count(b"\x1b[H\x1b[2J") < 3:
        seen += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    try:
        while os.read(ours, 4096):
            pass
    except OSError:  # Linux returns EIO when the other side is closed
        pass
    os.close(ours)
    assert process.wait(60) == 130
    assert b"Ctrl-C ends" in seen
    assert b"Traceback" not in seen


def test_group_deletion_asks_on_a_terminal(broker, call, groups) -> None:
    ours, theirs = pty.openpty()
    environment = clean_environment() | {
        "BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap,
        "TERM": "xterm",
        "COLUMNS": "200",
    }
    process = subprocess.Popen(
        [*COMMAND, "group", "delete", groups[0]], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    os.close(theirs)
    shown = b""
    while b"[y/N]" not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, b"n\n")
    stdout, _ = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, stdout) == (1, b"")
    assert f"Delete group {groups[0]} with all offsets?" in " ".join(shown.decode().split())
    assert call("group", "describe", groups[0]).code == 0
