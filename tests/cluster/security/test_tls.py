"""A cluster whose listeners all have TLS: nodes know each other by certificates, and clients show theirs."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.conftest import KINDS
from tests.support.cluster.clusters import Cluster
from tests.support.security.certificates import Authority
from tests.support.security.ssl_changes import alter, replace_all
from tests.support.waiting import ANY_ERROR, wait_for

COUNT = 200
WAIT_S = 60.0


def settings(path: Path, authority: Authority) -> dict[str, str]:
    """Keys of all nodes: the names of the listeners stay, and their protocol is SSL."""
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.sign("node").write(path / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write(path / "ca.pem"),
        "ssl.client.auth": "required",
    }


def client_config(cluster: Cluster, path: Path, authority: Authority) -> dict[str, Any]:
    own = authority.sign("client").write(path / "client.pem")
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "ssl",
        "ssl.ca.location": str(path / "ca.pem"),
        "ssl.certificate.location": own,
        "ssl.key.location": own,
    }


def write(config: dict[str, Any], topic: str, values: list[bytes]) -> None:
    producer = Producer({"acks": "all", **config})
    failures: list[object] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: error and failures.append(error))
    assert producer.flush(WAIT_S) == 0
    assert failures == []


def read(config: dict[str, Any], topic: str, count: int) -> list[bytes]:
    values: list[bytes] = []
    with closing(Consumer({"group.id": "readers", "auto.offset.reset": "earliest", **config})) as consumer:
        consumer.subscribe([topic])
        while len(values) < count:
            messages = consumer.consume(count, WAIT_S)
            assert messages, f"{len(values)} of {count} records"
            values += [message.value() or b"" for message in messages if message.error() is None]
    return values


@pytest.mark.parametrize("controllers", KINDS)
def test_replicas_follow_and_leaders_move_over_tls(tmp_path: Path, controllers: str) -> None:
    authority = Authority()
    with Cluster(tmp_path, kind=controllers, config=settings(tmp_path, authority)) as cluster:
        config = client_config(cluster, tmp_path, authority)
        admin = AdminClient(config)
        new = NewTopic("orders", 1, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([new])["orders"].result(WAIT_S)
        values = [b"%d" % number for number in range(COUNT)]
        write(config, "orders", values[: COUNT // 2])
        wait_for(lambda: len(partition(admin).isrs) == 3, "all replicas are in sync", errors=ANY_ERROR)
        check_refusals(admin, config["ssl.certificate.location"])
        leader = partition(admin).leader
        cluster.brokers[leader].kill9()
        write(config, "orders", values[COUNT // 2 :])
        wait_for(
            lambda: partition(admin).leader != leader, "another leader that is known to all brokers", errors=ANY_ERROR
        )
        assert read(config, "orders", COUNT) == values
        logs = "".join(node.log() for node in cluster.nodes)
        assert "certificate of" not in logs, "a node was refused"


def check_refusals(admin: AdminClient, certificate: str) -> None:
    """A broker checks its own certificates before the controller stores them."""
    name = "listener.name.plaintext.ssl.keystore.location"
    for value, why in (("/nowhere", "Cannot read /nowhere"), (certificate, "DistinguishedName does not match")):
        with pytest.raises(KafkaException, match=why) as refused:
            alter(admin, name, value)
        assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
        with pytest.raises(KafkaException, match=why) as refused:
            replace_all(admin, {name: value})
        assert refused.value.args[0].code() == KafkaError.INVALID_REQUEST
    alter(admin, "listener.name.plaintext.ssl.client.auth", "requested")


def partition(admin: AdminClient) -> Any:
    return admin.list_topics("orders", WAIT_S).topics["orders"].partitions[0]
