"""`barnabas config`: read and change the configuration of topics, brokers, groups and client metrics subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from barnabas.cli.admin.config_changes import alter_resource, show_changes
from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import cluster_options, key_values, output_option
from barnabas.client.admin.configs import (
    APPEND,
    CONFIG_SOURCES,
    DELETE,
    SET,
    SUBTRACT,
    ConfigChange,
    describe_config,
    is_acted_on,
    list_config_resources,
)
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.terminal.notes import note
from barnabas.terminal.suggestion import suggestion
from barnabas.terminal.tables import show_rows
from barnabas.wire.messages.configs import DescribeConfigsResourceResult

KINDS = ("topic", "broker", "group", "client-metrics")
ALL_BROKERS = "default"


def resource_arguments(command: Callable[..., Any]) -> Callable[..., Any]:
    """KIND and NAME of the resource."""
    named = click.argument("name", callback=_resource_name)(command)
    return click.argument("kind", type=click.Choice(KINDS), is_eager=True)(named)


def change_arguments(name: str, metavar: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Arguments and options of a command that changes keys: the resource, the changes as `name`, `--dry-run`."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        command = cluster_options(command)
        command = click.option("--dry-run", is_flag=True, help="Only have the broker check the changes.")(command)
        return resource_arguments(click.argument(name, nargs=-1, required=True, metavar=metavar)(command))

    return decorate


def _resource_name(ctx: click.Context, _: click.Parameter, name: str) -> str:
    """The name as the protocol has it; a broker must be a node id or `default`."""
    if ctx.params.get("kind") != "broker":
        return name
    if name == ALL_BROKERS:
        return ""
    if not (name.isascii() and name.isdigit()):
        raise click.BadParameter(f"a broker is named by its node id, or {ALL_BROKERS!r}; not {name!r}")
    return name


@click.group(cls=Group)
def config() -> None:
    """Read and change topic, broker, group and client metrics configuration.

    KIND is topic, broker, group or client-metrics. NAME is a topic, a broker's node id ('default' for the defaults of
    all brokers of the cluster), a group, or a client metrics subscription.
    """


def config_rows(entries: Iterable[DescribeConfigsResourceResult]) -> list[dict[str, object]]:
    """A row for each key; `acted_on` is False for a key that the broker knows and does not use."""
    return [
        {
            "key": entry.name,
            "value": None if entry.is_sensitive else entry.value,
            "source": CONFIG_SOURCES.get(entry.config_source, "unknown"),
            "read_only": entry.read_only,
            "acted_on": is_acted_on(entry),
        }
        for entry in entries
    ]


@config.command("get")
@resource_arguments
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--all", "everything", is_flag=True, help="Include keys with their default value.")
@cluster_options
@output_option
def get(kind: str, name: str, keys: tuple[str, ...], everything: bool, cluster: Cluster, output: str) -> None:
    """Show keys that differ from their default, all keys with --all, or the given KEYs.

    \b
    barnabas config get topic orders
    barnabas config get broker 1 --all
    """
    rows = config_rows(describe_config(cluster, kind, name))
    if keys:
        rows = _chosen(rows, keys, _title(kind, name))
    elif not everything:
        rows = [row for row in rows if row["source"] != "default"]
    show_rows(
        rows, output, columns=("key", "value", "source"), empty="every key has its default value (--all shows them)"
    )
    unused = [str(row["key"]) for row in rows if not row["acted_on"]]
    if unused and not everything:
        verb = "is" if len(unused) == 1 else "are"
        note(f"the broker does not act on {', '.join(unused)}, which {verb} only kept")
    elif unused:
        note(f"the broker does not act on {len(unused)} of these keys: ACTED-ON of -o wide")


def _chosen(rows: list[dict[str, object]], keys: tuple[str, ...], title: str) -> list[dict[str, object]]:
    """The rows of `keys`, in their order. `NotFound` with the most similar key."""
    known = {str(row["key"]): row for row in rows}
    for key in keys:
        if key not in known:
            raise NotFound(f"{title} has no key {key}{suggestion(key, known)}")
    return [known[key] for key in dict.fromkeys(keys)]


def _title(kind: str, name: str) -> str:
    return f"{kind} {name!r}" if name else "the defaults of all brokers"


@config.command("set")
@change_arguments("changes", "KEY=VALUE...")
def set_(kind: str, name: str, changes: tuple[str, ...], dry_run: bool, cluster: Cluster) -> None:
    """Set keys; 'KEY=' without a value resets a key to its default.

    \b
    barnabas config set topic orders retention.ms=86400000
    barnabas config set broker default log.retention.hours=24
    """
    values = key_values(changes, "KEY=VALUE")
    alterations = [ConfigChange(key, SET if value else DELETE, value or None) for key, value in values.items()]
    _alter(cluster, kind, name, alterations, dry_run=dry_run)


@config.command("unset")
@change_arguments("keys", "KEY...")
def unset(kind: str, name: str, keys: tuple[str, ...], dry_run: bool, cluster: Cluster) -> None:
    """Reset keys to their default."""
    for key in keys:
        if "=" in key:
            raise click.BadParameter(f"must be a KEY alone, not {key!r}", param_hint="KEY")
    alterations = [ConfigChange(key, DELETE) for key in dict.fromkeys(keys)]
    _alter(cluster, kind, name, alterations, dry_run=dry_run)


@config.command("append")
@change_arguments("changes", "KEY=VALUE...")
def append(kind: str, name: str, changes: tuple[str, ...], dry_run: bool, cluster: Cluster) -> None:
    """Add values to keys that are lists, as cleanup.policy."""
    _alter(cluster, kind, name, _list_changes(APPEND, changes), dry_run=dry_run)


@config.command("subtract")
@change_arguments("changes", "KEY=VALUE...")
def subtract(kind: str, name: str, changes: tuple[str, ...], dry_run: bool, cluster: Cluster) -> None:
    """Remove values from keys that are lists."""
    _alter(cluster, kind, name, _list_changes(SUBTRACT, changes), dry_run=dry_run)


def _list_changes(operation: int, changes: tuple[str, ...]) -> list[ConfigChange]:
    return [ConfigChange(key, operation, value) for key, value in key_values(changes, "KEY=VALUE").items()]


def _alter(cluster: Cluster, kind: str, name: str, changes: list[ConfigChange], *, dry_run: bool) -> None:
    alter_resource(cluster, kind, name, changes, dry_run=dry_run)
    show_changes(kind, name, changes, dry_run=dry_run)


@config.command("list")
@click.argument("kinds", nargs=-1, type=click.Choice(KINDS), metavar="[KIND]...")
@cluster_options
@output_option
def list_(kinds: tuple[str, ...], cluster: Cluster, output: str) -> None:
    """List the resources that have configuration.

    KIND is topic, broker, group or client-metrics. All topics and brokers are listed, but only the groups and client
    metrics subscriptions on which keys are set.
    """
    rows = [
        {"kind": kind, "name": name or ALL_BROKERS}
        for kind in kinds or KINDS
        for name in list_config_resources(cluster, kind)
    ]
    show_rows(rows, output, empty="nothing has configuration")
