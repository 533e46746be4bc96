"""KIP-932 over the wire: the share coordinator's five requests, how it is found, restarts, deleted topics."""

from __future__ import annotations

import pytest

from barnabas.wire.batches.records import iter_batches
from barnabas.wire.configdef import ConfigError
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import share_state as s
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from barnabas.wire.types import uuid_to_text
from tests.broker.share_member import RestartableBroker
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker

FEW = {"share.coordinator.state.topic.num.partitions": "3"}


@pytest.fixture
def memory(tmp_path):
    memory = RestartableBroker(tmp_path / "data", FEW)
    memory.create_topic("t", 2)
    yield memory
    memory.close()


def topic_id(memory, name="t"):
    return memory.broker.image.topics[name].topic_id


def initialize(memory, partition=0, *, state_epoch=0, start_offset=10, group="g", topic=None):
    requested = s.InitializeShareGroupStateRequestPartitionData(
        partition=partition, state_epoch=state_epoch, start_offset=start_offset
    )
    request = s.InitializeShareGroupStateRequest(
        group_id=group, topics=[s.InitializeStateData(topic_id=topic or topic_id(memory), partitions=[requested])]
    )
    return one(memory.client().ask(request, 0, s.InitializeShareGroupStateResponse))


def read(memory, partition=0, *, leader_epoch=0, group="g", topic=None):
    requested = s.ReadShareGroupStateRequestPartitionData(partition=partition, leader_epoch=leader_epoch)
    request = s.ReadShareGroupStateRequest(
        group_id=group, topics=[s.ReadStateData(topic_id=topic or topic_id(memory), partitions=[requested])]
    )
    return one(memory.client().ask(request, 0, s.ReadShareGroupStateResponse))


def write(memory, *batches, partition=0, state_epoch=0, leader_epoch=0, start_offset=10, count=0, version=1):
    requested = s.WriteShareGroupStateRequestPartitionData(
        partition=partition,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=count,
        state_batches=[
            s.WriteShareGroupStateRequestStateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries
            )
            for first, last, state, deliveries in batches
        ],
    )
    request = s.WriteShareGroupStateRequest(
        group_id="g", topics=[s.WriteStateData(topic_id=topic_id(memory), partitions=[requested])]
    )
    return one(memory.client().ask(request, version, s.WriteShareGroupStateResponse))


def summary(memory, partition=0, *, version=1):
    requested = s.ReadShareGroupStateSummaryRequestPartitionData(partition=partition, leader_epoch=0)
    request = s.ReadShareGroupStateSummaryRequest(
        group_id="g", topics=[s.ReadStateSummaryData(topic_id=topic_id(memory), partitions=[requested])]
    )
    return one(memory.client().ask(request, version, s.ReadShareGroupStateSummaryResponse))


def delete(memory, partition=0):
    requested = s.DeleteShareGroupStateRequestPartitionData(partition=partition)
    request = s.DeleteShareGroupStateRequest(
        group_id="g", topics=[s.DeleteStateData(topic_id=topic_id(memory), partitions=[requested])]
    )
    return one(memory.client().ask(request, 0, s.DeleteShareGroupStateResponse))


def one(response):
    (topic,) = response.results
    (partition,) = topic.partitions
    return partition


def batches(response):
    return [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in response.state_batches]


def find(memory, key, version=6):
    request = g.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    (coordinator,) = memory.client().ask(request, version, g.FindCoordinatorResponse).coordinators
    return coordinator


def test_share_coordinators_are_found_by_group_topic_and_partition(memory):
    """KIP-932: key type 2, from FindCoordinator v6 on; the first request creates the topic with Kafka's settings."""
    good = f"my:group:{uuid_to_text(topic_id(memory))}:0"
    assert find(memory, good).node_id == memory.broker.node_id
    state_topic = memory.broker.image.topics["__share_group_state"]
    assert len(state_topic.partitions) == 3
    assert memory.broker.image.config(2, "__share_group_state") == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }
    for bad in ("g", "g:0", f":{uuid_to_text(topic_id(memory))}:0", "g:short:0", f"{good}x"):
        assert find(memory, bad).error_code == E.INVALID_REQUEST, bad
    refused = find(memory, good, version=5)
    assert (refused.error_code, refused.error_message) == (E.INVALID_REQUEST, "")  # as in Kafka


def test_state_is_loaded_after_a_restart(memory):
    """G5: acknowledged writes are in the log."""
    assert initialize(memory).error_code == 0
    assert write(memory, (10, 14, 2, 1), (15, 15, 0, 2), count=5).error_code == 0
    assert write(memory, (15, 15, 4, 3), (12, 13, 0, 1), start_offset=12, count=4, version=0).error_code == 0
    for _ in range(2):
        response = read(memory)
        assert (response.error_code, response.state_epoch, response.start_offset) == (0, 0, 12)
        assert batches(response) == [(12, 14, 2, 1), (15, 15, 4, 3)]
        response = summary(memory)
        assert (response.start_offset, response.leader_epoch, response.delivery_complete_count) == (12, 0, -1)
        memory.restart()


