"""`barnabas acl add` and `remove`."""

from __future__ import annotations

from typing import Any

import click

from barnabas.cli.access.acl.options import (
    KINDS,
    OPERATIONS_OF,
    OperationType,
    acl_filters,
    filter_options,
    kafka_name,
    kind_argument,
    named_principals,
    resource_name,
    sentence,
    users_option,
)
from barnabas.cli.options.parameters import cluster_options, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.client.admin.acls import Acl, create_acls, delete_acls, exactly, list_acls
from barnabas.client.cluster import Cluster
from barnabas.terminal.notes import note
from barnabas.terminal.plural import plural


@click.command()
@kind_argument(required=True)
@users_option("The user; '*' means all users. May be repeated.")
@click.option(
    "--operation",
    "operations",
    multiple=True,
    required=True,
    type=OperationType(),
    metavar="OPERATION",
    help="The operation: all, read, write, describe ...; may be repeated.",
)
@click.option("--deny", is_flag=True, help="Deny the operations, which comes before every ACL that allows them.")
@click.option("--prefixed", is_flag=True, help="NAME is the beginning of names.")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="Only from this IP address.  [default: any]")
@cluster_options
def add(
    kind: str,
    name: str | None,
    users: tuple[str, ...],
    principals: tuple[str, ...],
    operations: tuple[str, ...],
    deny: bool,
    prefixed: bool,
    hosts: tuple[str, ...],
    cluster: Cluster,
) -> None:
    """Allow users operations on a resource, or deny them. An ACL that exists already stays.

    \b
    barnabas acl add topic orders --user alice --operation read --operation describe
    barnabas acl add group readers- --prefixed --user alice --operation read
    barnabas acl add topic '*' --user mallory --operation all --deny

    Topics have read, write, create, delete, alter, describe, describe-configs and alter-configs; groups read, delete
    and describe; a mistake is answered with all that a resource has.
    """
    who = named_principals(users, principals)
    if not who:
        raise click.UsageError("name a --user, or a --principal; '*' is everyone")
    resource = resource_name(kind, name)
    if prefixed and kind == "cluster":
        raise click.UsageError("the cluster has no prefix")
    for operation in operations:
        if operation != "all" and operation not in OPERATIONS_OF[kind]:
            known = ", ".join(sorted(OPERATIONS_OF[kind]))
            raise click.UsageError(f"there is no operation {operation} on a {kind}; there are all, {known}")
    acls = [
        Acl(
            *(KINDS[kind], resource, "PREFIXED" if prefixed else "LITERAL", principal, host),
            *(kafka_name(operation), "DENY" if deny else "ALLOW"),
        )
        for principal in who
        for host in dict.fromkeys(hosts or ("*",))
        for operation in dict.fromkeys(operations)
    ]
    create_acls(cluster, acls)
    for acl in acls:
        click.echo(sentence(acl))


@click.command()
@filter_options
@click.option("--dry-run", is_flag=True, help="Only show the ACLs that would be removed.")
@yes_option
@cluster_options
def remove(dry_run: bool, yes: bool, cluster: Cluster, **options: Any) -> None:
    """Remove ACLs: of a resource, a user, an operation ...

    It asks first. What 'acl list' shows with the same arguments is removed.
    """
    if not any(options[name] for name in ("kind", "users", "principals", "host", "operation", "permission")):
        raise click.UsageError("name a KIND, a --user or another option: all ACLs are not removed at once")
    acls = sorted({acl for filter_ in acl_filters(options) for acl in list_acls(cluster, filter_)})
    if not acls:
        note("no such ACLs; nothing was removed")
        return
    if dry_run:
        for acl in acls:
            click.echo(f"would be removed: {sentence(acl)}")
        return
    some = "; ".join(map(sentence, acls[:3])) + ("; ..." if len(acls) > 3 else "")
    what = f"{len(acls)} {plural('ACL', len(acls))} ({some})"
    ask_or_refuse(f"Remove {what}?", f"this removes {what}", yes=yes)
    for acl in delete_acls(cluster, map(exactly, acls)):
        click.echo(f"removed: {sentence(acl)}")
