"""The controller on a real data directory: every change survives a restart and is applied by its subscribers."""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

from barnabas.broker.config.keys.network import MAX_CONNECTIONS
from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.config.load import load
from barnabas.broker.event_loop.loop import Loop
from barnabas.broker.event_loop.steps import StepRunner
from barnabas.broker.log_dir_failures import LogDirFailures
from barnabas.broker.metadata.controller import Controller
from barnabas.broker.metadata.log import metadata_log
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.local_controller import Outcome
from barnabas.coord.cluster.node_records import BOOTSTRAP_FEATURES, SUPPORTED_FEATURES
from barnabas.storage.directories.log_dirs import LogDirs
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.topics import DeleteTopicsRequest
from barnabas.wire.types import ONE_UUID
from tests.support.disks.failing_files import FailingFiles
from tests.support.memory.broker import MemoryBroker
from tests.support.steps import AtOnce
from tests.support.world import Flushes

R = TypeVar("R")
ids = count(1)


class Subscriber:
    """Records the topics that exist by the changes it is called with."""

    def __init__(self) -> None:
        self.topics: set[str] = set()

    def apply(self, delta: ClusterDelta) -> None:
        self.topics |= {topic.name for topic in delta.created_topics.values()}
        self.topics -= {topic.name for topic in delta.deleted_topics.values()}


class SingleController:
    """The parts of a broker that the controller works with, and a subscriber."""

    def __init__(self, path: Path, **sets: str) -> None:
        self.files = FailingFiles(is_synced=False)
        self.failed_dirs: list[str] = []
        self.config = load({key.replace("_", "."): value for key, value in sets.items()}, {}, None)
        self.node_id = self.config.node_id
        self.log_dirs = LogDirs(self.files, [str(path)], lambda: next(ids).to_bytes(16, "big"))
        self.log_dirs.open(self.node_id)
        self.subscriber = Subscriber()
        loop = Loop(lambda: 0.0, lambda: 1_000)
        failures = LogDirFailures(loop, self.log_dirs, lambda _reason: None)
        failures.on_failure.append(lambda log_dir, _reason: self.failed_dirs.append(log_dir.path))
        self.controller = Controller(
            loop, self.config, self.log_dirs, failures, StepRunner(loop, Flushes()), cluster_id="c"
        )
        self.controller.on_change.append(self.subscriber.apply)
        self.controller.open()
        self.controller.register_broker([Endpoint("PLAINTEXT", "", 9092)])

    @property
    def image(self) -> ClusterImage:
        return self.controller.image

    def stop(self) -> None:
        self.log_dirs.close()

    def kill(self) -> None:
        for log_dir in self.log_dirs.dirs:
            log_dir.release()

    def configure(self, kind: int, resource: str, **configs: str | None) -> int:
        changes = [
            IncrementalAlterConfigsRequestAlterableConfig(
                name=key.replace("_", "."), config_operation=int(value is None), value=value
            )
            for key, value in configs.items()
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[
                IncrementalAlterConfigsRequestAlterConfigsResource(
                    resource_type=kind, resource_name=resource, configs=changes
                )
            ]
        )
        response = self.commit(lambda: AtOnce(self.controller.local).incremental_alter_configs(request))
        return response.responses[0].error_code

    def commit(self, validate: Callable[[], Outcome[R]]) -> R:
        answers: list[R | KafkaError] = []
        self.controller.commit(validate, answers.append)
        (response,) = answers
        if isinstance(response, KafkaError):
            raise response
        return response

    def delete(self, name: str) -> None:
        self.commit(lambda: AtOnce(self.controller.local).delete_topics(DeleteTopicsRequest(topic_names=[name])))

    def create(self, *names: str) -> None:
        errors: list[Mapping[str, KafkaError]] = []
        self.controller.auto_create(names, errors.append)
        for error in errors[0].values():
            raise error

    def allocate_producer_ids(self) -> tuple[int, int]:
        blocks: list[Any] = []
        self.controller.allocate_producer_ids(blocks.append)
        return blocks[0]


def content_of(image: ClusterImage) -> dict[str, Any]:
    """The content of an image without what each start writes."""
    return {key: value for key, value in vars(image).items() if key not in {"offset", "epoch", "brokers"}}


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_restart_finds_topics_ids_configs_and_producer_ids_again(tmp_path: Path, is_clean: bool) -> None:
    first = SingleController(tmp_path)
    first.create("orders", "__consumer_offsets")
    first.create("gone")
    first.delete("gone")
    assert first.configure(2, "orders", retention_ms="5") == 0
    assert first.configure(4, "1", max_connections="7") == 0
    assert first.allocate_producer_ids() == (0, 1000)
    before = content_of(first.image)
    if is_clean:
        first.stop()
    else:
        first.kill()
    second = SingleController(tmp_path)
    if not is_clean:  # after a crash every partition has a new leader epoch
        before = {**before, "topics": second.image.topics, "topics_by_id": second.image.topics_by_id}
        assert {n: t.topic_id for n, t in first.image.topics.items()} == {
            n: t.topic_id for n, t in second.image.topics.items()
        }
    assert content_of(second.image) == before
    assert second.config[MAX_CONNECTIONS] == 7
    assert second.allocate_producer_ids() == (1000, 1000)


def test_a_crash_and_only_a_crash_makes_new_leader_epochs(tmp_path: Path) -> None:
    """KIP-320."""

    def epoch(node: SingleController) -> int:
        return node.image.topics["orders"].partitions[0].leader_epoch

    node = SingleController(tmp_path)
    node.create("orders")
    assert epoch(node) == 0
    node.stop()
    node = SingleController(tmp_path)
    assert epoch(node) == 0
    node.kill()
    assert epoch(SingleController(tmp_path)) == 1


