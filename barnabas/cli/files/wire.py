"""`barnabas wire`: protocol messages as hex and as JSON, for authors of clients.

The JSON has the form of Kafka's JsonConverters (`wire/codec/json_form.py`). The bytes are a message's body, without
header and size.
"""

from __future__ import annotations

import json
import sys
from typing import NoReturn

import click

from barnabas.cli.command_groups import Group
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.codec.json_form import from_json, to_json
from barnabas.wire.codec.vectors import check_line
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.registry import all_messages, message_named
from barnabas.wire.schema import Message


def _message(ctx: click.Context, param: click.Parameter, value: str) -> type[Message]:
    """The class of a message by Kafka's name; a usage error with similar names if there is none."""
    try:
        return message_named(value)
    except KeyError:
        raise click.BadParameter(
            f"there is no message {value}{suggestion(value, all_messages())}", ctx, param
        ) from None


@click.group(cls=Group)
def wire() -> None:
    """Decode, encode and check protocol messages.

    MESSAGE is Kafka's name, for example MetadataRequest or OffsetCommitValue.
    """


@wire.command()
@click.argument("message", callback=_message)
@click.argument("version", type=int)
@click.argument("data", required=False, metavar="[HEX]")
@click.option("--indent", type=click.IntRange(0, 8), default=None, help="Spaces of indentation [default: one line].")
def decode(message: type[Message], version: int, data: str | None, indent: int | None) -> None:
    """Convert the hex of a message (the argument, or stdin) to JSON."""
    try:
        source = bytes.fromhex("".join(_input(data).split()))
    except ValueError as error:
        _fail(f"not hex: {error}")
    try:
        fields = to_json(message.decode(source, version), version)
    except (ProtocolError, KafkaError) as error:
        _fail(str(error))
    click.echo(json.dumps(fields, indent=indent, ensure_ascii=False))


@wire.command()
@click.argument("message", callback=_message)
@click.argument("version", type=int)
@click.argument("value", required=False, metavar="[JSON]")
def encode(message: type[Message], version: int, value: str | None) -> None:
    """Convert the JSON of a message (the argument, or stdin) to hex."""
    try:
        encoded = from_json(message, json.loads(_input(value)), version).encode(version)
    except json.JSONDecodeError as error:
        _fail(f"not JSON: {error}")
    except (KafkaError, ValueError, RecursionError) as error:
        _fail(str(error))
    click.echo(encoded.hex())


@wire.command()
@click.option("--jsonl", "path", type=click.Path(exists=True, dir_okay=False), required=True, metavar="FILE")
def check(path: str) -> None:
    """Check a file of test vectors in both directions, with the compiled and the interpreted codec.

    A line of the file is {"message": ..., "version": ..., "value": ..., "hex": ...}. The last line printed is
    "N differ"; the exit code is 0 when N is 0, otherwise 1.
    """
    differing = 0
    with open(path, encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            wrong = check_line(line) if line.strip() else None
            if wrong:
                differing += 1
                click.echo(f"line {number}: {wrong}")
    click.echo(f"{differing} differ")
    if differing:
        raise click.exceptions.Exit(1)


def _input(argument: str | None) -> str:
    return sys.stdin.read() if argument in (None, "-") else str(argument)


def _fail(sentence: str) -> NoReturn:
    note(f"barnabas wire: {sentence}")
    raise click.exceptions.Exit(1)
