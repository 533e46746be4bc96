"""A log directory written by Apache Kafka 4.4.0, and directories that are rejected.

`tests/data/kafka-4.4.0-directory.tar.gz` was made by `compat.kafka.make_directory`;
`tests/clients/kafka/test_exchange.py` does the same with Kafka at hand. L1, G2, T5, T6.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_log.checkpoint import load_checkpoint, parse_checkpoint_name
from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch, replay_batches
from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.coord.groups.committed_offset import decoded
from barnabas.storage.directories.log_dirs import DataDirMismatch
from barnabas.wire.configdef import ConfigError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from barnabas.wire.schema import Message
from barnabas.wire.types import uuid_from_text
from tests.support.archives import unpack
from tests.support.memory.broker import MemoryBroker

ARCHIVE = Path(__file__).resolve().parents[2] / "data" / "kafka-4.4.0-directory.tar.gz"
METADATA = "__cluster_metadata-0"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return unpack(ARCHIVE, tmp_path / "logs")


def committed(memory: MemoryBroker, group: str) -> dict[tuple[str, int], int]:
    coordinator = memory.broker.group_coordinators.coordinator_of(group)
    offsets = coordinator.offsets.store.of_group(group)
    return {
        (topic, index): decoded(value).offset for topic, values in offsets.items() for index, value in values.items()
    }


def metadata_log(directory: Path) -> Path:
    (path,) = (directory / METADATA).glob("*.log")
    return path


def add_records(directory: Path, *records: Message) -> None:
    """Append records to the metadata log as the leader of its last epoch."""
    log = metadata_log(directory)
    end = int(next((directory / METADATA).glob("*.snapshot")).name[:20])
    with log.open("ab") as file:
        file.write(build_metadata_batch(list(records), epoch=1, now_ms=0, base_offset=end))


def state(directory: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads((directory / METADATA / "quorum-state").read_text())
    return content


def refusal(directory: Path, sets: Mapping[str, str] | None = None) -> str:
    """Why a broker does not start on the directory."""
    with pytest.raises((UnknownMetadataError, DataDirMismatch)) as refused:
        MemoryBroker(directory, sets)
    return str(refused.value)


def test_topics_records_and_offsets_are_read(directory: Path) -> None:
    memory = MemoryBroker(directory)
    image = memory.broker.image
    assert {name: len(topic.partitions) for name, topic in image.topics.items()} == {
        "orders": 2,
        "ledger": 1,
        "__consumer_offsets": 1,
        "__transaction_state": 1,
    }
    assert image.config(2, "orders") == {"retention.ms": "-1"}
    assert [memory.broker.partitions.get("orders", index).log.log_end_offset for index in range(2)] == [10, 10]
    assert committed(memory, "readers") == {("orders", 0): 10, ("orders", 1): 10}
    assert memory.broker.producer_ids.next() == 1000, "the first that Kafka has not given to anyone"
    memory.close()


def test_committed_transactional_offsets_take_effect_and_the_open_transaction_stays_open(directory: Path) -> None:
    """T5, T6."""
    memory = MemoryBroker(directory)
    assert committed(memory, "movers") == {("orders", 0): 5}
    ledger = memory.broker.partitions.get("ledger", 0).log
    assert (ledger.last_stable_offset, ledger.log_end_offset) == (4, 5)
    memory.close()


def test_partitions_that_kafka_left_without_a_leader_get_this_node(directory: Path) -> None:
    memory = MemoryBroker(directory)
    for topic in memory.broker.image.topics.values():
        for partition in topic.partitions.values():
            assert (partition.leader, partition.isr, partition.elr, partition.last_known_elr) == (1, (1,), (), ())
            assert partition.leader_epoch == 2, "Kafka's first, none, and this one"
    memory.close()


def test_the_epoch_is_in_the_quorum_state_before_it_starts(directory: Path) -> None:
    """KIP-595; the file keeps Kafka's format."""
    before = state(directory)
    MemoryBroker(directory).close()
    assert state(directory) == before | {"leaderEpoch": 2}
    (directory / METADATA / "quorum-state").write_text(json.dumps(before | {"leaderEpoch": 7}))
    MemoryBroker(directory).close()
    assert state(directory)["leaderEpoch"] == 8
    (directory / METADATA / "quorum-state").write_text("garbage")
    MemoryBroker(directory).close()
    assert state(directory)["leaderEpoch"] == 9, "the log knows too"


