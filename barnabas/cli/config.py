"""`barnabas config`: read and change the configuration of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from barnabas.cli.parameters import bootstrap_option, connect, output_option, timeout_option
from barnabas.terminal.tables import show_rows


def resource_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """KIND and NAME of the resource."""
    named = click.argument("name")(command)
    return click.argument("kind", type=click.Choice(["topic", "broker", "group"]))(named)


@click.group()
def config() -> None:
    """Read and change topic, broker and group configuration."""


@config.command("get")
@resource_arguments
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--all", "everything", is_flag=True, help="Include keys with their default value.")
@bootstrap_option
@timeout_option
@output_option
def get(
    kind: str, name: str, keys: tuple[str, ...], everything: bool, bootstrap: str, timeout_s: float, output: str
) -> None:
    """Show keys that differ from their default, all keys with --all, or the given KEYs.

    NAME is a topic, a broker's node id, or a group.
    """
    from barnabas.client.admin import CONFIG_SOURCES, describe_config
    from barnabas.client.errors import NotFound

    with connect(bootstrap, timeout_s) as cluster:
        found = describe_config(cluster, kind, name, keys or None)
    missing = set(keys) - {entry.name for entry in found}
    if missing:
        raise NotFound(f"{kind} {name!r} has no key {', '.join(sorted(missing))}")
    rows = [
        {
            "key": entry.name,
            "value": None if entry.is_sensitive else entry.value,
            "source": CONFIG_SOURCES.get(entry.config_source, "unknown"),
            "read_only": entry.read_only,
        }
        for entry in found
    ]
    if not (everything or keys):
        rows = [row for row in rows if row["source"] != "default"]
    show_rows(rows, output, empty="every key has its default value (--all shows them)")


@config.command("set")
@resource_arguments
@click.argument("changes", nargs=-1, required=True, metavar="KEY=VALUE...")
@bootstrap_option
@timeout_option
def set_(kind: str, name: str, changes: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Set keys; 'KEY=' without a value resets a key to its default.

    NAME is a topic, a broker's node id, or a group.
    """
    from barnabas.cli.parameters import key_values
    from barnabas.client.admin import alter_config

    wanted = {key: value or None for key, value in key_values(changes, "KEY=VALUE").items()}
    with connect(bootstrap, timeout_s) as cluster:
        alter_config(cluster, kind, name, wanted)
    for key, value in wanted.items():
        click.echo(
            f"{kind} {name}: {key} is reset to its default" if value is None else f"{kind} {name}: {key}={value}"
        )
