"""`barnabas quota`: limits of users, client ids and addresses (KIP-13, KIP-546)."""

from __future__ import annotations

from typing import Final

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import Function, cluster_options, key_values, output_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.client.admin.quotas import KEYS, Quotas, alter_quotas, entity_name, list_quotas
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.terminal.suggestion import suggestion
from barnabas.terminal.tables import show_rows

KINDS: Final = ("user", "client", "ip")
DEFAULT_NAME: Final = "<default>"


@click.group(cls=Group)
def quota() -> None:
    """List, set and remove quotas of users, client ids and IP addresses.

    An entity is a user, a client id, both together, or an IP address. '--default user' is every user without a quota of
    its own. The quotas are producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate, and of
    addresses connection_creation_rate.
    """


def _entity_options(command: Function) -> Function:
    for option in (
        click.option(
            "--default",
            "defaults",
            multiple=True,
            type=click.Choice(KINDS),
            help="The default of all users, client ids or addresses.",
        ),
        click.option("--ip", metavar="HOST", help="An IP address."),
        click.option("-c", "--client", metavar="CLIENT-ID", help="A client id."),
        click.option("-u", "--user", metavar="USER", help="A user."),
    ):
        command = option(command)
    return command


def _entity(user: str | None, client: str | None, ip: str | None, defaults: tuple[str, ...]) -> dict[str, str | None]:
    """The entity that the options name; a usage error if one is named twice, or an address together with others."""
    named = {"user": user, "client": client, "ip": ip}
    for kind in defaults:
        if named[kind] is not None:
            raise click.UsageError(f"--{kind} and --default {kind} exclude each other")
    entity = {kind: name for kind, name in named.items() if name is not None or kind in defaults}
    if "ip" in entity and len(entity) > 1:
        raise click.UsageError("an address has quotas of its own, not together with a user or a client id")
    return entity


def _required(entity: dict[str, str | None]) -> dict[str, str | None]:
    if not entity:
        raise click.UsageError("name an entity: --user, --client, --ip or --default")
    return entity


@quota.command("list")
@_entity_options
@click.option("--strict", is_flag=True, help="Only this entity: not a user with client ids, where --user is given.")
@cluster_options
@output_option
def list_(
    user: str | None,
    client: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
    strict: bool,
    cluster: Cluster,
    output: str,
) -> None:
    """List all quotas, or the quotas of an entity."""
    entity = _entity(user, client, ip, defaults)
    if strict:
        _required(entity)
    quotas = list_quotas(cluster, entity, strict=strict)
    rows = [_row(entry, key, value) for entry in quotas for key, value in entry.values.items()]
    show_rows(rows, output, empty="no quotas")


def _row(quotas: Quotas, key: str, value: float) -> dict[str, object]:
    names = {kind: quotas.entity[kind] or DEFAULT_NAME if kind in quotas.entity else None for kind in KINDS}
    return {**names, "quota": key, "value": _number(value)}


def _number(value: float) -> int | float:
    """1024.0 as 1024."""
    return int(value) if value.is_integer() else value


@quota.command("set")
@click.argument("changes", nargs=-1, required=True, metavar="QUOTA=VALUE...")
@_entity_options
@click.option("--dry-run", is_flag=True, help="Only have the broker check the changes.")
@cluster_options
def set_(
    changes: tuple[str, ...],
    user: str | None,
    client: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
    dry_run: bool,
    cluster: Cluster,
) -> None:
    """Set quotas of an entity.

    \b
    barnabas quota set --user alice producer_byte_rate=1048576
    barnabas quota set --user alice --client loader request_percentage=50
    barnabas quota set --default ip connection_creation_rate=20
    """
    entity = _required(_entity(user, client, ip, defaults))
    values: dict[str, float | None] = {}
    for key, text in key_values(changes, "QUOTA=VALUE").items():
        values[_known(key)] = _value(key, text)
    alter_quotas(cluster, entity, values, validate_only=dry_run)
    for key, value in values.items():
        click.echo(f"{entity_name(entity)}: {key}={_number(value or 0.0)}{' would be set' if dry_run else ''}")


def _known(key: str) -> str:
    if key not in KEYS:
        raise click.UsageError(f"there is no quota {key}{suggestion(key, KEYS)}; there are {', '.join(KEYS)}")
    return key


def _value(key: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise click.UsageError(f"{key} must be a number above 0, not {text!r}; 'quota remove' removes a quota")
    return value


@quota.command()
@click.argument("keys", nargs=-1, metavar="[QUOTA]...")
@_entity_options
@yes_option
@cluster_options
def remove(
    keys: tuple[str, ...],
    user: str | None,
    client: str | None,
    ip: str | None,
    defaults: tuple[str, ...],
    yes: bool,
    cluster: Cluster,
) -> None:
    """Remove the named quotas of an entity, or all its quotas. It asks first."""
    entity = _required(_entity(user, client, ip, defaults))
    named = [_known(key) for key in dict.fromkeys(keys)]
    has = {key for entry in list_quotas(cluster, entity, strict=True) for key in entry.values}
    missing = [key for key in named if key not in has]
    if missing or not has:
        raise NotFound(f"{entity_name(entity)} has no {missing[0] if missing else 'quotas'}")
    chosen = named or sorted(has)
    what = f"{', '.join(chosen)} of {entity_name(entity)}"
    ask_or_refuse(f"Remove {what}?", f"this removes {what}", yes=yes)
    alter_quotas(cluster, entity, dict.fromkeys(chosen))
    for key in chosen:
        click.echo(f"{entity_name(entity)}: removed {key}")
