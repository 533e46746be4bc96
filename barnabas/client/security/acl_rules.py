"""Which ACL decides whether a principal may do something: the rules of Kafka 4.4.0's StandardAuthorizer.

A super user may do everything. Otherwise a DENY that matches comes before any ALLOW; ALLOW of some operations implies
DESCRIBE or DESCRIBE_CONFIGS. Nothing matches: denied, unless the resource has no ACL at all and
`allow.everyone.if.no.acl.found` is true.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from barnabas.client.acls import Acl

WILDCARD: Final = "*"
EVERYONE: Final = "User:*"
IMPLIES: Final = {
    "DESCRIBE": {"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"},
    "DESCRIBE_CONFIGS": {"DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
}
"""Operations whose ALLOW is one of the operation."""


class Question(NamedTuple):
    """Whether a principal may do an operation with one resource, from a host (an IP address)."""

    principal: str
    host: str
    operation: str
    resource_type: str
    name: str


class Decision(NamedTuple):
    """The answer; `acl` is the one that decides, or None: `why` says what decides then."""

    is_allowed: bool
    acl: Acl | None
    why: str


def decide(
    question: Question, acls: Iterable[Acl], super_users: Collection[str] = (), *, allow_if_no_acl: bool = False
) -> Decision:
    """The decision of an authorizer with these ACLs."""
    if question.principal in super_users:
        return Decision(True, None, f"{question.principal} is a super user")
    concerned = sorted((acl for acl in acls if is_of_resource(acl, question)), key=_order, reverse=True)
    matching = [acl for acl in concerned if _matches(acl, question)]
    denials = [acl for acl in matching if acl.permission == "DENY"]
    if denials:
        return Decision(False, denials[0], "an ACL denies it, whatever others allow")
    if matching:
        return Decision(True, matching[0], "an ACL allows it, and none denies it")
    if concerned:
        return Decision(False, None, "the resource has ACLs, but none of them is about this")
    if allow_if_no_acl:
        return Decision(True, None, "the resource has no ACL, and allow.everyone.if.no.acl.found is true")
    return Decision(False, None, "the resource has no ACL")


def is_of_resource(acl: Acl, question: Question) -> bool:
    """Whether an ACL is about the resource, whoever and whatever it names."""
    if acl.resource_type != question.resource_type:
        return False
    if acl.pattern == "PREFIXED":
        return question.name.startswith(acl.name)
    return acl.name in (question.name, WILDCARD)


def _matches(acl: Acl, question: Question) -> bool:
    if acl.principal not in (question.principal, EVERYONE) or acl.host not in (question.host, WILDCARD):
        return False
    if acl.operation in ("ALL", question.operation):
        return True
    return acl.permission == "ALLOW" and acl.operation in IMPLIES.get(question.operation, ())


def _order(acl: Acl) -> tuple[bool, str, bool]:
    """The most specific comes last: `*`, prefixes, longer prefixes, the name itself."""
    return (acl.name != WILDCARD or acl.pattern == "PREFIXED", acl.name, acl.pattern == "LITERAL")