def test_each_start_registers_the_broker_with_a_later_epoch(tmp_path: Path) -> None:
    first = SingleController(tmp_path)
    registered = first.image.brokers[1]
    assert (registered.fenced, registered.rack) == (False, None)
    assert [(e.name, e.host, e.port) for e in registered.endpoints] == [("PLAINTEXT", "localhost", 9092)]
    first.stop()
    second = SingleController(tmp_path)
    assert second.image.brokers[1].epoch > registered.epoch
    assert second.image.brokers[1].directories == registered.directories
    assert second.image.epoch == first.image.epoch + 1


def test_the_log_has_the_fixed_topic_id_and_its_features_first(tmp_path: Path) -> None:
    node = SingleController(tmp_path)
    assert node.log_dirs.logs["__cluster_metadata", 0].topic_id == ONE_UUID
    assert node.image.features == {name: SUPPORTED_FEATURES[name][1] for name in BOOTSTRAP_FEATURES}


def test_subscribers_are_called_before_the_request_is_answered(tmp_path: Path) -> None:
    node = SingleController(tmp_path)
    node.create("a", "b")
    assert node.subscriber.topics == {"a", "b"}
    node.delete("a")
    assert node.subscriber.topics == {"b"}


def test_dynamic_configs_are_effective_immediately_and_listeners_are_called(tmp_path: Path) -> None:
    node = SingleController(tmp_path)
    heard: list[set[str]] = []
    node.controller.on_config_change.append(heard.append)
    assert node.configure(4, "", max_connections="9", log_segment_bytes="2000000") == 0
    assert heard == [{"max.connections", "log.segment.bytes"}]
    assert node.config[MAX_CONNECTIONS] == 9
    assert node.config.topic_defaults() == {"segment.bytes": "2000000"}
    assert node.configure(4, "", max_connections=None, log_segment_bytes=None) == 0
    assert node.config[MAX_CONNECTIONS] == 2**31 - 1


def test_a_changed_default_of_the_broker_reaches_its_topics(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path)
    memory.create_topic("t")
    log = memory.broker.partitions.get("t", 0).log
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=4,
        resource_name="",
        configs=[
            IncrementalAlterConfigsRequestAlterableConfig(name="log.segment.bytes", config_operation=0, value="2000000")
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    response = memory.client().ask(request, 1, IncrementalAlterConfigsResponse)
    assert response.responses[0].error_code == 0
    assert log.config.segment_bytes == 2_000_000
    memory.close()


def test_a_config_that_is_not_acted_on_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = SingleController(tmp_path)
    node.create("orders")
    with caplog.at_level(logging.WARNING):
        for value in ("8", "9"):
            assert node.configure(2, "orders", compression_gzip_level=value, segment_bytes="2000000") == 0
    assert [record.getMessage() for record in caplog.records] == [
        "Config compression.gzip.level (set on 'orders') is known to Kafka, not acted on by Barnabas"
    ]


def test_listeners_of_a_running_broker_cannot_change_yet(tmp_path: Path) -> None:
    node = SingleController(tmp_path)
    assert node.configure(4, "1", listeners="PLAINTEXT://:9999") == ErrorCode.INVALID_REQUEST
    assert node.image.configs == {}


def test_the_offsets_topic_is_compacted_and_has_its_own_settings(tmp_path: Path) -> None:
    """G2."""
    node = SingleController(tmp_path, offsets_topic_num_partitions="3")
    node.create("__consumer_offsets")
    assert len(node.image.topics["__consumer_offsets"].partitions) == 3
    assert node.image.config(2, "__consumer_offsets") == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_topics_that_are_not_created_automatically(tmp_path: Path) -> None:
    node = SingleController(tmp_path)
    with pytest.raises(KafkaError) as raised:
        node.create("a b")
    assert raised.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert node.image.topics == {}


def test_an_existing_topic_is_not_created_again(tmp_path: Path) -> None:
    node = SingleController(tmp_path)
    node.create("orders")
    offset = node.image.offset
    node.create("orders")
    assert node.image.offset == offset


def test_after_a_failed_sync_every_change_is_refused(tmp_path: Path) -> None:
    """Never retry a failed fsync: the state of the disk is unknown."""
    node = SingleController(tmp_path)
    node.files.errors["sync"] = errno.EIO
    with pytest.raises(KafkaError) as raised:
        node.create("orders")
    assert raised.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert node.failed_dirs == [str(tmp_path)]
    node.files.errors.clear()
    with pytest.raises(KafkaError, match="could not be synced"):
        node.create("orders")
    assert node.image.topics == {}
    assert node.subscriber.topics == set()


def test_a_grown_log_is_replaced_by_a_snapshot(tmp_path: Path) -> None:
    """KIP-630."""
    small = {"metadata_log_max_record_bytes_between_snapshots": "2000"}
    node = SingleController(tmp_path, **small)
    for index in range(40):
        node.create(f"t{index}")
        if index % 2:
            node.delete(f"t{index}")
    log = node.log_dirs.logs["__cluster_metadata", 0]
    assert log.log_start_offset > 0
    assert len(list((tmp_path / "__cluster_metadata-0").glob("*.checkpoint"))) == 1
    before = content_of(node.image)
    node.stop()
    again = SingleController(tmp_path, **small)
    assert content_of(again.image) == before
    assert len(again.image.topics) == 20


def test_a_log_is_replayed_wherever_a_read_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = SingleController(tmp_path)
    for index in range(10):
        node.create(f"t{index}")
    before = content_of(node.image)
    node.stop()
    for read_bytes in range(61, 1000, 47):
        monkeypatch.setattr(metadata_log, "READ_BYTES", read_bytes)
        again = SingleController(tmp_path)
        assert content_of(again.image) == before
        again.stop()
