"""G1, G2: the coordinator runtime: log, timers, restarts and failures, in simulated time."""

from __future__ import annotations

import pytest

from barnabas.broker.event_loop.steps import run_in_place
from barnabas.storage.log_config import LogConfig
from barnabas.wire.batches.records import iter_batches
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsResponse,
)
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.support.cases import for_each
from tests.support.memory.broker import MemoryBroker
from tests.support.requests.groups import (
    commit,
    fetch,
    find,
    heartbeat,
    join_request,
    member_id_of,
    stable,
    sync_request,
)

OFFSETS = "__consumer_offsets"
FEW_PARTITIONS = {"offsets.topic.num.partitions": "4"}  # the default of 50 would slow the tests down


@pytest.fixture
def memory(tmp_path):
    broker = MemoryBroker(tmp_path / "data", FEW_PARTITIONS)
    yield broker
    broker.close()


def offsets_partition(memory, group_id="g"):
    """The partition of the group."""
    (partition,) = [
        candidate
        for candidate in memory.broker.partitions.of_topic(OFFSETS)
        if candidate.log.log_end_offset and _holds(candidate, group_id)
    ]
    return partition


def _holds(partition, group_id):
    data = partition.log.read(0, 1 << 30, limit_offset=partition.log.log_end_offset, min_one_batch=True).slice.read()
    return group_id.encode() in data


class TestOffsetsTopic:
    def test_is_created_by_the_first_find_coordinator(self, tmp_path):
        memory = MemoryBroker(tmp_path / "data")
        client = memory.client()
        assert client.ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse).groups == []
        assert OFFSETS not in memory.broker.image.topics
        assert find(client).error_code == 0
        assert len(memory.broker.image.topics[OFFSETS].partitions) == 50
        config = memory.broker.partitions.get(OFFSETS, 0).log.config
        assert (config.cleanup_policy, config.segment_bytes) == (frozenset({"compact"}), 100 * 1024 * 1024)
        assert config.compression_type == "producer"
        memory.close()

    def test_has_the_settings_of_its_config_keys(self, tmp_path):
        memory = MemoryBroker(
            tmp_path / "data", {"offsets.topic.num.partitions": "3", "offsets.topic.segment.bytes": "1048576"}
        )
        stable(memory.client())
        partitions = memory.broker.partitions.of_topic(OFFSETS)
        assert [partition.log.config.segment_bytes for partition in partitions] == [1048576] * 3
        memory.close()

    def test_without_enough_brokers_there_is_no_coordinator(self, tmp_path):
        memory = MemoryBroker(tmp_path / "data", {}, profile="kafka")  # requires three replicas
        client = memory.client()
        assert find(client).error_code == E.COORDINATOR_NOT_AVAILABLE
        memory.close()

    @for_each(
        ("request_", "version", "response_class"),
        [
            (join_request(), 9, g.JoinGroupResponse),
            (g.SyncGroupRequest(group_id="g", protocol_type="t", protocol_name="n"), 5, g.SyncGroupResponse),
            (g.HeartbeatRequest(group_id="g"), 4, g.HeartbeatResponse),
            (g.LeaveGroupRequest(group_id="g"), 5, g.LeaveGroupResponse),
            (o.OffsetDeleteRequest(group_id="g"), 0, o.OffsetDeleteResponse),
        ],
    )
    def test_before_it_exists_there_is_no_coordinator(self, memory, request_, version, response_class):
        assert memory.client().ask(request_, version, response_class).error_code == E.NOT_COORDINATOR

    def test_before_it_exists_each_group_and_offset_gets_an_error(self, memory):
        client = memory.client()
        memory.create_topic("t")
        assert commit(client, "t") == {E.NOT_COORDINATOR}
        assert fetch(client, "t") == E.NOT_COORDINATOR
        described = client.ask(g.DescribeGroupsRequest(groups=["g"]), 6, g.DescribeGroupsResponse)
        assert [group.error_code for group in described.groups] == [E.NOT_COORDINATOR]
        deleted = client.ask(g.DeleteGroupsRequest(groups_names=["g"]), 3, g.DeleteGroupsResponse)
        assert [group.error_code for group in deleted.results] == [E.NOT_COORDINATOR]
        topic = o.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
        old = client.ask(o.OffsetFetchRequest(group_id="g", topics=[topic]), 1, o.OffsetFetchResponse)
        assert old.topics[0].partitions[0].error_code == E.NOT_COORDINATOR

    def test_deleting_it_answers_waiting_members(self, memory):
        client, other = memory.client(), memory.client()
        stable(client)
        member_id = member_id_of(other)
        other.send(join_request(member_id), 9)
        gone = client.ask(DeleteTopicsRequest(topic_names=[OFFSETS]), 5, DeleteTopicsResponse)
        assert gone.responses[0].error_code == 0
        (response,) = other.answers()
        assert response.error_code == E.NOT_COORDINATOR
        assert find(client).error_code == 0
        stable(client)


