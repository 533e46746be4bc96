"""Regressions of the fuzz: requests with absurd values get a response, and leave nothing that fails later."""

from __future__ import annotations

import logging

import pytest

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.errors import error_text
from barnabas.wire.messages import configs as c
from barnabas.wire.messages import topics as tp
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from barnabas.wire.messages.groups import consumer_groups as cg
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups import share_groups as sg
from barnabas.wire.messages.groups import share_state as ss
from tests.support.memory.broker import MemoryBroker

FEW = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}
HUGE = "x" * 32767

LONG_NAMES = {
    "describe-groups": (g.DescribeGroupsRequest(groups=[HUGE]), 6, g.DescribeGroupsResponse),
    "consumer-group-describe": (
        cg.ConsumerGroupDescribeRequest(group_ids=[HUGE]), 1, cg.ConsumerGroupDescribeResponse,
    ),
    "alter-configs": (
        c.AlterConfigsRequest(
            resources=[c.AlterConfigsRequestAlterConfigsResource(resource_type=2, resource_name=HUGE)]
        ),
        1, c.AlterConfigsResponse,
    ),
    "create-topics": (
        tp.CreateTopicsRequest(topics=[tp.CreatableTopic(name=HUGE, num_partitions=1, replication_factor=1)]),
        3, tp.CreateTopicsResponse,
    ),
}  # fmt: skip


@pytest.fixture
def memory(tmp_path):
    memory = MemoryBroker(tmp_path / "data", FEW)
    yield memory
    memory.close()


@pytest.mark.parametrize("case", sorted(LONG_NAMES))
def test_an_error_that_quotes_the_longest_name_fits_into_its_response(memory, caplog, case) -> None:
    request, version, response_class = LONG_NAMES[case]
    client = memory.client()
    client.ask(g.FindCoordinatorRequest(coordinator_keys=["g"]), 6, g.FindCoordinatorResponse)
    memory.advance(1)
    response = client.ask(request, version, response_class)
    assert str(int(E.UNKNOWN_SERVER_ERROR)) not in repr(response).split("error_code=")[1][:2]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def test_only_a_long_error_text_is_cut() -> None:
    assert error_text("y" * 2000) == "y" * 2000
    assert error_text("y" * 2001) == "y" * 1999 + "…"


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63)])
def test_offset_commit_with_an_absurd_retention_time(memory, caplog, retention_ms) -> None:
    memory.create_topic("t")
    client = memory.client()
    client.ask(g.FindCoordinatorRequest(coordinator_keys=["g"]), 6, g.FindCoordinatorResponse)
    memory.advance(1)
    topic = o.OffsetCommitRequestTopic(name="t", partitions=[o.OffsetCommitRequestPartition(committed_offset=5)])
    request = o.OffsetCommitRequest(group_id="g", retention_time_ms=retention_ms, topics=[topic])
    (committed,) = client.ask(request, 2, o.OffsetCommitResponse).topics
    assert committed.partitions[0].error_code == 0
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(("start_offset", "complete"), [(-(2**63), 0), (2**63 - 1, 9)])
def test_lag_of_an_absurd_start_offset_can_be_encoded(memory, start_offset, complete) -> None:
    topic_id = memory.create_topic("t")
    client = memory.client()
    partition = ss.InitializeShareGroupStateRequestPartitionData(partition=0, start_offset=start_offset)
    topics = [ss.InitializeStateData(topic_id=topic_id, partitions=[partition])]
    request = ss.InitializeShareGroupStateRequest(group_id="g", topics=topics)
    client.ask(request, 0, ss.InitializeShareGroupStateResponse)
    batch = ss.WriteShareGroupStateRequestPartitionData(
        partition=0, start_offset=start_offset, delivery_complete_count=complete
    )
    states = [ss.WriteStateData(topic_id=topic_id, partitions=[batch])]
    client.ask(ss.WriteShareGroupStateRequest(group_id="g", topics=states), 1, ss.WriteShareGroupStateResponse)
    topic = sg.DescribeShareGroupOffsetsRequestTopic(topic_name="t", partitions=[0])
    group = sg.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=[topic])
    request = sg.DescribeShareGroupOffsetsRequest(groups=[group])
    (described_group,) = client.ask(request, 1, sg.DescribeShareGroupOffsetsResponse).groups
    (described,) = described_group.topics[0].partitions
    assert described.error_code == 0
    assert abs(described.lag) == 2**63 - 1


@pytest.mark.parametrize("topic", ["__transaction_state", "__share_group_state"])
def test_markers_in_a_coordinators_log_are_not_its_records(tmp_path, caplog, topic) -> None:
    """WriteTxnMarkers appends to any partition, as in Kafka; the next start reads over the marker."""
    for start in range(2):
        memory = MemoryBroker(tmp_path / "data", FEW)
        if start == 0:
            memory.create_topic(topic)
        marker = t.WritableTxnMarker(
            producer_id=1, transaction_result=True,
            topics=[t.WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
        )  # fmt: skip
        memory.client().ask(t.WriteTxnMarkersRequest(markers=[marker]), 1, t.WriteTxnMarkersResponse)
        memory.close()
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]


def test_a_member_id_fits_into_its_field_whatever_the_client_id(tmp_path, caplog) -> None:
    memory = MemoryBroker(tmp_path / "data", FEW)
    client = memory.client(client_id=HUGE)
    client.ask(g.FindCoordinatorRequest(coordinator_keys=["g"]), 6, g.FindCoordinatorResponse)
    memory.advance(1)
    protocols = [g.JoinGroupRequestProtocol(name="range")]
    request = g.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=10_000, protocol_type="c", protocols=protocols
    )
    assert client.ask(request, 9, g.JoinGroupResponse).error_code == int(E.MEMBER_ID_REQUIRED)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    memory.close()


def test_thousands_of_requests_wait_for_one_creation_of_an_internal_topic(tmp_path, monkeypatch) -> None:
    memory = MemoryBroker(tmp_path / "data", FEW)
    changes, commit = [], memory.broker.controller.commit
    monkeypatch.setattr(memory.broker.controller, "commit", lambda *change: (changes.append(change), commit(*change)))
    memory.disk.is_paused = True
    coordinators, called = memory.broker.share_coordinators, []
    for number in range(1000):
        coordinators.ensure_topic(lambda error, number=number: called.append((number, error)))
    while memory.disk.held:
        memory.run_disk()
        memory.advance(0.1)
    assert called == [(number, None) for number in range(1000)]
    assert len(changes) == 1
    memory.disk.is_paused = False
    memory.close()
