"""Checks of groups: classic, of the consumer protocol, and share groups."""

from __future__ import annotations

from typing import Any

from confluent_kafka import (
    OFFSET_INVALID,
    AcknowledgeType,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    ShareConsumer,
    TopicPartition,
)
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.testkits.behaviours import behaviour
from bench.testkits.clients import WAIT_S, Clients, error_of, poll, poll_all, unique, until


def _owned(consumer: Any) -> set[int]:
    return {one.partition for one in consumer.assignment()}


def _share(clients: Clients, **more: Any) -> tuple[str, list[Any]]:
    """Two members of a group that share a topic, each partition with one owner."""
    topic = clients.topic(4)
    group = unique("group")
    members = [clients.consumer(group_id=group, **more) for _ in range(2)]
    for member in members:
        member.subscribe([topic])
    everything = set(range(clients.partitions(topic)))

    def is_shared() -> bool:
        first, second = map(_owned, members)
        return bool(first and second) and not first & second and first | second == everything

    poll_all(members, is_shared, "two members that share the partitions")
    return topic, members


def _leave(members: list[Any], topic: str, clients: Clients) -> None:
    """The first member leaves, and the second gets everything."""
    members[0].close()
    everything = set(range(clients.partitions(topic)))
    poll_all(members[1:], lambda: _owned(members[1]) == everything, "one member that has all partitions")


EAGER = {"partition_assignment_strategy": "range", "heartbeat_interval_ms": 300}
COOPERATIVE = {"partition_assignment_strategy": "cooperative-sticky", "heartbeat_interval_ms": 300}


@behaviour("Two members of a group share the partitions; one leaves, the other has all")
def group_of_two(clients: Clients) -> None:
    topic, members = _share(clients, **EAGER)
    _leave(members, topic, clients)


@behaviour("Cooperative rebalance: a member keeps what does not move")
def cooperative(clients: Clients) -> None:
    topic, group = clients.topic(4), unique("group")
    revoked: list[int] = []
    first = clients.consumer(group_id=group, **COOPERATIVE)
    first.subscribe([topic], on_revoke=lambda _, gone: revoked.extend(one.partition for one in gone))
    everything = set(range(clients.partitions(topic)))
    poll_all([first], lambda: _owned(first) == everything, "one member that has all partitions")
    second = clients.consumer(group_id=group, **COOPERATIVE)
    second.subscribe([topic])
    poll_all([first, second], lambda: _owned(second) and not _owned(first) & _owned(second), "a second member")
    assert set(revoked) == _owned(second), f"revoked {sorted(revoked)}, moved {sorted(_owned(second))}"


@behaviour("A static member that comes back has its partitions, without a rebalance")
def static_member(clients: Clients) -> None:
    topic, group = clients.topic(4), unique("group")
    changes: list[str] = []

    def member(instance: str) -> Any:
        one = clients.consumer(group_id=group, group_instance_id=instance, session_timeout_ms=30_000, **EAGER)
        one.subscribe([topic], on_assign=lambda *_: changes.append(instance))
        return one

    first, second = member("a"), member("b")
    poll_all([first, second], lambda: _owned(first) and _owned(second), "two members")
    owned, kept = _owned(first), _owned(second)
    first.close()
    changes.clear()
    again = member("a")
    poll_all([again, second], lambda: _owned(again), "the static member again")
    assert (_owned(again), _owned(second)) == (owned, kept), "partitions have moved"
    assert changes == ["a"], f"rebalances of {changes}"


@behaviour("Two members with one group.instance.id: the first is fenced")
def static_fencing(clients: Clients) -> None:
    topic, group = clients.topic(), unique("group")
    first = clients.consumer(group_id=group, group_instance_id="same", **EAGER)
    first.subscribe([topic])
    poll_all([first], lambda: _owned(first), "the first member")
    second = clients.consumer(group_id=group, group_instance_id="same", **EAGER)
    second.subscribe([topic])
    poll_all([second], lambda: _owned(second), "the second member")
    code = error_of(lambda: poll(first, 1))
    assert code in (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL), f"error {code}"


@behaviour("The consumer protocol (KIP-848): two members share, one leaves")
def consumer_protocol(clients: Clients) -> None:
    topic, members = _share(clients, group_protocol="consumer")
    _leave(members, topic, clients)


@behaviour("A regular expression of the broker's side (KIP-848)")
def server_side_regex(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, b"x")
    consumer = clients.consumer(group_protocol="consumer")
    consumer.subscribe([f"^{topic[:-2]}.*"])
    (message,) = poll(consumer, 1)
    assert message.topic() == topic, f"a record of {message.topic()}"