class TestTime:
    def test_the_first_rebalance_does_not_wait_in_the_dev_profile(self, memory):
        assert stable(memory.client()).generation_id == 1

    def test_the_first_rebalance_waits_as_configured(self, tmp_path):
        memory = MemoryBroker(tmp_path / "data", FEW_PARTITIONS | {"group.initial.rebalance.delay.ms": "3000"})
        client = memory.client()
        find(client)
        client.send(join_request(member_id_of(client)), 9)
        memory.advance(2.999)
        assert client.answers() == []
        memory.advance(0.001)
        (joined,) = client.answers()
        assert joined.generation_id == 1
        memory.close()

    def test_a_member_without_heartbeats_is_removed(self, memory):
        client, other = memory.client(), memory.client()
        joined = stable(client)
        member_id = member_id_of(other)
        other.send(join_request(member_id), 9)
        assert other.answers() == []
        memory.advance(9.999)
        assert other.answers() == []
        memory.advance(0.001)
        (taken,) = other.answers()
        assert (taken.generation_id, taken.leader) == (2, member_id)
        assert heartbeat(client, joined) == E.UNKNOWN_MEMBER_ID

    def test_heartbeats_keep_a_member_and_cost_no_timers(self, memory):
        client = memory.client()
        joined = stable(client)
        for _ in range(100):
            memory.advance(9)
            assert heartbeat(client, joined) == 0
        assert len(memory.broker.loop.timers.heap) < 20

    def test_session_bounds_come_from_the_configuration(self, tmp_path):
        sets = {"group.min.session.timeout.ms": "1000", "group.max.session.timeout.ms": "2000", "group.max.size": "1"}
        memory = MemoryBroker(tmp_path / "data", FEW_PARTITIONS | sets)
        client = memory.client()
        stable(client, session_timeout_ms=2000)
        for wrong in (999, 2001):
            response = client.ask(join_request(session_timeout_ms=wrong), 9, g.JoinGroupResponse)
            assert response.error_code == E.INVALID_SESSION_TIMEOUT
        full = client.ask(join_request(session_timeout_ms=1000), 9, g.JoinGroupResponse)
        assert full.error_code == E.GROUP_MAX_SIZE_REACHED
        memory.close()


class TestRestart:
    def restarted(self, memory, tmp_path):
        memory.close()
        return MemoryBroker(tmp_path / "data", FEW_PARTITIONS)

    @pytest.fixture
    def memory(self, tmp_path):
        return MemoryBroker(tmp_path / "data", FEW_PARTITIONS)

    def test_generation_members_and_offsets_are_loaded(self, memory, tmp_path):
        memory.create_topic("t")
        client = memory.client()
        joined = stable(client)
        assert commit(client, "t", 42, group_id="other") == {0}
        memory = self.restarted(memory, tmp_path)
        client = memory.client()
        assert heartbeat(client, joined) == 0
        assert client.ask(sync_request(joined), 5, g.SyncGroupResponse).assignment == b"mine"
        assert fetch(client, "t", "other") == 42
        groups = client.ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse).groups
        assert {group.group_id: group.group_state for group in groups} == {"g": "Stable", "other": "Empty"}
        memory.close()

    def test_sessions_of_members_that_do_not_return_expire(self, memory, tmp_path):
        stable(memory.client())
        memory = self.restarted(memory, tmp_path)
        memory.advance(10)
        described = memory.client().ask(g.DescribeGroupsRequest(groups=["g"]), 6, g.DescribeGroupsResponse)
        assert described.groups[0].group_state == "Empty"
        memory.close()

    def test_a_topic_that_is_created_again_has_no_offsets(self, memory, tmp_path):
        """Even if the broker stopped between the deletions of the topic and of its offsets."""
        memory.create_topic("t")
        client = memory.client()
        find(client)
        assert commit(client, "t", 42) == {0}
        memory.broker.group_coordinators.stop()  # so that the deletion is not applied
        client.ask(DeleteTopicsRequest(topic_names=["t"]), 5, DeleteTopicsResponse)
        memory = self.restarted(memory, tmp_path)
        memory.create_topic("t")
        assert fetch(memory.client(), "t") == -1
        memory.close()

    def test_a_stopping_broker_answers_waiting_members(self, memory):
        client, other = memory.client(), memory.client()
        joined = stable(client)
        other.send(join_request(member_id_of(other)), 9)
        memory.broker.group_coordinators.stop()
        (response,) = other.answers()
        assert response.error_code == E.NOT_COORDINATOR
        assert heartbeat(client, joined) == 0, "the group is in the log as before"
        memory.close()


