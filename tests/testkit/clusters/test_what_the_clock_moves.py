"""What else goes by the clock of a cluster: the timeout of a rebalance, and the windows of quotas."""

from __future__ import annotations

import threading
from typing import Any

from barnabas.testing import Cluster
from barnabas.wire.batches.records import build_batch
from barnabas.wire.messages.groups.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.wire.types import Uuid, uuid_from_text
from tests.testkit.raw import Raw

VERSION = 3
"""The last version of JoinGroup in which a member joins without a second request."""


def _join(kafka: Cluster, client: str) -> JoinGroupResponse:
    """Join the group g, with a session that outlasts the rebalance; the answer, which may take a while."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=600_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=client.encode())],
    )
    response = Raw(kafka).ask(request, VERSION)
    assert isinstance(response, JoinGroupResponse)
    return response


def test_a_rebalance_ends_without_the_member_that_is_too_slow(kafka: Cluster) -> None:
    kafka.clock.freeze()
    kafka.request("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]}, 4)
    slow = _join(kafka, "slow")
    assert (slow.error_code, slow.generation_id) == (0, 1)
    answers: list[JoinGroupResponse] = []
    joining = threading.Thread(target=lambda: answers.append(_join(kafka, "fast")))
    joining.start()
    kafka.group("g").wait_until("PreparingRebalance")
    kafka.clock.advance(59)
    assert kafka.group("g").describe().state == "PreparingRebalance"
    kafka.clock.advance(2)
    joining.join(20)
    (fast,) = answers
    assert (fast.error_code, fast.generation_id, fast.leader) == (0, 2, fast.member_id)
    assert [member.member_id for member in fast.members] == [fast.member_id]


def _produce(kafka: Cluster, topic_id: Uuid, size: int) -> int:
    """Write a record of this size as the client `raw`; the throttle time of the answer, ms."""
    batch = memoryview(build_batch([(0, None, b"x" * size, [])]))
    data = TopicProduceData(topic_id=topic_id, partition_data=[PartitionProduceData(index=0, records=batch)])
    response = Raw(kafka).ask(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data]), ProduceRequest.max_version)
    assert isinstance(response, ProduceResponse)
    assert response.responses[0].partition_responses[0].error_code == 0
    return response.throttle_time_ms


def test_the_windows_of_a_quota(kafka: Cluster) -> None:
    kafka.topic("orders").create()
    body = {"topics": [{"name": "orders"}], "responsePartitionLimit": 1, "cursor": None}
    topic_id = uuid_from_text(kafka.request("DescribeTopicPartitions", body)["topics"][0]["topicId"])
    kafka.clock.freeze()
    rate = {"key": "producer_byte_rate", "value": 1000.0, "remove": False}
    quota: dict[str, Any] = {"entity": [{"entityType": "client-id", "entityName": "raw"}], "ops": [rate]}
    kafka.request("AlterClientQuotas", {"entries": [quota], "validateOnly": False})
    assert _produce(kafka, topic_id, 100) == 0
    assert _produce(kafka, topic_id, 50_000) > 0
    assert _produce(kafka, topic_id, 100) > 0, "time stands still"
    kafka.clock.advance("2m")
    assert _produce(kafka, topic_id, 100) == 0
