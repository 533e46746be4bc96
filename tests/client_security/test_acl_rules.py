"""Which ACL decides: each rule of the authorizer alone, and what comes before what."""

from __future__ import annotations

import pytest

from barnabas.client.admin.acls import Acl
from barnabas.client.security.acl_rules import Decision, Question, decide
from tests.support.cases import for_each

HOST = "10.0.0.1"


def acl(text: str) -> Acl:
    """`allow alice write orders`, with `orders*` for a prefix and `@host` at the end."""
    text, _, host = text.partition("@")
    permission, user, operation, name = text.split()
    pattern = "PREFIXED" if len(name) > 1 and name.endswith("*") else "LITERAL"
    name = name.removesuffix("*") if pattern == "PREFIXED" else name
    return Acl("TOPIC", name, pattern, f"User:{user}", host or "*", operation.upper(), permission.upper())


def decided(acls: list[str], operation: str = "WRITE", **more: object) -> Decision:
    question = Question("User:alice", HOST, operation, "TOPIC", "orders")
    return decide(question, map(acl, acls), **more)  # type: ignore[arg-type]


@for_each(
    ("acls", "operation", "winner"),
    [
        (["allow alice write orders"], "WRITE", 0),
        (["allow alice all orders"], "WRITE", 0),
        (["allow * write orders"], "WRITE", 0),
        (["allow alice write *"], "WRITE", 0),
        (["allow alice write ord*"], "WRITE", 0),
        (["allow alice write *", "allow alice write ord*", "allow alice write orders"], "WRITE", 0),
        (["allow alice write ord*", "allow alice write o*"], "WRITE", 1),
        (["allow alice write orders@10.0.0.0/8"], "WRITE", 0),
        (["allow alice write orders", "deny alice write *"], "WRITE", 1),
        (["allow alice write orders", "deny * all ord*"], "WRITE", 1),
        (["deny alice write orders", "allow alice describe orders"], "DESCRIBE", 1),
        (["allow alice write orders"], "DESCRIBE", 0),
        (["allow alice alter_configs orders"], "DESCRIBE_CONFIGS", 0),
        (["allow alice write orders@10.0.0.1"], "WRITE", 0),
    ],
)
def test_the_rule_that_decides(acls: list[str], operation: str, winner: int) -> None:
    decision = decided(acls, operation)
    assert decision.acl == acl(acls[winner])
    assert decision.is_allowed == (decision.acl.permission == "ALLOW")


@for_each(
    ("acls", "operation"),
    [
        (["allow bob write orders"], "WRITE"),
        (["allow alice read orders"], "WRITE"),
        (["allow alice write orders@10.0.0.2"], "WRITE"),
        (["allow alice alter_configs orders"], "DESCRIBE"),
        (["allow alice create orders"], "DESCRIBE"),
    ],
)
def test_nothing_matches_a_resource_with_acls(acls: list[str], operation: str) -> None:
    for allow_if_no_acl in (False, True):
        decision = decided(acls, operation, allow_if_no_acl=allow_if_no_acl)
        assert (decision.is_allowed, decision.acl) == (False, None)


@pytest.mark.parametrize("acls", [[], ["allow alice write order"], ["allow alice write orders-*"]])
def test_a_resource_without_acls(acls: list[str]) -> None:
    assert not decided(acls).is_allowed
    assert decided(acls, allow_if_no_acl=True).is_allowed


def test_a_super_user_may_do_everything() -> None:
    denied = ["deny alice all *"]
    assert not decided(denied).is_allowed
    assert decided(denied, super_users=["User:alice"]).is_allowed


def test_an_acl_of_another_resource_type_is_another_resource() -> None:
    other = acl("deny alice write orders")._replace(resource_type="GROUP")
    question = Question("User:alice", HOST, "WRITE", "TOPIC", "orders")
    assert decide(question, [other, acl("allow alice write orders")]).is_allowed
