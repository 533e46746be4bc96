"""UpdateFeatures over a connection: KIP-584, KIP-778, KIP-1022."""

from __future__ import annotations

import pytest

from broker.api import served_versions
from tests.broker.memory_broker import Client, MemoryBroker
from wire.api_keys import ApiKey
from wire.errors import ErrorCode
from wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

UPGRADE, SAFE = 1, 2
LATEST = served_versions(ApiKey.UPDATE_FEATURES)[1]
NAME = "transaction.version"


def update(client: Client, *updates: tuple[str, int, int], version: int = LATEST, **flags: bool):
    asked = [
        FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates
    ]
    return client.ask(UpdateFeaturesRequest(feature_updates=asked, **flags), version, UpdateFeaturesResponse)


def levels(client: Client) -> dict[str, int]:
    asked = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = client.ask(asked, 4, ApiVersionsResponse)
    return {one.name: one.max_version_level for one in answer.finalized_features}


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def test_a_level_is_lowered_and_raised_and_told_at_once(client: Client) -> None:
    assert levels(client)[NAME] == 2
    assert update(client, (NAME, 1, SAFE)).error_code == 0
    assert levels(client)[NAME] == 1
    assert update(client, (NAME, 0, SAFE)).error_code == 0
    assert NAME not in levels(client)
    assert update(client, (NAME, 2, UPGRADE)).error_code == 0
    assert levels(client)[NAME] == 2


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_tell_of_each_feature(client: Client, version: int) -> None:
    answer = update(client, (NAME, 2, UPGRADE), version=version)
    assert [(one.feature, one.error_code, one.error_message) for one in answer.results] == [(NAME, 0, None)]
    answer = update(client, (NAME, 2, UPGRADE), ("no.such.version", 1, UPGRADE), version=version)
    code = ErrorCode.INVALID_UPDATE_VERSION
    sentence = "The given update version was invalid."
    assert [(one.feature, one.error_code, one.error_message) for one in answer.results] == [
        (NAME, code, sentence),
        ("no.such.version", code, sentence),
    ]


def test_one_that_may_not_be_stops_all_and_says_why(client: Client) -> None:
    answer = update(client, (NAME, 1, SAFE), ("metadata.version", 99, UPGRADE))
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message == (
        "The update failed for all features since the following feature had an error: "
        "Invalid update version 99 for feature metadata.version. Local controller 1 only supports versions 7-33"
    )
    assert levels(client)[NAME] == 2


def test_a_dry_run_sets_nothing(client: Client) -> None:
    assert update(client, (NAME, 1, SAFE), validate_only=True).error_code == 0
    assert update(client, (NAME, 9, UPGRADE), validate_only=True).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert levels(client)[NAME] == 2


def test_levels_survive_a_restart_and_coordinators_follow_them(tmp_path) -> None:
    memory = MemoryBroker(tmp_path / "data")
    client = memory.client()
    memory.broker.transactions.ensure_topic()
    coordinator = memory.broker.transactions.of("t")
    assert update(client, (NAME, 1, SAFE)).error_code == 0
    assert coordinator._config.transaction_version == 1
    memory.close()
    again = MemoryBroker(tmp_path / "data")
    assert levels(again.client())[NAME] == 1
    again.close()
