"""A broker follows the metadata log of controllers that the test plays. Traps of KRaft are named where they are met."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from barnabas.coord.cluster.metadata_log.checkpoint import checkpoint_name
from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch
from barnabas.storage.append.follower_append import append_as_follower
from barnabas.storage.files import File, Files
from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.records.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
)
from tests.broker.fake_controller import FEATURES, FakeController, FakeQuorum, JoinedBroker
from tests.broker.metadata.scripted_controller import following, topic
from tests.broker.scripted_nodes import Wire
from tests.support.world import START_MS


@pytest.fixture
def quorum() -> FakeQuorum:
    quorum = FakeQuorum()
    quorum.write(*FEATURES)
    return quorum


@pytest.fixture
def controller(wire: Wire, quorum: FakeQuorum) -> FakeController:
    return FakeController(wire, quorum, 3000)


def test_the_first_fetch_has_the_epochs_that_kafka_accepts(wire, tmp_path, quorum, controller):
    """Trap 1: LastFetchedEpoch < 0, or above CurrentLeaderEpoch, is INVALID_REQUEST."""
    following(wire, tmp_path, controller)
    first = controller.fetches[0].topics[0].partitions[0]
    assert (first.last_fetched_epoch, first.current_leader_epoch, first.fetch_offset) == (0, 0, 0)
    assert quorum.refused == []


def test_the_leader_is_followed_and_its_epoch_never_lowered(wire, tmp_path, quorum, controller):
    """Trap 1: `CurrentLeader` is followed on 6 and 74."""
    other = FakeController(wire, quorum, 3001)
    member = following(wire, tmp_path, controller)
    quorum.elect(3001)
    quorum.write(*topic("after", 1))
    wire.advance(3)
    wire.until(lambda: "after" in member.image.topics)
    epochs = [fetch.topics[0].partitions[0].current_leader_epoch for fetch in controller.fetches + other.fetches]
    assert max(epochs) == 2
    assert [fetch.topics[0].partitions[0].current_leader_epoch for fetch in other.fetches][-1] == 2
    assert quorum.refused == []


def test_another_controller_is_asked_when_one_dies(wire, tmp_path, quorum, controller):
    other = FakeController(wire, quorum, 3001)
    member = following(wire, tmp_path, controller)
    controller.node.close()
    quorum.elect(3001)
    quorum.write(*topic("after", 1))
    wire.advance(3)
    assert "after" in member.image.topics
    assert other.fetches


def test_only_what_is_committed_is_applied(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    quorum.write(*topic("uncommitted", 1), commit=False)
    wire.advance(1)
    assert member.remote.copy.end_offset == quorum.end_offset
    assert "uncommitted" not in member.image.topics
    assert member.remote.copy.log.log_end_offset == quorum.high_watermark
    quorum.high_watermark = quorum.end_offset
    wire.advance(1)
    assert "uncommitted" in member.image.topics


def test_what_another_leader_does_not_have_is_dropped(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    end = quorum.end_offset
    quorum.write(*topic("lost", 1), commit=False)
    wire.advance(1)
    quorum.truncate(end)
    quorum.elect(3000)
    quorum.write(*topic("kept", 2))
    wire.advance(3)
    assert set(member.image.topics) == {"kept"}
    assert member.broker.halt_reason is None


def test_a_transaction_is_applied_whole_or_not_at_all(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    quorum.write(BeginTransactionRecord(name="t"), *topic("first", 1))
    quorum.write(*topic("second", 2))
    wire.advance(1)
    assert not member.image.topics
    quorum.write(EndTransactionRecord())
    wire.advance(1)
    assert set(member.image.topics) == {"first", "second"}
    quorum.write(BeginTransactionRecord(name="t"), *topic("third", 3))
    quorum.write(AbortTransactionRecord(reason="test"), *topic("fourth", 4))
    wire.advance(1)
    assert set(member.image.topics) == {"first", "second", "fourth"}


def test_subscribers_are_told_after_the_logs_are_open(wire, tmp_path, quorum, controller):
    quorum.write(*topic("before", 1))
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    created: list[set[str]] = []
    member.broker.metadata.on_change.append(
        lambda delta: created.append({t.name for t in delta.created_topics.values()})
    )
    member.follow()
    wire.until(lambda: member.remote.observer.is_caught_up)
    assert "before" in member.image.topics
    quorum.write(*topic("after", 2))
    wire.advance(1)
    assert created == [{"after"}]


def test_a_restart_goes_on_from_its_own_copy(wire, tmp_path, quorum, controller):
    quorum.write(*topic("one", 1))
    member = following(wire, tmp_path, controller)
    member.stop()
    controller.fetches.clear()
    quorum.write(*topic("two", 2))
    again = following(wire, tmp_path, controller)
    assert controller.fetches[0].topics[0].partitions[0].fetch_offset > 0
    assert set(again.image.topics) == {"one", "two"}


def test_an_unknown_record_stops_the_broker_with_a_sentence(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    builder = BatchBuilder(quorum.end_offset, partition_leader_epoch=1)
    builder.append(START_MS, None, b"\x01\x7f\x00")
    quorum.write_bytes(builder.build())
    wire.advance(1)
    assert member.broker.halt_reason == "Unknown metadata record type 127 version 0"


def test_an_unknown_version_stops_the_broker_with_a_sentence(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    builder = BatchBuilder(quorum.end_offset, partition_leader_epoch=1)
    builder.append(START_MS, None, b"\x01\x02\x63\x00")
    quorum.write_bytes(builder.build())
    wire.advance(1)
    assert member.broker.halt_reason == "Unknown metadata record type 2 version 99"


def test_a_damaged_batch_is_fetched_again(wire, tmp_path, quorum, controller, caplog):
    member = following(wire, tmp_path, controller)
    good = build_metadata_batch(topic("t", 1), epoch=1, now_ms=START_MS, base_offset=quorum.end_offset)
    quorum.write_bytes(good[:-1] + bytes([good[-1] ^ 1]), 2)
    wire.advance(1)
    assert "t" not in member.image.topics
    base, last, epoch, _ = quorum.batches[-1]
    quorum.batches[-1] = (base, last, epoch, good)
    wire.advance(1)
    assert "t" in member.image.topics
    assert member.broker.halt_reason is None


def test_a_snapshot_replaces_image_and_log(wire, tmp_path, quorum, controller):
    quorum.write(*topic("deleted", 1), *topic("kept", 2))
    member = following(wire, tmp_path, controller)
    deltas = []
    member.broker.metadata.on_change.append(deltas.append)
    controller.node.close()
    quorum.write(RemoveTopicRecord(topic_id=(1).to_bytes(16, "big")), *topic("new", 3))
    quorum.take_snapshot([*FEATURES, *topic("kept", 2), *topic("new", 3)])
    again = FakeController(wire, quorum, 3000, controller.node.port)
    again.snapshot_bytes = 50
    wire.advance(3)
    assert set(member.image.topics) == {"kept", "new"}
    assert [t.name for t in deltas[-1].created_topics.values()] == ["new"]
    assert [t.name for t in deltas[-1].deleted_topics.values()] == ["deleted"]
    quorum.write(*topic("later", 4))
    wire.advance(1)
    assert "later" in member.image.topics
    member.stop()
    restarted = following(wire, tmp_path, again)
    assert set(restarted.image.topics) == {"kept", "new", "later"}


def test_a_new_broker_begins_with_the_snapshot(wire, tmp_path, quorum, controller):
    quorum.write(*topic("old", 1))
    quorum.take_snapshot([*FEATURES, *topic("old", 1)])
    quorum.write(*topic("new", 2))
    member = following(wire, tmp_path, controller)
    assert set(member.image.topics) == {"old", "new"}
    assert member.remote.observer.applied_offset == quorum.end_offset - 1


def test_a_large_log_is_covered_by_a_snapshot_of_its_own(wire, tmp_path, quorum, controller):
    sets = {"metadata_log_max_record_bytes_between_snapshots": "2000"}
    member = following(wire, tmp_path, controller, **sets)
    for number in range(1, 41):
        quorum.write(*topic(f"t{number}", number))
        wire.settle(3)
    wire.advance(1)
    log = member.remote.copy.log
    assert log.log_start_offset > 0
    assert list(Path(log.directory).glob("*.checkpoint"))
    member.stop()
    again = following(wire, tmp_path, controller)
    assert len(again.image.topics) == 40


def test_another_clusters_controllers_stop_the_broker(wire, tmp_path, quorum, controller):
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    member.remote.observer._cluster_id = "AAAAAAAAAAAAAAAAAAAAAA"
    member.follow()
    wire.until(lambda: member.broker.halt_reason)
    assert "another cluster" in member.broker.halt_reason


def test_configs_of_the_cluster_take_effect(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    heard: list[set[str]] = []
    member.broker.metadata.on_config_change.append(heard.append)
    quorum.write(ConfigRecord(resource_type=4, resource_name="", name="log.retention.ms", value="1234"))
    wire.advance(1)
    assert heard == [{"log.retention.ms"}]


def test_metadata_is_followed_without_space_and_written_when_there_is(wire, tmp_path, quorum, controller, monkeypatch):
    """Else a full disk would keep the broker from hearing that others lead now."""
    member = following(wire, tmp_path, controller)
    write_at, full = Files.write_at, True

    def write_if_there_is_space(files: Files, file: File, data: bytes, position: int) -> None:
        if full and "__cluster_metadata" in file.path:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), file.path)
        write_at(files, file, data, position)

    monkeypatch.setattr(Files, "write_at", write_if_there_is_space)
    copy, written = member.remote.copy, member.remote.copy.log.log_end_offset
    for number, name in enumerate(("first", "second", "third"), 1):
        quorum.write(*topic(name, number))
        wire.until(lambda name=name: name in member.image.topics)
    quorum.write(*topic("uncommitted", 4), commit=False)
    wire.until(lambda: copy.end_offset == quorum.end_offset)
    assert copy.log.log_end_offset == written
    copy.forget_uncommitted()
    assert copy.end_offset == quorum.high_watermark  # applied records are kept
    full = False
    quorum.high_watermark = quorum.end_offset
    wire.until(lambda: "uncommitted" in member.image.topics)
    assert copy.log.log_end_offset == quorum.end_offset
    assert member.broker.halt_reason is None
    member.stop(cleanly=False)
    after = following(wire, tmp_path, controller)
    assert set(after.image.topics) == {"first", "second", "third", "uncommitted"}


def test_controllers_that_are_not_there_are_told_once(wire, tmp_path, quorum, controller, caplog):
    controller.node.close()
    member = JoinedBroker(wire, [tmp_path / "data"], controller.address)
    with caplog.at_level(logging.WARNING):
        member.follow()
        wire.advance(5)
    assert len([record for record in caplog.records if "Cannot fetch" in record.message]) == 1


def test_an_error_code_that_says_nothing_asks_another_controller(wire, tmp_path, quorum, controller):
    other = FakeController(wire, quorum, 3001)
    quorum.leader_id = 3001
    controller.fetch = lambda request, _: None  # type: ignore[method-assign]
    from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

    controller.node.on(FetchRequest, lambda request, _: FetchResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    member = JoinedBroker(wire, [tmp_path / "data"], f"{controller.address},{other.address}")
    member.follow()
    wire.advance(2)
    assert member.remote.observer.is_caught_up


def test_a_copy_that_ends_with_what_was_never_committed_is_truncated(wire, tmp_path, quorum, controller):
    """A directory of Kafka may end so: its observers write fetched records immediately."""
    quorum.write(*topic("kept", 1))
    member = following(wire, tmp_path, controller)
    end = quorum.end_offset
    lost = build_metadata_batch(topic("lost", 2), epoch=1, now_ms=START_MS, base_offset=end)
    append_as_follower(member.remote.copy.log, memoryview(bytearray(lost)), now=wire.now)
    member.stop()
    quorum.elect(3000)
    quorum.write(*topic("other", 3))
    again = following(wire, tmp_path, controller)
    wire.advance(1)
    assert set(again.image.topics) == {"kept", "other"}
    assert again.remote.copy.log.log_end_offset == quorum.end_offset
    again.stop()
    assert set(following(wire, tmp_path, controller).image.topics) == {"kept", "other"}


def test_metadata_that_the_quorum_has_lost_stops_the_broker(wire, tmp_path, quorum, controller):
    member = following(wire, tmp_path, controller)
    end = quorum.end_offset
    quorum.write(*topic("applied", 1))
    wire.advance(1)
    quorum.truncate(end)
    quorum.elect(3000)
    quorum.high_watermark = end
    quorum.write(*topic("instead", 2))
    wire.advance(1)
    assert "has lost committed metadata" in (member.broker.halt_reason or "")


def test_a_fetched_snapshot_is_continued_after_a_crash_between_its_name_and_the_log(wire, tmp_path, quorum, controller):
    quorum.write(*topic("old", 1))
    member = following(wire, tmp_path, controller)
    directory = Path(member.remote.copy.log.directory)
    member.stop(cleanly=False)
    quorum.write(*topic("new", 2))
    quorum.take_snapshot([*FEATURES, *topic("old", 1), *topic("new", 2)])
    assert quorum.snapshot is not None
    (directory / checkpoint_name(*quorum.snapshot[:2])).write_bytes(quorum.snapshot[2])
    again = following(wire, tmp_path, controller)
    assert set(again.image.topics) == {"old", "new"}
    assert again.remote.copy.log.log_start_offset == quorum.start_offset
