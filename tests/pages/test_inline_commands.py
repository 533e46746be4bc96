"""Commands in the text and in the tables of pages exist, with the options that they are given there.

Blocks of code are run by `test_pages`; this is about `barnabas …` in a sentence. Values are not looked at.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click
from markdown_it import MarkdownIt

from barnabas.cli.app import app
from barnabas.cli.kafka_tools.registry import MISSING, TOOLS
from tests.support.cases import for_each

ROOT = Path(__file__).resolve().parents[2]
PAGES = [path.relative_to(ROOT) for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])]
_COMMAND = re.compile(r"(?:python -m )?barnabas(?= )(.*)", re.DOTALL)
_END = re.compile(r" (?:[<>|&#]|\d?>&?)")
"""What the shell reads itself."""


def commands_of(text: str) -> Iterator[str]:
    """The arguments after `barnabas` in each piece of inline code that is a command."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            match = _COMMAND.fullmatch(child.content) if child.type == "code_inline" else None
            if match:
                line = _END.split(match[1])[0].strip()
                choices = [word.split("|") for word in line.split(" ")]
                yield from (" ".join(words) for words in product(*choices))


def mistake(line: str) -> str | None:
    """Why the command line cannot be right, or None."""
    words = [word for word in shlex.split(line) if word not in ("…", "...", "COMMAND", "-h", "--help")]
    if words and words[0].startswith("kafka-"):
        return None if words[0].removesuffix(".sh") in TOOLS.keys() | MISSING.keys() else f"{words[0]} is no tool"
    command: click.Command = app
    context = click.Context(app, info_name="barnabas")
    try:
        while isinstance(command, click.Group) and words:
            rest = command.make_parser(context).parse_args(words)[1]
            if not rest:
                return None
            subcommand = command.get_command(context, rest[0])
            if subcommand is None:
                return f"there is no command {rest[0]}"
            command, words = subcommand, rest[1:]
            context = click.Context(command, parent=context, info_name=rest[0])
        command.make_parser(context).parse_args(words)
    except click.UsageError as error:
        return error.format_message()
    return None


@for_each("page", PAGES, ids=str)
def test_commands_in_the_text_exist(page: Path) -> None:
    lines = list(dict.fromkeys(commands_of((ROOT / page).read_text())))
    assert [f"{line}: {problem}" for line in lines if (problem := mistake(line))] == []


@for_each(
    ("text", "wrong"),
    [
        ("`barnabas topic list`, `barnabas -h` and `barnabas topic`", 0),
        ("`barnabas topic lst`", 1),
        ("`barnabas topic list --no-such-option`", 1),
        ("`python -m barnabas nothing`", 1),
        ("| a |\n|---|\n| `barnabas consume t --nothing \\| cat -e` |", 1),
        ("`barnabas produce t < lines.txt` `barnabas consume t -o -5 > out`", 0),
        ("`barnabas kafka-topics --list` `barnabas kafka-topics.sh`", 0),
        ("`barnabas kafka-tea`", 1),
        ("`barnabas topic list|lst|describe`", 1),
        ("`barnabas.log.sync` and `barnabas-event-id`", 0),
    ],
)
def test_commands_that_do_not_exist_are_found(text: str, wrong: int) -> None:
    assert sum(mistake(line) is not None for line in commands_of(text)) == wrong
