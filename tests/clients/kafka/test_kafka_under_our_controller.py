"""Apache Kafka's own brokers register with Barnabas' controller and work under it.

What a broker of Kafka 4.4.0 asks of its controllers is written down nowhere but in its code: registration, feature
levels, the metadata log with its snapshots, forwarded requests, the end of a session.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from barnabas.wire.messages.metadata import MetadataRequest
from tests.support.jvm.command import KAFKA_NODE
from tests.support.jvm.kafka_tools import output
from tests.support.processes.kafka import LOG4J, KafkaServer
from tests.support.processes.ports import free_port
from tests.support.processes.server import BarnabasServer
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.soak,
    pytest.mark.jvm,
    pytest.mark.timeout(300),
]
WAIT_S = 60.0
SESSION_MS = 3000


class OurController(BarnabasServer):
    """A process with the role controller."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        self.port = self.port or free_port()
        self.config |= {
            "process.roles": "controller",
            "node.id": "3000",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://{self.bootstrap}",
        }
        command, environment = super()._command()
        at = command.index("--listen")
        return command[:at] + command[at + 2 :], environment

    @property
    def cluster_id(self) -> str:
        match = re.search(r"cluster\.id=(.+)", (self.data_dir / "meta.properties").read_text())
        assert match is not None
        return match[1]


class KafkaBroker(KafkaServer):
    """Kafka with the role broker."""

    def __init__(self, data_dir: Path, node_id: int, controller: OurController) -> None:
        super().__init__(data_dir, jvm_options=KAFKA_NODE, cluster_id=controller.cluster_id)
        self.node_id = node_id
        self.controller = controller

    def write_properties(self) -> None:
        self.port = self.port or free_port()
        settings = {
            "process.roles": "broker",
            "node.id": str(self.node_id),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": self.controller.bootstrap,
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
            "log.dirs": str(self.log_dir),
            "broker.session.timeout.ms": str(SESSION_MS),
            "broker.heartbeat.interval.ms": "500",
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": "2",
            "group.initial.rebalance.delay.ms": "0",
        }
        (self.data_dir / "log4j2.xml").write_text(LOG4J)
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def leaders(broker: KafkaBroker, topic: str) -> dict[int, int]:
    """The leader of each partition, as a broker tells it."""
    client = RawClient(broker.bootstrap)
    try:
        metadata = client(MetadataRequest(topics=None), 12)
        return {p.partition_index: p.leader_id for t in metadata.topics if t.name == topic for p in t.partitions}
    finally:
        client.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[OurController, list[KafkaBroker]]]:
    """One controller of ours and two brokers of Kafka."""
    root = tmp_path_factory.mktemp("mixed")
    snapshots = {
        "metadata.log.max.record.bytes.between.snapshots": "3000",
        "broker.session.timeout.ms": str(SESSION_MS),
    }
    controller = OurController(root / "controller", config=snapshots)
    controller.start()
    brokers = [KafkaBroker(root / f"kafka{node_id}", node_id, controller) for node_id in (1, 2)]
    try:
        for broker in brokers:
            broker.start()
        yield controller, brokers
    finally:
        for broker in brokers:
            broker.stop()
        controller.stop()


def test_kafkas_brokers_work_under_our_controller(cluster: tuple[OurController, list[KafkaBroker]]) -> None:
    controller, (first, second) = cluster
    bootstrap = f"{first.bootstrap},{second.bootstrap}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 4, 2, config={"min.insync.replicas": "1"})])["t"].result(WAIT_S)
    wait_for(lambda: sorted(leaders(first, "t").values()) == [1, 1, 2, 2], "two leaders on each broker", WAIT_S)

    produced = produce(bootstrap, 2000)
    assert consume(bootstrap, 2000) == produced

    resource = ConfigResource(
        ResourceType.TOPIC,
        "t",
        incremental_configs=[ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)],
    )
    admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    wait_for(
        lambda: retention(admin) == "7200000", "the changed retention", WAIT_S
    )  # Kafka's brokers learn a change after its answer

    second.kill9()
    wait_for(lambda: set(leaders(first, "t").values()) == {1}, "broker 1 leading everything", WAIT_S)
    produced += produce(first.bootstrap, 500)
    controller.kill9()
    produced += produce(first.bootstrap, 500)  # the data plane needs no controller
    controller.restart()
    admin_of_first = AdminClient({"bootstrap.servers": first.bootstrap})
    create_patiently(admin_of_first, "after-restart")
    second.start()
    wait_for(lambda: leaders(second, "t") == leaders(first, "t"), "the same leaders on both brokers", WAIT_S)
    assert sorted(consume(bootstrap, 3000)) == sorted(produced)


def retention(admin: AdminClient) -> str:
    """The retention time of the topic, as a broker tells it."""
    futures = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")])
    (described,) = (future.result(WAIT_S) for future in futures.values())
    return str(described["retention.ms"].value)


def test_kafkas_tools_describe_the_quorum(cluster: tuple[OurController, list[KafkaBroker]]) -> None:
    controller, (first, _) = cluster
    status = output("MetadataQuorumCommand", "--bootstrap-server", first.bootstrap, "describe", "--status")
    assert re.search(r"LeaderId:\s+3000", status), status
    assert '"id": 1' in status
    readers = output(
        "MetadataQuorumCommand", "--bootstrap-controller", controller.bootstrap, "describe", "--replication"
    )
    assert re.search(r"3000\s.*Leader", readers), readers
    assert re.search(r"1\s.*Observer", readers), readers
    features = output("FeatureCommand", "--bootstrap-controller", controller.bootstrap, "describe")
    assert re.search(r"eligible.leader.replicas.version.*FinalizedVersionLevel: 1", features), features
    endpoints = output("ClusterTool", "list-endpoints", "--bootstrap-controller", controller.bootstrap)
    assert re.search(r"3000\s+127.0.0.1\s.*controller", endpoints), endpoints


def create_patiently(admin: AdminClient, name: str) -> None:
    """Create a topic although the controller may just have come back."""
    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            admin.create_topics([NewTopic(name, 1, 1)])[name].result(WAIT_S)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise


def produce(bootstrap: str, count: int) -> list[bytes]:
    """Produce numbered records with acks=all; returns their values."""
    values = [b"%s-%d" % (str(time.monotonic_ns()).encode(), number) for number in range(count)]
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
    errors = []
    for value in values:
        producer.produce("t", value, key=value, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(WAIT_S) == 0
    assert errors == []
    return sorted(values)


def consume(bootstrap: str, count: int) -> list[bytes]:
    """Read the topic from its beginning as a group."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"g{time.monotonic_ns()}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["t"])
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    while len(values) < count and time.monotonic() < deadline:
        values += [message.value() for message in consumer.consume(500, 0.5) if message.error() is None]
    consumer.close()
    return sorted(values)
