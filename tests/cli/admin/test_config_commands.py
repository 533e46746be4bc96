"""`barnabas config` of topics, brokers, all brokers, groups and client metrics subscriptions."""

from __future__ import annotations

import pytest


def _values(call, *arguments: str) -> dict[str, str]:
    """The configs that are set; Kafka's first start sets min.insync.replicas for all brokers."""
    rows = call("config", "get", *arguments, "-o", "json").ok().json
    return {row["key"]: row["value"] for row in rows if row["key"] != "min.insync.replicas"}


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        ("topic", "retention.ms", "5000"),
        ("group", "share.session.timeout.ms", "46000"),
        ("client-metrics", "interval.ms", "6000"),
    ],
)
def test_a_key_is_set_listed_and_reset(call, topic, kind: str, key: str, value: str) -> None:
    if kind == "topic":
        call("topic", "create", topic).ok()
    assert call("config", "set", kind, topic, f"{key}={value}").ok().stdout == f"{kind} {topic}: {key}={value}\n"
    assert _values(call, kind, topic) == {key: value}
    listed = call("config", "list", kind, "-o", "json").ok().json
    assert {"kind": kind, "name": topic} in listed
    assert {row["kind"] for row in listed} == {kind}
    assert call("config", "unset", kind, topic, key).ok().stdout == f"{kind} {topic}: {key} is reset to its default\n"
    assert _values(call, kind, topic) == {}


def test_defaults_of_all_brokers(call) -> None:
    try:
        call("config", "set", "broker", "default", "log.cleaner.threads=2").ok()
        assert _values(call, "broker", "default") == {"log.cleaner.threads": "2"}
        (row,) = call("config", "get", "broker", "1", "log.cleaner.threads", "-o", "json").ok().json
        assert (row["value"], row["source"]) == ("2", "dynamic default broker")
        assert {"kind": "broker", "name": "1"} in call("config", "list", "broker", "-o", "json").ok().json
    finally:
        call("config", "unset", "broker", "default", "log.cleaner.threads").ok()
    assert _values(call, "broker", "default") == {}


def test_lists_are_extended_and_shortened(call, topic) -> None:
    call("topic", "create", topic).ok()
    call("config", "append", "topic", topic, "cleanup.policy=compact").ok()
    assert _values(call, "topic", topic) == {"cleanup.policy": "delete,compact"}
    dry = call("config", "subtract", "topic", topic, "cleanup.policy=delete", "--dry-run").ok()
    assert dry.stderr == "dry run: nothing was changed\n"
    call("config", "subtract", "topic", topic, "cleanup.policy=delete").ok()
    assert _values(call, "topic", topic) == {"cleanup.policy": "compact"}


def test_nothing_is_set(call, topic) -> None:
    ran = call("config", "get", "group", topic).ok()
    assert (ran.stdout, ran.stderr) == ("", "every key has its default value (--all shows them)\n")


def test_a_key_without_effect_says_so(call, against, topic) -> None:
    if against == "kafka":
        pytest.skip("Kafka acts on its keys")
    call("topic", "create", topic).ok()
    changed = call("config", "set", "topic", topic, "preallocate=true").ok()
    note = "the broker does not act on preallocate"
    assert changed.stderr == f"{note}, only keeps the value\n"
    shown = call("config", "get", "topic", topic).ok()
    assert shown.stderr == f"{note}, which is only kept\n"
    rows = call("config", "get", "topic", topic, "--all", "-o", "json").ok()
    acted_on = {row["key"]: row["acted_on"] for row in rows.json}
    assert (acted_on["retention.ms"], acted_on["preallocate"]) == (True, False)
    assert "of these keys" in rows.stderr
    assert call("config", "get", "topic", topic, "retention.ms").ok().stderr == ""


def test_mistakes(call, against, topic) -> None:
    call("topic", "create", topic).ok()
    similar = call("config", "get", "topic", topic, "retntion.ms")
    assert (similar.code, similar.stderr) == (
        3,
        f"barnabas: topic '{topic}' has no key retntion.ms; did you mean retention.ms?\n",
    )
    for kind, name, key, meant in (
        ("topic", topic, "retntion.ms=1", "retention.ms"),
        ("broker", "default", "log.cleaner.thread=1", "log.cleaner.threads"),
        ("broker", "1", "log.cleaner.thread=1", "log.cleaner.threads"),
    ):
        if kind == "broker" and against == "kafka":
            continue  # it keeps any key of a broker
        ran = call("config", "set", kind, name, key)
        assert (ran.code, ran.stderr.endswith(f"did you mean {meant}?\n")) == (1, True), ran.stderr
    assert call("config", "get", "broker", "one").code == 2
    assert call("config", "get", "broker", "7").code == 1
    assert call("config", "get", "user", "x").code == 2
    assert call("config", "unset", "topic", topic, "retention.ms=1").code == 2
    assert call("config", "set", "topic", f"{topic}-x", "retention.ms=1").code == 3
