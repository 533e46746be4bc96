"""AlterConfigs, IncrementalAlterConfigs, ListConfigResources: validation, and resources changed atomically."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    ListConfigResourcesRequest,
)
from tests.support.cases import for_each
from tests.support.controller.worlds import ControllerWorld, Settings

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


@pytest.fixture
def world() -> ControllerWorld:
    world = ControllerWorld()
    world.create("orders")
    return world


def resource(
    kind: int, name: str, *changes: tuple[str, int, str | None]
) -> IncrementalAlterConfigsRequestAlterConfigsResource:
    return IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in changes
        ],
    )


def change(
    world: ControllerWorld, *resources: IncrementalAlterConfigsRequestAlterConfigsResource, **flags: bool
) -> list[tuple[int, str | None]]:
    request = IncrementalAlterConfigsRequest(resources=list(resources), **flags)
    response = world.commit(world.controller.incremental_alter_configs(request))
    return [(result.error_code, result.error_message) for result in response.responses]


def replace(world: ControllerWorld, kind: int, name: str, configs: dict[str, str | None]) -> tuple[int, str | None]:
    request = AlterConfigsRequest(
        resources=[
            AlterConfigsRequestAlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=[AlterConfigsRequestAlterableConfig(name=key, value=value) for key, value in configs.items()],
            )
        ]
    )
    (result,) = world.commit(world.controller.alter_configs(request)).responses
    return result.error_code, result.error_message


def test_single_keys_are_set_and_deleted(world: ControllerWorld) -> None:
    """KIP-339."""
    assert change(world, resource(TOPIC, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "6"))) == [(0, None)]
    assert world.image.config(TOPIC, "orders") == {"retention.ms": "5", "segment.ms": "6"}
    assert change(world, resource(TOPIC, "orders", ("retention.ms", DELETE, None))) == [(0, None)]
    assert world.image.config(TOPIC, "orders") == {"segment.ms": "6"}
    assert change(world, resource(TOPIC, "orders", ("segment.ms", DELETE, None))) == [(0, None)]
    assert world.image.configs == {}


def test_append_and_subtract_change_lists() -> None:
    world = ControllerWorld(settings=Settings(topics={"cleanup.policy": "delete"}))
    world.create("orders")
    change(world, resource(TOPIC, "orders", ("cleanup.policy", APPEND, "compact")))
    assert world.image.config(TOPIC, "orders") == {"cleanup.policy": "delete,compact"}
    change(world, resource(TOPIC, "orders", ("cleanup.policy", APPEND, "compact")))
    assert world.image.config(TOPIC, "orders") == {"cleanup.policy": "delete,compact"}
    change(world, resource(TOPIC, "orders", ("cleanup.policy", SUBTRACT, "delete")))
    assert world.image.config(TOPIC, "orders") == {"cleanup.policy": "compact"}


def test_only_lists_can_be_appended_to(world: ControllerWorld) -> None:
    assert change(world, resource(TOPIC, "orders", ("retention.ms", APPEND, "5"))) == [
        (40, "Can't APPEND to key retention.ms because its type is not LIST.")
    ]


def test_one_invalid_key_refuses_its_resource_only(world: ControllerWorld) -> None:
    world.create("other")
    results = change(
        world,
        resource(TOPIC, "orders", ("retention.ms", SET, "5"), ("segment.ms", SET, "never")),
        resource(TOPIC, "other", ("retention.ms", SET, "7")),
    )
    assert [code for code, _ in results] == [40, 0]
    assert world.image.config(TOPIC, "orders") == {}
    assert world.image.config(TOPIC, "other") == {"retention.ms": "7"}


def test_validate_only_changes_nothing(world: ControllerWorld) -> None:
    assert change(world, resource(TOPIC, "orders", ("retention.ms", SET, "5")), validate_only=True) == [(0, None)]
    assert world.image.configs == {}


def test_unchanged_values_write_no_records(world: ControllerWorld) -> None:
    change(world, resource(TOPIC, "orders", ("retention.ms", SET, "5")))
    request = IncrementalAlterConfigsRequest(resources=[resource(TOPIC, "orders", ("retention.ms", SET, "5"))])
    assert world.controller.incremental_alter_configs(request).records == []


@for_each(
    ("requested", "code"),
    [
        (resource(TOPIC, "other", ("retention.ms", SET, "5")), 3),
        (resource(TOPIC, "", ("retention.ms", SET, "5")), 42),
        (resource(TOPIC, "other", ("no.such.key", SET, "5")), 40),
        (resource(TOPIC, "orders", ("no.such.key", SET, "5")), 40),
        (resource(TOPIC, "orders", ("retention.ms", SET, None)), 42),
        (resource(TOPIC, "orders", ("retention.ms", 9, "5")), 42),
        (resource(TOPIC, "orders", ("retention.ms", SET, "5"), ("retention.ms", SET, "6")), 42),
        (resource(BROKER, "2", ("max.connections", SET, "5")), 42),
        (resource(BROKER, "one", ("max.connections", SET, "5")), 42),
        (resource(BROKER, "1", ("num.partitions", SET, "5")), 42),
        (resource(BROKER, "", ("listeners", SET, "B://:2")), 42),
        (resource(BROKER, "1", ("max.connections", SET, "-1")), 42),
        (resource(BROKER, "1", ("no.such.key", SET, "-1")), 40),
        (resource(GROUP, "", ("consumer.session.timeout.ms", SET, "5")), 42),
        (resource(GROUP, "g", ("no.such.key", SET, "5")), 40),
        (resource(METRICS, "", ("interval.ms", SET, "5")), 42),
        (resource(1, "x", ("interval.ms", SET, "5")), 42),
    ],
)
def test_invalid_changes_are_refused(
    world: ControllerWorld, requested: IncrementalAlterConfigsRequestAlterConfigsResource, code: int
) -> None:
    ((error, message),) = change(world, requested)
    assert error == code
    assert message
    assert world.image.configs == {}


def test_the_broker_is_checked_before_the_keys_and_what_is_deleted_need_not_exist(world: ControllerWorld) -> None:
    expected = "Unexpected broker id, expected 1, but received 2"
    assert change(world, resource(BROKER, "2", ("max.connections", APPEND, "5"))) == [(42, expected)]
    expected = "Node id must be an integer, but it is: x"
    assert change(world, resource(BROKER, "x", ("no.such.key", SET, "5"))) == [(42, expected)]
    assert change(world, resource(BROKER, "1", ("no.such.key", DELETE, None))) == [(0, None)]


def test_read_only_broker_keys_give_kafkas_message(world: ControllerWorld) -> None:
    fixed = resource(BROKER, "1", ("num.partitions", SET, "5"), ("log.retention.hours", SET, "6"))
    assert change(world, fixed) == [
        (42, "Cannot update these configs dynamically: [log.retention.hours, num.partitions]")
    ]


def test_brokers_groups_and_subscriptions_have_configs(world: ControllerWorld) -> None:
    """KIP-226, KIP-848, KIP-714."""
    results = change(
        world,
        resource(BROKER, "1", ("listeners", SET, "B://:2")),
        resource(BROKER, "", ("max.connections", SET, "5")),
        resource(GROUP, "g", ("consumer.session.timeout.ms", SET, "5")),
        resource(METRICS, "m", ("interval.ms", SET, "500")),
    )
    assert results == [(0, None)] * 4
    assert set(world.image.configs) == {(BROKER, "1"), (BROKER, ""), (GROUP, "g"), (METRICS, "m")}


def test_a_resource_named_twice_is_refused(world: ControllerWorld) -> None:
    requested = resource(TOPIC, "orders", ("retention.ms", SET, "5"))
    assert change(world, requested, requested) == [(42, "Each resource must appear at most once.")] * 2


def test_alter_configs_replaces_all_configs(world: ControllerWorld) -> None:
    """KIP-133: keys that are not in the request are reset to their default."""
    assert replace(world, TOPIC, "orders", {"retention.ms": "5", "segment.ms": "6"}) == (0, None)
    assert replace(world, TOPIC, "orders", {"segment.ms": "7"}) == (0, None)
    assert world.image.config(TOPIC, "orders") == {"segment.ms": "7"}
    assert replace(world, TOPIC, "orders", {}) == (0, None)
    assert world.image.configs == {}
    refused = replace(world, TOPIC, "orders", {"segment.ms": None})
    assert refused == (42, "Null value not supported for : segment.ms")


def test_resources_with_configs_are_listed(world: ControllerWorld) -> None:
    """KIP-1142."""
    change(
        world,
        resource(GROUP, "g", ("consumer.session.timeout.ms", SET, "5")),
        resource(METRICS, "m", ("interval.ms", SET, "500")),
    )

    def listed(types: list[int], version: int = 1) -> tuple[int, set[tuple[int, str]]]:
        response = world.controller.list_config_resources(ListConfigResourcesRequest(resource_types=types), version)
        return response.error_code, {(r.resource_type, r.resource_name) for r in response.config_resources}

    everything = {(TOPIC, "orders"), (BROKER, "1"), (LOGGER, "1"), (METRICS, "m"), (GROUP, "g")}
    assert listed([]) == (0, everything)
    assert listed([], version=0) == (0, {(METRICS, "m")})
    assert listed([GROUP, TOPIC]) == (0, {(TOPIC, "orders"), (GROUP, "g")})
    assert listed([1]) == (35, set())
