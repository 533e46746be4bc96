"""UpdateFeatures over a connection: KIP-584, KIP-778, KIP-1022."""

from __future__ import annotations

import pytest

from barnabas.broker.apis.registry import served_versions
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.groups.share_groups import (
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from barnabas.wire.messages.groups.streams_groups import StreamsGroupDescribeRequest, StreamsGroupHeartbeatRequest
from barnabas.wire.registry import message_for
from tests.support.memory.broker import Client, MemoryBroker

UPGRADE, SAFE = 1, 2
LATEST = served_versions(ApiKey.UPDATE_FEATURES)[1]
NAME = "transaction.version"


def update(client: Client, *updates: tuple[str, int, int], version: int = LATEST, **flags: bool):
    requested = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
    ]
    return client.ask(UpdateFeaturesRequest(feature_updates=requested, **flags), version, UpdateFeaturesResponse)


def levels(client: Client) -> dict[str, int]:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    response = client.ask(request, 4, ApiVersionsResponse)
    return {feature.name: feature.max_version_level for feature in response.finalized_features}


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def test_a_feature_level_is_changed_and_reported(client: Client) -> None:
    assert levels(client)[NAME] == 2
    assert update(client, (NAME, 1, SAFE)).error_code == 0
    assert levels(client)[NAME] == 1
    assert update(client, (NAME, 0, SAFE)).error_code == 0
    assert NAME not in levels(client)
    assert update(client, (NAME, 2, UPGRADE)).error_code == 0
    assert levels(client)[NAME] == 2


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_have_results_of_each_feature(client: Client, version: int) -> None:
    response = update(client, (NAME, 2, UPGRADE), version=version)
    assert [(result.feature, result.error_code, result.error_message) for result in response.results] == [
        (NAME, 0, None)
    ]
    response = update(client, (NAME, 2, UPGRADE), ("no.such.version", 1, UPGRADE), version=version)
    code = ErrorCode.INVALID_UPDATE_VERSION
    sentence = "The given update version was invalid."
    assert [(result.feature, result.error_code, result.error_message) for result in response.results] == [
        (NAME, code, sentence),
        ("no.such.version", code, sentence),
    ]


def test_one_invalid_update_rejects_all(client: Client) -> None:
    response = update(client, (NAME, 1, SAFE), ("metadata.version", 99, UPGRADE))
    assert response.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert response.error_message == (
        "The update failed for all features since the following feature had an error: "
        "Invalid update version 99 for feature metadata.version. Local controller 1 only supports versions 7-33"
    )
    assert levels(client)[NAME] == 2


def test_validate_only_changes_nothing(client: Client) -> None:
    assert update(client, (NAME, 1, SAFE), validate_only=True).error_code == 0
    assert update(client, (NAME, 9, UPGRADE), validate_only=True).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert levels(client)[NAME] == 2


def test_levels_survive_a_restart_and_coordinators_follow_them(tmp_path) -> None:
    memory = MemoryBroker(tmp_path / "data")
    client = memory.client()
    memory.broker.transaction_coordinators.ensure_topic(lambda error: None)
    coordinator = memory.broker.transaction_coordinators.coordinator_of("t")
    assert update(client, (NAME, 1, SAFE)).error_code == 0
    assert coordinator._config.transaction_version == 1
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    assert levels(again.client())[NAME] == 1
    again.close()


GATES = {
    ("group.version", 1): [
        (ConsumerGroupHeartbeatRequest(group_id="g", member_id="m"), lambda answer: answer.error_code),
        (ConsumerGroupDescribeRequest(group_ids=["g"]), lambda answer: answer.groups[0].error_code),
    ],
    ("streams.version", 1): [
        (StreamsGroupHeartbeatRequest(group_id="g", member_id="m"), lambda answer: answer.error_code),
        (StreamsGroupDescribeRequest(group_ids=["g"]), lambda answer: answer.groups[0].error_code),
    ],
    ("share.version", 2): [
        (ShareGroupHeartbeatRequest(group_id="g", member_id="m"), lambda answer: answer.error_code),
        (ShareGroupDescribeRequest(group_ids=["g"]), lambda answer: answer.groups[0].error_code),
        (ShareFetchRequest(group_id="g", member_id="m"), lambda answer: answer.error_code),
        (ShareAcknowledgeRequest(group_id="g", member_id="m"), lambda answer: answer.error_code),
    ],
}


@pytest.mark.parametrize(("feature", "level"), GATES)
def test_a_protocol_is_enabled_while_its_feature_has_a_level(
    memory: MemoryBroker, client: Client, feature: str, level: int
) -> None:
    """As in Kafka: a data directory from before a protocol has no level of its feature, until one is set."""
    unsupported = ErrorCode.UNSUPPORTED_VERSION

    def codes() -> list[int]:
        error_codes = []
        for request, code_of in GATES[feature, level]:
            version = served_versions(request.api_key)[1]
            error_codes.append(code_of(memory.client().ask(request, version, message_for(request.api_key)[1])))
        return error_codes

    memory.broker.group_coordinators.ensure_topic(lambda error: None)
    assert levels(client)[feature] == level
    assert unsupported not in codes()
    assert update(client, (feature, 0, SAFE)).error_code == 0
    assert set(codes()) == {unsupported}
    assert update(client, (feature, 1, UPGRADE)).error_code == 0
    assert unsupported not in codes()


def test_a_data_directory_from_before_a_feature_keeps_its_levels_and_can_be_raised(tmp_path) -> None:
    memory = MemoryBroker(tmp_path / "data")
    assert update(memory.client(), ("group.version", 0, SAFE), ("share.version", 0, SAFE)).error_code == 0
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    client = again.client()
    assert {"group.version", "share.version"}.isdisjoint(levels(client))
    assert update(client, ("group.version", 1, UPGRADE), ("share.version", 2, UPGRADE)).error_code == 0
    assert (levels(client)["group.version"], levels(client)["share.version"]) == (1, 2)
    again.close()


@pytest.mark.parametrize(
    ("protocols", "feature"), [("classic,streams", "group.version"), ("classic", "streams.version")]
)
def test_a_protocol_can_be_disabled_by_configuration(tmp_path, protocols: str, feature: str) -> None:
    memory = MemoryBroker(tmp_path / "data", {"group.coordinator.rebalance.protocols": protocols})
    request, code_of = GATES[feature, 1][0]
    response = memory.client().ask(request, served_versions(request.api_key)[1], message_for(request.api_key)[1])
    assert code_of(response) == ErrorCode.UNSUPPORTED_VERSION
    memory.close()
