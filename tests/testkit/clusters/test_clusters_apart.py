"""Two clusters of one process have nothing of each other, whatever is made in one of them; many are open at once."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, Producer

from barnabas.testing import Broker, Cluster

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ANY = 1
QUESTIONS: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "topics": ("Metadata", {"topics": None, "allowAutoTopicCreation": False}, 8),
    "groups": ("ListGroups", {"statesFilter": [], "typesFilter": []}, None),
    "offsets": ("OffsetFetch", {"groups": [{"groupId": "billing", "topics": None}], "requireStable": False}, 8),
    "transactions": ("ListTransactions", {"stateFilters": [], "producerIdFilters": [], "durationFilter": -1}, 1),
    "acls": (
        "DescribeAcls",
        {
            "resourceTypeFilter": ANY,
            "resourceNameFilter": None,
            "patternTypeFilter": ANY,
            "principalFilter": None,
            "hostFilter": None,
            "operation": ANY,
            "permissionType": ANY,
        },
        None,
    ),
    "quotas": ("DescribeClientQuotas", {"components": [], "strict": False}, None),
    "configs of the broker": (
        "DescribeConfigs",
        {
            "resources": [{"resourceType": 4, "resourceName": "1", "configurationKeys": ["log.retention.ms"]}],
            "includeSynonyms": False,
            "includeDocumentation": False,
        },
        None,
    ),
    "users": ("DescribeUserScramCredentials", {"users": []}, None),
    "directories": ("DescribeLogDirs", {"topics": None}, None),
}
"""What shows what a cluster has: API, body and version of a request."""


def _everything(cluster: Cluster) -> dict[str, Any]:
    """The answers to all questions, without what differs between any two brokers: ids, ports, directories."""
    answers = {}
    for what, (api, body, version) in QUESTIONS.items():
        if api == "Metadata":
            body = body | {"includeClusterAuthorizedOperations": False, "includeTopicAuthorizedOperations": False}
        answers[what] = cluster.request(api, body, version)
    metadata, directories = answers["topics"], answers["directories"]
    answers["topics"] = metadata["topics"]
    answers["directories"] = [result["topics"] for result in directories["results"]]
    return answers


def _use(cluster: Cluster) -> None:
    """Make one of everything, as clients do."""
    address = {"bootstrap.servers": cluster.bootstrap_servers}
    producer = Producer(address | {"transactional.id": "shop", "client.id": "shop"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("orders", "x")
    producer.commit_transaction(20)
    consumer = Consumer(address | {"group.id": "billing", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    while (message := consumer.poll(1)) is None or message.error():
        pass
    consumer.commit(message, asynchronous=False)
    consumer.close()
    acl = {"resourceType": 2, "resourceName": "orders", "resourcePatternType": 3, "principal": "User:alice"}
    rights = {"host": "*", "operation": 3, "permissionType": 3}
    cluster.request("CreateAcls", {"creations": [acl | rights]})
    quota = {"entity": [{"entityType": "client-id", "entityName": "shop"}], "ops": [{"key": "request_percentage"}]}
    quota["ops"][0] |= {"value": 50.0, "remove": False}  # type: ignore[dict-item]
    cluster.request("AlterClientQuotas", {"entries": [quota], "validateOnly": False})
    changed = {"resourceType": 4, "resourceName": "", "configs": [{"name": "log.retention.ms", "value": "1234"}]}
    changed["configs"][0]["configOperation"] = 0  # type: ignore[index]
    cluster.request("IncrementalAlterConfigs", {"resources": [changed], "validateOnly": False})
    user = {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": "c2FsdA==", "saltedPassword": "cGFzc3dvcmQ="}
    cluster.request("AlterUserScramCredentials", {"deletions": [], "upsertions": [user]})
    cluster.faults.add("Heartbeat", error="REBALANCE_IN_PROGRESS")
    cluster.clock.freeze()


def test_what_is_made_in_one_is_in_no_other(barnabas_broker: Broker) -> None:
    used, other, untouched = (barnabas_broker.open(AUTHORIZER) for _ in range(3))
    before = _everything(other)
    _use(used)
    after = _everything(used)
    assert [what for what in QUESTIONS if after[what] == before[what]] == [], "each question shows what was made"
    assert _everything(other) == before
    assert other.requests() == []
    assert other.lint() == []
    assert other.timeline() == []
    assert other._link.perform("fault_list")["rules"] == []
    _use(other)  # the same names, transactional ids and users again
    assert [record.text for record in other.topic("orders").records()] == ["x"]
    assert [record.text for record in used.topic("orders").records()] == ["x"]
    assert _everything(untouched) == before
    for cluster in (used, other, untouched):
        cluster.close()


def test_two_hundred_are_open_at_once(barnabas_broker: Broker) -> None:
    clusters = [barnabas_broker.open() for _ in range(200)]
    try:
        assert len({one.bootstrap_servers for one in clusters}) == 200
        for number, cluster in enumerate(clusters):
            cluster.topic("orders").produce(str(number))
        for number, cluster in enumerate(clusters):
            assert [one.text for one in cluster.topic("orders").records()] == [str(number)]
    finally:
        for cluster in clusters:
            cluster.close()