class TestTheLog:
    def limit(self, client, size):
        """Set max.message.bytes of the offsets topic."""
        change = IncrementalAlterConfigsRequestAlterableConfig(
            name="max.message.bytes", config_operation=0, value=str(size)
        )
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=2, resource_name=OFFSETS, configs=[change]
        )
        response = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1, IncrementalAlterConfigsResponse)
        assert response.responses[0].error_code == 0

    def test_a_failed_append_is_answered_with_an_error(self, memory):
        memory.create_topic("t")
        client = memory.client()
        find(client)
        assert commit(client, "t", 1) == {0}
        self.limit(client, 150)
        assert commit(client, "t", 2, metadata="x" * 200) == {E.UNKNOWN_SERVER_ERROR}
        assert fetch(client, "t") == 1
        self.limit(client, LogConfig().max_message_bytes)
        assert commit(client, "t", 3, metadata="x" * 200) == {0}
        assert fetch(client, "t") == 3

    def test_the_records_of_one_request_are_one_batch(self, memory):
        memory.create_topic("t", partitions=20)
        client = memory.client()
        find(client)
        assert commit(client, "t", partitions=range(20)) == {0}
        log = offsets_partition(memory).log
        data = log.read(0, 1 << 20, limit_offset=log.log_end_offset, min_one_batch=True).slice.read()
        assert [batch.record_count for batch in iter_batches(data)] == [20]

    def test_records_larger_than_a_batch_are_split(self, memory):
        memory.create_topic("t", partitions=100)
        client = memory.client()
        find(client)
        self.limit(client, 1000)
        assert commit(client, "t", partitions=range(100)) == {0}
        log = offsets_partition(memory).log
        data = log.read(0, 1 << 20, limit_offset=log.log_end_offset, min_one_batch=True).slice.read()
        batches = list(iter_batches(data))
        assert len(batches) > 5
        assert max(batch.size for batch in batches) <= 1000
        assert sum(batch.record_count for batch in batches) == 100
        response = client.ask(g.DeleteGroupsRequest(groups_names=["g"]), 3, g.DeleteGroupsResponse)
        assert response.results[0].error_code == 0
        assert fetch(client, "t") == -1

    def test_an_invalid_record_is_skipped_at_load(self, memory, tmp_path):
        memory.create_topic("t")
        client = memory.client()
        find(client)
        assert commit(client, "t", 7) == {0}
        partition = offsets_partition(memory)
        from barnabas.wire.batches.records import BatchBuilder

        builder = BatchBuilder()
        builder.append(1, b"\0\1\0\x7f", b"")
        partition.append(memoryview(bytearray(builder.build())), memory.clock.now, origin="coordinator")
        memory.broker.group_coordinators.stop()
        assert fetch(client, "t") == 7


def test_the_coordinator_has_the_address_that_the_client_connected_to(memory):
    coordinator = find(memory.client(local=("192.0.2.7", 19092)))
    assert (coordinator.host, coordinator.port, coordinator.node_id) == ("192.0.2.7", 19092, 1)


class TestExpiry:
    def test_expired_offsets_stay_deleted_after_a_restart(self, tmp_path):
        """G2: offsets.retention.minutes; the check writes tombstones, so a restart does not restore offsets."""
        memory = MemoryBroker(tmp_path / "data", {**FEW_PARTITIONS, "offsets.retention.minutes": "1"})
        client = memory.client()
        memory.create_topic("t")
        find(client)
        assert commit(client, "t") == {0}
        run_in_place(memory.broker.group_coordinators.expire_offsets())
        assert fetch(client, "t") == 5
        memory.clock.advance(60)
        run_in_place(memory.broker.group_coordinators.expire_offsets())
        assert fetch(client, "t") == -1
        assert client.ask(g.ListGroupsRequest(), 5, g.ListGroupsResponse).groups == []
        memory.close()
        again = MemoryBroker(tmp_path / "data", FEW_PARTITIONS)
        assert fetch(again.client(), "t") == -1
        again.close()
