"""`barnabas group` against a broker, with a real consumer in the group."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, ShareConsumer, TopicPartition

from barnabas.wire.messages.groups.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestSubtopology,
    StreamsGroupHeartbeatRequestTopology,
)
from tests.support.cases import for_each
from tests.support.requests.raw_client import RawClient


@pytest.fixture
def topic_with_records(broker, topic) -> str:
    """A topic with 10 records in partition 0 and 5 in partition 1."""
    client = RawClient(broker.bootstrap)
    client.create_topic(topic, 2)
    client.close()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for partition, count in ((0, 10), (1, 5)):
        for _ in range(count):
            producer.produce(topic, b"x", partition=partition)
    assert producer.flush(30) == 0
    return topic


@pytest.fixture
def consumer(broker, topic_with_records):
    """A member of the group `group-of-<topic>` that has read and committed everything."""
    member = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"group-of-{topic_with_records}",
            "client.id": "the-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([topic_with_records])
    read = 0
    while read < 15:
        message = member.poll(30)
        assert message is not None
        assert message.error() is None, message.error()
        read += 1
    member.commit(asynchronous=False)
    yield member
    member.close()


def _lags(call, group: str) -> dict[int, dict]:
    (described,) = call("group", "describe", group, "-o", "json").ok().json
    return {row["partition"]: row for row in described["partitions"]}


def test_lag_of_each_partition_and_who_reads_it(call, consumer, topic_with_records) -> None:
    group = f"group-of-{topic_with_records}"
    call("produce", topic_with_records, "-p", "1", stdin="x\nx\n").ok()
    lags = _lags(call, group)
    assert {index: (row["committed"], row["end"], row["lag"]) for index, row in lags.items()} == {
        0: (10, 10, 0),
        1: (5, 7, 2),
    }
    assert {row["client"] for row in lags.values()} == {"the-reader"}
    assert all(row["member"].startswith("the-reader") for row in lags.values())

    first, header, *rows = call("group", "describe", group).ok().lines
    assert first == f"group {group}: Stable, 1 member, assignor range, total lag 2"
    assert header.split()[:5] == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    assert len(rows) == 2


def test_group_is_listed_with_its_state(call, consumer, topic_with_records) -> None:
    groups = {row["group"]: row for row in call("group", "list", "-o", "json").ok().json}
    assert groups[f"group-of-{topic_with_records}"]["state"] == "Stable"
    consumer.close()
    groups = {row["group"]: row for row in call("group", "list", "-o", "json").ok().json}
    assert groups[f"group-of-{topic_with_records}"]["state"] == "Empty"


def test_group_with_members_is_neither_moved_nor_deleted(call, consumer, topic_with_records) -> None:
    group = f"group-of-{topic_with_records}"
    moved = call("group", "seek", group, "--to", "earliest")
    assert (moved.code, moved.stderr) == (
        1,
        f"barnabas: group '{group}' has members; stop them before changing its offsets\n",
    )
    planned = call("group", "seek", group, "--to", "earliest", "--dry-run").ok()
    assert planned.stderr == f"dry run: nothing was changed; group '{group}' has members; stop them before\n"
    deleted = call("group", "delete", "-y", group)
    assert deleted.code == 1
    assert "NON_EMPTY_GROUP: it has members; stop them first" in deleted.stderr
    forgotten = call("group", "forget", group, "-t", topic_with_records, "-y")
    assert (forgotten.code, "GROUP_SUBSCRIBED_TO_TOPIC: a member reads it" in forgotten.stderr) == (1, True)


@for_each(
    ("where", "offsets"),
    [("earliest", [0, 0]), ("latest", [10, 5]), ("7", [7, 5]), ("-3", [7, 2]), ("@0", [0, 0])],
)
def test_seek(call, topic_with_records, where: str, offsets: list[int]) -> None:
    group = f"new-group-of-{topic_with_records}"
    rows = call("group", "seek", group, "--to", where, "-t", topic_with_records, "-o", "json").ok().json
    assert [(row["partition"], row["before"], row["after"]) for row in rows] == [
        (0, None, offsets[0]),
        (1, None, offsets[1]),
    ]
    assert [row["committed"] for _, row in sorted(_lags(call, group).items())] == offsets


def test_seek_of_one_partition_and_without_effect(call, topic_with_records) -> None:
    group = f"new-group-of-{topic_with_records}"
    call("group", "seek", group, "--to", "latest", "-t", topic_with_records).ok()
    call("group", "seek", group, "--to", "2", "-t", f"{topic_with_records}:1").ok()
    assert {index: row["committed"] for index, row in _lags(call, group).items()} == {0: 10, 1: 2}
    call("group", "seek", group, "--to", "earliest", "--dry-run").ok()
    assert {index: row["committed"] for index, row in _lags(call, group).items()} == {0: 10, 1: 2}


def test_moved_group_reads_from_there(call, broker, consumer, topic_with_records) -> None:
    consumer.close()
    group = f"group-of-{topic_with_records}"
    call("group", "seek", group, "--to", "8").ok()
    again = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    again.subscribe([topic_with_records])
    read = [again.poll(30) for _ in range(2)]
    again.close()
    assert sorted((message.partition(), message.offset()) for message in read) == [(0, 8), (0, 9)]


def test_deleted_group_is_gone(call, topic_with_records) -> None:
    group = f"new-group-of-{topic_with_records}"
    call("group", "seek", group, "--to", "latest", "-t", topic_with_records).ok()
    assert call("group", "delete", "-y", group).ok().stdout == f"deleted group {group}\n"
    assert call("group", "describe", group).code == 3
    ran = call("group", "delete", "-y", group)
    assert ran.code == 3
    assert ran.stderr.startswith(f"barnabas: there is no group '{group}'")


def test_mistakes_of_seek(call, topic) -> None:
    assert call("group", "seek", "g", "--to", "earliest", "-t", topic).code == 3
    call("topic", "create", topic).ok()
    assert call("group", "seek", "g", "--to", "earliest", "-t", f"{topic}:x").code == 2
    assert call("group", "seek", "g", "--to", "earliest", "-t", f"{topic}:5").code == 3
    nothing = call("group", "seek", f"fresh-{topic}", "--to", "earliest")
    assert nothing.code == 2
    assert "has no committed offsets" in nothing.stderr


@pytest.fixture
def new_consumer(broker, topic_with_records):
    """A member of the group `new-group-of-<topic>`, which uses the consumer protocol (KIP-848)."""
    member = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": f"new-group-of-{topic_with_records}",
            "group.protocol": "consumer",
            "client.id": "the-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([topic_with_records])
    while len(member.assignment()) < 2:
        member.poll(0.1)
    yield member
    member.close()


def test_a_group_of_the_consumer_protocol(call, new_consumer, topic_with_records) -> None:
    group = f"new-group-of-{topic_with_records}"
    new_consumer.commit(offsets=[TopicPartition(topic_with_records, 0, 4)], asynchronous=False)
    first = call("group", "describe", group).ok().lines[0]
    assert (
        first == f"consumer group {group}: Stable, 1 member, assignor uniform, total lag 6 and unknown of 1 partition"
    )
    rows = call("group", "offsets", group, "-o", "json").ok().json
    assert [(row["partition"], row["committed"], row["lag"]) for row in rows] == [(0, 4, 6), (1, None, None)]
    listed = call("group", "list", "--type", "consumer", "-o", "json").ok().json
    assert group in {row["group"] for row in listed}
    assert {row["type"] for row in listed} == {"consumer"}
    assert call("group", "list", "--type", "consumer", "--state", "dead", "-o", "json").ok().json == []
    assert "has members" in call("group", "seek", group, "--to", "earliest").stderr
    refused = call("group", "forget", group, "-t", topic_with_records, "-y")
    assert (refused.code, "GROUP_SUBSCRIBED_TO_TOPIC" in refused.stderr) == (1, True)
    new_consumer.close()
    call("group", "seek", group, "--to", "2", "-t", topic_with_records).ok()
    assert {row["committed"] for row in _lags(call, group).values()} == {2}
    call("group", "forget", group, "-t", f"{topic_with_records}:0", "-y").ok()
    assert {index: row["committed"] for index, row in _lags(call, group).items()} == {0: None, 1: 2}
    call("group", "delete", "-y", group).ok()
    assert call("group", "describe", group).code == 3


def test_a_share_group(call, broker, topic_with_records) -> None:
    """KIP-932: the committed offset is the group's start offset, the first record that is not finished."""
    group = f"share-group-of-{topic_with_records}"
    call("config", "set", "group", group, "share.auto.offset.reset=earliest").ok()
    member = ShareConsumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": "the-sharer"})
    member.subscribe([topic_with_records])
    taken = 0
    while taken < 15:
        taken += len(member.poll(0.5))
    first, _, *rows = call("group", "describe", group).ok().lines
    assert first.startswith(f"share group {group}: Stable, 1 member, assignor simple, total lag ")
    assert all("the-sharer" in row for row in rows)
    assert "has members" in call("group", "seek", group, "--to", "earliest").stderr
    member.close()
    call("group", "seek", group, "--to", "3").ok()
    assert {index: (row["committed"], row["lag"]) for index, row in _lags(call, group).items()} == {
        0: (3, 7),
        1: (3, 2),
    }
    assert call("group", "forget", group, "-t", f"{topic_with_records}:1").code == 2
    call("group", "forget", group, "-t", topic_with_records, "-y").ok()
    assert _lags(call, group) == {}
    assert call("group", "delete", "-y", group).ok().stdout == f"deleted group {group}\n"
    assert call("group", "describe", group).code == 3