def test_a_new_directory_has_the_state_file_of_configured_voters(tmp_path: Path) -> None:
    MemoryBroker(tmp_path).close()
    assert (tmp_path / METADATA / "quorum-state").read_text() == (
        '{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":1}],"data_version":0}'
    )


@pytest.mark.parametrize(("voters", "kraft_version"), [({}, 1), ({"controller.quorum.voters": "1@here:9093"}, 0)])
def test_a_new_quorum_is_that_of_kafkas_configuration(
    tmp_path: Path, voters: dict[str, str], kraft_version: int
) -> None:
    """KIP-853: without configured voters the node is recorded as the voter, as by `format --standalone`."""
    listeners = {"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://here:9093"}
    memory = MemoryBroker(tmp_path, listeners | voters)
    directory_id = uuid_from_text(memory.broker.log_dirs.dirs[0].directory_id)
    memory.close()
    assert state(tmp_path)["data_version"] == kraft_version
    again = MemoryBroker(tmp_path)
    quorum = again.broker.image.quorum
    assert quorum.kraft_version == kraft_version
    if quorum.voters is not None:
        (voter,) = quorum.voters.voters
        assert (voter.voter_id, voter.voter_directory_id) == (1, directory_id)
        assert [(point.name, point.host, point.port) for point in voter.endpoints] == [("CONTROLLER", "here", 9093)]
    again.close()


def test_bootstrap_records_of_a_format_become_the_first_records_of_the_log(directory: Path) -> None:
    """Kafka does not look for it in the empty snapshot again."""
    formatted = directory.parent / "formatted"
    snapshot = next((directory / METADATA).glob(f"{0:020d}-*.checkpoint"))
    (formatted / METADATA).mkdir(parents=True)
    shutil.copy(snapshot, formatted / METADATA)
    shutil.copy(directory / "meta.properties", formatted)
    memory = MemoryBroker(formatted)
    image = memory.broker.image
    memory.close()
    assert (image.features["transaction.version"], image.quorum.kraft_version) == (2, 1)
    from_log = ClusterImage()
    replay_batches(metadata_log(formatted).read_bytes(), from_log, ClusterDelta())
    assert (from_log.features, from_log.quorum) == (image.features, image.quorum)


def test_snapshots_keep_the_voters_and_records_that_are_not_used(directory: Path) -> None:
    """KIP-853."""
    memory = MemoryBroker(directory, {"metadata.log.max.record.bytes.between.snapshots": "1"})
    memory.create_topic("new")
    image = memory.broker.image
    memory.close()
    (snapshot,) = (directory / METADATA).glob("*.checkpoint")
    end_offset, epoch = parse_checkpoint_name(snapshot.name) or (0, 0)
    loaded = load_checkpoint(snapshot.read_bytes(), end_offset, epoch)
    assert loaded.quorum == image.quorum
    assert loaded.quorum.kraft_version == 1
    assert loaded.quorum.voter_ids == {1}
    assert loaded.features == image.features
    assert loaded.features["transaction.version"] == 2
    assert loaded.controllers == image.controllers
    assert loaded.controllers
    again = MemoryBroker(directory)
    assert again.broker.image.quorum == image.quorum
    again.close()


def test_only_supported_features_are_reported_to_clients(directory: Path) -> None:
    memory = MemoryBroker(directory)
    memory.broker.image.features["of.another.version"] = 1
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = memory.client().ask(request, 4, ApiVersionsResponse)
    supported = {feature.name for feature in response.supported_features}
    assert {feature.name for feature in response.finalized_features} <= supported
    assert set(memory.broker.image.features) - supported == {"of.another.version"}
    assert "eligible.leader.replicas.version" in {feature.name for feature in response.finalized_features}
    memory.close()


def test_a_stop_fences_the_node_and_the_leaders_of_internal_topics_resign(directory: Path) -> None:
    """KIP-966: the clean shutdown file has the broker epoch, which Kafka reads at start."""
    memory = MemoryBroker(directory)
    epoch = memory.broker.image.brokers[1].epoch
    memory.broker.log_dirs.close(memory.broker.controller.close())
    assert json.loads((directory / ".kafka_cleanshutdown").read_text()) == {"version": 0, "brokerEpoch": epoch}
    image = memory.broker.image
    assert (image.brokers[1].fenced, image.brokers[1].in_controlled_shutdown) == (True, True)
    leaders = {name: topic.partitions[0].leader for name, topic in image.topics.items()}
    assert leaders == {"orders": 1, "ledger": 1, "__consumer_offsets": NO_LEADER, "__transaction_state": NO_LEADER}


