"""kafka-acls: add, remove and list ACLs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from barnabas.cli.kafka_tools.arguments import BOOTSTRAP, COMMAND_CONFIG, Leave, Option, Options, Parser, Usage
from barnabas.cli.kafka_tools.common import connect
from barnabas.cli.kafka_tools.failure import sentence
from barnabas.client.admin.acls import Acl, AclFilter, create_acls, delete_acls, list_acls
from barnabas.client.cluster import Cluster

RESOURCES: Final = {
    "topic": "TOPIC",
    "group": "GROUP",
    "transactional-id": "TRANSACTIONAL_ID",
    "delegation-token": "DELEGATION_TOKEN",
    "user-principal": "USER",
}
"""Options that name a resource."""
SUPPORTED: Final = {
    "TOPIC": "READ, WRITE, CREATE, DESCRIBE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS",
    "GROUP": "READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS",
    "CLUSTER": "CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER, DESCRIBE",
    "TRANSACTIONAL_ID": "DESCRIBE, WRITE, TWO_PHASE_COMMIT",
    "DELEGATION_TOKEN": "DESCRIBE",
    "USER": "CREATE_TOKENS, DESCRIBE_TOKENS",
}
"""The operations of each resource type; ALL is one of each (Kafka 4.4.0 `AclEntry`)."""
NO_RESOURCE = (
    "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
    "--delegation-token <Delegation Token ID>"
)
NO_PRINCIPAL = "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
ONE_ACTION = "Command must include exactly one action: --list, --add, --remove. "

PARSER = Parser(
    "kafka-acls",
    "This tool helps to manage acls on kafka.",
    [
        BOOTSTRAP,
        Option("bootstrap-controller", "Not possible: Barnabas' controller is its broker.", "HOST:PORT"),
        COMMAND_CONFIG,
        Option("add", "Add ACLs."),
        Option("remove", "Remove ACLs."),
        Option("list", "List ACLs, of all resources or of the named ones."),
        Option("topic", "A topic; '*' is every topic.", "TOPIC"),
        Option("group", "A group; '*' is every group.", "GROUP"),
        Option("cluster", "The cluster."),
        Option("transactional-id", "A transactional id; '*' is every one.", "ID"),
        Option("delegation-token", "A delegation token; '*' is every one.", "ID"),
        Option("user-principal", "A user whose tokens are created or described.", "TYPE:NAME"),
        Option(
            "resource-pattern-type", "literal, prefixed; to list or remove also any, match.", "TYPE", default="LITERAL"
        ),
        Option("operation", "The operation that is allowed or denied.", "OPERATION"),
        Option("allow-principal", "The principal that is allowed.", "TYPE:NAME"),
        Option("deny-principal", "The principal that is denied; this comes before what other ACLs allow.", "TYPE:NAME"),
        Option("allow-host", "The host from which it is allowed. Default: '*'.", "HOST"),
        Option("deny-host", "The host from which it is denied. Default: '*'.", "HOST"),
        Option("principal", "With --list: the ACLs of a principal.", "TYPE:NAME", is_optional=True),
        Option("producer", "The operations that a producer needs: WRITE, DESCRIBE and CREATE of topics."),
        Option("consumer", "The operations that a consumer needs: READ and DESCRIBE of topics, READ of groups."),
        Option("idempotent", "With --producer: IDEMPOTENT_WRITE of the cluster."),
        Option("force", "Do not ask."),
    ],
)


class Resource(NamedTuple):
    """A resource pattern, or a filter of such."""

    type: str
    name: str
    pattern: str

    def __str__(self) -> str:
        return f"ResourcePattern(resourceType={self.type}, name={self.name}, patternType={self.pattern})"


class Entry(NamedTuple):
    """What an ACL says of a resource."""

    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        return (
            f"(principal={self.principal}, host={self.host}, operation={self.operation}, "
            f"permissionType={self.permission})"
        )


Entries = dict[Resource, list[Entry]]


def main(arguments: Sequence[str]) -> int:
    """Run the tool."""
    options = PARSER.parse(arguments)
    _check(options)
    try:
        with connect(options) as cluster:
            if options.has("add"):
                _add(cluster, options)
            elif options.has("remove"):
                _remove(cluster, options)
            else:
                _list(cluster, options)
    except (Usage, Leave):
        raise
    except Exception as error:
        text = sentence(error)
        if text is None:
            raise
        print(f"Error while executing ACL command: {text}")
        return 1
    return 0


# --- options


def _check(options: Options) -> None:
    if options.has("bootstrap-server") and options.has("bootstrap-controller"):
        raise Usage("Only one of --bootstrap-server or --bootstrap-controller must be specified")
    if not options.has("bootstrap-server", "bootstrap-controller"):
        raise Usage("One of --bootstrap-server or --bootstrap-controller must be specified")
    if options.has("bootstrap-controller"):
        raise Usage(
            "--bootstrap-controller is not possible: Barnabas' controller is its broker, use --bootstrap-server"
        )
    if sum(options.has(name) for name in ("add", "remove", "list")) != 1:
        raise Usage(ONE_ACTION)
    options.refuse_with(
        "list", ("producer", "consumer", "allow-host", "allow-principal", "deny-host", "deny-principal")
    )
    for role in ("producer", "consumer"):
        options.refuse_with(role, ("operation", "deny-principal", "deny-host"))
    if options.has("principal") and not options.has("list"):
        raise Usage("The --principal option is only available if --list is set")
    _check_roles(options)


def _check_roles(options: Options) -> None:
    if options.has("producer") and not options.has("topic"):
        raise Usage("With --producer you must specify a --topic")
    if options.has("idempotent") and not options.has("producer"):
        raise Usage("The --idempotent option is only available if --producer is set")
    alone = not options.has("producer") and options.has("cluster", "transactional-id")
    if options.has("consumer") and (not options.has("topic") or not options.has("group") or alone):
        raise Usage(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )


def _pattern(options: Options) -> str:
    text = str(options.get("resource-pattern-type"))
    if text.upper() not in ("ANY", "MATCH", "LITERAL", "PREFIXED"):
        raise ValueError(f"Cannot parse argument '{text}' of option resource-pattern-type")
    return text.upper()


def _resources(options: Options) -> list[Resource]:
    pattern = _pattern(options)
    resources = [
        Resource(kind, name.strip(), pattern) for option, kind in RESOURCES.items() for name in options.all(option)
    ]
    if pattern == "LITERAL" and options.has("cluster", "idempotent"):
        resources.append(CLUSTER)
    return list(dict.fromkeys(resources))


CLUSTER: Final = Resource("CLUSTER", "kafka-cluster", "LITERAL")


def _principals(options: Options, name: str) -> list[str]:
    names = [text.strip() for text in options.all(name) if text]
    for text in names:
        kind, colon, _ = text.partition(":")
        if not colon or not kind:
            raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return list(dict.fromkeys(names))


def _entries(options: Options, operations: Iterable[str]) -> list[Entry]:
    entries = []
    distinct = list(dict.fromkeys(operations))
    for word, permission in (("allow", "ALLOW"), ("deny", "DENY")):
        hosts = [host.strip() for host in options.all(f"{word}-host")] or ["*"]
        for principal in _principals(options, f"{word}-principal"):
            entries += [Entry(principal, host, operation, permission) for operation in distinct for host in hosts]
    return entries


def _entries_by_resource(options: Options) -> Entries:
    """The resources with the entries that the options mean."""
    resources = _resources(options)
    by_resource: Entries = {}
    if not options.has("producer", "consumer"):
        operations = [_operation(text) for text in options.all("operation") or ["All"]]
        entries = _entries(options, operations)
        if not resources:
            raise Usage(NO_RESOURCE)
        by_resource = dict.fromkeys(resources, entries)
    if options.has("producer"):
        _of_role(by_resource, resources, "TOPIC", _entries(options, ("WRITE", "DESCRIBE", "CREATE")))
        _of_role(by_resource, resources, "TRANSACTIONAL_ID", _entries(options, ("WRITE", "DESCRIBE")))
        if options.has("idempotent"):
            _of_role(by_resource, [CLUSTER], "CLUSTER", _entries(options, ("IDEMPOTENT_WRITE",)))
    if options.has("consumer"):
        _of_role(by_resource, resources, "TOPIC", _entries(options, ("READ", "DESCRIBE")))
        _of_role(by_resource, resources, "GROUP", _entries(options, ("READ",)))
    for resource, entries in by_resource.items():
        operations_of = ["ALL", *SUPPORTED[resource.type].split(", ")]
        if any(entry.operation not in operations_of for entry in entries):
            raise Usage(f"ResourceType {resource.type} only supports operations [{', '.join(operations_of)}]")
    return by_resource


def _of_role(by_resource: Entries, resources: Iterable[Resource], kind: str, entries: list[Entry]) -> None:
    for resource in resources:
        if resource.type == kind:
            by_resource[resource] = list(dict.fromkeys([*by_resource.get(resource, ()), *entries]))


def _operation(text: str) -> str:
    """`DescribeConfigs` as DESCRIBE_CONFIGS; UNKNOWN is an operation that no resource has."""
    word = text.strip().replace("_", "").lower()
    names = {name for line in SUPPORTED.values() for name in line.split(", ")} | {"ALL"}
    return next((name for name in names if name.replace("_", "").lower() == word), "UNKNOWN")


# --- actions


def _add(cluster: Cluster, options: Options) -> None:
    pattern = _pattern(options)
    if pattern not in ("LITERAL", "PREFIXED"):
        raise Usage(f"A '--resource-pattern-type' value of '{pattern}' is not valid when adding acls.")
    entries_by_resource = _entries_by_resource(options)
    if not all(entries_by_resource.values()):
        raise Usage(NO_PRINCIPAL)
    for resource, entries in entries_by_resource.items():
        existing = _by_resource(cluster, [resource]).get(resource, [])
        for entry in entries:
            if entry in existing:
                print(f"Acl (pattern={resource}, entry={entry}) already exists.")
        new = [entry for entry in entries if entry not in existing]
        if new:
            lines = "\n".join(f"\t{entry}" for entry in new)
            print(f"Adding ACLs for resource `{resource}`: \n {lines}\n")
            create_acls(cluster, [Acl(*resource, *entry) for entry in new])


def _remove(cluster: Cluster, options: Options) -> None:
    for resource, entries in _entries_by_resource(options).items():
        filters = [AclFilter(*resource, *entry) for entry in entries] or [AclFilter(*resource)]
        shown = str(resource).replace("ResourcePattern(", "ResourcePatternFilter(")
        if entries:
            lines = "\n".join(f"\t{entry}" for entry in entries)
            question = f"Are you sure you want to remove ACLs: \n {lines}\n from resource filter `{shown}`? (y/n)"
        else:
            question = f"Are you sure you want to delete all ACLs for resource filter `{shown}`? (y/n)"
        if _confirmed(options, question):
            delete_acls(cluster, filters)


def _confirmed(options: Options, question: str) -> bool:
    if options.has("force"):
        return True
    print(question, flush=True)
    return sys.stdin.readline().strip().lower() == "y"


def _list(cluster: Cluster, options: Options) -> None:
    principals = _principals(options, "principal")
    existing = _by_resource(cluster, _resources(options))
    if not principals:
        _print(existing)
    for principal in principals:
        print(f"ACLs for principal `{principal}`")
        own = {
            resource: [entry for entry in existing[resource] if entry.principal == principal] for resource in existing
        }
        _print({resource: entries for resource, entries in own.items() if entries})


def _print(by_resource: Entries) -> None:
    for resource, entries in by_resource.items():
        lines = "\n".join(f"\t{entry}" for entry in entries)
        print(f"Current ACLs for resource `{resource}`:\n{lines}\n")


def _by_resource(cluster: Cluster, filters: Sequence[Resource]) -> Entries:
    acl_filters = [AclFilter(*fields) for fields in filters] or [AclFilter()]
    acls = sorted({acl for acl_filter in acl_filters for acl in list_acls(cluster, acl_filter)})

    def resource_of(acl: Acl) -> Resource:
        return Resource(acl.resource_type, acl.name, acl.pattern)

    return {
        resource: [Entry(acl.principal, acl.host, acl.operation, acl.permission) for acl in group]
        for resource, group in groupby(acls, resource_of)
    }