def test_a_streams_group(call, broker, topic_with_records) -> None:
    """KIP-1071: a member consumes the source topics of its tasks."""
    group = f"streams-group-of-{topic_with_records}"
    client = RawClient(broker.bootstrap)
    client.find(group)
    subtopology = StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=[topic_with_records])
    fields = {"group_id": group, "member_id": "the-member"}
    joins = StreamsGroupHeartbeatRequest(
        **fields,
        member_epoch=0,
        rebalance_timeout_ms=30_000,
        process_id="the-process",
        topology=StreamsGroupHeartbeatRequestTopology(subtopologies=[subtopology]),
        active_tasks=[],
        standby_tasks=[],
        warmup_tasks=[],
    )
    assert client(joins, 1).error_code == 0
    first = call("group", "describe", group).ok().lines[0]
    assert first.startswith(f"streams group {group}: ")
    assert "1 member, assignor sticky" in first
    assert {row["member"] for row in _lags(call, group).values()} == {"the-member"}
    assert client(StreamsGroupHeartbeatRequest(**fields, member_epoch=-1), 1).error_code == 0
    client.close()
    call("group", "seek", group, "--to", "4", "-t", topic_with_records).ok()
    assert {row["committed"] for row in _lags(call, group).values()} == {4}
    assert group in {row["group"] for row in call("group", "list", "--type", "streams", "-o", "json").ok().json}
    call("group", "delete", "-y", group).ok()
    assert call("group", "describe", group).code == 3
