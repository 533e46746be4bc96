"""`barnabas topic` and `barnabas config` against a broker."""

from __future__ import annotations


def test_created_topic_is_listed_described_and_deleted(call, topic) -> None:
    created = call("topic", "create", topic, "-p", "3", "-c", "retention.ms=60000").ok()
    assert created.stdout == f"created topic {topic} with 3 partitions\n"

    rows = {row["topic"]: row for row in call("topic", "list", "-o", "json").ok().json}
    assert rows[topic]["partitions"] == 3
    assert rows[topic]["replicas"] == 1

    (described,) = call("topic", "describe", topic, "-o", "json").ok().json
    assert described["topic_id"] == rows[topic]["topic_id"]
    assert [partition["partition"] for partition in described["partitions"]] == [0, 1, 2]
    assert {(part["start_offset"], part["end_offset"]) for part in described["partitions"]} == {(0, 0)}

    refused = call("topic", "delete", topic)
    assert (refused.code, f"this deletes all records of topic {topic};" in refused.stderr) == (2, True)
    assert call("topic", "delete", "-y", topic).ok().stdout == f"deleted topic {topic}\n"
    assert topic not in {row["topic"] for row in call("topic", "list", "-o", "json").ok().json}


def test_table_is_plain_and_aligned_off_a_terminal(call, topic) -> None:
    call("topic", "create", topic, "-p", "12").ok()
    lines = call("topic", "list").ok().lines
    assert lines[0].split() == ["TOPIC", "PARTITIONS", "REPLICAS"]
    (line,) = [line for line in lines if line.split()[0] == topic]
    assert line.split() == [topic, "12", "1"]
    assert line.index(" 12 ") + 3 == lines[0].index("PARTITIONS") + len("PARTITIONS")


def test_several_topics_at_once(call, topic_name) -> None:
    names = [topic_name("a"), topic_name("b")]
    call("topic", "create", *names).ok()
    assert [described["topic"] for described in call("topic", "describe", *names, "-o", "json").ok().json] == names
    assert call("topic", "delete", "-y", *names).ok().lines == [f"deleted topic {name}" for name in names]


def test_topic_that_exists_is_an_error_unless_that_is_fine(call, topic) -> None:
    call("topic", "create", topic).ok()
    again = call("topic", "create", topic)
    assert again.code == 1
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    assert call("topic", "create", topic, "--if-not-exists").ok().stderr == f"topic {topic} exists\n"


def test_missing_topic_is_exit_code_3(call, topic) -> None:
    for arguments in (
        ("topic", "describe", topic),
        ("topic", "delete", "-y", topic),
        ("consume", topic, "-e"),
        ("config", "get", "topic", topic),
        ("config", "set", "topic", topic, "retention.ms=1"),
    ):
        ran = call(*arguments)
        assert ran.code == 3
        assert ran.stderr.startswith(f"barnabas: there is no topic '{topic}'")


def test_broker_refuses_an_invalid_name_or_key(call, topic) -> None:
    assert call("topic", "create", "not/allowed").code == 1
    ran = call("topic", "create", topic, "-c", "retntion.ms=1")
    assert ran.code == 1
    assert "retntion.ms" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_internal_topics_are_listed_on_demand(call, topic) -> None:
    call("topic", "create", topic).ok()
    call("group", "seek", f"group-of-{topic}", "--to", "earliest", "-t", topic).ok()
    assert "__consumer_offsets" not in call("topic", "list").ok().stdout
    assert "__consumer_offsets" in call("topic", "list", "--internal").ok().stdout


def _configs(call, topic: str, *options: str) -> dict[str, str]:
    return {row["key"]: row["value"] for row in call("config", "get", "topic", topic, *options, "-o", "json").ok().json}


def test_config_is_set_shown_and_taken_back(call, topic) -> None:
    call("topic", "create", topic).ok()
    changed = call("config", "set", "topic", topic, "retention.ms=1000", "cleanup.policy=compact").ok()
    assert changed.lines == [f"topic {topic}: retention.ms=1000", f"topic {topic}: cleanup.policy=compact"]
    shown = _configs(call, topic)
    assert shown["retention.ms"] == "1000"
    assert shown["cleanup.policy"] == "compact"
    assert "segment.ms" not in shown
    assert _configs(call, topic, "--all")["segment.ms"] == "604800000"
    assert _configs(call, topic, "segment.ms") == {"segment.ms": "604800000"}

    call("config", "set", "topic", topic, "retention.ms=").ok()
    assert "retention.ms" not in _configs(call, topic)


def test_unknown_config_key_is_an_error(call, topic) -> None:
    call("topic", "create", topic).ok()
    missing = call("config", "get", "topic", topic, "no.such.key")
    assert (missing.code, missing.stderr) == (3, f"barnabas: topic '{topic}' has no key no.such.key\n")
    assert call("config", "set", "topic", topic, "no.such.key=1").code == 1
    assert call("config", "set", "topic", topic, "retention.ms=soon").code == 1


def test_broker_config_says_where_a_value_comes_from(call) -> None:
    rows = {row["key"]: row for row in call("config", "get", "broker", "1", "--all", "-o", "json").ok().json}
    assert rows["log.dirs"]["source"] == "static broker"
    assert rows["num.io.threads"]["value"] == "8"


def test_api_versions_shows_names_and_ranges(call) -> None:
    rows = {row["api"]: row for row in call("api-versions", "-o", "json").ok().json}
    assert rows["Produce"] == {"key": 0, "api": "Produce", "min_version": 0, "max_version": 13}
    assert rows["ApiVersions"]["key"] == 18
    assert call("api-versions").ok().lines[0].split() == ["KEY", "API", "MIN-VERSION", "MAX-VERSION"]


def test_health_of_a_ready_broker(call) -> None:
    assert call("health").ok().stdout.startswith("ready: cluster ")
    assert call("health", "-q").ok().stdout == ""


def test_a_wide_list_has_records_and_bytes(call, topic) -> None:
    call("topic", "create", topic, "-p", "2").ok()
    call("produce", topic, "-p", "1", stdin="x\n" * 3).ok()
    (row,) = call("topic", "list", topic, "-o", "json").ok().json
    assert (row["records"], row["bytes"] > 0) == (3, True)
    title, cells = call("topic", "list", topic, "-o", "wide").ok().lines
    assert title.split()[-2:] == ["RECORDS", "BYTES"]
    assert cells.split()[-2:] == ["3", str(row["bytes"])]
