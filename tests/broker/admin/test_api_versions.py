"""ApiVersions over a connection, and how often its answer is encoded: KIP-35, KIP-511, KIP-584."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.apis.metadata import api_versions
from barnabas.broker.apis.metadata.api_versions import whole_answer
from barnabas.broker.apis.registry import BROKER_APIS, TELEMETRY_APIS, served_versions
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker


@for_each("version", range(6))
def test_api_versions_are_those_of_the_registry(memory: MemoryBroker, version: int) -> None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = memory.client().ask(request, version, ApiVersionsResponse)
    assert response.error_code == 0
    ranges = {item.api_key: (item.min_version, item.max_version) for item in response.api_keys}
    assert set(ranges) == set(BROKER_APIS) - TELEMETRY_APIS
    assert all(ranges[key] == served_versions(key) for key in ranges if key != ApiKey.PRODUCE)
    assert ranges[ApiKey.PRODUCE][1] == served_versions(ApiKey.PRODUCE)[1]
    if version >= 3:
        assert any(feature.name == "metadata.version" for feature in response.finalized_features)


@for_each("version", range(6))
def test_telemetry_is_shown_where_metrics_have_somewhere_to_go(tmp_path: Path, version: int) -> None:
    """KIP-714: Kafka asks for a plug-in that receives the metrics."""
    memory = MemoryBroker(tmp_path, {"barnabas.metrics.listener": "127.0.0.1:0"})
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    response = memory.client().ask(request, version, ApiVersionsResponse)
    assert {item.api_key for item in response.api_keys} == set(BROKER_APIS)
    memory.close()


def test_api_versions_are_encoded_once_for_all_clients(memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    controllers = []
    monkeypatch.setattr(
        api_versions,
        "whole_answer",
        lambda controller, apis: controllers.append(controller) or whole_answer(controller, apis),
    )
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    answers = [memory.client().ask(request, version, ApiVersionsResponse) for _ in range(20) for version in (0, 3, 4)]
    assert len(controllers) == 3
    assert all(response == answers[position % 3] for position, response in enumerate(answers))


def test_the_answer_of_api_versions_has_the_epoch_of_the_last_change_of_the_metadata(memory: MemoryBroker) -> None:
    client = memory.client()
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
    before = client.ask(request, 4, ApiVersionsResponse).finalized_features_epoch
    memory.create_topic("one-more")
    after = client.ask(request, 4, ApiVersionsResponse).finalized_features_epoch
    assert before < after == memory.broker.image.offset


def test_an_invalid_client_software_name_is_rejected(memory: MemoryBroker) -> None:
    """KIP-511."""
    request = ApiVersionsRequest(client_software_name="-bad name", client_software_version="1.0")
    assert memory.client().ask(request, 3, ApiVersionsResponse).error_code == ErrorCode.INVALID_REQUEST


def test_a_client_that_means_another_node_has_to_bootstrap_again(memory: MemoryBroker) -> None:
    """From version 5 on a client may name the cluster and the node that it means, both or none."""
    own = (memory.broker.cluster_id, memory.broker.node_id)
    cases: dict[tuple[str | None, int], int] = {
        (None, -1): 0,
        own: 0,
        (own[0], own[1] + 1): ErrorCode.REBOOTSTRAP_REQUIRED,
        ("other", own[1]): ErrorCode.REBOOTSTRAP_REQUIRED,
        ("", own[1]): ErrorCode.REBOOTSTRAP_REQUIRED,
        (own[0], -1): ErrorCode.INVALID_REQUEST,
        (None, own[1]): ErrorCode.INVALID_REQUEST,
    }
    for (cluster_id, node_id), code in cases.items():
        request = ApiVersionsRequest(
            client_software_name="test", client_software_version="1.0", cluster_id=cluster_id, node_id=node_id
        )
        response = memory.client().ask(request, 5, ApiVersionsResponse)
        assert (response.error_code, bool(response.api_keys)) == (code, code == 0), (cluster_id, node_id)
        assert memory.client().ask(request, 4, ApiVersionsResponse).error_code == 0


def test_nothing_unstable_is_served() -> None:
    assert served_versions(ApiKey.INIT_PRODUCER_ID) == (0, 5)
