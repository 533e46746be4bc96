"""All commands look the same: help pages at every width, sentences through `note`, groups of one class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from barnabas.cli.app import CONTEXT, app
from barnabas.cli.command_groups import Group
from tests.support.cases import for_each

COMMANDS = Path(__file__).resolve().parents[3] / "barnabas" / "cli"


def contexts(command: click.Command, context: click.Context) -> Iterator[click.Context]:
    yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from contexts(inner, click.Context(inner, context, name, **CONTEXT))


ALL = {context.command_path: context for context in contexts(app, click.Context(app, None, "barnabas", **CONTEXT))}


def page(context: click.Context, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    return context.get_help().splitlines()


@for_each("path", ALL)
def test_help_fits_the_screen_and_breaks_no_word(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = re.split(r"[\s|]+", " ".join(page(ALL[path], 160, monkeypatch)))
    for columns in (60, 100):
        lines = page(ALL[path], columns, monkeypatch)
        assert [line for line in lines if len(line) > columns] == []
        assert re.split(r"[\s|]+", " ".join(lines)) == wide


@for_each("path", ALL)
def test_every_command_and_option_is_explained(path: str) -> None:
    context = ALL[path]
    assert context.command.get_short_help_str(200)
    if isinstance(context.command, click.Group):
        assert isinstance(context.command, Group), "groups have cls=Group of barnabas.cli.command_groups"
    silent = [
        param.opts[-1]
        for param in context.command.get_params(context)
        if isinstance(param, click.Option)
        and not param.hidden
        and (param.get_help_record(context) or ("", ""))[1] == ""
    ]
    assert silent == []


def test_sentences_on_stderr_are_wrapped_by_note() -> None:
    direct = re.compile(r"err=True|file=sys\.stderr|sys\.stderr\.write")
    texts = [
        str(path.relative_to(COMMANDS))
        for path in COMMANDS.rglob("*.py")
        if "kafka_tools" not in path.parts and direct.search(path.read_text())
    ]
    assert texts == []
