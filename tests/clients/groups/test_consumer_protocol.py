"""G3, G4: real clients with the consumer protocol (KIP-848), and groups that change their protocol while they consume.

Members are processes that write a diary (`live_group.py`), with librdkafka and Java. Each partition has one owner, each
record is read, committed offsets are kept.
"""

from __future__ import annotations

import shutil

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import Consumer, KafkaException  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from tests.clients.groups.live_group import (  # noqa: E402
    DEADLINE_S,
    PARTITIONS,
    live_groups,
)
from tests.support.waiting import wait_for  # noqa: E402

HAS_JAVA = bool(shutil.which("javac") and shutil.which("mvn"))
JAVA = pytest.param("java", marks=[pytest.mark.jvm, pytest.mark.skipif(not HAS_JAVA, reason="needs a JDK and Maven")])
LIBRARIES = ["confluent-kafka", JAVA]
SHORT_SESSIONS = {
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "1000",
}


@pytest.fixture
def start_group(topic_name, tmp_path):
    """A factory of groups on a given broker; their processes are stopped after the test."""
    with live_groups(lambda: topic_name("group"), tmp_path) as start:
        yield start


def test_partitions_are_reassigned_when_members_leave_or_are_killed(start_broker, start_group, is_under_kills):
    """Members keep what does not move.

    Not while brokers are killed: the answer to a heartbeat may wait for a follower that is gone, for longer than
    librdkafka waits. It then sends the epoch before and no partitions, and is fenced, by Kafka as well.
    """
    group = start_group(start_broker(config=SHORT_SESSIONS))
    group.produce(120)
    first = group.join(protocol="consumer")
    group.settle()
    second = group.join(protocol="consumer")
    third = group.join(protocol="consumer")
    group.settle()
    assert [len(member.owned()) for member in (first, second, third)] == [2, 2, 2]
    if not is_under_kills:
        assert sum(len(event["partitions"]) for event in first.events("revoked")) == 4, (
            "it revoked only the partitions that moved"
        )
    group.drop(first, "leave")
    group.settle()
    group.drop(second, "kill")
    group.produce(120)
    group.settle()
    assert third.owned() == set(range(PARTITIONS))
    if not is_under_kills:
        assert third.events("lost") == []
    group.wait_read()
    group.wait_committed()


def test_a_restarted_static_member_gets_its_partitions_without_a_rebalance(broker, start_group):
    group = start_group(broker)
    other = group.join(protocol="consumer", instance="other")
    restarted = group.join(protocol="consumer", instance="restarted")
    group.settle()
    owned, changes = restarted.owned(), len(other.events("assigned", "revoked"))
    before = group.members_by_instance()
    group.drop(restarted, "leave")
    back = group.join(protocol="consumer", instance="restarted")
    wait_for(lambda: back.owned() == owned, lambda: f"{back.owned()} is not {owned}", DEADLINE_S)
    after = group.members_by_instance()
    assert after["restarted"] != before["restarted"]
    assert after["other"] == before["other"]
    assert len(other.events("assigned", "revoked")) == changes
    group.produce(120)
    group.wait_read()


def test_a_second_member_with_an_instance_id_in_use_is_refused(broker, start_group):
    """UNRELEASED_INSTANCE_ID: unlike in the classic protocol, the first member stays."""
    group = start_group(broker)
    first = group.join(protocol="consumer", instance="same")
    group.settle()
    second = group.join(protocol="consumer", instance="same")
    wait_for(lambda: second.events("error"), "refused", DEADLINE_S)
    group.drop(second, "kill")
    group.settle()
    assert first.owned() == set(range(PARTITIONS))


def test_members_of_both_protocols_continue_after_a_crash_of_the_broker(start_broker, start_group):
    server = start_broker()
    group = start_group(server)
    group.join(protocol="consumer")
    group.join(protocol="classic", strategy="cooperative-sticky")
    group.settle()
    group.produce(120)
    group.wait_read()
    group.wait_committed()
    before = set(group.shares())
    server.kill9()
    server.restart()
    group.produce(120)
    group.settle()
    assert set(group.shares()) == before
    group.wait_read()
    group.wait_committed()


def test_a_regular_expression_follows_created_and_deleted_topics(broker, topic_name):
    stem = topic_name("regex")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def create(*names):
        for future in admin.create_topics([NewTopic(name, 2) for name in names]).values():
            future.result(30)

    def owned():
        for reader in readers:
            reader.poll(0.1)
        return sorted((partition.topic, partition.partition) for reader in readers for partition in reader.assignment())

    def both(*names):
        return sorted((name, index) for name in names for index in (0, 1))

    create(f"{stem}-a", f"other-{stem}-a")
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": f"g-{stem}", "group.protocol": "consumer"}
    readers = [Consumer(settings | {"topic.metadata.refresh.interval.ms": 1000}) for _ in range(2)]
    try:
        for reader in readers:
            reader.subscribe([f"^{stem}-.*"])
        wait_for(lambda: owned() == both(f"{stem}-a"), owned, DEADLINE_S)
        create(f"{stem}-b", f"other-{stem}-b")
        wait_for(lambda: owned() == both(f"{stem}-a", f"{stem}-b"), owned, DEADLINE_S)
        assert all(len(reader.assignment()) == 2 for reader in readers)
        admin.delete_topics([f"{stem}-a"])[f"{stem}-a"].result(30)
        wait_for(lambda: owned() == both(f"{stem}-b"), owned, DEADLINE_S)
    finally:
        for reader in readers:
            reader.close()


def test_an_expression_that_only_a_backtracking_engine_could_match_is_refused(broker, topic_name):
    """INVALID_REGULAR_EXPRESSION (128): librdkafka's engine supports back references, RE2 does not."""
    name = topic_name("regex")
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": f"g-{name}", "group.protocol": "consumer"})
    reader.subscribe([r"^(a)\1"])
    errors = []

    def has_error():
        message = reader.poll(0.2)
        if message is not None and message.error():
            errors.append(message.error())
        return errors

    try:
        wait_for(has_error, "an error", DEADLINE_S)
    except KafkaException as refused:
        errors.append(refused.args[0])
    finally:
        reader.close()
    assert "regular expression is not valid" in errors[0].str()


def produce_during_rebalance(group):
    """Produce records before and during a rebalance."""
    group.produce(60)
    group.settle()
    group.produce(60)


@pytest.mark.soak
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_live_group_changes_to_the_consumer_protocol_and_back_member_by_member(broker, start_group, library):
    """A rolling upgrade and downgrade, with eager and cooperative classic members, while records are produced."""
    group = start_group(broker)
    old = [group.join(library, protocol="classic", strategy=name) for name in ("range", "range")]
    produce_during_rebalance(group)
    assert group.described_as_consumer_group() is None
    new = []
    for member in old:
        new.append(group.join(library, protocol="consumer"))
        produce_during_rebalance(group)
        assert group.described_as_consumer_group() is not None
        group.drop(member, "leave")
        produce_during_rebalance(group)
    for member in new:
        group.join(library, protocol="classic", strategy="cooperative-sticky")
        produce_during_rebalance(group)
        group.drop(member, "leave")
        produce_during_rebalance(group)
    assert group.described_as_consumer_group() is None
    assert {described.group_instance_id for described in group.described().members} == {None}
    group.wait_read()
    group.wait_committed()
