"""A cluster whose listeners all have SASL: brokers log in at controllers and at each other, clients at brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.cluster.conftest import KINDS
from tests.support.cluster.clusters import Cluster
from tests.support.cluster.quorums import IN_PROCESS
from tests.support.processes.ports import free_port
from tests.support.waiting import ANY_ERROR, wait_for

WAIT_S = 60.0
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
NODE = f'{MODULE} username="node" password="node-secret" user_node="node-secret" user_admin="admin-secret";'
SECURED = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.controller.plain.sasl.jaas.config": NODE,
    "listener.name.controller.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
    "listener.name.plaintext.plain.sasl.jaas.config": NODE,
    "listener.name.plaintext.scram-sha-512.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}


@pytest.fixture(params=KINDS)
def secured(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, kind=request.param, brokers=2, config=SECURED) as cluster:
        yield cluster


def login(address: str, mechanism: str, name: str, password: str, **options: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
        **options,
    }


def test_a_user_of_scram_is_made_at_one_broker_and_known_to_all(secured: Cluster) -> None:
    addresses = [node.bootstrap for node in secured.brokers.values()]
    admin = AdminClient(login(addresses[0], "PLAIN", "admin", "admin-secret"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    (future,) = admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("alice", info, b"alice-secret")]
    ).values()
    future.result(WAIT_S)
    (topic,) = admin.create_topics([NewTopic("t", 1, 2)]).values()
    topic.result(WAIT_S)

    for number, address in enumerate(addresses):
        alice = AdminClient(login(address, "SCRAM-SHA-512", "alice", "alice-secret"))
        wait_for(
            lambda alice=alice: alice.list_topics(timeout=5).topics.get("t"), "the user is known", errors=ANY_ERROR
        )
        producer = Producer(login(address, "SCRAM-SHA-512", "alice", "alice-secret", acks="all"))
        producer.produce("t", str(number).encode())
        assert producer.flush(WAIT_S) == 0

    options = {"group.id": "g", "auto.offset.reset": "earliest"}
    alice = login(secured.bootstrap, "SCRAM-SHA-512", "alice", "alice-secret", **options)
    with closing(Consumer(alice)) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert [message.value() for message in consumer.consume(2, WAIT_S)] == [b"0", b"1"]

    def in_sync() -> bool:
        (partition,) = admin.list_topics("t", timeout=5).topics["t"].partitions.values()
        return sorted(partition.isrs) == [1, 2]

    wait_for(in_sync, "both replicas are in sync", errors=ANY_ERROR)
    assert "secret" not in secured.log()


def test_brokers_move_to_a_listener_with_sasl_one_by_one(tmp_path: Path) -> None:
    """Both listeners are there from the start; each broker is restarted with the other one for its log-ins."""
    cluster = Cluster(
        tmp_path,
        kind=IN_PROCESS,
        brokers=2,
        config={
            **SECURED,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:SASL_PLAINTEXT",
            "listener.name.internal.plain.sasl.jaas.config": NODE,
            "inter.broker.listener.name": "PLAINTEXT",
        },
    )
    for node in cluster.brokers.values():
        node.config["listeners"] = f"PLAINTEXT://{node.bootstrap},INTERNAL://127.0.0.1:{free_port()}"
    with cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        (topic,) = admin.create_topics([NewTopic("t", 1, 2)]).values()
        topic.result(WAIT_S)
        for node in cluster.brokers.values():
            assert node.stop() == 0, cluster.log()
            node.config["inter.broker.listener.name"] = "INTERNAL"
            node.start()

            def in_sync() -> bool:
                (partition,) = admin.list_topics("t", timeout=5).topics["t"].partitions.values()
                return sorted(partition.isrs) == [1, 2]

            wait_for(in_sync, "both replicas are in sync", errors=ANY_ERROR)
            producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
            producer.produce("t", b"value")
            assert producer.flush(WAIT_S) == 0
