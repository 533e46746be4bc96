"""KIP-932 with real clients: librdkafka's and Java's share consumers, and Kafka's own tools.

Every record is accepted once and not delivered again afterwards, also if members or the broker are killed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import AcknowledgeType  # noqa: E402

from barnabas.wire.messages.groups.share_groups import (  # noqa: E402
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
)
from tests.clients.groups.share_consumers import DEADLINE_S, consumer_of, poll, prepare, produce  # noqa: E402
from tests.clients.kafka.dump_tools import kafkas_dump  # noqa: E402
from tests.support.jvm.kafka_tools import output  # noqa: E402
from tests.support.requests.raw_client import coordinator_client  # noqa: E402
from tests.support.waiting import wait_for  # noqa: E402

pytestmark = pytest.mark.timeout(600)


def ask_coordinator(bootstrap, group, request, version):
    """The response of the group's coordinator to one request."""
    with closing(coordinator_client(bootstrap, group)) as client:
        return client(request, version)


def test_records_are_accepted_released_and_rejected(broker, topic):
    """G5: accepted and rejected records are not delivered again, released ones are, with a higher delivery count."""
    prepare(broker.bootstrap, topic, topic)
    produce(broker.bootstrap, topic, [b"accept", b"release", b"reject"])
    consumer = consumer_of(broker.bootstrap, topic, topic, **{"share.acknowledgement.mode": "explicit"})
    first = poll(consumer, 3)
    assert [(message.value(), message.delivery_count()) for message in first] == [
        (b"accept", 1),
        (b"release", 1),
        (b"reject", 1),
    ]
    for message in first:
        consumer.acknowledge(message, AcknowledgeType[message.value().decode().upper()])
    assert set(consumer.commit_sync(30).values()) == {None}
    again = poll(consumer, 1)
    assert [(message.value(), message.delivery_count()) for message in again] == [(b"release", 2)]
    consumer.acknowledge(again[0])
    assert set(consumer.commit_sync(30).values()) == {None}
    produce(broker.bootstrap, topic, [b"last"])
    (last,) = poll(consumer, 1)
    assert last.value() == b"last"
    consumer.acknowledge(last)
    consumer.close()


class Member:
    """The process of one member, and its diary."""

    def __init__(self, diary, **options):
        self.diary = Path(diary)
        command = [sys.executable, str(Path(__file__).with_name("share_member.py"))]
        self.process = subprocess.Popen([*command, json.dumps({**options, "diary": str(diary)})])

    def events(self, kind):
        if not self.diary.exists():
            return []
        lines = [line for line in self.diary.read_text().splitlines() if line.endswith("}")]
        return [event for event in map(json.loads, lines) if event["event"] == kind]

    def values(self, kind):
        return [value for event in self.events(kind) for value in event["values"]]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()


@pytest.fixture
def start_member(tmp_path):
    members = []

    def start(**options):
        members.append(Member(tmp_path / f"diary-{len(members)}", **options))
        return members[-1]

    yield start
    for member in members:
        member.stop()


def describe(bootstrap, group):
    (described,) = ask_coordinator(bootstrap, group, ShareGroupDescribeRequest(group_ids=[group]), 1).groups
    return described


def test_records_of_a_killed_member_are_delivered_to_others(broker, topic, start_member):
    """Records acquired by a killed member are delivered to the others; accepted records are not."""
    prepare(broker.bootstrap, topic, topic)
    options = {"bootstrap": broker.bootstrap, "group": topic, "topic": topic}
    holder = start_member(**options, hold=3600)
    wait_for(lambda: len(describe(broker.bootstrap, topic).members) == 1, "a member", DEADLINE_S)
    produce(broker.bootstrap, topic, [f"a{n}" for n in range(20)])
    wait_for(lambda: holder.values("got"), "the first member has acquired records", DEADLINE_S)
    others = [start_member(**options) for _ in range(2)]
    wait_for(lambda: len(describe(broker.bootstrap, topic).members) == 3, "three members", DEADLINE_S)
    produce(broker.bootstrap, topic, [f"b{n}" for n in range(20)])
    wait_for(
        lambda: (
            {f"b{n}" for n in range(20)}
            <= {v for member in others for v in member.values("accepted")} | set(holder.values("got"))
        ),
        "everything is given out",
        DEADLINE_S,
    )
    holder.kill()
    everything = {f"{letter}{n}" for letter in "ab" for n in range(20)}
    wait_for(
        lambda: {value for member in others for value in member.values("accepted")} == everything,
        lambda: sorted(everything - {value for member in others for value in member.values("accepted")}),
        DEADLINE_S,
    )
    accepted = Counter(value for member in others for value in member.values("accepted"))
    assert set(accepted.values()) == {1}, accepted.most_common(3)
    assert holder.values("accepted") == []


def test_accepted_records_survive_a_kill_of_the_broker(start_broker, topic, start_member):
    """G5: acknowledgements with a response are durable; the group continues after a kill -9."""
    server = start_broker()
    prepare(server.bootstrap, topic, topic, partitions=3)
    member = start_member(bootstrap=server.bootstrap, group=topic, topic=topic)
    produce(server.bootstrap, topic, [f"a{n}" for n in range(50)])
    wait_for(lambda: len(member.values("accepted")) >= 50, "the first records are accepted", DEADLINE_S)
    server.kill9()
    server.restart()
    produce(server.bootstrap, topic, [f"b{n}" for n in range(50)])
    wait_for(
        lambda: {f"b{n}" for n in range(50)} <= set(member.values("accepted")),
        lambda: (len(member.values("accepted")), member.events("error")[-3:]),
        DEADLINE_S,
    )
    accepted = Counter(member.values("accepted"))
    assert len(accepted) == 100
    assert set(accepted.values()) == {1}, accepted.most_common(3)


