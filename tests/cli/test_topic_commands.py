"""`barnabas topic` and `barnabas config` against a broker."""

from __future__ import annotations


def test_created_topic_is_listed_described_and_deleted(run, topic) -> None:
    created = run("topic", "create", topic, "-p", "3", "-c", "retention.ms=60000").ok()
    assert created.stdout == f"created topic {topic} with 3 partitions\n"

    rows = {row["topic"]: row for row in run("topic", "list", "-o", "json").ok().json}
    assert rows[topic]["partitions"] == 3
    assert rows[topic]["replicas"] == 1

    (described,) = run("topic", "describe", topic, "-o", "json").ok().json
    assert described["topic_id"] == rows[topic]["topic_id"]
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert {(part["start_offset"], part["end_offset"]) for part in described["partitions"]} == {(0, 0)}

    assert run("topic", "delete", topic).ok().stdout == f"deleted topic {topic}\n"
    assert topic not in {row["topic"] for row in run("topic", "list", "-o", "json").ok().json}


def test_table_is_plain_and_aligned_off_a_terminal(run, topic) -> None:
    run("topic", "create", topic, "-p", "12").ok()
    lines = run("topic", "list").ok().lines
    assert lines[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS"]
    (line,) = [line for line in lines if line.split()[0] == topic]
    assert line.split() == [topic, "12", "1"]
    assert line.index(" 12 ") + 3 == lines[0].index("PARTITIONS") + len("PARTITIONS")


def test_several_topics_at_once(run, topic_name) -> None:
    names = [topic_name("a"), topic_name("b")]
    run("topic", "create", *names).ok()
    assert [one["topic"] for one in run("topic", "describe", *names, "-o", "json").ok().json] == names
    assert run("topic", "delete", *names).ok().lines == [f"deleted topic {name}" for name in names]


def test_topic_that_exists_is_an_error_unless_that_is_fine(run, topic) -> None:
    run("topic", "create", topic).ok()
    again = run("topic", "create", topic)
    assert again.code == 1
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert run("topic", "create", topic, "--if-not-exists").ok().stderr == f"topic {topic} exists\n"


def test_missing_topic_is_exit_code_3(run, topic) -> None:
    for arguments in (
        ("topic", "describe", topic),
        ("topic", "delete", topic),
        ("consume", topic, "-e"),
        ("config", "get", "topic", topic),
        ("config", "set", "topic", topic, "retention.ms=1"),
    ):
        ran = run(*arguments)
        assert (ran.code, ran.stderr) == (3, f"barnabas: there is no topic '{topic}'\n")


def test_broker_refuses_an_invalid_name_or_key(run, topic) -> None:
    assert run("topic", "create", "not/allowed").code == 1
    ran = run("topic", "create", topic, "-c", "retntion.ms=1")
    assert ran.code == 1
    assert "retntion.ms" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_internal_topics_are_listed_on_demand(run, topic) -> None:
    run("topic", "create", topic).ok()
    run("group", "seek", f"group-of-{topic}", "--to", "earliest", "-t", topic).ok()
    assert "__consumer_offsets" not in run("topic", "list").ok().stdout
    assert "__consumer_offsets" in run("topic", "list", "--internal").ok().stdout


def _configs(run, topic: str, *options: str) -> dict[str, str]:
    return {row["key"]: row["value"] for row in run("config", "get", "topic", topic, *options, "-o", "json").ok().json}


def test_config_is_set_shown_and_taken_back(run, topic) -> None:
    run("topic", "create", topic).ok()
    changed = run("config", "set", "topic", topic, "retention.ms=1000", "cleanup.policy=compact").ok()
    assert changed.lines == [f"topic {topic}: retention.ms=1000", f"topic {topic}: cleanup.policy=compact"]
    shown = _configs(run, topic)
    assert shown["retention.ms"] == "1000"
    assert shown["cleanup.policy"] == "compact"
    assert "segment.ms" not in shown
    assert _configs(run, topic, "--all")["segment.ms"] == "604800000"
    assert _configs(run, topic, "segment.ms") == {"segment.ms": "604800000"}

    run("config", "set", "topic", topic, "retention.ms=").ok()
    assert "retention.ms" not in _configs(run, topic)


def test_unknown_config_key_is_an_error(run, topic) -> None:
    run("topic", "create", topic).ok()
    missing = run("config", "get", "topic", topic, "no.such.key")
    assert (missing.code, missing.stderr) == (3, f"barnabas: topic '{topic}' has no key no.such.key\n")
    assert run("config", "set", "topic", topic, "no.such.key=1").code == 1
    assert run("config", "set", "topic", topic, "retention.ms=soon").code == 1


def test_broker_config_says_where_a_value_comes_from(run) -> None:
    rows = {row["key"]: row for row in run("config", "get", "broker", "1", "--all", "-o", "json").ok().json}
    assert rows["log.dirs"]["source"] == "static broker"
    assert rows["num.io.threads"]["value"] == "8"


def test_api_versions_shows_names_and_ranges(run) -> None:
    rows = {row["api"]: row for row in run("api-versions", "-o", "json").ok().json}
    assert rows["Produce"] == {"key": 0, "api": "Produce", "min_version": 0, "max_version": 13}
    assert rows["ApiVersions"]["key"] == 18
    assert run("api-versions").ok().lines[0].split() == ["KEY", "API", "MIN-VERSION", "MAX-VERSION"]


def test_health_of_a_ready_broker(run) -> None:
    assert run("health").ok().stdout.startswith("ready: cluster ")
    assert run("health", "-q").ok().stdout == ""
