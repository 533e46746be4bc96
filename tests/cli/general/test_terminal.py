"""Tables and a progress bar on a terminal, and neither of them elsewhere."""

from __future__ import annotations

import os
import pty
import select
import subprocess
from pathlib import Path

from tests.support.processes.commands import COMMAND


def on_a_terminal(broker, *arguments: str, stdin: int = subprocess.DEVNULL, **environment: str) -> str:
    """Run a command whose stdout and stderr are a pseudo-terminal, and return its output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=stdin,
        stdout=theirs,
        stderr=theirs,
        env=os.environ
        | {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap, "TERM": "xterm-256color", "COLUMNS": "100"}
        | environment,
    )
    os.close(theirs)
    written = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux returns EIO when the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    assert process.wait(30) == 0, written.decode()
    return written.decode()


def test_progress_bar_on_a_terminal(broker, topic, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("line\n" * 20_000)
    seen = on_a_terminal(broker, "produce", topic, "-f", str(tmp_path / "input"))
    assert "━" in seen
    assert "20,000 records" in seen
    assert f"20000 records acknowledged by {topic}" in seen


def test_no_progress_bar_when_quiet(broker, topic, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("line\n" * 10)
    assert on_a_terminal(broker, "produce", topic, "-q", "-f", str(tmp_path / "input")) == ""


def test_no_progress_bar_off_a_terminal(run, topic, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("line\n" * 10)
    ran = run("produce", topic, "-f", str(tmp_path / "input")).ok()
    assert "━" not in ran.stderr
    assert "\x1b" not in ran.stderr


def test_table_on_a_terminal_and_without_colour(broker, run, topic) -> None:
    run("topic", "create", topic).ok()
    drawn = on_a_terminal(broker, "topic", "list")
    assert topic in drawn
    assert "\x1b[1m" in drawn
    plain = on_a_terminal(broker, "topic", "list", NO_COLOR="1")
    assert "\x1b" not in plain
    assert topic in plain
    assert "\x1b" not in on_a_terminal(broker, "topic", "list", TERM="dumb")


def test_json_on_a_terminal_is_only_json(broker, run, topic) -> None:
    run("topic", "create", topic).ok()
    assert "\x1b" not in on_a_terminal(broker, "topic", "describe", topic, "-o", "json")
