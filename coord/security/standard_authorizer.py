"""Decides what a principal may do, as Kafka's `StandardAuthorizer` (KIP-801, KIP-11).

In this order: a super user may do everything; an ACL that denies wins over all that allow; an ACL that allows; no ACL
of the resource at all: what `allow.everyone.if.no.acl.found` says; otherwise denied. A decision names the rule that
made it. Source: Kafka 4.4 `StandardAuthorizerData`, `Authorizer.authorizeByResourceType`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from barnabas.coord.security.acl_index import AclIndex
from barnabas.coord.security.acls import (
    IMPLIED_BY,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from barnabas.coord.security.host_patterns import matches_host

SUPER_USER: Final = "SuperUser"
DEFAULT_ALLOW: Final = "DefaultAllow"
DEFAULT_DENY: Final = "DefaultDeny"
ANY_NAME: Final = "hardcode"
"""The name of a resource that stands for any other, where Kafka asks by the type of the resource."""


class Decision(NamedTuple):
    """Whether something is allowed, and by which rule."""

    is_allowed: bool
    rule: str
    """`SuperUser`, `DefaultAllow`, `DefaultDeny`, or the text of the ACL, as in Kafka's audit log."""
    acl: Acl | None = None


_SUPER_USER: Final = Decision(True, SUPER_USER)
_DENIED: Final = Decision(False, DEFAULT_DENY)


class StandardAuthorizer:
    """The rules, and the answers that follow from them."""

    def __init__(self, super_users: Iterable[str] = (), *, allows_without_acls: bool = False) -> None:
        """`super_users` are texts as `User:admin`; ValueError for a text that is not type and name."""
        self.super_users = frozenset(super_users)
        for user in self.super_users:
            if ":" not in user:
                raise ValueError(f"expected a string in format principalType:principalName but got {user}")
        self.index = AclIndex()
        self._no_acls = Decision(True, DEFAULT_ALLOW) if allows_without_acls else _DENIED

    def decide(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Whether a principal on a host may do something to a resource."""
        if principal in self.super_users:
            return _SUPER_USER
        has_acls = False
        allowing: list[Acl] = []
        denying: list[Acl] = []
        for bucket in self.index.buckets_of(resource_type, name):
            has_acls = True
            for whose in _matching(principal):
                for acl in bucket.get(whose, ()):
                    if _applies(acl, host, operation):
                        (allowing if acl.permission == Permission.ALLOW else denying).append(acl)
        if denying:
            return _by_acl(_in_kafkas_order(denying)[0], is_allowed=False)
        if allowing:
            return _by_acl(_in_kafkas_order(allowing)[-1], is_allowed=True)
        return _DENIED if has_acls else self._no_acls

    def decide_by_resource_type(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Whether there may be a resource of the type that the principal may do something to (KIP-679)."""
        if self.decide(principal, host, operation, resource_type, ANY_NAME).is_allowed:
            return True
        acls = [
            acl
            for acl in self.index.of_principals(resource_type, _matching(principal))
            if acl.operation in (operation, Operation.ALL) and matches_host(acl.host, host)
        ]
        denied = {(acl.pattern_type, acl.resource_name) for acl in acls if acl.permission == Permission.DENY}
        if (PatternType.LITERAL, WILDCARD) in denied:
            return False
        return any(acl.permission == Permission.ALLOW and not _is_dominated(acl, denied) for acl in acls)


def _matching(principal: str) -> Sequence[str]:
    """The principals of ACLs that concern a principal."""
    return (principal,) if principal == WILDCARD_PRINCIPAL else (principal, WILDCARD_PRINCIPAL)


def _applies(acl: Acl, host: str, operation: Operation) -> bool:
    """Whether an ACL of the principal and the resource concerns this operation from this host."""
    if acl.operation not in (operation, Operation.ALL):
        implied = acl.permission == Permission.ALLOW and acl.operation in IMPLIED_BY.get(operation, ())
        if not implied:
            return False
    return matches_host(acl.host, host)


def _is_dominated(acl: Acl, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether everything that an ACL allows is denied: its own name, or by a prefix of it."""
    name = acl.resource_name
    if acl.pattern_type == PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


def _in_kafkas_order(acls: list[Acl]) -> list[Acl]:
    """The ACLs in the order in which Kafka looks at them: it names the first that denies, or the last that allows."""
    rest = sorted(acls, key=lambda acl: (acl.pattern_type, acl.operation, acl.principal, acl.host, acl.permission))
    return sorted(rest, key=lambda acl: acl.resource_name, reverse=True)


def _by_acl(acl: Acl, *, is_allowed: bool) -> Decision:
    return Decision(is_allowed, f"MatchingAcl(acl={acl})", acl)
