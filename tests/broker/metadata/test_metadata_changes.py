"""Changes of the metadata: one after the other, answered when durable and in effect; the loop waits for no disk."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.metadata_batches import replay_batches
from barnabas.coord.cluster.topic_image import MIGRATING_DIRECTORY
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.messages.produce import InitProducerIdRequest, InitProducerIdResponse, ProduceResponse
from barnabas.wire.messages.records.metadata_records import FeatureLevelRecord
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.support.disks.failing_files import FailingFiles
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.groups import find
from tests.support.requests.produce import produce, to
from tests.support.world import Clock, Flushes

WAITS = frozenset({"sync", "sync_dir", "sync_file_system", "remove_tree", "mkdirs"})
"""What may take long on a disk."""


class WatchedDisk(FailingFiles):
    """Files that note what the event loop has to wait for: syncs and changes of directories outside of the threads."""

    def __init__(self) -> None:
        super().__init__(is_synced=False)
        self.in_thread = False
        self.waits: list[str] = []
        self.fails: Callable[[str, str], bool] = lambda operation, path: False

    def before(self, operation: str, path: str) -> None:
        if not self.in_thread and operation in WAITS:
            self.waits.append(f"{operation} {path}")
        if self.fails(operation, path):
            raise OSError(errno.EIO, "Input/output error", path)


class Threads(Flushes):
    """Runs work at once, as a thread would."""

    def __init__(self, disk: WatchedDisk) -> None:
        super().__init__()
        self.disk = disk

    def run(self, in_thread: Callable[[Callable[[], None]], None] = lambda work: work()) -> None:
        def run(work: Callable[[], None]) -> None:
            self.disk.in_thread = True
            try:
                in_thread(work)
            finally:
                self.disk.in_thread = False

        super().run(run)


class SlowClock(Clock):
    """A clock that goes on whenever it is read, once it runs."""

    def __init__(self) -> None:
        self.tick = 0.0
        self._now = 0.0
        super().__init__()

    @property
    def now(self) -> float:  # type: ignore[override]
        self._now += self.tick
        return self._now

    @now.setter
    def now(self, value: float) -> None:
        self._now = value


@pytest.fixture
def disk() -> WatchedDisk:
    return WatchedDisk()


@pytest.fixture
def memory(tmp_path: Path, disk: WatchedDisk) -> Iterator[MemoryBroker]:
    memory = MemoryBroker(tmp_path, {"offsets.topic.num.partitions": "3"}, files=disk, disk=Threads(disk))
    disk.waits.clear()
    yield memory
    memory.disk.is_paused = False
    memory.close()


def creation(*names: str, partitions: int = 1) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics)


def errors_of(response: Any) -> list[int]:
    return [result.error_code for result in getattr(response, "topics", None) or response.responses]


def response_of(client: Client, response_class: type[Any]) -> Any:
    (response,) = client.answers()
    assert isinstance(response, response_class)
    return response


def test_a_change_is_answered_and_visible_when_it_is_durable(memory: MemoryBroker) -> None:
    client, other = memory.client(), memory.client()
    memory.disk.is_paused = True
    client.send(creation("t"), 7)
    other.send(MetadataRequest(topics=None), 12)
    assert client.answers() == []
    assert response_of(other, MetadataResponse).topics == []
    assert "t" not in memory.broker.image.topics
    while memory.disk.held:
        assert client.answers() == []
        memory.run_disk()
    assert errors_of(response_of(client, CreateTopicsResponse)) == [0]
    assert memory.broker.partitions.get("t", 0).log.log_end_offset == 0


def test_a_change_is_validated_when_the_earlier_ones_are_in_effect(memory: MemoryBroker) -> None:
    clients = [memory.client() for _ in range(3)]
    memory.disk.is_paused = True
    clients[0].send(creation("t"), 7)
    clients[1].send(creation("t"), 7)
    clients[2].send(DeleteTopicsRequest(topic_names=["t"]), 5)
    memory.run_all()
    assert errors_of(response_of(clients[0], CreateTopicsResponse)) == [0]
    assert errors_of(response_of(clients[1], CreateTopicsResponse)) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    assert errors_of(response_of(clients[2], DeleteTopicsResponse)) == [0]
    assert memory.broker.image.topics == {}


def test_everybody_who_creates_a_topic_by_asking_for_it_finds_it(memory: MemoryBroker) -> None:
    clients = [memory.client() for _ in range(3)]
    memory.disk.is_paused = True
    for client in clients:
        client.send(MetadataRequest(topics=[MetadataRequestTopic(name="t"), MetadataRequestTopic(name="a b")]), 12)
    memory.run_all()
    for client in clients:
        assert errors_of(response_of(client, MetadataResponse)) == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_after_a_failed_sync_everybody_in_the_queue_is_answered(memory: MemoryBroker, disk: WatchedDisk) -> None:
    clients = [memory.client() for _ in range(3)]
    memory.disk.is_paused = True
    for index, client in enumerate(clients):
        client.send(creation(f"t{index}"), 7)
    disk.fails = lambda operation, path: operation == "sync"
    memory.run_all()
    for client in clients:
        assert errors_of(response_of(client, CreateTopicsResponse)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert memory.broker.image.topics == {}
    disk.fails = lambda operation, path: False


def test_a_long_response_is_encoded_in_slices(memory: MemoryBroker) -> None:
    client = memory.client()
    client.send(creation("alone"), 7)
    assert errors_of(response_of(client, CreateTopicsResponse)) == [0]
    names = [f"t.{index}" for index in range(500)]
    for request, version, kind in (
        (creation(*names), 7, CreateTopicsResponse),
        (DeleteTopicsRequest(topic_names=names), 5, DeleteTopicsResponse),
    ):
        client.send(request, version)
        assert client.answers() == []
        memory.advance(0)
        assert errors_of(response_of(client, kind)) == [0] * 500


def test_a_bug_in_a_change_is_answered_and_the_next_is_made(
    memory: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = [memory.client() for _ in range(3)]
    memory.disk.is_paused = True
    monkeypatch.setattr(memory.broker.controller.local, "delete_topics_in_steps", lambda request: 1 / 0)
    clients[0].send(creation("t"), 7)
    clients[1].send(DeleteTopicsRequest(topic_names=["t"]), 5)
    clients[2].send(creation("u"), 7)
    memory.run_all()
    assert errors_of(response_of(clients[0], CreateTopicsResponse)) == [0]
    assert errors_of(response_of(clients[1], DeleteTopicsResponse)) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert errors_of(response_of(clients[2], CreateTopicsResponse)) == [0]


def test_a_stop_finishes_the_change_in_progress_and_refuses_the_others(memory: MemoryBroker, tmp_path: Path) -> None:
    clients = [memory.client() for _ in range(2)]
    memory.disk.is_paused = True
    clients[0].send(creation("t"), 7)
    clients[1].send(creation("u"), 7)
    memory.broker.controller.close()
    assert errors_of(response_of(clients[0], CreateTopicsResponse)) == [0]
    assert errors_of(response_of(clients[1], CreateTopicsResponse)) == [ErrorCode.BROKER_NOT_AVAILABLE]
    assert memory.broker.partitions.get("t", 0)
    memory.disk.run()  # the thread ends after the stop
    assert errors_of(memory.client().ask(creation("v"), 7, CreateTopicsResponse)) == [ErrorCode.BROKER_NOT_AVAILABLE]
    memory.close()
    again = MemoryBroker(tmp_path)
    assert set(again.broker.image.topics) == {"t"}
    again.close()


def test_no_request_waits_for_the_disk_in_the_loop(memory: MemoryBroker, disk: WatchedDisk) -> None:
    """Partitions made, written, cut and deleted; configs; coordinators; producer ids."""
    client = memory.client()
    for _ in range(2):
        assert errors_of(client.ask(creation("t", partitions=20), 7, CreateTopicsResponse)) == [0]
        for _ in range(3):
            client.send(produce(to(0, batch(b"x" * 100))), 9)
        memory.broker.partitions.get("t", 0).log.roll(memory.clock.now)
        partitions = [DeleteRecordsPartition(partition_index=0, offset=3)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=partitions)], timeout_ms=1000)
        client.answers()
        response = client.ask(request, 2, DeleteRecordsResponse)
        assert response.topics[0].partitions[0].low_watermark == 3
        change = IncrementalAlterConfigsRequestAlterableConfig(name="segment.ms", config_operation=0, value="60000")
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=2, resource_name="t", configs=[change]
        )
        altered = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse)
        assert altered.responses[0].error_code == 0
        find(client, "group")
        client.ask(InitProducerIdRequest(transactional_id=None), 4, InitProducerIdResponse)
        assert errors_of(client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)) == [0]
    assert disk.waits == []


def test_the_first_records_of_many_partitions_wait_for_no_disk_in_the_loop(
    memory: MemoryBroker, disk: WatchedDisk
) -> None:
    """Each begins a leader epoch."""
    client = memory.client()
    assert errors_of(client.ask(creation("t", partitions=300), 7, CreateTopicsResponse)) == [0]
    request = produce(*(to(index, batch(b"v")) for index in range(300)))
    response = client.ask(request, 9, ProduceResponse)
    assert [partition.error_code for partition in response.responses[0].partition_responses] == [0] * 300
    assert {partition.log.leader_epochs.latest_epoch for partition in memory.broker.partitions.of_topic("t")} == {0}
    assert disk.waits == []


def test_a_deletion_syncs_the_log_directory_once(memory: MemoryBroker, disk: WatchedDisk, tmp_path: Path) -> None:
    client = memory.client()
    client.ask(creation("t", partitions=50), 7, CreateTopicsResponse)
    synced: list[str] = []
    disk.fails = lambda operation, path: bool(operation == "sync_dir" and synced.append(path))
    client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    assert synced.count(str(tmp_path)) <= 1 + 3  # the names of the partitions, and at most the three checkpoints


def test_new_partitions_write_no_checkpoint_one_by_one(memory: MemoryBroker, disk: WatchedDisk) -> None:
    """Checkpoints of deleted partitions with the same names are written together, by the deletion."""
    client = memory.client()
    client.ask(creation("t", partitions=50), 7, CreateTopicsResponse)
    for _, write in memory.broker.log_dirs.plan_checkpoint("replication-offset-checkpoint"):
        write()
    client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    synced: list[str] = []
    disk.fails = lambda operation, path: bool(operation == "sync" and synced.append(path))
    client.ask(creation("t", partitions=50), 7, CreateTopicsResponse)
    assert [path for path in synced if "checkpoint" in path] == []


def test_a_partition_that_cannot_be_renamed_does_not_keep_the_others(memory: MemoryBroker, disk: WatchedDisk) -> None:
    client = memory.client()
    client.ask(creation("t", partitions=4), 7, CreateTopicsResponse)
    partitions = memory.broker.partitions.of_topic("t")
    full = OSError(errno.ENOSPC, "No space left on device")

    def fails(operation: str, path: str) -> bool:
        if operation == "rename" and path.endswith("/t-1"):
            raise full
        return False

    disk.fails = fails
    assert errors_of(client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)) == [0]
    assert all(partition.is_closed for partition in partitions)
    assert ("t", 3) not in memory.broker.log_dirs.logs
    disk.fails = lambda operation, path: False
    assert errors_of(client.ask(creation("t", partitions=4), 7, CreateTopicsResponse)) == [0]
    assert memory.broker.partitions.get("t", 1).log.log_end_offset == 0


def test_others_are_served_while_partitions_are_made_and_deleted(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path)
    clock = SlowClock()
    clock.now = memory.clock.now
    memory.clock = clock
    client, other = memory.client(), memory.client()
    clock.tick = 0.0001
    for request, version in ((creation("t", partitions=300), 7), (DeleteTopicsRequest(topic_names=["t"]), 5)):
        client.send(request, version)
        turns = 0
        while not (answers := client.answers()):
            turns += 1
            other.send(MetadataRequest(topics=[]), 12)
            response_of(other, MetadataResponse)
            memory.broker.loop.timers.fire(clock.now)
        assert errors_of(answers[0]) == [0]
        assert turns > 10
    memory.close()


def test_partitions_are_placed_in_the_directory_with_the_fewest(tmp_path: Path) -> None:
    memory = MemoryBroker(tmp_path / "a", more_dirs=[tmp_path / "b", tmp_path / "c"])
    client = memory.client()
    client.ask(creation("t", partitions=30), 7, CreateTopicsResponse)
    client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
    client.ask(creation("u", partitions=32), 7, CreateTopicsResponse)
    held = [len(list((tmp_path / name).glob("u-*"))) for name in "abc"]
    assert max(held) - min(held) <= 1
    assert sum(held) == 32
    memory.close()


def test_the_image_is_what_readers_of_the_log_have(tmp_path: Path) -> None:
    """A record of an old metadata.version has no log directories: also this node must not know them."""
    memory = MemoryBroker(tmp_path / "data")
    log = memory.broker.controller._log
    run_in_place(log.write([FeatureLevelRecord(name="metadata.version", feature_level=16)]))
    memory.create_topic("t")
    read = ClusterImage()
    replay_batches(b"".join(path.read_bytes() for path in log_files(tmp_path / "data")), read, ClusterDelta())
    (partition,) = read.topics["t"].partitions.values()
    assert partition.directories == (MIGRATING_DIRECTORY,)
    assert memory.broker.image.topics == read.topics
    memory.close()


def log_files(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "__cluster_metadata-0").glob("*.log"))
