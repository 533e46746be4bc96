"""A cluster that answers as an earlier release of Kafka: what clients see, and do then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client.releases import release_of, releases
from barnabas.testing import Broker, Cluster, RefusedError
from barnabas.wire.api_keys import ApiKey
from barnabas.wire.registry import message_for
from tests.testkit.raw import Raw

TABLE = releases()
API_VERSIONS, FETCH, PRODUCE, CONSUMER_GROUP_HEARTBEAT = "18", "1", "0", "68"


@pytest.fixture(params=["2.8", "3.9", "4.0"])
def old(barnabas_broker: Broker, request: pytest.FixtureRequest) -> Iterator[tuple[str, Cluster]]:
    cluster = barnabas_broker.open(as_version=request.param)
    yield request.param, cluster
    cluster.close()


def test_a_broker_speaks_like_the_newest_release_that_it_covers() -> None:
    offered = {int(key): last for key, (_, last) in TABLE["4.0"]["apis"].items()}
    assert release_of(offered) == "4.0"
    assert release_of(offered | {int(FETCH): 99}) == "4.0"
    assert release_of(offered | {int(CONSUMER_GROUP_HEARTBEAT): -1}) == "4.0"
    assert release_of(offered | {int(PRODUCE): 11}) == "3.9"
    assert release_of({}) is None


def test_the_table_has_what_is_known_of_the_releases() -> None:
    assert TABLE["2.0"]["apis"][FETCH] == [0, 8]
    assert TABLE["2.8"]["apis"][FETCH] == [0, 12]
    assert TABLE["2.8"]["apis"][PRODUCE] == [0, 9]
    assert TABLE["3.9"]["apis"][FETCH] == [0, 17]
    assert TABLE["4.0"]["apis"][FETCH] == [4, 17]
    assert TABLE["4.0"]["apis"][PRODUCE] == [0, 12]  # KAFKA-18659
    assert CONSUMER_GROUP_HEARTBEAT not in TABLE["3.6"]["apis"]
    assert TABLE["2.8"]["features"] == {}
    assert TABLE["3.9"]["features"]["metadata.version"] == [1, 21]
    assert TABLE["4.0"]["features"]["transaction.version"] == [0, 2]


def test_the_newest_release_is_this_broker(kafka: Cluster) -> None:
    """Barnabas serves what Kafka 4.4 does, so its own answer shows whether the table is right."""
    response = Raw(kafka).api_versions(3)
    own = {str(api.api_key): [api.min_version, api.max_version] for api in response.api_keys}
    assert own
    assert {key: TABLE["4.4"]["apis"][key] for key in own} == own


def test_api_versions_is_that_of_the_release(old: tuple[str, Cluster]) -> None:
    name, cluster = old
    response = Raw(cluster).api_versions(3)
    apis = {str(entry.api_key): [entry.min_version, entry.max_version] for entry in response.api_keys}
    expected = {key: versions for key, versions in TABLE[name]["apis"].items() if key not in {"71", "72"}}
    assert apis == expected
    features = {entry.name: [entry.min_version, entry.max_version] for entry in response.supported_features}
    assert features == TABLE[name]["features"]
    levels = {entry.name: entry.max_version_level for entry in response.finalized_features}
    assert all(level <= TABLE[name]["features"][feature][1] for feature, level in levels.items())
    assert ("transaction.version" in levels) == (name == "4.0")


def test_a_version_that_the_release_lacks_closes_the_connection(old: tuple[str, Cluster]) -> None:
    name, cluster = old
    newer = [
        (key, TABLE[name]["apis"][key][1])
        for key, (_, last) in TABLE["4.4"]["apis"].items()
        if key in {"3", "16", "75"} and last > TABLE[name]["apis"].get(key, (0, last))[1]
    ]
    newer += [("75", -1)] if "75" not in TABLE[name]["apis"] else []
    newer += [("88", -1)] if name == "4.0" else []
    raw = Raw(cluster)
    assert newer
    for key, last in newer:
        request = message_for(ApiKey(int(key)))[0]()
        assert last == -1 or raw.ask(request, last) is not None
        assert raw.ask(request, last + 1) is None


def test_api_versions_in_a_version_that_the_release_lacks(barnabas_broker: Broker) -> None:
    cluster = barnabas_broker.open(as_version="2.8")
    response = Raw(cluster).api_versions(4)
    assert response.error_code == 35
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [(18, 0, 3)]
    cluster.close()


def test_clients_work_with_the_versions_of_the_release(old: tuple[str, Cluster]) -> None:
    name, cluster = old
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce("orders", "a")
    producer.commit_transaction(10)
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "g", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    message = consumer.poll(20)
    assert message is not None
    assert message.value() == b"a"
    consumer.close()
    keys = {"Produce": PRODUCE, "Fetch": FETCH}
    for api, key in keys.items():
        assert {request.version for request in cluster.requests(api)} <= set(range(TABLE[name]["apis"][key][1] + 1))


def test_the_new_protocol_of_groups_is_not_served_before_4_0(barnabas_broker: Broker) -> None:
    cluster = barnabas_broker.open(as_version="3.9")
    response = Raw(cluster).consumer_group_heartbeat(0)
    assert response is not None
    assert response.error_code == 35
    cluster.close()


def test_a_release_that_is_unknown(barnabas_broker: Broker) -> None:
    with pytest.raises(RefusedError, match=r"as_version is one of 2\.0, .*4\.4, not '7\.7'"):
        barnabas_broker.open(as_version="7.7")


def test_a_fork_and_what_is_restored_answer_as_their_parent(old: tuple[str, Cluster]) -> None:
    _, cluster = old
    snap = cluster.snapshot()
    before = Raw(cluster).api_versions(3)
    fork = cluster.fork(snap)
    grandchild = fork.fork()
    cluster.restore(snap)
    for target in (fork, grandchild, cluster):
        response = Raw(target).api_versions(3)
        assert (response.api_keys, response.supported_features) == (before.api_keys, before.supported_features)
    grandchild.close()
    fork.close()