def test_a_metadata_transaction_that_never_ended_is_aborted(directory: Path) -> None:
    """KIP-868: its records have no effect."""
    add_records(directory, BeginTransactionRecord(name="half"), TopicRecord(name="half", topic_id=b"\7" * 16))
    memory = MemoryBroker(directory)
    assert "half" not in memory.broker.image.topics
    assert not memory.broker.image.is_in_transaction
    memory.create_topic("half")
    memory.close()
    assert AbortTransactionRecord.api_key.to_bytes(1, "big") in metadata_log(directory).read_bytes()
    again = MemoryBroker(directory)
    assert "half" in again.broker.image.topics
    again.close()


def test_the_metadata_of_several_nodes_is_rejected(directory: Path) -> None:
    add_records(directory, RegisterBrokerRecord(broker_id=2, broker_epoch=99))
    assert "other nodes (2) beside 1" in refusal(directory)


def test_configured_voters_on_other_nodes_are_rejected(tmp_path: Path) -> None:
    MemoryBroker(tmp_path).close()
    path = tmp_path / METADATA / "quorum-state"
    path.write_text(path.read_text().replace('[{"voterId":1}]', '[{"voterId":1},{"voterId":3}]'))
    assert "other nodes (3) beside 1" in refusal(tmp_path)


def test_metadata_of_a_newer_kafka_is_rejected(directory: Path) -> None:
    add_records(directory, FeatureLevelRecord(name="metadata.version", feature_level=34))
    assert refusal(directory) == "The metadata has metadata.version 34, but this broker supports 7 to 33"


def test_another_node_or_cluster_is_rejected(directory: Path) -> None:
    sentence = f"The log directory {directory} belongs to node 1, not to node 2: set node.id=1"
    assert refusal(directory, {"node.id": "2"}) == sentence


def test_partitions_without_their_metadata_are_rejected_and_kept(directory: Path) -> None:
    """They would be set aside as strays: a missing metadata.log.dir must not lose data."""
    (directory / METADATA).rename(directory.parent / METADATA)
    assert "no metadata of them" in refusal(directory)
    assert (directory / "orders-0").is_dir()
    assert "no metadata of them" in refusal(directory), "the next start is refused too"
    assert not (directory / METADATA).exists()
    (directory.parent / METADATA).rename(directory / METADATA)
    MemoryBroker(directory).close()


def test_a_log_that_starts_after_its_snapshots_is_rejected(directory: Path) -> None:
    """The records before its start are lost."""
    memory = MemoryBroker(directory, {"metadata.log.max.record.bytes.between.snapshots": "1"})
    memory.create_topic("new")
    memory.close()
    for snapshot in (directory / METADATA).glob("*.checkpoint"):
        snapshot.unlink()
    assert "there is no snapshot of the records" in refusal(directory)


def test_a_damaged_snapshot_is_rejected(directory: Path) -> None:
    snapshot = max((directory / METADATA).glob("*.checkpoint"))
    snapshot.chmod(0o600)
    for content in (b"", snapshot.read_bytes()[:-9], b"\0" * 300):
        snapshot.write_bytes(content)
        assert "The snapshot at offset" in refusal(directory)


def test_a_zookeeper_directory_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=abc\n")
    assert "was used with ZooKeeper" in refusal(tmp_path)
    assert "node.id" not in (tmp_path / "meta.properties").read_text()


def test_a_new_metadata_log_is_created_where_kafka_expects_it(tmp_path: Path) -> None:
    """The first of log.dirs, or metadata.log.dir; one that is not a log directory is an error."""
    first, second = tmp_path / "first", tmp_path / "second"
    MemoryBroker(first, more_dirs=[second]).close()
    assert (first / METADATA).is_dir()
    third, fourth = tmp_path / "third", tmp_path / "fourth"
    MemoryBroker(third, {"metadata.log.dir": str(fourth)}, more_dirs=[fourth]).close()
    assert (fourth / METADATA).is_dir()
    with pytest.raises(ConfigError, match=r"must be one of log\.dirs"):
        MemoryBroker(tmp_path / "fifth", {"metadata.log.dir": str(tmp_path / "elsewhere")})
