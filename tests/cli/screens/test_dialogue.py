"""Questions and progress on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.processes.commands import run_command
from tests.support.processes.terminal import COMMAND, ESCAPE, Terminal


def barnabas(*arguments: str, bootstrap: str = "127.0.0.1:1", columns: int = 60, **env: str) -> Terminal:
    settings: Mapping[str, str] = {"BARNABAS_BOOTSTRAP_SERVERS": bootstrap} | env
    return Terminal(str(COMMAND), *arguments, columns=columns, env=settings)


@pytest.fixture
def profile(tmp_path: Path) -> dict[str, str]:
    home = {"XDG_CONFIG_HOME": str(tmp_path)}
    run_command("profile", "create", "old", **home).ok()
    return home


def names(home: dict[str, str]) -> list[str]:
    return [row["profile"] for row in run_command("profile", "list", "-o", "json", **home).ok().json]


@pytest.mark.parametrize(("answer", "code"), [("y\r", 0), ("yes\r", 0), ("n\r", 1), ("\r", 1), ("\x04", 1)])
def test_a_question_is_asked_and_no_is_the_default(profile: dict[str, str], answer: str, code: int) -> None:
    with barnabas("profile", "delete", "old", **profile) as terminal:
        terminal.wait_for("Delete profile old? [y/N]")
        terminal.type(answer)
        assert terminal.to_end() == code
    assert names(profile) == ([] if code == 0 else ["old"])
    assert ("nothing was changed" in terminal.text) == (code == 1)


def test_ctrl_c_at_a_question_is_130(profile: dict[str, str]) -> None:
    with barnabas("profile", "delete", "old", **profile) as terminal:
        terminal.wait_for("[y/N]")
        terminal.type("\x03")
        assert terminal.to_end() == 130
    assert names(profile) == ["old"]
    assert "Traceback" not in terminal.text


def test_yes_asks_nothing(profile: dict[str, str]) -> None:
    with barnabas("profile", "delete", "old", "-y", **profile) as terminal:
        assert terminal.to_end() == 0
    assert "[y/N]" not in terminal.raw


def test_a_script_is_never_asked(profile: dict[str, str]) -> None:
    refused = run_command("profile", "delete", "old", **profile)
    assert (refused.code, "without a terminal to ask on, confirm it with -y" in refused.stderr) == (2, True)
    assert names(profile) == ["old"]
    assert run_command("profile", "delete", "old", "-y", **profile).ok().stderr == ""
    assert names(profile) == []


@pytest.mark.parametrize("columns", [60, 100, 160])
def test_progress_has_one_line_and_is_gone_at_the_end(broker, topic, tmp_path: Path, columns: int) -> None:
    (tmp_path / "lines").write_text("a line\n" * 30_000)
    run_command("topic", "create", topic, bootstrap=broker.bootstrap).ok()
    arguments = ("produce", topic, "-f", str(tmp_path / "lines"))
    with barnabas(*arguments, bootstrap=broker.bootstrap, columns=columns) as terminal:
        assert terminal.to_end() == 0
    drawn = [line for line in terminal.written if "━" in line or "records" in line]
    assert any("━" in line for line in drawn)
    assert max(map(len, terminal.written)) <= columns
    assert "━" not in terminal.text
    assert f"30000 records acknowledged by {topic}" in " ".join(terminal.text.split())


@pytest.mark.parametrize("columns", [60, 160])
def test_following_shows_a_rate_beside_the_file_and_ctrl_c_is_130(broker, topic, tmp_path: Path, columns: int) -> None:
    run_command("produce", topic, stdin="a line\n" * 1234, bootstrap=broker.bootstrap).ok()
    command = f"exec {COMMAND} consume {topic} > {tmp_path / 'lines'}"
    env = {"BARNABAS_BOOTSTRAP_SERVERS": broker.bootstrap}
    with Terminal("/bin/sh", "-c", command, columns=columns, env=env) as terminal:
        terminal.wait_until(r"1,234 records [\d,]+/s")
        terminal.type("\x03")
        assert terminal.to_end() == 130
    assert max(map(len, terminal.written)) <= columns
    assert (tmp_path / "lines").read_text() == "a line\n" * 1234
    assert "Traceback" not in terminal.text


def test_records_on_the_screen_are_not_mixed_with_progress(broker, topic) -> None:
    run_command("produce", topic, stdin="a line\n" * 10, bootstrap=broker.bootstrap).ok()
    with barnabas("consume", topic, "-e", "-q", bootstrap=broker.bootstrap) as terminal:
        assert terminal.to_end() == 0
    assert terminal.text.splitlines() == ["a line"] * 10
    assert "\x1b" not in terminal.raw


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_progress_without_colour(broker, topic, tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "lines").write_text("a line\n" * 30_000)
    arguments = ("produce", topic, "-f", str(tmp_path / "lines"))
    with barnabas(*arguments, bootstrap=broker.bootstrap, **environment) as terminal:
        assert terminal.to_end() == 0
    colours = [escape for escape in ESCAPE.findall(terminal.raw) if escape.endswith("m") and escape != "\x1b[0m"]
    assert colours == []
    if "TERM" in environment:
        assert "\x1b" not in terminal.raw
