"""ACLs (KIP-140, KIP-290): list, create, delete. Errors: `KafkaError` from the broker, `TimedOut`, `Unreachable`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple

from barnabas.client.cluster import Cluster
from barnabas.client.errors import raise_for
from barnabas.coord.security.acls import Operation, PatternType, Permission, ResourceType
from barnabas.wire.messages.security.acls import (
    AclCreation,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

ANY: Final = "ANY"


def _codes(kind: type[IntEnum]) -> dict[str, int]:
    return {member.name: int(member) for member in kind if member}


RESOURCE_TYPES: Final = _codes(ResourceType)
PATTERNS: Final = _codes(PatternType)
OPERATIONS: Final = _codes(Operation)
PERMISSIONS: Final = _codes(Permission)

OPERATIONS_OF: Final[Mapping[str, frozenset[str]]] = {
    "TOPIC": frozenset({"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}),
    "GROUP": frozenset({"READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"}),
    "CLUSTER": frozenset(
        {"CREATE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "ALTER", "DESCRIBE"}
    ),
    "TRANSACTIONAL_ID": frozenset({"DESCRIBE", "WRITE", "TWO_PHASE_COMMIT"}),
    "DELEGATION_TOKEN": frozenset({"DESCRIBE"}),
    "USER": frozenset({"CREATE_TOKENS", "DESCRIBE_TOKENS"}),
}
"""The operations of each type of resource (Kafka 4.4.0 `AclEntry`); ALL is one of each."""


class Acl(NamedTuple):
    """An ACL: a principal and host, an operation, the resources, and whether it is allowed. Types are Kafka's names."""

    resource_type: str
    name: str
    """A name, the prefix of names, or `*`."""
    pattern: str
    """LITERAL or PREFIXED."""
    principal: str
    """`User:alice`, or `User:*`."""
    host: str
    """An address, or `*`."""
    operation: str
    permission: str
    """ALLOW or DENY."""


class AclFilter(NamedTuple):
    """Which ACLs; ANY and None match all. The pattern MATCH is of all ACLs that concern the name."""

    resource_type: str = ANY
    name: str | None = None
    pattern: str = ANY
    principal: str | None = None
    host: str | None = None
    operation: str = ANY
    permission: str = ANY


def list_acls(cluster: Cluster, selection: AclFilter = AclFilter()) -> list[Acl]:  # noqa: B008 - immutable
    """The ACLs that a filter selects, sorted."""
    request = DescribeAclsRequest(**_numbers(selection))

    def attempt(deadline: float) -> list[Acl]:
        response = cluster.any_node(deadline).call(request, DescribeAclsResponse, deadline)
        raise_for(response.error_code, "ACLs", response.error_message)
        return sorted(
            Acl(
                _name(RESOURCE_TYPES, resource.resource_type),
                resource.resource_name,
                _name(PATTERNS, resource.pattern_type),
                acl.principal,
                acl.host,
                _name(OPERATIONS, acl.operation),
                _name(PERMISSIONS, acl.permission_type),
            )
            for resource in response.resources
            for acl in resource.acls
        )

    return cluster.retry(attempt)


def create_acls(cluster: Cluster, acls: Sequence[Acl]) -> None:
    """Create ACLs; those that exist already stay. The first that is refused is raised, others may be created."""
    creations = [
        AclCreation(
            resource_type=RESOURCE_TYPES[acl.resource_type],
            resource_name=acl.name,
            resource_pattern_type=PATTERNS[acl.pattern],
            principal=acl.principal,
            host=acl.host,
            operation=OPERATIONS[acl.operation],
            permission_type=PERMISSIONS[acl.permission],
        )
        for acl in acls
    ]

    def attempt(deadline: float) -> None:
        request = CreateAclsRequest(creations=creations)
        response = cluster.any_node(deadline).call(request, CreateAclsResponse, deadline)
        for acl, result in zip(acls, response.results, strict=True):
            raise_for(result.error_code, f"ACL of {acl.principal} for {acl.name!r}", result.error_message)

    cluster.retry(attempt)


def delete_acls(cluster: Cluster, filters: Iterable[AclFilter]) -> list[Acl]:
    """Delete the ACLs that filters select, and return them."""
    request = DeleteAclsRequest(filters=[DeleteAclsFilter(**_numbers(filter_)) for filter_ in filters])

    def attempt(deadline: float) -> list[Acl]:
        response = cluster.any_node(deadline).call(request, DeleteAclsResponse, deadline)
        deleted = []
        for result in response.filter_results:
            raise_for(result.error_code, "ACLs", result.error_message)
            for acl in result.matching_acls:
                raise_for(acl.error_code, f"ACL of {acl.principal} for {acl.resource_name!r}", acl.error_message)
                deleted.append(
                    Acl(
                        _name(RESOURCE_TYPES, acl.resource_type),
                        acl.resource_name,
                        _name(PATTERNS, acl.pattern_type),
                        acl.principal,
                        acl.host,
                        _name(OPERATIONS, acl.operation),
                        _name(PERMISSIONS, acl.permission_type),
                    )
                )
        return sorted(deleted)

    return cluster.retry(attempt)


def exactly(acl: Acl) -> AclFilter:
    """The filter of one ACL."""
    return AclFilter(*acl)


def _numbers(filter_: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": RESOURCE_TYPES[filter_.resource_type],
        "resource_name_filter": filter_.name,
        "pattern_type_filter": PATTERNS[filter_.pattern],
        "principal_filter": filter_.principal,
        "host_filter": filter_.host,
        "operation": OPERATIONS[filter_.operation],
        "permission_type": PERMISSIONS[filter_.permission],
    }


def _name(table: Mapping[str, int], number: int) -> str:
    return next((name for name, value in table.items() if value == number), f"UNKNOWN_{number}")
