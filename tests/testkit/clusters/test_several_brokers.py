"""What the kit does to a cluster of several brokers as a whole: groups, faults, recording, wherever their broker is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from barnabas.testing import AsyncCluster, Broker, Cluster, RefusedError

IDS = range(6)
"""Names with these numbers have coordinators on all of three brokers."""


@pytest.fixture(scope="module")
def three(barnabas_broker: Broker) -> Iterator[Cluster]:
    cluster = barnabas_broker.open({"group.initial.rebalance.delay.ms": "0"}, brokers=3)
    cluster.topic("orders").create(3)
    for index in range(3):
        cluster.topic("orders").produce("x", partition=index)
    yield cluster
    cluster.close()


def _consumer(kafka: Cluster, group: str, **settings: Any) -> Consumer:
    """A consumer that is assigned what there is."""
    config = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, "client.id": group}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **config, **settings})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.05)
    return consumer


def _coordinators(kafka: Cluster, names: list[str], key_type: int = 0) -> set[int]:
    response = kafka.request("FindCoordinator", {"keyType": key_type, "coordinatorKeys": names})
    return {coordinator["nodeId"] for coordinator in response["coordinators"]}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_seen_wherever_their_coordinator_is(three: Cluster, protocol: str) -> None:
    names = [f"{protocol}-{number}" for number in IDS]
    consumers = {name: _consumer(three, name, **{"group.protocol": protocol}) for name in names}
    assert _coordinators(three, names) == {1, 2, 3}
    for name, consumer in consumers.items():
        group = three.group(name)
        (member,) = group.wait_until_assigned(members=1, partitions=3)
        seen = 0
        while seen < 3:
            message = consumer.poll(0.1)
            seen += message is not None and not message.error()
        consumer.commit(asynchronous=False)
        group.assert_committed("orders", {0: 1, 1: 1, 2: 1})
        state = group.describe()
        assert (state.state, set(state.lag.values())) == ("Stable", {0})
        assert group.expire(member) == [member.id]
        consumer.close()
        assert group.wait_until("Empty").members == []


def test_groups_are_made_to_go_through_what_happens(three: Cluster) -> None:
    names = [f"made-{number}" for number in IDS]
    consumers = [_consumer(three, name, **{"group.instance.id": "one"}) for name in names]
    assert _coordinators(three, names) == {1, 2, 3}
    for name, consumer in zip(names, consumers, strict=True):
        group = three.group(name)
        assert group.rebalance() == 1
        before = group.wait_until_assigned()
        group.reload()
        assert group.wait_until_assigned() == before
        group.fence("one")
        (member,) = group.describe().members
        assert member.id != before[0].id
        consumer.close()
    with pytest.raises(RefusedError, match="There is no group 'nobody'"):
        three.group("nobody").rebalance()


def test_producers_are_fenced_wherever_their_coordinator_is(three: Cluster) -> None:
    names = [f"tx-{number}" for number in IDS]
    for name in names:
        producer = Producer({"bootstrap.servers": three.bootstrap_servers, "transactional.id": name})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("lost", name)
        producer.flush()
        three.reload_transactions(name)
        three.fence_producer(name)
        with pytest.raises(KafkaException):
            producer.commit_transaction()
    assert _coordinators(three, names, 1) == {1, 2, 3}
    assert three.topic("lost").records() == []


def test_requests_of_clients_are_recorded_and_those_of_brokers_are_not(three: Cluster) -> None:
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "client.id": "shop", "transactional.id": "r"})
    producer.init_transactions()
    producer.begin_transaction()
    for index in range(3):
        producer.produce("orders", "recorded", partition=index)
    producer.commit_transaction()
    three.topic("orders").wait_for(3, value="recorded")
    requests = three.requests("Produce", client_id="shop")
    assert sum(one.details["records"] for one in requests) == 3
    assert len({one.connection for one in requests}) == 3  # one for each leader
    assert {one.client_id for one in three.requests() if (one.client_id or "").startswith("broker-")} == set()
    assert three.requests("WriteTxnMarkers") == []
    assert any("shop  Produce" in line for line in three.timeline(client_id="shop"))
    assert [one for one in three.lint() if (one.client_id or "").startswith("broker-")] == []


def test_faults_are_those_of_all_brokers(three: Cluster) -> None:
    producer = Producer({"bootstrap.servers": three.bootstrap_servers, "client.id": "faulty"})
    with three.faults.add("Produce", client_id="faulty", error="NOT_LEADER_OR_FOLLOWER", count=3) as rule:
        for index in range(3):
            producer.produce("orders", "survives", partition=index)
        assert producer.flush(30) == 0
        assert rule.hits == 3
    assert len(three.topic("orders").wait_for(3, value="survives")) == 3
    with three.hold("Produce", client_id="faulty") as held:
        for index in range(3):
            producer.produce("orders", "held", partition=index)
        held.wait(3)
        held.release()
    assert producer.flush(30) == 0


def test_a_fault_does_not_concern_the_brokers(three: Cluster) -> None:
    three.topic("replicated").create()
    with three.faults.add("Fetch", error="KAFKA_STORAGE_ERROR") as rule:
        assert three.topic("replicated").produce("x").offset == 0  # by all replicas
        assert rule.hits == 0


def test_topics_are_there_when_the_kit_says_so(three: Cluster) -> None:
    for number in range(10):
        assert three.topic(f"automatic-{number}").produce("x").offset == 0
        three.topic(f"created-{number}").create(3)
        for index in range(3):
            assert three.topic(f"created-{number}").produce("x", partition=index).offset == 0
        assert len(three.topic(f"created-{number}").records()) == 3
    assert three.topic("nothing").records() == []


def test_any_broker_can_be_asked(three: Cluster) -> None:
    body = {"includeClusterAuthorizedOperations": False, "endpointType": 1}
    every = {"statesFilter": [], "typesFilter": []}
    for broker in (1, 2, 3):
        listed = three.request("ListGroups", every, broker=broker)
        assert listed["errorCode"] == 0
    assert len(three.request("DescribeCluster", body, 1, broker=3)["brokers"]) == 3
    with pytest.raises(RefusedError, match="There is no broker 4: they are 1 to 3"):
        three.request("ListGroups", every, broker=4)


def test_what_the_kit_asks_waits_for_the_next_leader(barnabas_broker: Broker) -> None:
    kafka = barnabas_broker.open(brokers=3)
    orders, group = kafka.topic("orders"), kafka.group("g")
    orders.create()
    orders.produce("a")
    kafka.request("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]})
    (coordinator,) = _until_found(kafka, "g")
    kafka.elect("orders", 0, leader=coordinator)
    consumer = _consumer(kafka, "g")
    consumer.close()
    kafka.kill(coordinator)
    assert [record.text for record in orders.records()] == ["a"]
    assert orders.produce("b").offset == 1
    assert group.describe().state == "Empty"
    kafka.start(coordinator)
    kafka.close()


def _until_found(kafka: Cluster, group: str) -> set[int]:
    coordinators = _coordinators(kafka, [group])
    while coordinators == {-1}:
        coordinators = _coordinators(kafka, [group])
    return coordinators


@pytest.mark.parametrize("version", ["2.8", "3.9"])
def test_three_brokers_answer_as_an_earlier_release(barnabas_broker: Broker, version: str) -> None:
    kafka = barnabas_broker.open(brokers=3, as_version=version)
    kafka.topic("orders").create(3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all"})
    for index in range(3):
        producer.produce("orders", "x", partition=index)
    assert producer.flush(30) == 0
    assert max(request.version for request in kafka.requests("Produce")) <= {"2.8": 9, "3.9": 11}[version]
    fork = kafka.fork()
    producer = Producer({"bootstrap.servers": fork.bootstrap_servers, "acks": "all"})
    producer.produce("orders", "x")
    assert producer.flush(30) == 0
    assert max(request.version for request in fork.requests("Produce")) <= {"2.8": 9, "3.9": 11}[version]
    fork.close()
    kafka.close()


def test_broker_gives_a_cluster() -> None:
    with Broker({"num.partitions": 2}, brokers=3) as kafka:
        assert len(kafka.bootstrap_servers.split(",")) == 3
        kafka.topic("orders").produce("x", partition=1)
        kafka.kill(1)
        kafka.start(1)
    with pytest.raises(ValueError, match="port is for one broker"):
        Broker(brokers=3, port=9092)


def test_a_broker_that_runs_keeps_nothing_of_it(barnabas_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    channel = barnabas_broker.channel
    address = channel.url.removeprefix("http://")
    monkeypatch.setenv("BARNABAS_CONTROL", f"http://{channel.token}@{address}")

    def is_open(bootstrap: str) -> bool:
        """Other tests have clusters on this broker too, and one is made ahead."""
        return any(cluster["bootstrap"] == bootstrap for cluster in channel.call("GET", "/v1/clusters")["clusters"])

    with Broker(brokers=2) as kafka:
        assert len(kafka.bootstrap_servers.split(",")) == 2
        assert is_open(kafka.bootstrap_servers)
    assert not is_open(kafka.bootstrap_servers)
    with Broker(brokers=2) as kafka:
        kafka.close()


@pytest.mark.trio
async def test_the_awaited_form() -> None:
    async with Broker(brokers=2) as kafka:
        assert isinstance(kafka, AsyncCluster)
        record = await kafka.topic("orders").produce("x")
        assert record.text == "x"