# ---- Java


def share_tool(bootstrap, *options):
    """The words of each line of the output of kafka-share-groups."""
    printed = output("consumer.group.ShareGroupCommand", "--bootstrap-server", bootstrap, *options)
    return [line.split() for line in printed.splitlines() if line.strip()]


@pytest.mark.timeout(300)
@pytest.mark.jvm
def test_kafkas_consumer_and_tools(broker, topic):
    """Kafka's verifiable share consumer; kafka-share-groups describes, resets and deletes its offsets."""
    bootstrap, group = broker.bootstrap, f"java-{topic}"
    prepare(bootstrap, topic, group, partitions=2)
    produce(bootstrap, topic, [f"v{n}" for n in range(100)])
    options = ["--topic", topic, "--group-id", group, "--max-messages", "100"]
    options += ["--acknowledgement-mode", "sync", "--offset-reset-strategy", "earliest"]
    text = output("VerifiableShareConsumer", "--bootstrap-server", bootstrap, *options)
    events = [json.loads(line) for line in text.splitlines()]
    acknowledged = [
        (each["topic"], each["partition"], offset)
        for event in events
        if event["name"] == "offsets_acknowledged" and event["success"]
        for each in event["partitions"]
        for offset in each["offsets"]
    ]
    assert len(acknowledged) == len(set(acknowledged)) == 100

    # A list lacks groups whose coordinator is moving: no broker that is asked leads their partition at that time.
    wait_for(lambda: [group] in share_tool(bootstrap, "--list"), "the group is listed", DEADLINE_S)
    described = share_tool(bootstrap, "--describe", "--group", group)
    assert described[0] == ["GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG"]

    def lags():
        return [line[4] for line in share_tool(bootstrap, "--describe", "--group", group)[1:]]

    wait_for(lambda: lags() == ["0", "0"], lags, DEADLINE_S)  # partitions whose state has no leader are left out
    reset = share_tool(bootstrap, "--reset-offsets", "--group", group, "--topic", topic, "--to-earliest", "--execute")
    assert sorted(line[1:] for line in reset[1:]) == [[topic, "0", "0"], [topic, "1", "0"]]
    assert sum(map(int, lags())) == 100
    assert share_tool(bootstrap, "--delete-offsets", "--group", group, "--topic", topic)[-1] == [topic, "Successful"]
    assert "successful" in share_tool(bootstrap, "--delete", "--group", group)[-1][-1]
    assert [group] not in share_tool(bootstrap, "--list")


@pytest.mark.jvm
def test_kafkas_dump_reads_the_state_of_share_groups(start_broker, topic):
    """Kafka's kafka-dump-log decodes our `__share_group_state`."""
    server = start_broker()
    prepare(server.bootstrap, topic, topic)
    produce(server.bootstrap, topic, [b"one", b"two"])
    consumer = consumer_of(server.bootstrap, topic, topic)
    assert len(poll(consumer, 2)) == 2
    assert set(consumer.commit_sync(30).values()) == {None}
    consumer.close()
    server.stop()
    files = sorted(Path(server.data_dir).rglob("__share_group_state-*/*.log"))
    written = [file for file in files if file.stat().st_size]
    dump = kafkas_dump(written[:1], "--share-group-state-decoder")  # the others are replicas of it
    assert not dump.problems
    matches = [re.search(r"key: (\{.*\}) payload: (\{.*\})", line) for line in dump.lines]
    keys = [json.loads(match[1]) for match in matches if match]
    values = [json.loads(match[2]) for match in matches if match]
    assert {(key["data"]["groupId"], key["data"]["partition"]) for key in keys} == {(topic, 0)}
    assert [key["type"] for key in keys] == ["0", *["1"] * (len(keys) - 1)], "a snapshot, then updates"
    assert values[-1]["data"]["stateBatches"] == [
        {"firstOffset": 0, "lastOffset": 1, "deliveryState": 2, "deliveryCount": 1}
    ]


def test_a_group_reads_again_after_its_offset_is_reset(broker, topic):
    """AlterShareGroupOffsets of a group that has consumed; DeleteShareGroupOffsets removes the offsets."""
    prepare(broker.bootstrap, topic, topic)
    produce(broker.bootstrap, topic, [f"v{n}" for n in range(5)])
    for first, offset in ((0, 0), (0, 3), (3, None)):
        consumer = consumer_of(broker.bootstrap, topic, topic)
        expected = {f"v{n}".encode() for n in range(first, 5)}
        assert {message.value() for message in poll(consumer, len(expected))} == expected
        assert set(consumer.commit_sync(30).values()) == {None}
        consumer.close()
        wait_for(
            lambda: describe(broker.bootstrap, topic).group_state == "Empty", "the group has no members", DEADLINE_S
        )
        if offset is not None:
            partition = AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=offset)
            requested = AlterShareGroupOffsetsRequestTopic(topic_name=topic, partitions=[partition])
            response = ask_coordinator(
                broker.bootstrap, topic, AlterShareGroupOffsetsRequest(group_id=topic, topics=[requested]), 0
            )
            assert response.responses[0].partitions[0].error_code == 0
    requested = DeleteShareGroupOffsetsRequestTopic(topic_name=topic)
    response = ask_coordinator(
        broker.bootstrap, topic, DeleteShareGroupOffsetsRequest(group_id=topic, topics=[requested]), 0
    )
    assert response.responses[0].error_code == 0
    consumer = consumer_of(broker.bootstrap, topic, topic)
    assert {message.value() for message in poll(consumer, 5)} == {b"v0", b"v1", b"v2", b"v3", b"v4"}
    consumer.close()
