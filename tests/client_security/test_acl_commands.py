"""`barnabas acl`: what it adds is what the broker enforces, and `acl test` decides as the broker does."""

from __future__ import annotations

import pytest

from tests.support.processes.commands import Ran, run_command


@pytest.fixture
def alice(secured, config_file):
    """`alice("topic", "list")` as the user alice, which is no super user."""
    more = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": "alice-secret"}
    file = config_file(secured.properties("SASL_SSL", **more))

    def run(*arguments: str, stdin: str = "") -> Ran:
        options = ("-b", secured.address("SASL_SSL"), "--command-config", file, "--timeout", "10")
        return run_command(*arguments, *options, stdin=stdin)

    return run


def test_an_acl_is_added_enforced_listed_and_removed(admin, alice, topic: str) -> None:
    admin("topic", "create", topic).ok()
    assert alice("produce", topic, stdin="a\n").code != 0
    resource = ("topic", topic, "--user", "alice")
    assert admin("acl", "test", *resource, "--operation", "write").code == 1
    added = admin("acl", "add", *resource, "--operation", "write", "--operation", "IDEMPOTENT_WRITE")
    assert (added.code, "there is no operation idempotent-write on a topic" in added.stderr) == (2, True)
    added = admin("acl", "add", *resource, "--operation", "write").ok()
    assert added.stdout == f"User:alice may write topic {topic}\n"
    alice("produce", topic, stdin="a\n").ok()

    (row,) = admin("acl", "list", *resource, "-o", "json").ok().json
    assert row == {
        "kind": "topic",
        "name": topic,
        "pattern": "literal",
        "principal": "User:alice",
        "host": "*",
        "operation": "write",
        "permission": "allow",
    }
    would = admin("acl", "remove", *resource, "--dry-run").ok()
    assert would.stdout == f"would be removed: User:alice may write topic {topic}\n"
    removed = admin("acl", "remove", *resource, "--operation", "write", "-y").ok()
    assert removed.stdout == f"removed: User:alice may write topic {topic}\n"
    assert admin("acl", "list", *resource, "-o", "json").ok().json == []
    assert "nothing was removed" in admin("acl", "remove", *resource).ok().stderr


def test_the_decision_is_that_of_the_broker(admin, secured, alice, topic_name) -> None:
    """One question for each kind of rule: asked of `acl test`, and tried."""
    name = topic_name("decided")
    admin("topic", "create", name).ok()
    who = ("--user", "alice")

    def decides() -> tuple[str, str]:
        ran = admin("acl", "test", "topic", name, *who, "--operation", "write", "-o", "json")
        response = ran.json
        tried = alice("produce", name, stdin="x\n")
        assert (response["result"] == "allowed") == (tried.code == 0) == (ran.code == 0), (response, tried.stderr)
        return response["because"], response["acl"]

    assert decides() == ("the resource has no ACL", None)
    admin("acl", "add", "topic", name, "--user", "bob", "--operation", "write").ok()
    assert decides()[0] == "the resource has ACLs, but none of them is about this"
    admin("acl", "add", "topic", name[:7], "--prefixed", *who, "--operation", "all").ok()
    assert decides()[1] == f"User:alice may all topics that begin with {name[:7]}"
    admin("acl", "add", "topic", "*", "--user", "*", "--operation", "write", "--deny", "--host", "10.1.2.3").ok()
    assert decides()[1] == f"User:alice may all topics that begin with {name[:7]}"
    admin("acl", "add", "topic", "*", *who, "--operation", "write", "--deny").ok()
    assert decides()[1] == "User:alice may not write topic *"
    admin("acl", "remove", "topic", "*", "--operation", "write", "-y").ok()
    admin("acl", "remove", "topic", name[:7], "-y").ok()
    super_user = admin("acl", "test", "topic", name, "--user", "admin", "--operation", "write", "-o", "json")
    if secured.kind == "kafka":
        assert "the broker does not return super.users" in super_user.stderr
    else:
        assert super_user.json["because"] == "User:admin is a super user"


def test_match_finds_what_concerns_a_name(admin, topic_name) -> None:
    name = topic_name("matched")
    admin("acl", "add", "topic", name, "--user", "m", "--operation", "read").ok()
    admin("acl", "add", "topic", "matche", "--prefixed", "--principal", "Role:m", "--operation", "read").ok()
    admin("acl", "add", "cluster", "--user", "m", "--operation", "create").ok()
    listed = admin("acl", "list", "topic", name, "--pattern", "match", "-o", "json").ok().json
    assert {row["principal"] for row in listed} >= {"User:m", "Role:m"}
    exact = admin("acl", "list", "topic", name, "-o", "json").ok().json
    assert [row["principal"] for row in exact] == ["User:m"]
    of_cluster = admin("acl", "list", "cluster", "--user", "m", "-o", "json").ok().json
    assert [row["name"] for row in of_cluster] == ["kafka-cluster"]
    assert len(admin("acl", "remove", "--user", "m", "--principal", "Role:m", "-y").ok().lines) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("remove",), "all ACLs are not removed at once"),
        (("add", "topic", "--user", "a", "--operation", "read"), "name the topic"),
        (("add", "topic", "t", "--operation", "read"), "name a --user"),
        (("add", "cluster", "c", "--user", "a", "--operation", "create"), "no name but kafka-cluster"),
        (("add", "topic", "t", "--principal", "alice", "--operation", "read"), "must be TYPE:NAME"),
        (("test", "group", "g", "--user", "a", "--operation", "write"), "no operation write on a group"),
        (("test", "topic", "t", "--user", "a", "--user", "b", "--operation", "write"), "name one --user"),
    ],
)
def test_mistakes(admin, arguments: tuple[str, ...], words: str) -> None:
    ran = admin("acl", *arguments)
    assert (ran.code, words in ran.stderr) == (2, True), ran.stderr
