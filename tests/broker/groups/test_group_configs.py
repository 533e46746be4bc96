"""Configs of groups (resource type 32): validation, descriptions and effective values.

KIP-848, KIP-932, KIP-1071. Source of the sentences: Kafka 4.4 `GroupConfig.validate`.
"""

from __future__ import annotations

import logging

import pytest

from barnabas.broker.config.load import load
from barnabas.coord.groups.settings import AutoOffsetReset, GroupSettings
from barnabas.wire.configdef import ConfigError
from barnabas.wire.messages import configs as c
from tests.support.cases import for_each
from tests.support.memory.broker import Client, MemoryBroker

DEFAULTS = GroupSettings(streams_initial_rebalance_delay_ms=0)
"""Kafka's defaults, except for the ones that the dev profile changes."""

BROKER, GROUP = 4, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def change(
    client: Client, name: str, *changes: tuple[str, int, str | None], kind: int = GROUP, validate_only: bool = False
) -> tuple[int, str | None]:
    configs = [
        c.IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = c.IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = c.IncrementalAlterConfigsRequest(resources=[resource], validate_only=validate_only)
    (result,) = client.ask(request, 1, c.IncrementalAlterConfigsResponse).responses
    return result.error_code, result.error_message


def describe(client: Client, name: str) -> dict[str, c.DescribeConfigsResourceResult]:
    resource = c.DescribeConfigsResource(resource_type=GROUP, resource_name=name, configuration_keys=None)
    request = c.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = client.ask(request, 4, c.DescribeConfigsResponse).results
    assert result.error_code == 0
    return {entry.name: entry for entry in result.configs}


def test_a_group_without_configs_has_the_brokers_defaults(memory: MemoryBroker, client: Client) -> None:
    assert memory.broker.group_configs("g") == DEFAULTS
    assert {name.replace(".", "_") for name in describe(client, "g")} == set(GroupSettings._fields)


def test_a_config_takes_effect_and_is_described_with_its_synonyms(memory: MemoryBroker, client: Client) -> None:
    heard: list[str] = []
    memory.broker.group_configs.on_change.append(heard.append)
    assert memory.broker.group_configs("g").share_delivery_count_limit == 5
    changes = (
        ("share.delivery.count.limit", SET, "7"),
        ("share.auto.offset.reset", SET, "by_duration:PT1H"),
        ("consumer.session.timeout.ms", SET, "50000"),
    )
    assert change(client, "g", *changes) == (0, None)
    settings = memory.broker.group_configs("g")
    assert settings.share_delivery_count_limit == 7
    assert settings.share_auto_offset_reset == AutoOffsetReset("by_duration", 3_600_000)
    assert settings.consumer_session_timeout_ms == 50_000
    assert memory.broker.group_configs("other") == DEFAULTS
    assert heard == ["g"]
    entry = describe(client, "g")["share.delivery.count.limit"]
    assert (entry.value, entry.config_source, entry.read_only) == ("7", 8, False)
    assert [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms] == [
        ("share.delivery.count.limit", "7", 8),
        ("group.share.delivery.count.limit", "5", 5),
    ]
    assert change(client, "g", ("share.delivery.count.limit", DELETE, None)) == (0, None)
    assert memory.broker.group_configs("g").share_delivery_count_limit == 5
    listed = client.ask(c.ListConfigResourcesRequest(resource_types=[GROUP]), 1, c.ListConfigResourcesResponse)
    assert [(resource.resource_type, resource.resource_name) for resource in listed.config_resources] == [(GROUP, "g")]


def test_configs_of_groups_survive_a_restart(tmp_path) -> None:
    memory = MemoryBroker(tmp_path / "data")
    assert change(memory.client(), "g", ("streams.num.standby.replicas", SET, "1")) == (0, None)
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    assert again.broker.group_configs("g").streams_num_standby_replicas == 1
    again.close()


def test_validate_only_changes_nothing(memory: MemoryBroker, client: Client) -> None:
    assert change(client, "g", ("share.delivery.count.limit", SET, "7"), validate_only=True) == (0, None)
    assert memory.broker.group_configs("g") == DEFAULTS


NOT_ONE_OF = (
    "Invalid value none for configuration share.isolation.level: "
    "String must be one of: read_committed, read_uncommitted"
)
AT_LEAST = "{} must be greater than or equal to {}"
IN_RANGE = "{} must be in the range {} to {} inclusive."


@for_each(
    ("name", "value", "sentence"),
    [
        ("consumer.heartbeat.interval.ms", "4999", IN_RANGE.format("consumer.heartbeat.interval.ms", 5000, 15000)),
        ("consumer.session.timeout.ms", "60001", IN_RANGE.format("consumer.session.timeout.ms", 45000, 60000)),
        ("consumer.assignment.interval.ms", "15001", IN_RANGE.format("consumer.assignment.interval.ms", 0, 15000)),
        ("share.heartbeat.interval.ms", "15001", IN_RANGE.format("share.heartbeat.interval.ms", 5000, 15000)),
        ("share.session.timeout.ms", "44999", IN_RANGE.format("share.session.timeout.ms", 45000, 60000)),
        ("share.record.lock.duration.ms", "14999", IN_RANGE.format("share.record.lock.duration.ms", 15000, 60000)),
        ("share.delivery.count.limit", "11", IN_RANGE.format("share.delivery.count.limit", 2, 10)),
        ("share.partition.max.record.locks", "4001", IN_RANGE.format("share.partition.max.record.locks", 100, 4000)),
        ("share.assignment.interval.ms", "15001", IN_RANGE.format("share.assignment.interval.ms", 0, 15000)),
        ("streams.heartbeat.interval.ms", "1", IN_RANGE.format("streams.heartbeat.interval.ms", 5000, 15000)),
        ("streams.session.timeout.ms", "1", IN_RANGE.format("streams.session.timeout.ms", 45000, 60000)),
        ("streams.assignment.interval.ms", "15001", IN_RANGE.format("streams.assignment.interval.ms", 0, 15000)),
        ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to 2"),
        (
            "streams.assignor.name",
            "other",
            "streams.assignor.name 'other' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
        (
            "streams.rack.aware.assignment.tags",
            "a, b,a",
            "streams.rack.aware.assignment.tags must not contain duplicate tag keys.",
        ),
        (
            "errors.deadletterqueue.topic.name",
            "__dead",
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
        (
            "share.delivery.count.limit",
            "1",
            "Invalid value 1 for configuration share.delivery.count.limit: Value must be at least 2",
        ),
        (
            "share.isolation.level",
            "none",
            NOT_ONE_OF,
        ),
        (
            "share.session.timeout.ms",
            "long",
            "Invalid value long for configuration share.session.timeout.ms: Not a number of type INT",
        ),
        ("share.size", "5", "Unknown group config name: share.size"),
    ],
)
def test_invalid_group_configs_are_rejected_with_kafkas_message(
    memory: MemoryBroker, client: Client, name: str, value: str, sentence: str
) -> None:
    assert change(client, "g", (name, SET, value)) == (40, sentence)
    assert memory.broker.image.config(GROUP, "g") == {}


def test_an_invalid_offset_reset_is_rejected(client: Client) -> None:
    code, sentence = change(client, "g", ("share.auto.offset.reset", SET, "by_duration:-PT1S"))
    assert code == 40
    assert sentence is not None
    assert "must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'" in sentence


def test_the_session_timeout_must_exceed_the_heartbeat_interval(tmp_path) -> None:
    """A group uses the broker's value of a config that it does not set."""
    memory = MemoryBroker(
        tmp_path / "data",
        {"group.consumer.min.session.timeout.ms": "1000", "group.consumer.max.heartbeat.interval.ms": "50000"},
    )
    client = memory.client()
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    refused = (40, f"{session} must be greater than {heartbeat}")
    assert change(client, "g", (session, SET, "5000")) == refused
    assert change(client, "g", (heartbeat, SET, "45000")) == refused
    assert change(client, "g", (heartbeat, SET, "45000"), (session, SET, "45001")) == (0, None)
    assert change(client, "g", (session, DELETE, None)) == refused
    memory.close()


def test_a_value_outside_changed_limits_is_clamped(tmp_path, caplog) -> None:
    memory = MemoryBroker(tmp_path / "data")
    assert change(memory.client(), "g", ("share.delivery.count.limit", SET, "10")) == (0, None)
    memory.close()
    again = MemoryBroker(tmp_path / "data", {"group.share.max.delivery.count.limit": "8"})
    with caplog.at_level(logging.WARNING):
        assert again.broker.group_configs("g").share_delivery_count_limit == 8
    assert "share.delivery.count.limit=10 of group 'g' is outside the broker's limits: 8 is used" in caplog.text
    again.close()


def test_a_change_of_the_brokers_key_applies_to_every_group(memory: MemoryBroker, client: Client) -> None:
    assert change(client, "g", ("consumer.session.timeout.ms", SET, "50000")) == (0, None)
    assert memory.broker.group_configs("g").consumer_assignment_interval_ms == 1000
    assert memory.broker.group_configs("other").consumer_assignment_interval_ms == 1000
    assert change(client, "", ("group.consumer.assignment.interval.ms", SET, "2000"), kind=BROKER) == (0, None)
    assert memory.broker.group_configs("g").consumer_assignment_interval_ms == 2000
    assert memory.broker.group_configs("other").consumer_assignment_interval_ms == 2000


def test_tags_cannot_be_appended(memory: MemoryBroker, client: Client) -> None:
    """As in Kafka, which rejects appending to lists of groups."""
    name = "streams.rack.aware.assignment.tags"
    assert change(client, "g", (name, SET, "zone, cluster")) == (0, None)
    assert memory.broker.group_configs("g").streams_rack_aware_assignment_tags == ("zone", "cluster")
    for operation, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
        sentence = f"Can't {word} to key {name} because its type is not LIST."
        assert change(client, "g", (name, operation, "zone")) == (40, sentence)


@for_each(
    ("sets", "sentence"),
    [
        (
            {"group.share.max.delivery.count.limit": "5", "group.share.delivery.count.limit": "6"},
            "group.share.delivery.count.limit must be less than or equal to group.share.max.delivery.count.limit",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "4000"},
            AT_LEAST.format("group.consumer.heartbeat.interval.ms", "group.consumer.min.heartbeat.interval.ms"),
        ),
        (
            {"group.streams.max.session.timeout.ms": "44000"},
            AT_LEAST.format("group.streams.max.session.timeout.ms", "group.streams.min.session.timeout.ms"),
        ),
        (
            {"group.consumer.min.session.timeout.ms": "5000", "group.consumer.session.timeout.ms": "5000"},
            "group.consumer.heartbeat.interval.ms must be less than group.consumer.session.timeout.ms",
        ),
        (
            {"group.coordinator.rebalance.protocols": "consumer"},
            "Disabling the 'classic' protocol is not supported.",
        ),
    ],
)
def test_a_broker_does_not_start_with_limits_that_contradict_each_other(sets: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(sets, {}, None)
    assert str(refused.value) == sentence
