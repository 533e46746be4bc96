"""DescribeConfigs: values, sources and synonyms as in Apache Kafka."""

from __future__ import annotations

from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from barnabas.wire.messages.records.metadata_records import ConfigRecord
from tests.support.controller.worlds import ControllerWorld, Settings

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32


def describe(
    world: ControllerWorld, kind: int, name: str, keys: list[str] | None = None, *, documentation: bool = False
) -> DescribeConfigsResult:
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)],
        include_synonyms=True,
        include_documentation=documentation,
    )
    (result,) = world.controller.describe_configs(request).results
    return result


def one(world: ControllerWorld, kind: int, name: str, key: str) -> DescribeConfigsResourceResult:
    (entry,) = describe(world, kind, name, [key]).configs
    return entry


def synonyms(entry: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms]


def configured(kind: int, name: str, **configs: str) -> list[ConfigRecord]:
    return [
        ConfigRecord(resource_type=kind, resource_name=name, name=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]


def test_a_topic_has_all_keys_with_their_defaults_as_synonyms() -> None:
    world = ControllerWorld()
    world.create("orders", segment_bytes="2000000")
    result = describe(world, TOPIC, "orders")
    assert (result.error_code, result.error_message, len(result.configs)) == (0, "", 37)
    entry = one(world, TOPIC, "orders", "segment.bytes")
    assert (entry.value, entry.config_source, entry.read_only, entry.config_type) == ("2000000", 1, False, 3)
    assert synonyms(entry) == [("segment.bytes", "2000000", 1), ("log.segment.bytes", "1073741824", 5)]


def test_a_broker_setting_is_a_synonym_of_the_topic_key() -> None:
    world = ControllerWorld(settings=Settings({"log.segment.bytes": "3000000"}, {"segment.bytes": "3000000"}))
    world.create("orders")
    entry = one(world, TOPIC, "orders", "segment.bytes")
    assert (entry.value, entry.config_source) == ("3000000", 4)
    assert synonyms(entry) == [("log.segment.bytes", "3000000", 4), ("log.segment.bytes", "1073741824", 5)]


def test_a_key_whose_own_synonym_is_unset_has_no_synonyms() -> None:
    """As `kafka-configs --describe --all` shows: retention.ms=604800000 synonyms={}."""
    world = ControllerWorld()
    world.create("orders")
    entry = one(world, TOPIC, "orders", "retention.ms")
    assert (entry.value, entry.config_source, synonyms(entry)) == ("604800000", 5, [])


def test_a_broker_has_all_its_keys() -> None:
    world = ControllerWorld(settings=Settings({"max.connections": "5", "ssl.key.password": "secret"}))
    entries = {entry.name: entry for entry in describe(world, BROKER, "1").configs}
    assert (entries["max.connections"].value, entries["max.connections"].config_source) == ("5", 4)
    assert synonyms(entries["max.connections"]) == [("max.connections", "5", 4), ("max.connections", "100", 5)]
    assert entries["num.partitions"].read_only
    assert not entries["max.connections"].read_only
    assert (entries["log.retention.ms"].value, synonyms(entries["log.retention.ms"])) == (None, [])
    assert synonyms(entries["log.retention.hours"]) == [("log.retention.hours", "168", 5)]


def test_passwords_are_never_returned() -> None:
    world = ControllerWorld(settings=Settings({"ssl.key.password": "secret"}))
    entry = one(world, BROKER, "1", "ssl.key.password")
    assert (entry.is_sensitive, entry.value, synonyms(entry)) == (True, None, [("ssl.key.password", None, 4)])
    assert "secret" not in repr(describe(world, BROKER, "1"))


def test_the_cluster_default_has_only_the_keys_set_on_it() -> None:
    world = ControllerWorld()
    assert describe(world, BROKER, "").configs == []
    world.apply(list(configured(BROKER, "", max_connections="6")))
    (entry,) = describe(world, BROKER, "").configs
    assert (entry.name, entry.value, entry.config_source) == ("max.connections", "6", 3)


def test_groups_and_subscriptions_without_configs_have_defaults() -> None:
    world = ControllerWorld()
    entry = one(world, GROUP, "g", "consumer.session.timeout.ms")
    assert (entry.value, entry.config_source) == ("45000", 5)
    world.apply(list(configured(GROUP, "g", consumer_session_timeout_ms="50000")))
    entry = one(world, GROUP, "g", "consumer.session.timeout.ms")
    assert (entry.value, entry.config_source) == ("50000", 8)
    entry = one(world, METRICS, "m", "interval.ms")
    assert (entry.config_source, synonyms(entry)) == (5, [])  # as in Kafka: a default of client metrics is no synonym


def test_documentation_and_synonyms_are_optional() -> None:
    world = ControllerWorld()
    world.create("orders")
    (entry,) = describe(world, TOPIC, "orders", ["segment.bytes"], documentation=True).configs
    assert entry.documentation == "Size at which a segment is rolled."
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=TOPIC, resource_name="orders", configuration_keys=None)]
    )
    (result,) = world.controller.describe_configs(request).results
    assert all(entry.documentation is None and entry.synonyms == [] for entry in result.configs)
    assert {entry.config_source for entry in result.configs} == {5}


def test_unknown_keys_are_left_out() -> None:
    world = ControllerWorld()
    world.create("orders")
    assert describe(world, TOPIC, "orders", ["no.such.key"]).configs == []
    assert describe(world, TOPIC, "orders", []).configs == []


def test_unknown_resources_are_refused() -> None:
    world = ControllerWorld()
    codes = {
        (TOPIC, "orders"): 3,
        (TOPIC, "a b"): 17,
        (BROKER, "2"): 42,
        (BROKER, "one"): 42,
        (GROUP, ""): 42,
        (METRICS, ""): 42,
        (1, "x"): 42,
    }
    assert {key: describe(world, *key).error_code for key in codes} == codes
