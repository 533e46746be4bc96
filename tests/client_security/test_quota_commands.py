"""`barnabas quota` with each kind of entity."""

from __future__ import annotations

import pytest


def listed(admin, *options: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in admin("quota", "list", *options, "-o", "json").ok().json]


def test_quotas_are_set_listed_and_removed(admin) -> None:
    alice = ("--user", "quota-alice")
    done = admin("quota", "set", *alice, "producer_byte_rate=1048576", "request_percentage=12.5").ok()
    assert done.lines == [
        "user quota-alice: producer_byte_rate=1048576",
        "user quota-alice: request_percentage=12.5",
    ]
    admin("quota", "set", *alice, "--client", "loader", "consumer_byte_rate=1024").ok()
    admin("quota", "set", *alice, "--default", "client", "consumer_byte_rate=2048").ok()
    assert listed(admin, *alice, "--strict") == [
        ("quota-alice", None, None, "producer_byte_rate", 1048576),
        ("quota-alice", None, None, "request_percentage", 12.5),
    ]
    assert set(listed(admin, *alice)) == {
        ("quota-alice", None, None, "producer_byte_rate", 1048576),
        ("quota-alice", None, None, "request_percentage", 12.5),
        ("quota-alice", "loader", None, "consumer_byte_rate", 1024),
        ("quota-alice", "<default>", None, "consumer_byte_rate", 2048),
    }
    admin("quota", "remove", *alice, "producer_byte_rate", "-y").ok()
    assert [row[3] for row in listed(admin, *alice, "--strict")] == ["request_percentage"]
    assert admin("quota", "remove", *alice, "-y").ok().stdout == "user quota-alice: removed request_percentage\n"
    gone = admin("quota", "remove", *alice)
    assert (gone.code, "user quota-alice has no quotas" in gone.stderr) == (3, True)
    for entity in (("--client", "loader"), ("--default", "client")):
        admin("quota", "remove", *alice, *entity, "-y").ok()
    assert listed(admin, *alice) == []


def test_addresses_and_defaults(admin) -> None:
    admin("quota", "set", "--ip", "10.0.0.9", "connection_creation_rate=5").ok()
    admin("quota", "set", "--default", "ip", "connection_creation_rate=50").ok()
    assert set(listed(admin, "--ip", "10.0.0.9")) == {(None, None, "10.0.0.9", "connection_creation_rate", 5)}
    assert listed(admin, "--default", "ip") == [(None, None, "<default>", "connection_creation_rate", 50)]
    admin("quota", "remove", "--ip", "10.0.0.9", "-y").ok()
    admin("quota", "remove", "--default", "ip", "-y").ok()


def test_a_dry_run_sets_nothing_and_the_broker_checks(admin) -> None:
    would = admin("quota", "set", "--user", "dry", "consumer_byte_rate=1", "--dry-run").ok()
    assert would.stdout == "user dry: consumer_byte_rate=1 would be set\n"
    assert listed(admin, "--user", "dry") == []
    refused = admin("quota", "set", "--user", "dry", "connection_creation_rate=1")
    assert (refused.code, "quotas of user dry: INVALID_REQUEST" in refused.stderr) == (1, True), refused.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("set", "consumer_byte_rate=1"), "name an entity"),
        (("set", "--user", "a", "consumer_byte_rat=1"), "did you mean consumer_byte_rate?"),
        (("set", "--user", "a", "consumer_byte_rate=0"), "must be a number above 0"),
        (("set", "--user", "a", "--default", "user", "consumer_byte_rate=1"), "exclude each other"),
        (("set", "--user", "a", "--ip", "1.1.1.1", "consumer_byte_rate=1"), "quotas of its own"),
        (("remove", "consumer_byte_rate"), "name an entity"),
    ],
)
def test_mistakes(admin, arguments: tuple[str, ...], words: str) -> None:
    ran = admin("quota", *arguments)
    assert (ran.code, words in ran.stderr) == (2, True), ran.stderr
