"""What the commands share: how resources, principals and operations are named, and how ACLs are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from barnabas.cli.options.parameters import Function
from barnabas.client.admin import acls
from barnabas.client.admin.acls import ANY, Acl, AclFilter

KINDS: Final = {
    "topic": "TOPIC",
    "group": "GROUP",
    "cluster": "CLUSTER",
    "transactional-id": "TRANSACTIONAL_ID",
    "token": "DELEGATION_TOKEN",
    "user": "USER",
}
"""Resources, and Kafka's names of their types."""
OPERATIONS: Final = (
    *("all", "read", "write", "create", "delete", "alter", "describe", "cluster-action", "describe-configs"),
    *("alter-configs", "idempotent-write", "create-tokens", "describe-tokens", "two-phase-commit"),
)
OPERATIONS_OF: Final = {
    kind: {operation.lower().replace("_", "-") for operation in acls.OPERATIONS_OF[KINDS[kind]]} for kind in KINDS
}
"""The operations of each type of resource; `all` is one of each."""
CLUSTER_NAME: Final = "kafka-cluster"


class OperationType(click.Choice[str]):
    """An operation in any case, with `-` or `_`, as Kafka writes it too."""

    def __init__(self) -> None:
        super().__init__(OPERATIONS, case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The operation as in OPERATIONS."""
        return super().convert(str(value).replace("_", "-"), param, ctx)


def kafka_name(word: str) -> str:
    """`describe-configs` as DESCRIBE_CONFIGS."""
    return word.upper().replace("-", "_")


def kind_argument(*, required: bool) -> Callable[[Function], Function]:
    """KIND and NAME of a resource; the name of the cluster may be left out."""

    def add(command: Function) -> Function:
        named = click.argument("name", required=False, metavar="[NAME]")(command)
        return click.argument("kind", required=required, type=click.Choice(tuple(KINDS)))(named)

    return add


def resource_name(kind: str, name: str | None) -> str:
    """The name of a resource. A usage error if it is missing, or the cluster has another."""
    if kind == "cluster":
        if name not in (None, CLUSTER_NAME):
            raise click.UsageError(f"the cluster has no name but {CLUSTER_NAME}, which may be left out")
        return CLUSTER_NAME
    if name is None:
        raise click.UsageError(f"name the {kind}; '*' is every {kind}")
    return name


def users_option(text: str) -> Callable[[Function], Function]:
    """`--user alice`, and `--principal Type:name` for principals of other types."""

    def add(command: Function) -> Function:
        command = click.option(
            "--principal", "principals", multiple=True, metavar="TYPE:NAME", help="As --user, for any principal."
        )(command)
        return click.option("-u", "--user", "users", multiple=True, metavar="USER", help=text)(command)

    return add


def named_principals(users: tuple[str, ...], principals: tuple[str, ...]) -> list[str]:
    """The principals that the options name, each once. A usage error for one without a type."""
    for text in principals:
        kind, colon, name = text.partition(":")
        if not colon or not kind or not name:
            raise click.BadParameter(f"must be TYPE:NAME, as in User:alice, not {text!r}", param_hint="--principal")
    return list(dict.fromkeys([*(f"User:{name}" for name in users), *principals]))


def filter_options(command: Function) -> Function:
    """KIND, NAME, `--pattern`, `--operation`, `--permission`, `--host`, `--user`: which ACLs."""
    for option in (
        click.option("--host", metavar="HOST", help="Only ACLs for this host; '*' is every host."),
        click.option(
            "--permission", type=click.Choice(["allow", "deny"], case_sensitive=False), help="Only ACLs that do this."
        ),
        click.option("--operation", type=OperationType(), metavar="OPERATION", help="Only ACLs of this operation."),
        click.option(
            "--pattern",
            type=click.Choice(["any", "match", "literal", "prefixed"]),
            default="any",
            show_default=True,
            help="match: all ACLs that concern NAME, also those for a prefix of it and for '*'.",
        ),
        users_option("Only ACLs of this user; '*' is every user."),
        kind_argument(required=False),
    ):
        command = option(command)
    return command


def acl_filters(options: dict[str, Any]) -> list[AclFilter]:
    """The filters of `filter_options`, one for each principal."""
    kind, name = options["kind"], options["name"]
    base = AclFilter(
        resource_type=KINDS[kind] if kind else ANY,
        name=CLUSTER_NAME if kind == "cluster" else name,
        pattern=kafka_name(options["pattern"]),
        host=options["host"],
        operation=kafka_name(options["operation"]) if options["operation"] else ANY,
        permission=kafka_name(options["permission"]) if options["permission"] else ANY,
    )
    principals = named_principals(options["users"], options["principals"])
    return [base._replace(principal=principal) for principal in principals] or [base]


def row(acl: Acl) -> dict[str, object]:
    """An ACL as a row."""
    kind = next((ours for ours, theirs in KINDS.items() if theirs == acl.resource_type), acl.resource_type)
    return {
        "kind": kind,
        "name": acl.name,
        "pattern": acl.pattern.lower(),
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation.lower().replace("_", "-"),
        "permission": acl.permission.lower(),
    }


def sentence(acl: Acl) -> str:
    """An ACL in words: `User:alice may write topic orders`."""
    fields = row(acl)
    verb = "may" if acl.permission == "ALLOW" else "may not"
    what = (
        f"{fields['kind']}s that begin with {acl.name}" if acl.pattern == "PREFIXED" else f"{fields['kind']} {acl.name}"
    )
    if acl.resource_type == "CLUSTER":
        what = "the cluster"
    where = "" if acl.host == "*" else f" from {acl.host}"
    return f"{acl.principal} {verb} {fields['operation']} {what}{where}"
