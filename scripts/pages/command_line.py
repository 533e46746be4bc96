"""`docs/reference/commands.md`: every command with its options, from click and the parsers of Kafka's tools.

Tables by task come first.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module

import click

from barnabas.cli.app import app
from barnabas.cli.kafka_tools.arguments import Option, Parser
from barnabas.cli.kafka_tools.registry import MISSING, TOOLS
from scripts.pages.side_by_side import AREAS, LACKS, Row

COMMON = {"--profile", "--command-config", "-X", "-b/--bootstrap", "--timeout"}
"""Options of nearly every command, described once."""

HEAD = """\
`barnabas COMMAND -h` explains a command. Data is written to stdout, everything else to stderr; exit codes are
0 ok, 1 failed, 2 usage, 3 not found or not ready, 4 timeout, 5 not authorized, 130 interrupted.

Every command that talks to a broker has `-b/--bootstrap HOST:PORT` (or `BARNABAS_BOOTSTRAP_SERVERS`), `--profile NAME`,
`--command-config FILE`, `-X KEY=VALUE` and `--timeout SECONDS`, which are left out below.
[command-line.md](../command-line.md) says how they take TLS and SASL."""

SIDE_BY_SIDE = """\
`-b` and `--bootstrap-server` are left out. Kafka's tools are in its `bin` directory; the tools of this page are also
commands of Barnabas: `barnabas kafka-topics --bootstrap-server HOST:PORT --list` (or `python -m barnabas kafka-topics`,
or with the ending `.sh`). rpk is described from its documentation: it could not be built, so it was not run
against Barnabas. kcat and Kafka's tools are part of the tests."""

KAFKA_TOOLS = """\
Options, output and exit codes are the same as of Kafka's tools 4.3.1, the newest published version. The transcripts in
`tests/data/kafka-tools` are recorded from Kafka's tools against Barnabas (those of users, ACLs and tokens against
Apache Kafka with TLS and an authorizer), and each command must print the same. The
exit code after a failure is 1 as there, also after a mistake in the options; some failures of kafka-consumer-groups
and kafka-share-groups are printed with exit code 0, as there. The differences:

- after a mistake in the options, one sentence and a hint at `--help` replace the list of options;
- a broker that does not answer is an error at once, not after a minute;
- `BARNABAS_BOOTSTRAP_SERVERS` replaces a missing `--bootstrap-server`; `--version` prints the version of Barnabas;
- Java classes (formatters, readers, deserializers) are Kafka's own ones by name, no others;
- keys of a client's configuration that have no effect are named on stderr, those of TLS and SASL that are not
  supported are refused;
- `--include` of kafka-console-consumer reads the topics that exist at its start, unless it is a member of a group;
- kafka-configs shows no password when it fails;
- regular expressions are Python's."""


def page(generated: str) -> str:
    """The whole page; `generated` is the comment that says where it is from."""
    parts = ["# Command line", generated, HEAD, "## Task by task", SIDE_BY_SIDE]
    for title, rows in AREAS.items():
        parts += [f"### {title}", _side_by_side(rows)]
    lacks = _table(("of", "commands", "why not here"), LACKS)
    parts += ["### What Barnabas lacks", lacks]
    parts += ["## Commands", *_commands()]
    parts += ["## Kafka's tools", KAFKA_TOOLS]
    for name, (_, text) in TOOLS.items():
        parts += [f"### {name}", text, _tool_options(name)]
    parts += ["### Not available", _table(("tool", "why"), [(f"`{name}`", why) for name, why in MISSING.items()])]
    return "\n\n".join(parts) + "\n"


def _side_by_side(rows: Iterable[Row]) -> str:
    def code(cell: str) -> str:
        return "<br>".join(f"`{_escaped(line)}`" for line in cell.split("\n") if line)

    head = ("task", "barnabas", "rpk", "kcat", "Kafka's tool")
    return _table(head, [(row.task, *map(code, row[1:])) for row in rows])


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [" | ".join(head), " | ".join("---" for _ in head), *(" | ".join(row) for row in rows)]
    return "\n".join(f"| {line} |" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")


# --- commands


def _commands() -> Iterator[str]:
    for path, command in commands():
        usage = " ".join(
            parameter.make_metavar(click.Context(command))
            for parameter in command.params
            if parameter.param_type_name == "argument"
        )
        yield f"### {path} {usage}".rstrip()
        yield _escaped(_first_sentence(command))
        options = [
            parameter for parameter in command.params if isinstance(parameter, click.Option) and not parameter.hidden
        ]
        shown = [option for option in options if "/".join(option.opts) not in COMMON]
        if shown:
            yield "\n".join(_option(option) for option in shown)


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its words, groups too, in the order of their help pages."""

    def walk(path: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
        yield path, command
        if isinstance(command, click.Group):
            context = click.Context(command, info_name=path)
            for name in command.list_commands(context):
                subcommand = command.get_command(context, name)
                assert subcommand is not None
                yield from walk(f"{path} {name}", subcommand)

    yield from walk("barnabas", app)


def _first_sentence(command: click.Command) -> str:
    text = (command.help or command.short_help or "").split("\n\n", 1)[0].replace("\b", "")
    return " ".join(text.split())


def _option(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    value = ""
    if not option.is_flag and not option.count:
        value = f" `{option.make_metavar(click.Context(click.Command('x')))}`"
    return f"- {names}{value}: {_escaped(' '.join((option.help or '').split()))}"


# --- Kafka's tools


def tool_options(name: str) -> dict[str, tuple[str, str]]:
    """The options of one of Kafka's tools, with its subcommands: name -> (argument, help)."""
    module = import_module(f"barnabas.cli.kafka_tools.{TOOLS[name][0]}")
    parser = getattr(module, "PARSER", None)
    if isinstance(parser, Parser):
        return {f"--{option.name}": (_argument(option), option.help) for option in sorted(parser.options.values())}
    return dict(_of_argparse(module.make_parser()))


def _argument(option: Option) -> str:
    return f"[{option.value}]" if option.is_optional else option.value


def _of_argparse(parser: argparse.ArgumentParser) -> Iterator[tuple[str, tuple[str, str]]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield choice.dest, ("", choice.help or "")
            for command, sub in action.choices.items():
                for name, text in _of_argparse(sub):
                    if name != "--help":
                        yield f"{command} {name}", text
        elif action.option_strings:
            metavar = action.metavar if isinstance(action.metavar, str) else ""
            yield action.option_strings[-1], (metavar, re.sub(r"\s+", " ", action.help or ""))


def _tool_options(name: str) -> str:
    lines = [
        f"- `{option}`{f' `{argument}`' if argument else ''}: {_escaped(text)}"
        for option, (argument, text) in tool_options(name).items()
    ]
    return "\n".join(lines)