@behaviour("A group goes on from its committed offsets, with metadata")
def committed_offsets(clients: Clients) -> None:
    topic, group = clients.topic(), unique("group")
    clients.send(topic, *[b"%d" % number for number in range(10)])
    first = clients.consumer(group_id=group)
    first.subscribe([topic])
    poll(first, 4)
    first.commit(offsets=[TopicPartition(topic, 0, 4, "seen by a check")], asynchronous=False)
    first.close()
    second = clients.consumer(group_id=group)
    second.subscribe([topic])
    assert [one.value() for one in poll(second, 6)] == [b"%d" % number for number in range(4, 10)], "other records"
    (found,) = second.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
    assert (found.offset, found.metadata) == (4, "seen by a check"), f"{found.offset}, {found.metadata!r}"


@behaviour("A group that nobody knows has no offsets, and that is no error")
def unknown_group(clients: Clients) -> None:
    topic = clients.topic()
    clients.send(topic, b"x")
    consumer = clients.consumer()
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=WAIT_S)
    assert (found.offset, found.error) == (OFFSET_INVALID, None), f"{found.offset}, {found.error}"


@behaviour("Groups are listed with states and types, described, and deleted when they are empty")
def group_states(clients: Clients) -> None:
    topic, group = clients.topic(), unique("group")
    member = clients.consumer(group_id=group, client_id="reader")
    member.subscribe([topic])
    poll_all([member], lambda: _owned(member), "a member")

    def listed() -> str:
        found = clients.admin.list_consumer_groups().result().valid
        return "".join(f"{one.state.name} {one.type.name}" for one in found if one.group_id == group)

    assert listed() == "STABLE CLASSIC", f"listed as {listed()!r}"
    described = clients.admin.describe_consumer_groups([group])[group].result()
    (only,) = described.members
    assert only.client_id == "reader", f"client id {only.client_id}"
    assert only.assignment.topic_partitions, "described without an assignment"
    delete = clients.admin.delete_consumer_groups
    code = error_of(delete([group])[group].result)
    assert code == KafkaError.NON_EMPTY_GROUP, f"error {code}"
    member.close()
    assert listed() == "EMPTY CLASSIC", f"listed as {listed()!r}"
    delete([group])[group].result()
    assert listed() == "", f"listed as {listed()!r}"


@behaviour("Offsets of a group are set and read by an administrator, not while members are there")
def altered_offsets(clients: Clients) -> None:
    topic, group = clients.topic(), unique("group")
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 3)])
    alter = clients.admin.alter_consumer_group_offsets
    alter([wanted])[group].result()
    read = clients.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = [(one.topic, one.offset) for one in read[group].result().topic_partitions]
    assert found == [(topic, 3)], f"offsets {found}"
    member = clients.consumer(group_id=group)
    member.subscribe([topic])
    poll_all([member], lambda: _owned(member), "a member")

    def refused() -> int:
        changed = alter([wanted])[group].result().topic_partitions
        raise KafkaException(changed[0].error) if changed[0].error else AssertionError("it was not refused")

    code = error_of(refused)
    assert code == KafkaError.UNKNOWN_MEMBER_ID, f"error {code}"


@behaviour("Share groups (KIP-932): accept, release, reject")
def share_group(clients: Clients) -> None:
    topic, group = clients.topic(), unique("share")
    resource = ConfigResource(ResourceType.GROUP, group)
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource.add_incremental_config(earliest)
    (changed,) = clients.admin.incremental_alter_configs([resource]).values()
    changed.result()
    clients.send(topic, b"accept", b"release", b"reject")
    settings = {"bootstrap.servers": clients.place.bootstrap, "group.id": group}
    consumer = ShareConsumer({**settings, "share.acknowledgement.mode": "explicit"})
    try:
        consumer.subscribe([topic])
        assert _acknowledge(consumer, 3) == {b"accept": 1, b"release": 1, b"reject": 1}, "other deliveries"
        assert _acknowledge(consumer, 1, AcknowledgeType.ACCEPT) == {b"release": 2}, "other deliveries after a release"
    finally:
        consumer.close()


def _acknowledge(consumer: Any, count: int, answer: AcknowledgeType | None = None) -> dict[bytes, int]:
    """Acknowledge so many records as their values say, or with one answer; the delivery count of each."""
    found: dict[bytes, int] = {}

    def enough() -> bool:
        for message in consumer.poll(0.5):
            if message.error() is None:
                found[message.value()] = message.delivery_count()
                wanted = answer or AcknowledgeType[message.value().decode().upper()]
                consumer.acknowledge(message, wanted)
        return len(found) >= count

    until(enough, f"{count} records")
    errors = [error for error in consumer.commit_sync(WAIT_S).values() if error is not None]
    assert not errors, f"acknowledging gave {errors[0]}"
    return found
