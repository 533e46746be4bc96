"""ACLs (KIP-140, KIP-290): list, create, delete; whether a user may do something, and which ACL decides."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Annotated, Literal

import msgspec

from barnabas.client.admin.acls import OPERATIONS_OF, Acl, AclFilter, create_acls, delete_acls, exactly, list_acls
from barnabas.client.cluster import Cluster
from barnabas.client.errors import NotFound
from barnabas.client.security.acl_rules import Question, authorizer_settings, decide
from barnabas.console.console import Call
from barnabas.console.pages import link
from barnabas.console.resources import Done, action, resource
from barnabas.console.screens.access.secured import advice, principal
from barnabas.console.tables import Page, TableQuery, paged
from barnabas.console.values import BadInput
from barnabas.wire.errors import ErrorCode, KafkaError

ResourceType = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
Pattern = Literal["LITERAL", "PREFIXED"]
Permission = Literal["ALLOW", "DENY"]
CLUSTER_NAME = "kafka-cluster"
COLUMNS = ("resource_type", "name", "pattern", "principal", "host", "operation", "permission")


@dataclass(frozen=True)
class AclRow:
    """One ACL, in Kafka's words."""

    resource_type: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str


def rows_of(acls: Iterable[Acl]) -> list[AclRow]:
    """The ACLs as rows."""
    return [AclRow(*acl) for acl in acls]


@dataclass(frozen=True, kw_only=True)
class AclsQuery(TableQuery):
    """Which ACLs are shown."""

    resource_type: Literal["", ResourceType] = ""
    principal: str = ""
    name: str = ""
    """ACLs that concern this name: prefixes of it and `*` too."""


@dataclass(frozen=True)
class Acls:
    """The ACLs."""

    acls: Page[AclRow]
    advice: str
    """How to get security, on a broker that is not secured."""
    without_authorizer: bool
    operations: dict[str, list[str]]
    """The operations of each type of resource."""


@resource("/acls", template="access/acls.html", summary="The ACLs.")
def list_of_acls(cluster: Cluster, call: Call, query: AclsQuery) -> Acls:
    """A broker without an authorizer has none, which is no failure here."""
    selection = AclFilter(
        resource_type=query.resource_type or "ANY",
        name=query.name or None,
        pattern="MATCH" if query.name else "ANY",
        principal=principal(query.principal) if query.principal else None,
    )
    without_authorizer = False
    rows: list[AclRow] = []
    try:
        rows = rows_of(list_acls(cluster, selection))
    except KafkaError as error:
        if error.code != ErrorCode.SECURITY_DISABLED:
            raise
        without_authorizer = True
    page = paged(
        rows,
        query,
        columns=COLUMNS,
        search=lambda row: (
            f"{row.resource_type} {row.name} {row.principal} {row.operation} {row.permission} {row.host}"
        ),
        sort="resource_type",
    )
    return Acls(page, advice(call), without_authorizer, _operations())


def _operations() -> dict[str, list[str]]:
    return {kind: sorted(known) for kind, known in OPERATIONS_OF.items()}


@dataclass(frozen=True)
class AclForm:
    """An ACL to create or to delete."""

    principal: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    operation: str
    resource_type: ResourceType
    name: str = ""
    """`*` is every name of the type; empty for the cluster."""
    pattern: Pattern = "LITERAL"
    host: str = "*"
    permission: Permission = "ALLOW"

    def acl(self) -> Acl:
        """The ACL. `BadInput` for an operation that the type of resource does not have."""
        known = OPERATIONS_OF[self.resource_type] | {"ALL"}
        if self.operation not in known:
            raise BadInput(
                f"operation: there is no {self.operation} on {self.resource_type}; there are {', '.join(sorted(known))}"
            )
        name = CLUSTER_NAME if self.resource_type == "CLUSTER" else self.name
        if not name:
            raise BadInput("name: give a name, or * for all names")
        who = principal(self.principal)
        return Acl(self.resource_type, name, self.pattern, who, self.host, self.operation, self.permission)


@action("/create-acl", summary="Create an ACL.")
def create_acl(cluster: Cluster, form: AclForm) -> Done:
    """One that exists already stays."""
    acl = form.acl()
    create_acls(cluster, [acl])
    return Done(f"created: {sentence(acl)}", link("/acls", principal=acl.principal))


@action("/delete-acl", summary="Delete an ACL.")
def delete_acl(cluster: Cluster, form: AclForm) -> Done:
    """Exactly this one."""
    acl = form.acl()
    if not delete_acls(cluster, [exactly(acl)]):
        raise NotFound(f"there is no such ACL: {sentence(acl)}")
    return Done(f"deleted: {sentence(acl)}", "/acls")


def sentence(acl: Acl) -> str:
    """`User:alice may WRITE TOPIC orders, from every host`."""
    may = "may" if acl.permission == "ALLOW" else "may not"
    name = f"names that begin with {acl.name}" if acl.pattern == "PREFIXED" else acl.name
    host = "every host" if acl.host == "*" else acl.host
    return f"{acl.principal} {may} {acl.operation} {acl.resource_type} {name}, from {host}"


@dataclass(frozen=True)
class MayQuery:
    """Whether a user may do something; without a user nothing is asked yet."""

    user: str = ""
    operation: str = "READ"
    resource_type: ResourceType = "TOPIC"
    name: str = ""
    host: str = "127.0.0.1"


@dataclass(frozen=True)
class MayView:
    """The answer, with the ACL that decides."""

    asked: bool
    allowed: bool = False
    why: str = ""
    acl: AclRow | None = None
    unknown: list[str] | None = None
    """Settings of the authorizer that the broker does not tell; taken as not set."""
    advice: str = ""
    operations: dict[str, list[str]] | None = None


@resource("/may", template="access/may.html", summary="Whether a user may do something, and which ACL decides.")
def may(cluster: Cluster, call: Call, query: MayQuery) -> MayView:
    """Decided by the rules of the broker's own authorizer, with the ACLs that it lists."""
    if not query.user:
        return MayView(False, advice=advice(call), operations=_operations())
    if query.operation not in OPERATIONS_OF[query.resource_type]:
        known = ", ".join(sorted(OPERATIONS_OF[query.resource_type]))
        raise BadInput(f"operation: there is no {query.operation} on {query.resource_type}; there are {known}")
    name = CLUSTER_NAME if query.resource_type == "CLUSTER" else query.name
    if not name:
        raise BadInput("name: give the name of the resource")
    try:
        ip_address(query.host)
    except ValueError:
        raise BadInput(f"host: must be an IP address, not {query.host!r}") from None
    acls = list_acls(cluster, AclFilter(query.resource_type, name, "MATCH"))
    settings = authorizer_settings(cluster)
    question = Question(principal(query.user), query.host, query.operation, query.resource_type, name)
    decision = decide(question, acls, settings.super_users, allow_if_no_acl=settings.allow_if_no_acl)
    return MayView(
        True,
        decision.is_allowed,
        decision.why,
        None if decision.acl is None else AclRow(*decision.acl),
        settings.hidden,
        advice(call),
        _operations(),
    )
