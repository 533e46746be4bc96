"""Which ACL decides whether a principal may do something, by the rules of the broker's own authorizer.

The ACLs come from a broker's list. The deciding ACL is the one that the broker's audit log names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from barnabas.client.admin.acls import Acl
from barnabas.client.admin.configs import describe_config
from barnabas.client.cluster import Cluster
from barnabas.coord.security import acls as rules
from barnabas.coord.security.host_patterns import java_host
from barnabas.coord.security.standard_authorizer import DEFAULT_ALLOW, SUPER_USER, StandardAuthorizer
from barnabas.wire.errors import KafkaError

SUPER_USERS, ALLOW_IF_NO_ACL = "super.users", "allow.everyone.if.no.acl.found"


class Question(NamedTuple):
    """Whether a principal may do an operation with one resource, from a host (an IP address)."""

    principal: str
    host: str
    operation: str
    resource_type: str
    name: str


class AuthorizerSettings(NamedTuple):
    """What an authorizer decides by beside the ACLs; `hidden` are keys that the broker does not tell, as not set."""

    super_users: list[str]
    allow_if_no_acl: bool
    hidden: list[str]


def authorizer_settings(cluster: Cluster) -> AuthorizerSettings:
    """The settings of a broker's authorizer.

    Kafka's brokers never tell them: the keys are the authorizer's, and the values of keys that are not theirs are
    hidden. Who may ask for ACLs may not always ask for configs.
    """
    settings: dict[str, str | None] = {}
    try:
        cluster.retry(lambda deadline: cluster.metadata([], deadline))
        entries = describe_config(cluster, "broker", str(min(cluster.nodes)), [SUPER_USERS, ALLOW_IF_NO_ACL])
        settings = {entry.name: entry.value for entry in entries}
    except KafkaError:
        pass
    principals = [principal.strip() for principal in (settings.get(SUPER_USERS) or "").split(";")]
    hidden = [key for key in (SUPER_USERS, ALLOW_IF_NO_ACL) if settings.get(key) is None]
    return AuthorizerSettings(principals, (settings.get(ALLOW_IF_NO_ACL) or "").lower() == "true", hidden)


class Decision(NamedTuple):
    """The answer; `acl` is the deciding ACL, or None: then `why` gives the reason."""

    is_allowed: bool
    acl: Acl | None
    why: str


def decide(
    question: Question, acls: Iterable[Acl], super_users: Collection[str] = (), *, allow_if_no_acl: bool = False
) -> Decision:
    """The decision of an authorizer with these ACLs."""
    authorizer = StandardAuthorizer(filter(None, super_users), allows_without_acls=allow_if_no_acl)
    listed = {_rule(acl): acl for acl in acls}
    for rule in listed:
        authorizer.index.add(rule)
    resource_type = rules.ResourceType[question.resource_type]
    decision = authorizer.decide(
        question.principal,
        java_host(question.host),
        rules.Operation[question.operation],
        resource_type,
        question.name,
    )
    if decision.rule == SUPER_USER:
        return Decision(True, None, f"{question.principal} is a super user")
    if decision.acl is not None:
        why = (
            "an ACL allows it, and none denies it"
            if decision.is_allowed
            else "an ACL denies it, which comes before ACLs that allow it"
        )
        return Decision(decision.is_allowed, listed[decision.acl], why)
    if decision.rule == DEFAULT_ALLOW:
        return Decision(True, None, "the resource has no ACL, and allow.everyone.if.no.acl.found is true")
    has_acls = any(True for _ in authorizer.index.buckets_of(resource_type, question.name))
    why = "the resource has ACLs, but none of them is about this" if has_acls else "the resource has no ACL"
    return Decision(False, None, why)


def _rule(acl: Acl) -> rules.Acl:
    return rules.Acl(
        rules.ResourceType[acl.resource_type],
        acl.name,
        rules.PatternType[acl.pattern],
        acl.principal,
        acl.host,
        rules.Operation[acl.operation],
        rules.Permission[acl.permission],
    )
