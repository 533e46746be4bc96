"""A cluster with a seed: the same requests in the same order are answered the same, byte by byte."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from barnabas.testing import Broker, Cluster

WHEN_MS = 1_900_000_000_000


def _session(kafka: Cluster) -> list[Any]:
    """What a producer with transactions and members of three kinds of groups are answered."""
    answers: list[Any] = []

    def ask(api: str, version: int, **body: Any) -> dict[str, Any]:
        answers.append((api, kafka.request(api, body, version)))
        result: dict[str, Any] = answers[-1][1]
        return result

    for name, count in (("orders", 3), ("payments", 4)):
        topic = {"name": name, "numPartitions": count, "replicationFactor": 1, "assignments": [], "configs": []}
        ask("CreateTopics", 7, topics=[topic], timeoutMs=10_000, validateOnly=False)
    ask("DescribeCluster", 1, includeClusterAuthorizedOperations=False, endpointType=1)
    ask("FindCoordinator", 4, keyType=0, coordinatorKeys=["classic", "modern"])
    ask("FindCoordinator", 4, keyType=1, coordinatorKeys=["t1", "t2"])
    for transactional_id in ("t1", "t2"):
        ask(
            "InitProducerId",
            4,
            transactionalId=transactional_id,
            transactionTimeoutMs=60_000,
            producerId=-1,
            producerEpoch=-1,
        )
    for _ in range(3):
        joining = {
            "groupId": "classic",
            "sessionTimeoutMs": 45_000,
            "rebalanceTimeoutMs": 45_000,
            "memberId": "",
            "groupInstanceId": None,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": b64encode(b"m").decode()}],
            "reason": None,
        }
        ask("JoinGroup", 8, **joining)
    for _ in range(2):
        for topics in (["orders"], ["orders", "payments"]):
            ask(
                "ConsumerGroupHeartbeat",
                0,
                groupId="modern",
                memberId="",
                memberEpoch=0,
                instanceId=None,
                rackId=None,
                rebalanceTimeoutMs=45_000,
                subscribedTopicNames=topics,
                serverAssignor=None,
                topicPartitions=[],
            )
            kafka.clock.advance(2)
    ask("ConsumerGroupDescribe", 0, groupIds=["modern"], includeAuthorizedOperations=False)
    ask("DescribeTransactions", 0, transactionalIds=["t1", "t2"])
    return answers


def _answers(broker: Broker, seed: int) -> list[Any]:
    kafka = broker.open(seed=seed)
    try:
        kafka.clock.freeze()
        kafka._link.perform("clock_jump", {"to_ms": WHEN_MS})
        return _without_port(_session(kafka))
    finally:
        kafka.close()


def _without_port(value: Any) -> Any:
    """The answers without the port, which the system chooses."""
    if isinstance(value, dict):
        return {key: _without_port(item) for key, item in value.items() if key != "port"}
    return [_without_port(item) for item in value] if isinstance(value, list | tuple) else value


def test_the_same_session_twice_is_answered_the_same(barnabas_broker: Broker) -> None:
    first, second = _answers(barnabas_broker, 7), _answers(barnabas_broker, 7)
    assert len(first) == 16
    for expected, other in zip(first, second, strict=True):
        assert expected == other


def test_another_process_answers_the_same(barnabas_broker: Broker) -> None:
    other = Broker()
    with other:
        assert _answers(other, 7) == _answers(barnabas_broker, 7)


def test_another_seed_gives_other_ids(barnabas_broker: Broker) -> None:
    first, second = _answers(barnabas_broker, 7), _answers(barnabas_broker, 8)
    assert first[0] != second[0]  # topic ids
    assert first[7] != second[7]  # member ids


def test_without_a_seed_ids_are_random(barnabas_broker: Broker) -> None:
    ids = set()
    for _ in range(2):
        kafka = barnabas_broker.open()
        ids.add(
            str(
                kafka.request("DescribeCluster", {"includeClusterAuthorizedOperations": False, "endpointType": 1}, 1)[
                    "clusterId"
                ]
            )
        )
        kafka.close()
    assert len(ids) == 2


@pytest.mark.parametrize("seed", [0, 12345678901234567890])
def test_ids_after_a_restore_and_in_forks_are_new_ones(barnabas_broker: Broker, seed: int) -> None:
    kafka = barnabas_broker.open(seed=seed)
    kafka.topic("a").create()
    snap = kafka.snapshot()
    kafka.topic("b").create()
    kafka.restore(snap)
    kafka.topic("c").create()
    fork = kafka.fork(snap)
    fork.topic("d").create()
    ids = [_topic_id(kafka, "a"), _topic_id(kafka, "c"), _topic_id(fork, "d")]
    assert len(set(ids)) == 3
    assert _topic_id(fork, "a") == ids[0]
    kafka.close()
    fork.close()


def _topic_id(kafka: Cluster, name: str) -> str:
    body = {"topics": [{"name": name}], "responsePartitionLimit": 10, "cursor": None}
    return str(kafka.request("DescribeTopicPartitions", body)["topics"][0]["topicId"])
