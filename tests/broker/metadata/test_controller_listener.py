"""The controller listener over the wire: each API in every version, from a client that sends any request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.apis.registry import CONTROLLER_APIS, served_versions
from barnabas.coord.cluster.metadata_log.checkpoint import load_checkpoint
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.frame import parse_response_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.cluster import (
    AllocateProducerIdsRequest,
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
)
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
)
from barnabas.wire.messages.log_dirs import AssignReplicasToDirsRequest
from barnabas.wire.messages.metadata import DescribeClusterRequest
from barnabas.wire.messages.raft import (
    AddRaftVoterRequest,
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from barnabas.wire.messages.replication import AlterPartitionRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.types import ONE_UUID
from tests.broker.forwarded import PRINCIPAL, envelope
from tests.support.cases import for_each
from tests.support.memory.controller import FEATURES, MemoryController, directory


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
    response = memory.client().ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 4)
    assert {key.api_key: (key.min_version, key.max_version) for key in response.api_keys} == {
        int(key): served_versions(key) for key in CONTROLLER_APIS
    }
    assert {feature.name for feature in response.finalized_features} >= {"metadata.version", "group.version"}


@for_each("version", range(12, 19))
def test_the_metadata_log_is_read_from_its_beginning(memory: MemoryController, version: int) -> None:
    quorum = memory.node.controller.quorum
    response = memory.client().ask(fetch(0, quorum.epoch), version)
    assert response.error_code == 0
    (partition,) = response.responses[0].partitions
    assert (partition.error_code, partition.high_watermark) == (0, quorum.high_watermark)
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (3000, quorum.epoch)
    assert len(partition.records) > 100


def test_a_broker_registers_catches_up_and_is_unfenced(memory: MemoryController) -> None:
    client = memory.client()
    epoch = memory.register(1)
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch, current_metadata_offset=epoch - 1, want_fence=True)
    assert not client.ask(beat, 1).is_caught_up
    beat.current_metadata_offset, beat.want_fence = epoch, False
    response = client.ask(beat, 2)
    assert (response.error_code, response.is_caught_up, response.is_fenced) == (0, True, False)
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
    response = memory.client().ask(request, version)
    assert ErrorCode(response.error_code) in {ErrorCode.NONE, ErrorCode.INVALID_REGISTRATION}
    assert (response.error_code == 0) == (version >= 2)


def test_a_silent_broker_is_fenced_when_its_session_ends(memory: MemoryController) -> None:
    memory.unfence(1)
    memory.unfence(2)
    response = memory.client().ask(
        CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=2, replication_factor=2)]), 7
    )
    assert response.topics[0].error_code == 0, response
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
    (response,) = client.answers()
    assert len(response.responses[0].partitions[0].records) > 0


def partition_of(response: Any) -> Any:
    assert response.error_code == 0, response
    return response.responses[0].partitions[0]


@for_each(
    ("change", "error"),
    [
        ({"fetch_offset": -1}, ErrorCode.INVALID_REQUEST),
        ({"last_fetched_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"current_leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"current_leader_epoch": 9}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_fetch_with_a_wrong_epoch_is_refused_and_told_the_leader(
    memory: MemoryController, change: dict[str, int], error: ErrorCode
) -> None:
    epoch = memory.node.controller.quorum.epoch
    request = fetch(0, epoch)
    for name, value in change.items():
        setattr(request.topics[0].partitions[0], name, value)
    partition = partition_of(memory.client().ask(request, 17))
    assert partition.error_code == error
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (3000, epoch)


def test_a_fetch_of_another_cluster_or_topic_is_refused(memory: MemoryController) -> None:
    client, epoch = memory.client(), memory.node.controller.quorum.epoch
    assert client.ask(fetch(0, epoch, cluster_id="other"), 17).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert client.ask(fetch(0, epoch, cluster_id=memory.node.cluster_id), 17).error_code == 0
    other = fetch(0, epoch)
    other.topics[0].topic_id = b"t" * 16
    assert client.ask(other, 17).error_code == ErrorCode.INVALID_REQUEST
    assert client.ask(FetchRequest(topics=[]), 17).error_code == ErrorCode.INVALID_REQUEST
    assert client.ask(fetch(0, epoch, wait_ms=-1), 17).error_code == ErrorCode.INVALID_REQUEST


def test_a_log_that_diverges_is_told_where(memory: MemoryController) -> None:
    quorum = memory.node.controller.quorum
    beyond = partition_of(memory.client().ask(fetch(quorum.high_watermark + 7, 1, last_epoch=1), 17))
    assert (beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset) == (1, quorum.high_watermark)
    assert not beyond.records
    unknown = partition_of(memory.client().ask(fetch(2, 1, last_epoch=5), 17))
    assert unknown.diverging_epoch.epoch == 1


def test_a_reader_is_answered_at_its_deadline_and_when_its_high_watermark_is_old(memory: MemoryController) -> None:
    quorum, client = memory.node.controller.quorum, memory.client()
    end = quorum.high_watermark
    client.send(fetch(end, quorum.epoch, last_epoch=quorum.epoch, wait_ms=500), 18)
    memory.advance(0.4)
    assert client.answers() == []
    memory.advance(0.2)
    (response,) = client.answers()
    assert not partition_of(response).records
    old = fetch(end, quorum.epoch, last_epoch=quorum.epoch, wait_ms=500)
    old.topics[0].partitions[0].high_watermark = end - 1
    assert partition_of(client.ask(old, 18)).high_watermark == end
    client.send(fetch(end, quorum.epoch, last_epoch=quorum.epoch, wait_ms=500), 18)
    client.connection.close()  # nothing is left that waits
    memory.register(1)
    memory.advance(1)


def with_snapshots(path: Path) -> MemoryController:
    """A controller that writes a snapshot after each few changes."""
    return MemoryController(path, {"metadata.log.max.record.bytes.between.snapshots": "1000"})


def fill(memory: MemoryController, *names: str) -> None:
    for name in names:
        response = memory.client().ask(
            CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=9, replication_factor=1)]), 7
        )
        assert response.topics[0].error_code == 0, response


@pytest.mark.parametrize("version", range(2))
def test_a_reader_below_the_log_start_reads_the_snapshot(tmp_path: Path, version: int) -> None:
    memory = with_snapshots(tmp_path / "data")
    client, quorum = memory.client(), memory.node.controller.quorum
    memory.unfence(1)
    fill(memory, "a", "b", "c", "d")
    assert quorum.log_start_offset > 3
    for offset in (0, 3):
        partition = partition_of(client.ask(fetch(offset, quorum.epoch, last_epoch=quorum.epoch), 17))
        snapshot = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        assert quorum.log_start_offset < snapshot[0] <= quorum.high_watermark
    data = b""
    while True:
        part = ask_snapshot(client, memory, snapshot, len(data), version=version)
        assert part.error_code == 0
        data += bytes(part.unaligned_records)
        if len(data) == part.size:
            break
    image = load_checkpoint(data, *snapshot)
    assert set(image.topics) >= {"a", "b"}
    assert set(image.brokers) == {1}
    assert ask_snapshot(client, memory, snapshot, len(data)).error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert ask_snapshot(client, memory, snapshot, -1).error_code == ErrorCode.POSITION_OUT_OF_RANGE
    assert ask_snapshot(client, memory, (1, 1), 0).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    assert ask_snapshot(client, memory, snapshot, 0, epoch=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    fill(memory, "e")  # the next snapshot keeps this one for its reader
    assert ask_snapshot(client, memory, snapshot, 0).error_code == 0
    fill(memory, "f", "g", "h")
    assert ask_snapshot(client, memory, snapshot, 0).error_code == ErrorCode.SNAPSHOT_NOT_FOUND
    memory.close()


def test_snapshots_are_written_once_and_found_again_after_a_restart(tmp_path: Path) -> None:
    memory = with_snapshots(tmp_path / "data")
    memory.unfence(1)
    fill(memory, "a", "b", "c")
    quorum = memory.node.controller.quorum
    snapshots = sorted(path.name for path in (tmp_path / "data" / "__cluster_metadata-0").glob("*.checkpoint"))
    assert len(snapshots) == 2
    memory.heartbeat(1)
    memory.client().ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=memory.node.image.brokers[1].epoch), 0)
    assert sorted(path.name for path in (tmp_path / "data" / "__cluster_metadata-0").glob("*.checkpoint")) == snapshots
    assert quorum.log_start_offset == int(snapshots[0].split("-")[0])
    memory.close()
    memory = with_snapshots(tmp_path / "data")
    end_offset, epoch = (int(part) for part in snapshots[0].removesuffix(".checkpoint").split("-"))
    quorum = memory.node.controller.quorum
    assert quorum.has_snapshot((end_offset, epoch))
    assert set(memory.node.image.topics) == {"a", "b", "c"}
    client = memory.client()
    partition = partition_of(client.ask(fetch(end_offset, quorum.epoch, last_epoch=epoch), 17))
    assert len(partition.records) > 0  # the records after the older snapshot are still there
    partition = partition_of(client.ask(fetch(end_offset - 1, quorum.epoch, last_epoch=epoch), 17))
    assert partition.snapshot_id.end_offset > end_offset
    memory.close()


def ask_snapshot(
    client: Any,
    memory: MemoryController,
    snapshot: tuple[int, int],
    position: int,
    *,
    epoch: int | None = None,
    version: int = 1,
) -> Any:
    """The partition of the answer to a FetchSnapshot of at most 500 bytes."""
    requested = FetchSnapshotRequestPartitionSnapshot(
        current_leader_epoch=memory.node.controller.quorum.epoch if epoch is None else epoch,
        snapshot_id=FetchSnapshotRequestSnapshotId(end_offset=snapshot[0], epoch=snapshot[1]),
        position=position,
    )
    topic = FetchSnapshotRequestTopicSnapshot(name="__cluster_metadata", partitions=[requested])
    response = client.ask(FetchSnapshotRequest(max_bytes=500, topics=[topic]), version)
    assert response.error_code == 0
    return response.topics[0].partitions[0]


def test_a_snapshot_request_that_is_wrong_as_a_whole(memory: MemoryController) -> None:
    client = memory.client()
    wrong = client.ask(FetchSnapshotRequest(cluster_id="other"), 1)
    assert wrong.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert client.ask(FetchSnapshotRequest(topics=[]), 1).error_code == ErrorCode.INVALID_REQUEST
    topic = FetchSnapshotRequestTopicSnapshot(name="t", partitions=[FetchSnapshotRequestPartitionSnapshot()])
    response = client.ask(FetchSnapshotRequest(topics=[topic]), 1)
    assert response.topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_restarted_controller_goes_on_with_new_sessions(tmp_path: Path) -> None:
    memory = MemoryController(tmp_path / "data")
    memory.unfence(1)
    memory.unfence(2)
    fill(memory, "t")
    epoch, leaders = memory.node.controller.quorum.epoch, leaders_of(memory, "t")
    cluster_id = memory.node.cluster_id
    memory.close()
    memory = MemoryController(tmp_path / "data")
    assert memory.node.cluster_id == cluster_id
    assert memory.node.controller.quorum.epoch == epoch + 1
    assert leaders_of(memory, "t") == leaders
    memory.advance(5)
    assert not memory.heartbeat(2).is_fenced
    memory.advance(5)
    assert {number: broker.fenced for number, broker in memory.node.image.brokers.items()} == {1: True, 2: False}
    memory.close()


def leaders_of(memory: MemoryController, topic: str) -> dict[int, int]:
    return {index: partition.leader for index, partition in memory.node.image.topics[topic].partitions.items()}


def test_another_incarnation_waits_for_the_end_of_the_session(memory: MemoryController) -> None:
    memory.unfence(1)
    with pytest.raises(AssertionError, match="error_code=101"):
        memory.register(1, incarnation_id=b"n" * 16)
    memory.advance(10)
    memory.register(1, incarnation_id=b"n" * 16)


def test_requests_of_an_old_incarnation_are_refused(memory: MemoryController) -> None:
    epoch = memory.unfence(1)
    client = memory.client()
    for request, version in [
        (BrokerHeartbeatRequest(broker_id=1, broker_epoch=epoch - 1), 1),
        (AllocateProducerIdsRequest(broker_id=1, broker_epoch=epoch - 1), 0),
        (AlterPartitionRequest(broker_id=1, broker_epoch=epoch - 1), 2),
        (AlterPartitionRequest(broker_id=1, broker_epoch=epoch - 1), 3),
        (AssignReplicasToDirsRequest(broker_id=1, broker_epoch=epoch - 1), 0),
    ]:
        assert client.ask(request, version).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("version", range(3))
def test_describe_quorum_has_the_voter_and_the_readers(memory: MemoryController, version: int) -> None:
    quorum, client = memory.node.controller.quorum, memory.client()
    reader = fetch(quorum.high_watermark, quorum.epoch, last_epoch=quorum.epoch)
    reader.replica_state = FetchRequestReplicaState(replica_id=7)
    reader.topics[0].partitions[0].replica_directory_id = b"r" * 16
    client.ask(reader, 17)
    topic = DescribeQuorumRequestTopicData(
        topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
    )
    response = client.ask(DescribeQuorumRequest(topics=[topic]), version)
    (partition,) = response.topics[0].partitions
    assert (partition.leader_id, partition.leader_epoch) == (3000, quorum.epoch)
    assert [voter.replica_id for voter in partition.current_voters] == [3000]
    assert [(observer.replica_id, observer.log_end_offset) for observer in partition.observers] == [
        (7, quorum.high_watermark)
    ]
    if version >= 2:
        assert partition.observers[0].replica_directory_id == b"r" * 16
        assert [(node.node_id, node.listeners[0].host, node.listeners[0].port) for node in response.nodes] == [
            (3000, "localhost", 19093)
        ]
    topic.topic_name = "other"
    (partition,) = client.ask(DescribeQuorumRequest(topics=[topic]), version).topics[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    memory.advance(301)
    assert quorum.observers() == []


def test_the_voter_of_a_quorum_of_one_stays(memory: MemoryController) -> None:
    client = memory.client()
    cluster_id, quorum = memory.node.cluster_id, memory.node.controller.quorum
    for version in range(2):
        other = client.ask(AddRaftVoterRequest(cluster_id="x", voter_id=1), version)
        assert other.error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
        same = client.ask(AddRaftVoterRequest(cluster_id=cluster_id, voter_id=3000), version)
        assert same.error_code == ErrorCode.DUPLICATE_VOTER
        another = client.ask(AddRaftVoterRequest(cluster_id=cluster_id, voter_id=3001), version)
        assert another.error_code == ErrorCode.INVALID_REQUEST
    removal = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=3000)
    assert client.ask(removal, 0).error_code == ErrorCode.VOTER_NOT_FOUND
    update = UpdateRaftVoterRequest(cluster_id=cluster_id, current_leader_epoch=quorum.epoch, voter_id=3001)
    response = client.ask(update, 0)
    assert (response.error_code, response.current_leader.leader_id) == (ErrorCode.VOTER_NOT_FOUND, 3000)


def test_configured_voters_cannot_be_changed(tmp_path: Path) -> None:
    memory = MemoryController(tmp_path / "data", {"controller.quorum.voters": "3000@localhost:19093"})
    for request in (
        AddRaftVoterRequest(cluster_id=None, voter_id=1),
        RemoveRaftVoterRequest(cluster_id=None, voter_id=1),
    ):
        assert memory.client().ask(request, 0).error_code == ErrorCode.UNSUPPORTED_VERSION
    memory.close()


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_has_the_controllers(memory: MemoryController, version: int) -> None:
    client = memory.client()
    if version == 0:  # it knows brokers only
        assert client.ask(DescribeClusterRequest(), 0).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
        return
    response = client.ask(DescribeClusterRequest(endpoint_type=2), version)
    assert (response.error_code, response.controller_id, response.cluster_id) == (0, 3000, memory.node.cluster_id)
    assert [(broker.broker_id, broker.host, broker.port) for broker in response.brokers] == [(3000, "localhost", 19093)]
    assert client.ask(DescribeClusterRequest(endpoint_type=1), 1).error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE
    assert client.ask(DescribeClusterRequest(endpoint_type=3), 1).error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE


# Envelope


@for_each("version", range(*served_versions(ApiKey.CREATE_TOPICS)))
def test_an_envelope_has_the_answer_that_the_client_would_get(memory: MemoryController, version: int) -> None:
    memory.unfence(1)
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    response = memory.client().ask(envelope(CreateTopicsRequest(topics=[topic], timeout_ms=1000), version), 0)
    assert response.error_code == 0
    header, position = parse_response_header(response.response_data, ApiKey.CREATE_TOPICS, version)
    assert header.correlation_id == 77
    inner = CreateTopicsResponse.decode(response.response_data[position:], version)
    assert [(created.name, created.error_code) for created in inner.topics] == [("t", 0)]
    assert "t" in memory.node.image.topics


def test_the_error_of_an_embedded_request_is_in_its_answer(memory: MemoryController) -> None:
    topic = CreatableTopic(name="bad name", num_partitions=1, replication_factor=1)
    response = memory.client().ask(envelope(CreateTopicsRequest(topics=[topic]), 7), 0)
    _, position = parse_response_header(response.response_data, ApiKey.CREATE_TOPICS, 7)
    inner = CreateTopicsResponse.decode(response.response_data[position:], 7)
    assert (response.error_code, inner.topics[0].error_code) == (0, ErrorCode.INVALID_TOPIC_EXCEPTION)


@for_each(
    ("changes", "error"),
    [
        ({"request_principal": None}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0"}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": b"\0\7" + PRINCIPAL[2:]}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"request_principal": PRINCIPAL[:-3]}, ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        ({"client_host_address": b"\1\2\3"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\0"}, ErrorCode.INVALID_REQUEST),
        ({"request_data": b"\x7f\x7f" + bytes(20)}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_wrong_envelope_is_refused(memory: MemoryController, changes: dict[str, Any], error: ErrorCode) -> None:
    response = memory.client().ask(envelope(CreateTopicsRequest(), 7, **changes), 0)
    assert (response.error_code, response.response_data) == (error, None)


def test_only_what_brokers_forward_may_be_in_an_envelope(memory: MemoryController) -> None:
    beat = BrokerHeartbeatRequest(broker_id=1, broker_epoch=1)
    assert memory.client().ask(envelope(beat, 1), 0).error_code == ErrorCode.INVALID_REQUEST
