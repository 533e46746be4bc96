"""Changes of config keys as `topic alter` and `config` take them: set, delete, append, subtract."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import click

from barnabas.cli.options.duration import seconds_of
from barnabas.cli.options.parameters import Function, key_values
from barnabas.client.admin.configs import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    ConfigChange,
    alter_config,
    describe_config,
    is_acted_on,
)
from barnabas.client.cluster import Cluster
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion
from barnabas.wire.errors import KafkaError

_NUMBER: Final = re.compile(r"[+-]?\d+")
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([kKMGT])(i)?B?")


def change_options(command: Function) -> Function:
    """`--set`, `--delete`, `--append`, `--subtract` and `--dry-run`."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Only have the broker check the changes."),
        click.option("--subtract", multiple=True, metavar="KEY=VALUE", help="Remove a value from a key's list."),
        click.option("--append", multiple=True, metavar="KEY=VALUE", help="Add a value to a key's list."),
        click.option("-d", "--delete", multiple=True, metavar="KEY", help="Reset a key to its default."),
        click.option("-s", "--set", "set_", multiple=True, metavar="KEY=VALUE", help="Set a key. May be repeated."),
    ):
        command = option(command)
    return command


def config_values(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """`KEY=VALUE` texts as a dict. Keys in ms take durations (`1d`), keys in bytes sizes (`10MB`, `1GiB`)."""
    return {key: _in_unit_of(key, value) for key, value in key_values(texts, option).items()}


def _in_unit_of(key: str, value: str) -> str:
    """The number that a key in ms or bytes needs; values of other keys as they are."""
    if not key.endswith((".ms", ".bytes")) or _NUMBER.fullmatch(value):
        return value
    if key.endswith(".ms"):
        if (seconds := seconds_of(value)) is None:
            raise click.UsageError(f"{key} is a number of ms or a duration such as 30s, 12h or 7d, not {value!r}")
        return str(round(seconds * 1000))
    if (size := _SIZE.fullmatch(value)) is None:
        raise click.UsageError(f"{key} is a number of bytes or a size such as 10MB or 1GiB, not {value!r}")
    return str(round(float(size[1]) * (1024 if size[3] else 1000) ** (1 + "kmgt".index(size[2].lower()))))


def changes_from(
    set_: tuple[str, ...], delete: tuple[str, ...], append: tuple[str, ...], subtract: tuple[str, ...]
) -> list[ConfigChange]:
    """The changes that the options name; a usage error if there are none, or two of one key."""
    changes = [ConfigChange(key.strip(), DELETE) for key in delete]
    for texts, operation, option in (
        (set_, SET, "--set"),
        (append, APPEND, "--append"),
        (subtract, SUBTRACT, "--subtract"),
    ):
        for text in texts:
            changes += [ConfigChange(key, operation, value) for key, value in config_values((text,), option).items()]
    if not changes:
        raise click.UsageError("name a change: --set KEY=VALUE, --delete KEY, --append or --subtract KEY=VALUE")
    keys = [change.key for change in changes]
    for change in changes:
        if "=" in change.key:
            raise click.BadParameter(f"must be a KEY alone, not {change.key!r}", param_hint="--delete")
        if keys.count(change.key) > 1:
            raise click.UsageError(f"there are two changes of {change.key}; a key can be changed once at a time")
    return changes


def alter_resource(
    cluster: Cluster, kind: str, name: str, changes: Sequence[ConfigChange], *, dry_run: bool = False
) -> None:
    """Change a resource's keys. The error of an unknown key names the most similar one.

    A key that the broker does not act on is noted on stderr.
    """
    try:
        alter_config(cluster, kind, name, changes, validate_only=dry_run)
    except KafkaError as error:
        known = _known_keys(cluster, kind, name)
        unknown = [change.key for change in changes if change.key not in known]
        hint = suggestion(unknown[0], known) if unknown else ""
        raise KafkaError(error.code, f"{error}{hint}") from None
    keys = {change.key for change in changes if change.operation != DELETE}
    entries = describe_config(cluster, kind, name, sorted(keys))
    unused = [entry.name for entry in entries if not is_acted_on(entry)]
    if unused:
        note(f"the broker does not act on {', '.join(unused)}, only keeps the value")


def _known_keys(cluster: Cluster, kind: str, name: str) -> set[str]:
    """The keys of a resource; those of all brokers are the keys of any broker."""
    if kind == "broker" and not name:
        cluster.retry(lambda deadline: cluster.metadata([], deadline))
        name = str(min(cluster.nodes))
    return {entry.name for entry in describe_config(cluster, kind, name)}


def show_changes(kind: str, name: str, changes: Sequence[ConfigChange], *, dry_run: bool) -> None:
    """Print a line for each change."""
    where = f"{kind} {name}" if name else "defaults of all brokers"
    for change in changes:
        if change.operation == DELETE:
            text = f"{change.key} {'would be' if dry_run else 'is'} reset to its default"
        elif change.operation == SET:
            text = f"{change.key}={change.value}"
        elif change.operation == APPEND:
            text = f"{change.value} {'would be' if dry_run else 'is'} added to {change.key}"
        else:
            text = f"{change.value} {'would be' if dry_run else 'is'} removed from {change.key}"
        click.echo(f"{where}: {text}")
    if dry_run:
        note("dry run: nothing was changed")
