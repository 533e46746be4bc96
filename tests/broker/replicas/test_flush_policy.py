"""Flush policies: no record is acknowledged or readable before its flush (R12, R13, R15, G2)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.replicas.flush.syncfs_choice import MANY_FILES, MAX_BACKOFF, SyncfsChoice
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.groups.classic_groups import JoinGroupResponse, SyncGroupResponse
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.produce import ProduceResponse
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.support.disks.failing_files import FailingFiles
from tests.support.memory.broker import Client, MemoryBroker, batch
from tests.support.requests.fetch import at, fetch, values
from tests.support.requests.groups import commit, find, join_request, member_id_of, sync_request
from tests.support.requests.groups import fetch as fetch_committed
from tests.support.requests.produce import answers, init, produce, to

ALWAYS = {"barnabas.log.sync": "always", "offsets.topic.num.partitions": "1"}


def start(data_dir: Path, sets: dict[str, str] | None = None, **options) -> MemoryBroker:
    """A broker with two topics, `t` with three partitions and `u`, whose directories are synced."""
    memory = MemoryBroker(data_dir, sets, **options)
    memory.create_topic("t", 3)
    memory.create_topic("u")
    client = memory.client()
    for partition in range(3):
        client.ask(produce(to(partition, batch(b"first"))), 9, ProduceResponse)
    memory.flushes.is_paused = True
    return memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryBroker]:
    """`barnabas.log.sync=always`; flushes run when a test runs them."""
    memory = start(tmp_path / "data", ALWAYS)
    yield memory
    memory.close()


@pytest.fixture
def client(memory: MemoryBroker) -> Client:
    return memory.client()


def log_of(memory: MemoryBroker, partition: int = 0):
    return memory.broker.partitions.get("t", partition).log


def seen(memory: MemoryBroker) -> tuple[list[bytes | None], int, int]:
    """What a client reads from t-0: (values, high watermark, latest offset)."""
    partition = memory.client().ask(fetch(at(0)), 12, FetchResponse).responses[0].partitions[0]
    requested = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
    latest = memory.client().ask(ListOffsetsRequest(replica_id=-1, topics=[requested]), 7, ListOffsetsResponse)
    return [value for _, value in values(partition)], partition.high_watermark, latest.topics[0].partitions[0].offset


def set_config(memory: MemoryBroker, topic: str, **configs: str) -> None:
    entries = [
        IncrementalAlterConfigsRequestAlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in configs.items()
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name=topic, configs=entries)
    response = memory.client().ask(
        IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse
    )
    assert response.responses[0].error_code == 0, response


class TestAlways:
    @pytest.mark.parametrize("acks", [1, -1])
    def test_a_record_is_neither_acknowledged_nor_readable_before_its_flush(
        self, memory: MemoryBroker, client: Client, acks: int
    ) -> None:
        client.send(produce(to(0, batch(b"second")), acks=acks), 9)
        assert client.answers() == []
        assert seen(memory) == ([b"first"], 1, 1)
        assert (log_of(memory).log_end_offset, log_of(memory).synced_offset) == (2, 1)
        memory.run_flush()
        (partition,) = answers(client.answers()[0])
        assert (partition.error_code, partition.base_offset) == (0, 1)
        assert seen(memory) == ([b"first", b"second"], 2, 2)
        assert log_of(memory).synced_offset == 2

    def test_a_record_with_acks_0_is_flushed_too(self, memory: MemoryBroker, client: Client) -> None:
        """R13."""
        client.feed(client.frame(produce(to(0, batch(b"second")), acks=0), 9))
        client.sent.clear()
        assert seen(memory)[1] == 1
        memory.run_flush()
        assert client.answers() == []
        assert seen(memory)[1] == 2

    def test_records_appended_during_a_flush_share_the_next_one(self, memory: MemoryBroker) -> None:
        clients = [memory.client() for _ in range(4)]
        for number, producer in enumerate(clients):
            producer.send(produce(to(number % 3, batch(b"%d" % number))), 9)
        assert len(memory.flushes.held) == 1
        memory.run_flush()
        assert [len(producer.answers()) for producer in clients] == [1, 0, 0, 0]
        assert len(memory.flushes.held) == 1
        memory.run_flush()
        assert [len(producer.answers()) for producer in clients] == [0, 1, 1, 1]
        assert memory.flushes.held == []

    def test_a_request_for_several_partitions_waits_for_all_of_them(self, memory: MemoryBroker) -> None:
        first, second = memory.client(), memory.client()
        first.send(produce(to(1, batch(b"x"))), 9)
        second.send(produce(to(0, batch(b"a")), to(1, batch(b"b")), to(7, batch(b"nowhere"))), 9)
        memory.run_flush()
        assert second.answers() == []
        memory.run_flush()
        assert [(partition.error_code, partition.base_offset) for partition in answers(second.answers()[0])] == [
            (0, 1),
            (0, 2),
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ]

    def test_a_duplicate_batch_waits_for_the_flush_of_the_first(self, memory: MemoryBroker) -> None:
        """I1: a retry must not acknowledge a record that a power failure could still lose."""
        first, retry = memory.client(), memory.client()
        memory.flushes.is_paused = False
        producer_id = init(first).producer_id
        memory.flushes.is_paused = True
        request = produce(to(0, batch(b"once", producer_id=producer_id, producer_epoch=0, base_sequence=0)))
        for producer in (first, retry):
            producer.send(request, 9)
            assert producer.answers() == []
        memory.run_flush()
        for producer in (first, retry):
            (partition,) = answers(producer.answers()[0])
            assert (partition.error_code, partition.base_offset) == (0, 1)
        assert memory.flushes.held == []
        assert len(memory.client().ask(request, 9, ProduceResponse).responses) == 1

    def test_a_delayed_fetch_is_woken_by_the_flush(self, memory: MemoryBroker, client: Client) -> None:
        reader = memory.client()
        reader.send(fetch(at(1), max_wait_ms=10_000, min_bytes=60), 12)
        client.send(produce(to(0, batch(b"second"))), 9)
        assert reader.answers() == []
        memory.run_flush()
        assert values(reader.answers()[0].responses[0].partitions[0]) == [(1, b"second")]

    def test_a_delayed_fetch_counts_only_committed_bytes(self, memory: MemoryBroker, client: Client) -> None:
        reader = memory.client()
        size = len(batch(b"x"))
        reader.send(fetch(at(1), max_wait_ms=10_000, min_bytes=3 * size), 12)
        for _ in range(3):
            memory.client().send(produce(to(0, batch(b"x"))), 9)
        memory.run_flush()
        assert reader.answers() == []
        memory.run_flush()
        assert len(values(reader.answers()[0].responses[0].partitions[0])) == 3

    def test_only_data_files_are_synced_and_directories_of_new_files(self, tmp_path: Path) -> None:
        files = FailingFiles()
        memory = start(tmp_path / "data", ALWAYS, files=files)
        memory.flushes.is_paused = False
        directory = log_of(memory).directory
        files.done.clear()
        for _ in range(3):
            memory.client().ask(produce(to(0, batch(bytes(5000)))), 9, ProduceResponse)
        assert files.paths("sync", "sync_dir", "sync_file_system") == [f"{directory}/{0:020d}.log"] * 3
        files.done.clear()
        log_of(memory).roll(memory.clock.now)
        memory.client().ask(produce(to(0, batch(b"x"))), 9, ProduceResponse)
        end = log_of(memory).log_end_offset
        assert files.paths("sync", "sync_dir", "sync_file_system")[:1] == [f"{directory}/{end - 1:020d}.log"]
        assert directory in files.paths("sync", "sync_dir", "sync_file_system")
        assert not [path for path in files.paths("sync", "sync_dir", "sync_file_system") if path.endswith("index")]
        memory.close()

    def test_recovery_point_stays_in_its_segment_until_the_indexes_are_synced(self, memory: MemoryBroker) -> None:
        """L1: recovery must include every segment whose index a power failure could have damaged."""
        memory.flushes.is_paused = False
        log = log_of(memory)
        memory.client().ask(produce(to(0, batch(b"a", b"b"))), 9, ProduceResponse)
        assert (log.synced_offset, log.recovery_point) == (3, 3)
        memory.client().ask(produce(to(0, batch(b"c"))), 9, ProduceResponse)
        log.roll(memory.clock.now)
        memory.client().ask(produce(to(0, batch(b"d"))), 9, ProduceResponse)
        assert (log.synced_offset, log.recovery_point) == (5, 3)
        log.flush()
        assert log.recovery_point == 5

    def test_deleting_a_topic_fails_requests_waiting_for_its_flush(self, memory: MemoryBroker, client: Client) -> None:
        other = memory.client()
        client.send(produce(to(0, batch(b"a"))), 9)
        other.send(produce(to(0, batch(b"b")), topic="u"), 9)
        memory.client().ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5, DeleteTopicsResponse)
        (partition,) = answers(client.answers()[0])
        assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        memory.run_flush()
        memory.run_flush()
        assert answers(other.answers()[0])[0].error_code == 0

    def test_a_directory_renamed_during_its_flush_is_no_failure(self, memory: MemoryBroker) -> None:
        memory.create_topic("new")
        other = memory.client()
        memory.client().send(produce(to(0, batch(b"a")), topic="new"), 9)
        memory.client().ask(DeleteTopicsRequest(topic_names=["new"], timeout_ms=1000), 5, DeleteTopicsResponse)
        other.send(produce(to(0, batch(b"b")), topic="u"), 9)
        memory.run_flush()
        memory.run_flush()
        assert answers(other.answers()[0])[0].error_code == 0
        assert memory.broker.log_dirs.dirs[0].failure is None

    def test_a_client_may_disconnect_while_it_waits_for_a_flush(self, memory: MemoryBroker, client: Client) -> None:
        other = memory.client()
        client.send(produce(to(0, batch(b"a"))), 9)
        other.send(produce(to(0, batch(b"b"))), 9)
        client.connection.close()
        memory.run_flush()
        memory.run_flush()
        assert answers(other.answers()[0])[0].base_offset == 2

    def test_records_left_in_the_page_cache_by_a_crash_are_flushed_before_they_are_read(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", ALWAYS)
        memory.client().send(produce(to(0, batch(b"second"))), 9)
        shutil.copytree(tmp_path / "data", tmp_path / "copy")
        memory.close()
        files = FailingFiles()
        memory = MemoryBroker(tmp_path / "copy", ALWAYS, files=files)
        assert f"{log_of(memory).directory}/{0:020d}.log" in files.paths("sync", "sync_dir", "sync_file_system")
        assert (log_of(memory).synced_offset, seen(memory)[1]) == (2, 2)
        memory.close()


class TestGroups:
    """G2: a coordinator responds only after its records are flushed."""

    def test_a_committed_offset_is_not_acknowledged_or_fetched_before_its_flush(self, memory: MemoryBroker) -> None:
        memory.flushes.is_paused = False
        client, reader = memory.client(), memory.client()
        find(client)
        assert commit(client, "t", 5) == {0}
        memory.flushes.is_paused = True
        request = OffsetCommitRequest(
            group_id="g",
            topics=[
                OffsetCommitRequestTopic(
                    name="t", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=6)]
                )
            ],
        )
        client.send(request, 9)
        assert client.answers() == []
        with pytest.raises(ValueError, match="not enough values"):
            fetch_committed(reader, "t")
        memory.run_flush()
        assert isinstance(client.answers()[0], OffsetCommitResponse)
        (shown,) = reader.answers()
        assert shown.groups[0].topics[0].partitions[0].committed_offset == 6
        assert fetch_committed(reader, "t") == 6

    def test_a_generation_starts_when_its_record_is_flushed(self, memory: MemoryBroker) -> None:
        memory.flushes.is_paused = False
        client = memory.client()
        find(client)
        joined = client.ask(join_request(member_id_of(client)), 9, JoinGroupResponse)
        memory.flushes.is_paused = True
        client.send(sync_request(joined), 5)
        assert client.answers() == []
        memory.run_flush()
        (synced,) = client.answers()
        assert isinstance(synced, SyncGroupResponse)
        assert (synced.error_code, synced.assignment) == (0, b"mine")


class TestOtherPolicies:
    def test_with_os_nothing_is_flushed_and_no_response_is_delayed(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", {"barnabas.log.sync": "os"})
        assert memory.broker.partitions.get("t", 0).flush_policy is None
        (partition,) = answers(memory.client().ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))
        assert partition.base_offset == 1
        assert seen(memory)[1] == 2
        memory.advance(3600)
        assert memory.flushes.held == []
        memory.close()

    def test_with_interval_no_response_is_delayed_and_flushes_come_within_the_interval(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", {"barnabas.log.sync": "interval", "log.flush.interval.ms": "500"})
        log = log_of(memory, 1)
        memory.advance(1)
        memory.run_flush()
        memory.client().ask(produce(to(1, batch(b"a"))), 9, ProduceResponse)
        memory.advance(0.4)
        memory.client().ask(produce(to(1, batch(b"b"))), 9, ProduceResponse)
        before = len(memory.flushes.held)
        memory.advance(0.11)
        assert (before, len(memory.flushes.held)) == (0, 1)
        assert log.synced_offset < log.log_end_offset == log.high_watermark == 3
        memory.run_flush()
        assert log.synced_offset == 3
        memory.close()

    def test_flush_messages_of_one_means_always_for_that_topic(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", {"barnabas.log.sync": "os"})
        set_config(memory, "t", flush_messages="1")
        memory.run_flush()  # of the records before the change
        client = memory.client()
        client.send(produce(to(0, batch(b"a"))), 9)
        assert client.answers() == []
        memory.client().ask(produce(to(0, batch(b"a")), topic="u"), 9, ProduceResponse)
        memory.run_flush()
        assert answers(client.answers()[0])[0].base_offset == 1
        memory.close()

    def test_flush_messages_limits_the_acknowledged_records_that_are_not_flushed(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", {"barnabas.log.sync": "os", "log.flush.interval.messages": "3"})
        memory.flushes.is_paused = False
        log_of(memory).flush()
        memory.flushes.is_paused = True
        client = memory.client()
        for offset in (1, 2):
            assert answers(client.ask(produce(to(0, batch(b"a"))), 9, ProduceResponse))[0].base_offset == offset
        client.send(produce(to(0, batch(b"third"))), 9)
        assert client.answers() == []
        assert seen(memory)[1] == 3
        memory.run_flush()
        assert answers(client.answers()[0])[0].base_offset == 3
        assert (log_of(memory).synced_offset, seen(memory)[1]) == (4, 4)
        assert len(client.ask(produce(to(0, batch(b"a"))), 9, ProduceResponse).responses) == 1
        memory.close()

    def test_removing_the_flush_policy_releases_waiting_requests(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", {"barnabas.log.sync": "os"})
        set_config(memory, "t", flush_messages="1")
        client, reader = memory.client(), memory.client()
        reader.send(fetch(at(1), max_wait_ms=10_000), 12)
        client.send(produce(to(0, batch(b"a"))), 9)
        set_config(memory, "t", flush_messages=str(2**63 - 1))
        assert answers(client.answers()[0])[0].base_offset == 1
        assert values(reader.answers()[0].responses[0].partitions[0]) == [(1, b"a")]
        memory.run_flush()
        memory.close()

    def test_flush_ms_of_a_running_topic_counts_from_its_next_record(self, tmp_path: Path) -> None:
        memory = start(tmp_path / "data", {"barnabas.log.sync": "os"})
        set_config(memory, "t", flush_ms="2000")
        memory.client().ask(produce(to(0, batch(b"a"))), 9, ProduceResponse)
        memory.advance(1.9)
        assert memory.flushes.held == []
        memory.advance(0.2)
        memory.run_flush()
        assert log_of(memory).synced_offset == 2
        memory.close()


def test_each_log_directory_has_its_own_flushes(tmp_path: Path) -> None:
    memory = start(tmp_path / "a", ALWAYS, more_dirs=[tmp_path / "b"])
    homes = {index: memory.broker.log_dirs.dir_of("t", index) for index in range(3)}
    assert len(set(homes.values())) == 2
    here = 0
    there = next(index for index in homes if homes[index] is not homes[0])
    first, second = memory.client(), memory.client()
    first.send(produce(to(here, batch(b"a"))), 9)
    second.send(produce(to(there, batch(b"b"))), 9)
    assert len(memory.flushes.held) == 2
    memory.flushes.held.reverse()
    memory.run_flush()
    assert (len(first.answers()), len(second.answers())) == (0, 1)
    memory.run_flush()
    assert len(first.answers()) == 1
    memory.close()


class TestSyncfsChoice:
    def test_many_files_are_synced_by_syncfs(self, tmp_path: Path) -> None:
        files = FailingFiles()
        memory = MemoryBroker(tmp_path / "data", ALWAYS, files=files)
        memory.create_topic("t", 40)
        memory.flushes.is_paused = True
        clients = [memory.client() for _ in range(40)]
        for index, producer in enumerate(clients):
            producer.send(produce(to(index, batch(b"a"))), 9)
        memory.run_flush()
        files.done.clear()
        memory.run_flush()
        assert files.done[0][0] == "sync_file_system"
        assert all(len(producer.answers()) == 1 for producer in clients)
        memory.close()

    def test_syncfs_is_tried_less_often_where_it_is_slower(self) -> None:
        choice = SyncfsChoice()
        choice.record(1, 0.001, used_syncfs=False)
        assert not choice.uses_syncfs(MANY_FILES - 1)
        assert choice.uses_syncfs(MANY_FILES)
        choice.record(20, 0.5, used_syncfs=True)
        assert not choice.uses_syncfs(20)
        tries = 0
        for _ in range(1000):
            uses_syncfs = choice.uses_syncfs(20)
            tries += uses_syncfs
            choice.record(20, 0.5 if uses_syncfs else 0.02, used_syncfs=uses_syncfs)
        assert 1 <= tries <= 10
        for _ in range(MAX_BACKOFF):
            choice.record(20, 0.02, used_syncfs=False)
        assert choice.uses_syncfs(20)
        choice.record(20, 0.002, used_syncfs=True)
        assert choice.uses_syncfs(MANY_FILES)


def test_what_is_there_already_is_flushed_when_a_policy_begins_to_ask_for_it(tmp_path: Path) -> None:
    """Found by the simulation: a follower that fetches after its flush only would wait for ever."""
    memory = start(tmp_path / "data", {"barnabas.log.sync": "os"})
    memory.flushes.is_paused = False
    memory.client().ask(produce(to(0, batch(b"a"))), 9, ProduceResponse)
    assert log_of(memory).unflushed
    set_config(memory, "t", flush_messages="1")
    memory.broker.loop.end_turn()
    assert not log_of(memory).unflushed
    memory.close()


def test_what_a_log_has_that_is_opened_again_is_flushed(memory: MemoryBroker) -> None:
    """As one of a partition that comes back to this broker, or whose log could not be opened at the start."""
    broker = memory.broker
    memory.client().send(produce(to(0, batch(b"a"))), 9)
    broker.partitions.get("t", 0).fail("test")
    broker.partitions._offline.to_reopen[broker.image.topics["t"].topic_id, 0] = None
    memory.flushes.is_paused = False
    memory.run_flush()  # of the log that failed
    broker.partitions.reopen(broker.image)
    broker.loop.end_turn()
    assert log_of(memory).log_end_offset == 2
    assert not log_of(memory).unflushed
