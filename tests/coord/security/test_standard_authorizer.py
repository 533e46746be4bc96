"""The decisions of the authorizer: examples of each rule, and random rules against a model that asks all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.coord.security.acl_index import AclIndex
from barnabas.coord.security.acls import IMPLIED_BY, Acl, Operation, PatternType, Permission, ResourceType
from barnabas.coord.security.host_patterns import java_host, matches_host, parse_range
from barnabas.coord.security.standard_authorizer import StandardAuthorizer
from tests.support.cases import for_each

TOPIC = ResourceType.TOPIC
ALICE = "User:alice"
HOST = "10.1.2.3"


def acl(
    name: str = "orders",
    operation: Operation = Operation.READ,
    permission: Permission = Permission.ALLOW,
    *,
    principal: str = ALICE,
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    kind: ResourceType = TOPIC,
) -> Acl:
    return Acl(kind, name, pattern, principal, host, operation, permission)


def authorizer(*acls: Acl, super_users: tuple[str, ...] = (), allows: bool = False) -> StandardAuthorizer:
    standard_authorizer = StandardAuthorizer(super_users, allows_without_acls=allows)
    for rule in acls:
        standard_authorizer.index.add(rule)
    return standard_authorizer


def may(
    standard_authorizer: StandardAuthorizer, operation: Operation, name: str = "orders", principal: str = ALICE
) -> bool:
    return standard_authorizer.decide(principal, HOST, operation, TOPIC, name).is_allowed


def test_without_rules_only_super_users_may() -> None:
    standard_authorizer = authorizer(super_users=(ALICE,))
    assert standard_authorizer.decide(ALICE, HOST, Operation.READ, TOPIC, "orders") == (True, "SuperUser", None)
    assert standard_authorizer.decide("User:bob", HOST, Operation.READ, TOPIC, "orders") == (False, "DefaultDeny", None)
    assert not may(standard_authorizer, Operation.READ, principal="user:alice")


def test_a_super_user_may_what_is_denied() -> None:
    assert may(authorizer(acl(permission=Permission.DENY), super_users=(ALICE,)), Operation.READ)


def test_a_super_user_without_a_type_is_refused() -> None:
    with pytest.raises(ValueError, match="principalType:principalName"):
        StandardAuthorizer(["alice"])


def test_resources_without_any_rule_are_open_if_so_configured() -> None:
    standard_authorizer = authorizer(acl("orders", principal="User:bob"), allows=True)
    assert standard_authorizer.decide(ALICE, HOST, Operation.READ, TOPIC, "payments").rule == "DefaultAllow"
    assert standard_authorizer.decide(ALICE, HOST, Operation.READ, TOPIC, "orders").rule == "DefaultDeny"


def test_a_denial_wins_over_every_permission() -> None:
    standard_authorizer = authorizer(
        acl("orders"), acl("*"), acl("or", permission=Permission.DENY, pattern=PatternType.PREFIXED, host=HOST)
    )
    decision = standard_authorizer.decide(ALICE, HOST, Operation.READ, TOPIC, "orders")
    assert not decision.is_allowed
    assert decision.rule == (
        "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=or, patternType=PREFIXED, "
        "principal=User:alice, host=10.1.2.3, operation=READ, permissionType=DENY])"
    )
    assert standard_authorizer.decide(ALICE, "10.1.2.4", Operation.READ, TOPIC, "orders").is_allowed


@pytest.mark.parametrize("implied", IMPLIED_BY)
def test_implied_operations_are_allowed_and_not_denied(implied: Operation) -> None:
    for other in Operation:
        allowed = authorizer(acl(operation=other))
        assert may(allowed, implied) == (other in IMPLIED_BY[implied] or other == Operation.ALL)
        denied = authorizer(acl(operation=Operation.ALL), acl(operation=other, permission=Permission.DENY))
        assert may(denied, implied) == (other not in (implied, Operation.ALL))


@for_each(
    ("pattern", "host", "covers"),
    [
        ("*", HOST, True),
        (HOST, HOST, True),
        ("10.0.0.0/8", HOST, True),
        ("10.1.2.0/30", HOST, True),
        ("10.1.2.4/30", HOST, False),
        ("010.001.000.000/16", HOST, True),
        ("0.0.0.0/0", HOST, True),
        ("10.0.0.0/255.0.0.0", HOST, False),
        ("10.0.0.0/33", HOST, False),
        ("300.0.0.0/8", HOST, False),
        ("2001:db8::/32", "2001:db8:0:0:0:0:0:1", True),
        ("2001:db8::/32", "2001:db9:0:0:0:0:0:1", False),
        ("::/0", HOST, False),
        ("0.0.0.0/0", "0:0:0:0:0:0:0:1", False),
    ],
)
def test_hosts_and_ranges_of_hosts(pattern: str, host: str, covers: bool) -> None:
    assert matches_host(pattern, host) == covers


def test_invalid_ranges_are_told_why() -> None:
    with pytest.raises(ValueError, match="between 0 and 32"):
        parse_range("10.0.0.0/40")
    with pytest.raises(ValueError, match="Could not parse"):
        parse_range("10.0.0/8")


def test_addresses_are_written_as_java_does() -> None:
    assert java_host("::1") == "0:0:0:0:0:0:0:1"
    assert java_host("fe80::2%eth0") == "fe80:0:0:0:0:0:0:2%eth0"
    assert java_host("::ffff:10.1.2.3") == HOST
    assert java_host(HOST) == HOST


@for_each(
    ("acls", "may_write"),
    [
        ([], False),
        ([acl("orders", Operation.WRITE)], True),
        ([acl("orders", Operation.READ)], False),
        ([acl("orders", Operation.WRITE), acl("*", Operation.WRITE, Permission.DENY)], False),
        ([acl("orders", Operation.WRITE), acl("orders", Operation.ALL, Permission.DENY)], False),
        (
            [
                acl("orders", Operation.WRITE),
                acl("or", Operation.WRITE, Permission.DENY, pattern=PatternType.PREFIXED),
            ],
            False,
        ),
        (
            [
                acl("or", Operation.WRITE, pattern=PatternType.PREFIXED),
                acl("orders", Operation.WRITE, Permission.DENY),
            ],
            True,
        ),
        ([acl("orders", Operation.WRITE, principal="User:*", host="10.0.0.0/8")], True),
        ([acl("orders", Operation.WRITE, kind=ResourceType.GROUP)], False),
    ],
)
def test_whether_there_is_any_topic_to_write_to(acls: list[Acl], may_write: bool) -> None:
    assert authorizer(*acls).decide_by_resource_type(ALICE, HOST, Operation.WRITE, TOPIC) == may_write


names = st.sampled_from(["*", "a", "ab", "abc", "abd", "b", "ba"])
acls = st.builds(
    Acl,
    st.sampled_from([TOPIC, ResourceType.GROUP]),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([ALICE, "User:bob", "User:*", "Group:alice"]),
    st.sampled_from(["*", HOST, "10.0.0.0/8", "192.168.0.1"]),
    st.sampled_from([operation for operation in Operation if operation > Operation.ANY]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
questions = st.tuples(
    st.sampled_from([ALICE, "User:bob", "User:*", "Group:alice"]),
    st.sampled_from([HOST, "192.168.0.1"]),
    st.sampled_from([operation for operation in Operation if operation > Operation.ALL]),
    st.sampled_from([TOPIC, ResourceType.GROUP]),
    st.sampled_from(["a", "ab", "abc", "abcd", "b", "c", "*"]),
)
Question = tuple[str, str, Operation, ResourceType, str]


def naive(rules: set[Acl], question: Question, *, allows: bool) -> bool:
    """The decision by looking at every rule."""
    principal, host, operation, kind, name = question
    of_resource = [
        rule
        for rule in rules
        if rule.resource_type == kind
        and (
            rule.resource_name == name
            or (rule.pattern_type == PatternType.LITERAL and rule.resource_name == "*")
            or (rule.pattern_type == PatternType.PREFIXED and name.startswith(rule.resource_name))
        )
    ]
    verdicts = set()
    for rule in of_resource:
        implied = rule.permission == Permission.ALLOW and rule.operation in IMPLIED_BY.get(operation, ())
        covers_operation = rule.operation in (operation, Operation.ALL) or implied
        covers_host = rule.host in ("*", host) or (rule.host == "10.0.0.0/8" and host.startswith("10."))
        if rule.principal in (principal, "User:*") and covers_host and covers_operation:
            verdicts.add(rule.permission)
    if Permission.DENY in verdicts:
        return False
    return Permission.ALLOW in verdicts or (not of_resource and allows)


@given(st.lists(acls, max_size=12), st.lists(st.integers(0, 11), max_size=6), questions, st.booleans())
def test_decisions_are_those_of_a_model(added: list[Acl], places: list[int], question: Question, allows: bool) -> None:
    removed = [added[place] for place in places if place < len(added)]
    standard_authorizer = authorizer(*added, allows=allows)
    for rule in removed:
        standard_authorizer.index.remove(rule)
    rules = set(added) - set(removed)
    assert len(standard_authorizer.index) == len(rules)
    assert standard_authorizer.decide(*question).is_allowed == naive(rules, question, allows=allows)


def test_a_prefix_stays_when_another_of_its_length_goes() -> None:
    first, second = (acl(name, pattern=PatternType.PREFIXED) for name in ("or", "pa"))
    standard_authorizer = authorizer(first, second)
    standard_authorizer.index.remove(second)
    assert may(standard_authorizer, Operation.READ, "orders")
    assert not may(standard_authorizer, Operation.READ, "payments")


@given(st.lists(acls, max_size=12))
def test_an_index_that_everything_was_removed_from_is_as_new(added: list[Acl]) -> None:
    index = AclIndex()
    for rule in added:
        index.add(rule)
    for rule in added:
        index.remove(rule)
    index._prefix_lengths = {kind: lengths for kind, lengths in index._prefix_lengths.items() if lengths}
    assert vars(index) == vars(AclIndex())
