"""ACLs with real clients: confluent-kafka and Kafka's own `kafka-acls` create them, and get authorization errors.

Without authentication every client is User:ANONYMOUS: a super user on one broker, without any rights on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.support.jvm.kafka_tools import Tools
from tests.support.processes.brokers_of_run import StartBroker
from tests.support.processes.server import Server

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer  # noqa: E402
from confluent_kafka.admin import (  # noqa: E402
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
TIMEOUT_S = 30
ANY = AclBindingFilter(
    ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
)
Start = Callable[..., Server]


def binding(name: str, operation: AclOperation, permission: AclPermissionType, **fields: str) -> AclBinding:
    values = {"principal": "User:ANONYMOUS", "host": "*", **fields}
    pattern = ResourcePatternType.PREFIXED if name.endswith("-") else ResourcePatternType.LITERAL
    return AclBinding(ResourceType.TOPIC, name, pattern, values["principal"], values["host"], operation, permission)


@pytest.fixture
def open_broker(start_broker: StartBroker) -> Server:
    """A broker whose clients are super users."""
    return start_broker(config={"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"})


@pytest.fixture
def closed_broker(start_broker: StartBroker) -> Server:
    """A broker whose clients may do nothing."""
    return start_broker(config={"authorizer.class.name": AUTHORIZER, "super.users": "User:admin"})


def test_acls_are_created_described_and_deleted(open_broker: Server) -> None:
    admin = AdminClient({"bootstrap.servers": open_broker.bootstrap})
    read = binding("orders", AclOperation.READ, AclPermissionType.ALLOW)
    write = binding("pay-", AclOperation.WRITE, AclPermissionType.DENY, host="10.0.0.0/8")
    for future in admin.create_acls([read, write], request_timeout=TIMEOUT_S).values():
        future.result()
    assert set(admin.describe_acls(ANY, request_timeout=TIMEOUT_S).result()) == {read, write}
    chosen = AclBindingFilter(
        ResourceType.TOPIC, "orders", ResourcePatternType.MATCH, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    (deleted,) = admin.delete_acls([chosen], request_timeout=TIMEOUT_S).values()
    assert deleted.result() == [read]
    assert admin.describe_acls(ANY, request_timeout=TIMEOUT_S).result() == [write]


def refusal(call: Callable[[], object]) -> int:
    """The code of the KafkaException that a call raises."""
    with pytest.raises(KafkaException) as refused:
        call()
    return int(refused.value.args[0].code())


def test_who_may_do_nothing_hears_it(closed_broker: Server) -> None:
    admin = AdminClient({"bootstrap.servers": closed_broker.bootstrap})
    creation = admin.create_topics([NewTopic("orders", 1)], request_timeout=TIMEOUT_S)["orders"]
    assert refusal(creation.result) == KafkaError.TOPIC_AUTHORIZATION_FAILED
    allowed = binding("orders", AclOperation.ALL, AclPermissionType.ALLOW)
    (created,) = admin.create_acls([allowed], request_timeout=TIMEOUT_S).values()
    assert refusal(created.result) == KafkaError.CLUSTER_AUTHORIZATION_FAILED
    assert admin.list_topics(timeout=TIMEOUT_S).topics == {}

    errors: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": closed_broker.bootstrap})
    producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(TIMEOUT_S)
    assert [error.code() for error in errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]

    consumer = Consumer({"bootstrap.servers": closed_broker.bootstrap, "group.id": "g"})
    consumer.subscribe(["orders"])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    assert message.error().code() in (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    consumer.close()


@pytest.mark.jvm
def test_kafkas_own_tool(open_broker: Server) -> None:
    kafka_acls = partial(Tools(open_broker.bootstrap).run, "AclCommand")
    topic = ("--topic", "orders", "--resource-pattern-type", "prefixed")
    kafka_acls("--add", "--allow-principal", "User:alice", "--operation", "Read", *topic)
    kafka_acls("--add", "--allow-principal", "User:bob", "--producer", "--topic", "bills")
    listed = kafka_acls("--list")
    assert "resourceType=TOPIC, name=orders, patternType=PREFIXED" in listed
    assert "(principal=User:alice, host=*, operation=READ, permissionType=ALLOW)" in listed
    assert "(principal=User:bob, host=*, operation=WRITE, permissionType=ALLOW)" in listed
    kafka_acls("--remove", "--force", *topic)
    assert "User:alice" not in kafka_acls("--list")
