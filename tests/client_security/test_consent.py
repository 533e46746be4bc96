"""Every command with `-y` asks first; where there is no terminal, it refuses without `-y` and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest

from barnabas.cli.app import app
from barnabas.storage import layout
from tests.support.processes.commands import Ran, run_command

REFUSED = "; without a terminal to ask on, confirm it with -y ("
NEEDS_SEVERAL_BROKERS = {("cluster", "rebalance")}
"""tests/cluster/supervisor has its case."""
NEEDS_LOG_IN = {("token", "expire")}
"""test_token_commands.py has its case."""
NAME = "consent"


def commands_that_ask(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The commands with `-y`, each as the words of its name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands_that_ask(command, (*path, name))
        elif any("--yes" in parameter.opts for parameter in command.params):
            yield (*path, name)


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A data directory with a checkpoint that cannot be read."""
    path = tmp_path / "data"
    path.mkdir()
    (path / layout.META_PROPERTIES).write_text("version=1\nnode.id=1\ncluster.id=c\n")
    (path / layout.RECOVERY_POINT_CHECKPOINT).write_text("garbage\n")
    return path


def test_commands_that_ask_refuse_without_a_terminal(admin: Callable[..., Ran], damaged: Path) -> None:
    home = {"XDG_CONFIG_HOME": str(damaged.parent)}
    admin("topic", "create", NAME).ok()
    admin("produce", NAME, stdin="a\n").ok()
    admin("consume", NAME, "-g", NAME, "-n", "1").ok()
    admin("acl", "add", "topic", NAME, "--user", "a", "--operation", "read").ok()
    admin("quota", "set", "--user", NAME, "consumer_byte_rate=1").ok()
    admin("user", "set", NAME, "--password", "x").ok()
    admin("produce", NAME, "--transactional-id", NAME, stdin="a\n").ok()
    run_command("profile", "create", NAME, **home).ok()
    arguments = {
        ("topic", "trim"): (NAME, "--to", "end"),
        ("topic", "elect-leaders"): (NAME, "--unclean"),
        ("group", "forget"): (NAME, "-t", NAME),
        ("group", "delete"): (NAME,),
        ("topic", "delete"): (NAME,),
        ("profile", "delete"): (NAME,),
        ("user", "delete"): (NAME,),
        ("acl", "remove"): ("topic", NAME),
        ("quota", "remove"): ("--user", NAME),
        ("txn", "abort"): (NAME,),
        ("features", "downgrade"): ("share.version=0",),
        ("storage", "recover"): (str(damaged),),
    }
    assert set(commands_that_ask(app)) == set(arguments) | NEEDS_SEVERAL_BROKERS | NEEDS_LOG_IN
    for command, values in arguments.items():
        ran = admin(*command, *values, **home)
        assert (ran.code, REFUSED in ran.stderr) == (2, True), (command, ran.stderr)
    assert [row["committed"] for row in described(admin)] == [1]
    assert admin("user", "describe", NAME).ok().lines
    for command in (
        ("acl", "remove"),
        ("quota", "remove"),
        ("user", "delete"),
        ("group", "delete"),
        ("topic", "delete"),
    ):
        admin(*command, *arguments[command], "-y").ok()


def described(admin: Callable[..., Ran]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = admin("group", "offsets", NAME, "-o", "json").ok().json
    return rows
