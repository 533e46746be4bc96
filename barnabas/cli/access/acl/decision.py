"""`barnabas acl test`: what an authorizer decides, and by which ACL: decided here, with the broker's ACLs."""

from __future__ import annotations

import click

from barnabas.cli.access.acl.options import (
    KINDS,
    OPERATIONS_OF,
    OperationType,
    kafka_name,
    kind_argument,
    named_principals,
    resource_name,
    sentence,
    users_option,
)
from barnabas.cli.failure import FAILED
from barnabas.cli.options.parameters import cluster_options, output_option
from barnabas.client.admin.acls import AclFilter, list_acls
from barnabas.client.cluster import Cluster
from barnabas.client.security.acl_rules import Question, authorizer_settings, decide
from barnabas.terminal.notes import note
from barnabas.terminal.tables import show_fields


@click.command()
@kind_argument(required=True)
@users_option("The user.")
@click.option("--operation", required=True, type=OperationType(), metavar="OPERATION", help="The operation.")
@click.option("--host", metavar="HOST", default="127.0.0.1", show_default=True, help="The IP address of the client.")
@cluster_options
@output_option
def test(
    kind: str,
    name: str | None,
    users: tuple[str, ...],
    principals: tuple[str, ...],
    operation: str,
    host: str,
    cluster: Cluster,
    output: str,
) -> int:
    """Say whether a user may do something, and which ACL decides; exit 1 if not.

    \b
    barnabas acl test --user alice --operation write topic orders
    """
    who = named_principals(users, principals)
    if len(who) != 1:
        raise click.UsageError("name one --user, or one --principal")
    if operation not in OPERATIONS_OF[kind]:
        known = ", ".join(sorted(OPERATIONS_OF[kind]))
        raise click.UsageError(f"there is no operation {operation} on a {kind}; there are {known}")
    resource = resource_name(kind, name)
    acls = list_acls(cluster, AclFilter(KINDS[kind], resource, "MATCH"))
    settings = authorizer_settings(cluster)
    if settings.hidden:
        note(f"the broker does not return {' and '.join(settings.hidden)}: taken as not set")
    question = Question(who[0], host, kafka_name(operation), KINDS[kind], resource)
    decision = decide(question, acls, settings.super_users, allow_if_no_acl=settings.allow_if_no_acl)
    show_fields(
        {
            "principal": who[0],
            "operation": operation,
            "kind": kind,
            "name": resource,
            "host": host,
            "result": "allowed" if decision.is_allowed else "denied",
            "because": decision.why,
            "acl": None if decision.acl is None else sentence(decision.acl),
        },
        output,
    )
    return 0 if decision.is_allowed else FAILED
