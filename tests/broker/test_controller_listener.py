"""The controller listener over the wire: each API in every version, from a client that sends any request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.apis.registry import CONTROLLER_APIS, served_versions
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchRequestFetchPartition, FetchRequestFetchTopic
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.types import ONE_UUID
from tests.broker.memory_controller import FEATURES, MemoryController, directory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryController]:
    controller = MemoryController(tmp_path / "data")
    yield controller
    controller.close()


def fetch(offset: int, epoch: int, *, last_epoch: int = 0, wait_ms: int = 0, **options: object) -> FetchRequest:
    partition = FetchRequestFetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=1 << 20,
    )
    topic = FetchRequestFetchTopic(topic="__cluster_metadata", topic_id=ONE_UUID, partitions=[partition])
    return FetchRequest(max_wait_ms=wait_ms, topics=[topic], **options)


def test_api_versions_names_the_apis_of_a_controller(memory: MemoryController) -> None:
    answer = memory.client().ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    assert {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys} == {
        int(key): served_versions(key) for key in CONTROLLER_APIS
    }
    assert {feature.name for feature in answer.finalized_features} >= {"metadata.version", "group.version"}


@pytest.mark.parametrize("version", range(12, 19))
def test_the_metadata_log_is_read_from_its_beginning(memory: MemoryController, version: int) -> None:
    quorum = memory.node.controller.quorum
    answer = memory.client().ask(fetch(0, quorum.epoch), version)
    assert answer.error_code == 0
    (partition,) = answer.responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (0, quorum.high_watermark)
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (3000, quorum.epoch)
    assert len(partition.records) > 100


def test_a_broker_registers_catches_up_and_is_unfenced(memory: MemoryController) -> None:
    client = memory.client()
    epoch = memory.register(1)
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch - 1, want_fence=True)
    assert not client.ask(beat, 1).is_caught_up
    beat.current_metadata_offset, beat.want_fence = epoch, False
    answer = client.ask(beat, 2)
    assert (answer.error_code, answer.is_caught_up, answer.is_fenced) == (0, True, False)
    assert not memory.node.image.brokers[1].fenced
    block = client.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch), 0)
    assert (block.error_code, block.producer_id_start, block.producer_id_len) == (0, 0, 1000)


@pytest.mark.parametrize("version", range(*served_versions(ApiKey.BROKER_REGISTRATION)))
def test_a_registration_of_every_version(memory: MemoryController, version: int) -> None:
    request = BrokerRegistrationRequest(
        broker_id=7,
        cluster_id=memory.node.cluster_id,
        incarnation_id=b"i" * 16,
        listeners=[BrokerRegistrationRequestListener(name="PLAINTEXT", host="h", port=9)],
        features=[
            BrokerRegistrationRequestFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in FEATURES.items()
        ],
        log_dirs=[directory(7)] if version >= 2 else [],
    )
    answer = memory.client().ask(request, version)
    assert ErrorCode(answer.error_code) in {ErrorCode.NONE, ErrorCode.INVALID_REGISTRATION}
    assert (answer.error_code == 0) == (version >= 2)


def test_a_silent_broker_is_fenced_when_its_session_ends(memory: MemoryController) -> None:
    memory.unfence(1)
    memory.unfence(2)
    made = memory.client().ask(
        CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=2)]), 7
    )
    assert made.topics[0].error_code == 0, made
    memory.advance(5)
    memory.heartbeat(2)
    memory.advance(5)
    assert memory.node.image.brokers[1].fenced
    assert not memory.node.image.brokers[2].fenced
    assert {partition.leader for partition in memory.node.image.topics["t"].partitions.values()} == {2}


def test_a_reader_at_the_end_waits_for_the_next_record(memory: MemoryController) -> None:
    quorum = memory.node.controller.quorum
    client = memory.client()
    end = quorum.high_watermark
    client.send(fetch(end, quorum.epoch, last_epoch=quorum.epoch, wait_ms=500), 18)
    assert client.answers() == []
    memory.register(1)
    (answer,) = client.answers()
    assert len(answer.responses[0].partitions[0].records) > 0
