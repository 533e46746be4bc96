"""docs/reference/commands.md: every command and every option that its tables name exists."""

from __future__ import annotations

import shlex

import click

from barnabas.cli.kafka_tools.registry import MISSING, TOOLS
from scripts.pages.command_line import commands, tool_options
from scripts.pages.side_by_side import AREAS
from tests.support.cases import for_each

ROWS = [row for rows in AREAS.values() for row in rows]
BARNABAS = sorted({line for row in ROWS for line in row.barnabas.split("\n")})
KAFKA = sorted({line for row in ROWS for line in row.kafka.split("\n") if line.startswith("kafka-")})
COMMANDS = dict(commands())


def options_of(words):
    return {
        word.partition("=")[0] for word in words if word.startswith("-") and not word[1:].isdigit() and word != "-5"
    }


@for_each("line", BARNABAS)
def test_a_command_of_barnabas_exists_with_its_options(line):
    words = shlex.split(line.split(" < ")[0])
    if words[1].startswith("kafka-"):
        check_tool(words[1:])
        return
    depth = max(count for count in range(1, len(words) + 1) if " ".join(words[:count]) in COMMANDS)
    command = COMMANDS[" ".join(words[:depth])]
    assert not isinstance(command, click.Group), line
    known = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    assert options_of(words[depth:]) <= known, line


@for_each("line", KAFKA)
def test_a_tool_of_kafka_exists_with_its_options(line):
    words = shlex.split(line.split(" < ")[0])
    if "(not here)" in line:
        assert words[0] in MISSING
    else:
        check_tool(words)


def check_tool(words):
    assert words[0] in TOOLS
    known = tool_options(words[0])
    command = [word for word in words[1:2] if not word.startswith("-")]
    assert set(command) <= set(known), words
    for option in options_of(words[1:]):
        assert option in known or " ".join([*command, option]) in known, words


def test_the_explanation_of_every_tool_is_in_its_help(capsys):
    from barnabas.cli import main

    for name in TOOLS:
        assert main([name, "--help"]) == 0
        assert "--help" in capsys.readouterr().out, name