def test_a_new_leader_fences_the_old_one_also_after_a_restart(memory):
    """G5: a ReadShareGroupState with a higher leader epoch is recorded."""
    initialize(memory)
    assert read(memory, leader_epoch=3).error_code == 0
    for _ in range(2):
        assert write(memory, (10, 10, 2, 1), leader_epoch=2).error_code == E.FENCED_LEADER_EPOCH
        assert read(memory, leader_epoch=2).error_code == E.FENCED_LEADER_EPOCH
        assert write(memory, (10, 10, 2, 1), leader_epoch=3).error_code == 0
        memory.restart()


def test_partitions_of_a_request_get_their_own_errors(memory):
    initialize(memory, 0)
    requested = [s.ReadShareGroupStateRequestPartitionData(partition=n, leader_epoch=0) for n in (0, 1, 2, -1)]
    request = s.ReadShareGroupStateRequest(
        group_id="g", topics=[s.ReadStateData(topic_id=topic_id(memory), partitions=requested)]
    )
    (topic,) = memory.client().ask(request, 0, s.ReadShareGroupStateResponse).results
    assert topic.topic_id == topic_id(memory)
    assert [(p.partition, p.error_code) for p in topic.partitions] == [
        (0, 0),
        (1, E.INVALID_REQUEST),
        (2, E.INVALID_REQUEST),
        (-1, E.INVALID_REQUEST),
    ]
    assert topic.partitions[1].error_message == "Read operation on uninitialized share partition not allowed."


def test_empty_requests_get_empty_responses(memory):
    """As Kafka: no group, no topic, or a topic without partitions."""
    empty = s.ReadStateData(topic_id=topic_id(memory))
    full = s.ReadStateData(topic_id=topic_id(memory), partitions=[s.ReadShareGroupStateRequestPartitionData()])
    for request in (
        s.ReadShareGroupStateRequest(group_id="g"),
        s.ReadShareGroupStateRequest(group_id="g", topics=[full, empty]),
        s.ReadShareGroupStateRequest(group_id="", topics=[full]),
    ):
        assert memory.client().ask(request, 0, s.ReadShareGroupStateResponse).results == []


def test_the_state_of_a_deleted_topic_is_deleted(memory):
    initialize(memory)
    old_id = topic_id(memory)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    memory.client().ask(request, 6, DeleteTopicsResponse)
    assert read(memory, topic=old_id).error_code == E.INVALID_REQUEST
    assert initialize(memory, topic=old_id).error_code == E.UNKNOWN_TOPIC_OR_PARTITION
    memory.restart()
    assert not any(coordinator.states for coordinator in memory.broker.share_coordinators)


def test_deleted_state_is_gone_after_a_restart(memory):
    initialize(memory)
    write(memory, (10, 14, 2, 1))
    assert delete(memory).error_code == 0
    assert delete(memory).error_code == 0, "one that is not there is no error"
    memory.restart()
    assert summary(memory).start_offset == -1
    assert write(memory, (10, 14, 2, 1)).error_code == E.INVALID_REQUEST


def test_superseded_records_of_the_log_are_deleted(memory):
    """Kafka's pruning: the log start moves to the oldest of the last snapshots."""
    initialize(memory, 0)
    initialize(memory, 1)
    for offset in range(10, 40):
        write(memory, (offset, offset, 2, 1), count=offset - 9)
    before = [read(memory, n).state_batches for n in (0, 1)]
    for _ in range(3):  # a snapshot of idle states, then the deletion of the records before it
        memory.advance(301)
    starts = [partition.log.log_start_offset for partition in memory.broker.partitions.of_topic("__share_group_state")]
    assert any(start > 0 for start in starts)
    memory.restart()
    assert [read(memory, n).state_batches for n in (0, 1)] == before


@for_each("codec", [1, 2, 3, 4])
def test_batches_of_coordinators_are_compressed_if_configured(tmp_path, codec):
    """`share.coordinator.state.topic.compression.codec` and `offsets.topic.compression.codec`."""
    key = "share.coordinator.state.topic.compression.codec"
    memory = MemoryBroker(tmp_path / "data", {**FEW, key: str(codec)})
    memory.create_topic("t", 1)
    initialize(memory)
    (partition,) = [p for p in memory.broker.partitions.of_topic("__share_group_state") if p.log.log_end_offset]
    (batch,) = iter_batches(partition.log.read(0, 1 << 20, limit_offset=1, min_one_batch=True).slice.read())
    assert batch.attributes & 7 == codec
    memory.close()
    memory = MemoryBroker(tmp_path / "data", FEW)
    assert read(memory).start_offset == 10
    memory.close()


@pytest.mark.parametrize("key", ["share.coordinator.state.topic.compression.codec", "offsets.topic.compression.codec"])
def test_an_unknown_codec_is_rejected_at_start(tmp_path, key):
    with pytest.raises(ConfigError, match=r"=9 is not a compression codec. Valid values are 0 \(none\), 1 \(gzip\)"):
        MemoryBroker(tmp_path / "data", {key: "9"})
