"""Completion in real shells: TAB in bash, zsh and fish, set up by `barnabas completion install`."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.commands import run_command
from tests.support.processes.terminal import Terminal

SHELLS = {
    "bash": ("bash", "--noprofile", "-i"),
    "zsh": ("zsh", "--no-globalrcs", "-i"),
    "fish": ("fish", "-i"),
}
TOPIC = "tabbed-orders"


class Shell:
    """A shell on a terminal, with completion installed in a home of its own."""

    def __init__(self, name: str, home: Path, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        environment = home_of(home) | {
            "BARNABAS_BOOTSTRAP_SERVERS": bootstrap,
            "BARNABAS_COMPLETION_TIMEOUT": "60",  # a busy machine
            "PS1": "> ",
            "fish_greeting": "",
        }
        self.terminal = Terminal(*SHELLS[name], columns=160, env=environment)
        self.number = 0
        self.expect_ready()

    def expect_ready(self) -> None:
        """Wait until the shell has run everything typed so far."""
        self.number += 1
        self.terminal.type(f"echo ready''{self.number}\r")
        self.terminal.wait_for(f"ready{self.number}")

    def tab(self, line: str, *expected: str, tabs: int = 1) -> None:
        """Type the line and TAB; the texts appear after it. Then the line is deleted."""
        self.terminal.type("clear\r")
        self.expect_ready()
        self.terminal.type(line + "\t" * tabs)
        for text in expected:
            self.terminal.wait_for(text)
        self.terminal.type("\x15")
        self.expect_ready()


def home_of(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "ZDOTDIR": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
    }


@pytest.fixture(scope="module", params=list(SHELLS))
def shell(request: pytest.FixtureRequest, broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    home = tmp_path_factory.mktemp(f"home-{name}")
    run_command("topic", "create", TOPIC, "-p", "3", "--if-not-exists", bootstrap=broker.bootstrap).ok()
    run_command("group", "seek", "tabbed-readers", "--to", "0", "-t", TOPIC, bootstrap=broker.bootstrap).ok()
    run_command("completion", "install", "--shell", name, **home_of(home)).ok()
    new_shell = Shell(name, home, broker.bootstrap)
    with new_shell.terminal:
        yield new_shell


def test_commands_and_options(shell: Shell) -> None:
    shell.tab("barnabas topi", "barnabas topic")
    shell.tab("barnabas topic desc", "barnabas topic describe")
    shell.tab("barnabas consume x --part", "--partition")
    shell.tab("barnabas topic list -o ya", "-o yaml")
    shell.tab("barnabas produce x -z zs", "-z zstd")


def test_options_of_serve(shell: Shell) -> None:
    shell.tab("barnabas serve --data", "--data-dir")
    shell.tab("barnabas serve --profile ka", "--profile kafka")
    shell.tab("barnabas serve --set num.part", "num.partitions=")


def test_live_names(shell: Shell) -> None:
    shell.tab("barnabas topic describe tabbed-o", f"describe {TOPIC}")
    shell.tab("barnabas group describe tabbed-r", "describe tabbed-readers")
    shell.tab("barnabas config get topic tabbed-o", f"get topic {TOPIC}")


def test_partitions_of_the_topic(shell: Shell) -> None:
    shell.tab(f"barnabas group seek g --to 0 -t {TOPIC}:", f"{TOPIC}:", tabs=2)
    shell.tab(f"barnabas consume {TOPIC} -p ", "0", "1", "2", tabs=2)


def test_keys_without_a_space_and_their_values(shell: Shell) -> None:
    shell.tab("barnabas topic create x -c cleanup.pol", "cleanup.policy=")
    shell.tab("barnabas topic create x -c cleanup.pol\tcomp", "cleanup.policy=compact")
    shell.tab("barnabas topic create x -c cleanup.policy=comp", "cleanup.policy=compact")


def test_completed_command_runs(shell: Shell) -> None:
    shell.terminal.type("clear\r")
    shell.expect_ready()
    shell.terminal.type("barnabas topic describe tabbed-o\t")
    shell.terminal.wait_for(f"describe {TOPIC}")
    shell.terminal.type("\r")
    shell.terminal.wait_for("END-OFFSET")
    shell.expect_ready()


def test_silent_broker_does_not_stop_the_shell(shell: Shell) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        shell.terminal.type("export BARNABAS_COMPLETION_TIMEOUT=0.5\r")
        shell.tab(f"barnabas topic describe -b 127.0.0.1:{silent.getsockname()[1]} x", " x", tabs=2)
        shell.terminal.type("export BARNABAS_COMPLETION_TIMEOUT=60\r")
        shell.expect_ready()


def test_a_failure_writes_nothing_into_the_line(shell: Shell) -> None:
    shell.tab("barnabas nonsense foo", "nonsense foo")
    assert "Traceback" not in shell.terminal.raw
    assert "nonsense:" not in shell.terminal.raw
