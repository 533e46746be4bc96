"""G1, G2: whole groups of real clients, in several libraries, that come, go, crash and lose their broker.

Every member is a process (`group_member.py`) that keeps a diary. What holds: each record is read by somebody; nothing
that was committed is read again after everybody had it; each partition has one owner.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition  # noqa: E402

from tests.broker.raw_client import RawClient  # noqa: E402
from wire.messages.consumer_protocol import ConsumerProtocolAssignment  # noqa: E402
from wire.messages.groups import DescribeGroupsRequest  # noqa: E402

LIBRARIES = ["confluent-kafka", "kafka-python", "aiokafka"]
DEADLINE_S = 60.0
PARTITIONS = 6
SESSIONS_MS = {"barnabas": 6_000, "kafka": 20_000}
"""Sessions that outlive a restart of the broker: a JVM on a busy machine takes longer than 6 s."""


def wait_until(holds, what):
    """Ask again until `holds()` is true; what it gave."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := holds()):
        assert time.monotonic() < deadline, f"never: {what() if callable(what) else what}"
        time.sleep(0.05)
    return found


def _partitions(assignment):
    """The partitions of one topic's consumer assignment."""
    decoded, _ = ConsumerProtocolAssignment.codec(0).parse(assignment, 2)
    return [partition for topic in decoded.assigned_partitions for partition in topic.partitions]


class Member:
    """One member's process and its diary."""

    def __init__(self, library, diary, **told):
        self.library, self.diary = library, Path(diary)
        script = Path(__file__).with_name("group_member.py")
        command = [sys.executable, str(script), library, json.dumps(told | {"diary": str(diary)})]
        with Path(f"{diary}.err").open("ab") as complaints:
            self.process = subprocess.Popen(command, stderr=complaints)

    def events(self, *kinds):
        text = self.diary.read_text() if self.diary.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be half written
        return [event for line in lines if (event := json.loads(line))["event"] in kinds]

    def owned(self):
        """The partitions it owns by its own account."""
        owned = set()
        for event in self.events("assigned", "revoked", "lost"):
            if event["event"] == "assigned":
                owned |= set(event["partitions"])
            else:
                owned -= set(event["partitions"])
        return owned

    def leave(self):
        """End as a program does."""
        self.process.terminate()
        assert self.process.wait(DEADLINE_S) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


class Group:
    """A group, the topic it reads and the members it has had."""

    def __init__(self, server, name, folder):
        self.server, self.name, self.topic, self.folder = server, f"g-{name}", name, folder
        client = RawClient(server.bootstrap)
        client.create_topic(name, PARTITIONS)
        client.find(self.name)
        client.close()
        self.producer = Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 5})
        self.members = []
        self.live = []
        self.produced = 0

    def join(self, library="confluent-kafka", **told):
        diary = self.folder / f"member-{len(self.members)}.jsonl"
        told |= {"bootstrap": self.server.bootstrap, "group": self.name, "topic": self.topic}
        told["session_ms"] = SESSIONS_MS[self.server.name]
        member = Member(library, diary, **told)
        self.members.append(member)
        self.live.append(member)
        return member

    def drop(self, member, how):
        self.live.remove(member)
        getattr(member, how)()

    def produce(self, count):
        failed = []
        for number in range(self.produced, self.produced + count):
            partition = number % PARTITIONS
            self.producer.produce(
                self.topic, str(number), partition=partition, on_delivery=lambda e, _: e and failed.append(e)
            )
        self.produced += count
        assert self.producer.flush(DEADLINE_S) == 0
        assert failed == []

    def described(self):
        """The group as DescribeGroups shows it, over a connection of its own: nothing lingers from before a restart."""
        client = RawClient(self.server.bootstrap)
        try:
            (group,) = client(DescribeGroupsRequest(groups=[self.name]), 5).groups
        finally:
            client.close()
        return group

    def members_by_instance(self):
        return {member.group_instance_id: member.member_id for member in self.described().members}

    def settle(self):
        """Wait until the members alive, and no others, share all partitions, each with one owner."""

        def holds():
            described = self.described()
            if described.group_state != "Stable" or len(described.members) != len(self.live):
                return False
            given = Counter(index for member in described.members for index in _partitions(member.member_assignment))
            own = sorted(partition for member in self.live for partition in member.owned())
            return given == Counter(range(PARTITIONS)) and own == list(range(PARTITIONS))

        wait_until(holds, lambda: f"{self.described()}, {[member.owned() for member in self.live]}")

    def values(self):
        """How often each value was read, over all members."""
        return Counter(int(event["value"]) for member in self.members for event in member.events("record"))

    def wait_read(self):
        wait_until(lambda: len(self.values()) >= self.produced, lambda: f"{len(self.values())} of {self.produced} read")
        assert set(self.values()) == set(range(self.produced))

    def committed(self):
        consumer = Consumer({"bootstrap.servers": self.server.bootstrap, "group.id": self.name})
        try:
            wanted = [TopicPartition(self.topic, index) for index in range(PARTITIONS)]
            return [one.offset for one in consumer.committed(wanted, timeout=30)]
        except KafkaException as error:  # Kafka answers a while after its start that it loads
            return [str(error)]
        finally:
            consumer.close()

    def ends(self):
        return [len(range(index, self.produced, PARTITIONS)) for index in range(PARTITIONS)]

    def wait_committed(self):
        wait_until(lambda: self.committed() == self.ends(), lambda: f"{self.committed()} is not {self.ends()}")


@pytest.fixture
def start_group(topic_name, tmp_path):
    """A factory of groups on a given broker; their processes end with the test."""
    groups = []

    def start(server):
        groups.append(Group(server, topic_name("group"), tmp_path))
        return groups[-1]

    yield start
    for group in groups:
        for member in group.members:
            if member.process.poll() is None:
                member.kill()


@pytest.mark.slow
def test_five_members_in_three_libraries_survive_joins_leaves_kills_and_restarts(start_broker, start_group):
    """Every record is read, every offset kept."""
    server = start_broker()
    group = start_group(server)
    first = group.join("confluent-kafka")
    group.settle()
    group.produce(300)
    second = group.join("kafka-python")
    group.join("aiokafka")
    group.join("confluent-kafka")
    group.join("kafka-python")
    group.settle()
    group.produce(300)
    group.wait_read()
    group.drop(second, "leave")
    group.produce(300)
    group.settle()
    group.drop(first, "kill")  # it led: another has to, once its session is over
    group.produce(300)
    group.settle()
    group.join("confluent-kafka")
    group.join("aiokafka")
    group.settle()
    group.wait_read()
    group.wait_committed()
    before = {member.member_id for member in group.described().members}
    server.kill9()
    server.restart()
    group.produce(300)
    group.settle()
    assert {member.member_id for member in group.described().members} & before, "members live through the crash"
    group.wait_read()
    group.wait_committed()
    server.stop()
    server.restart()
    group.wait_committed()
    group.produce(300)
    group.wait_read()
    group.wait_committed()
    read = sum(group.values().values())
    for member in list(group.live):
        group.drop(member, "leave")
    wait_until(lambda: group.described().group_state == "Empty", "empty")
    group.join("kafka-python")
    group.settle()
    assert sum(group.values().values()) == read, "what was committed is not read again"


@pytest.mark.parametrize("library", LIBRARIES)
def test_members_of_one_library_share_and_hand_over(broker, start_group, library):
    group = start_group(broker)
    group.produce(120)
    first = group.join(library)
    group.settle()
    second = group.join(library)
    group.settle()
    assert len(first.owned()) == len(second.owned()) == PARTITIONS // 2
    group.drop(first, "leave")
    group.settle()
    assert second.owned() == set(range(PARTITIONS))
    group.produce(120)
    group.wait_read()
    group.wait_committed()


def test_cooperative_members_keep_what_they_need_not_give_up(broker, start_group):
    """KIP-429: cooperative-sticky; the second member's coming takes away only what it gets."""
    group = start_group(broker)
    first = group.join(strategy="cooperative-sticky")
    group.settle()
    second = group.join(strategy="cooperative-sticky")
    group.settle()
    revoked = [set(event["partitions"]) for event in first.events("revoked") if event["partitions"]]
    assert revoked == [second.owned()]
    assert first.events("lost") == []
    third = group.join(strategy="cooperative-sticky")
    group.settle()
    assert {len(member.owned()) for member in (first, second, third)} == {2}
    group.produce(120)
    group.wait_read()
    kept = first.owned()
    group.drop(second, "kill")
    group.settle()
    assert kept <= first.owned()
    group.produce(120)
    group.wait_read()
    group.wait_committed()


def test_a_static_member_that_restarts_disturbs_nobody(broker, start_group):
    """KIP-345: killed and back within its session, under another member id."""
    group = start_group(broker)
    stays = group.join(instance="stays")
    group.settle()
    goes = group.join(instance="goes")
    group.settle()
    owned, changes = goes.owned(), len(stays.events("assigned", "revoked"))
    before = group.members_by_instance()
    group.drop(goes, "kill")
    back = group.join(instance="goes")
    wait_until(lambda: back.owned() == owned, lambda: f"{back.owned()} is not {owned}")
    after = group.members_by_instance()
    assert after["goes"] != before["goes"]
    assert after["stays"] == before["stays"]
    assert len(stays.events("assigned", "revoked")) == changes
    group.produce(120)
    group.wait_read()


def test_of_two_members_with_one_instance_id_the_first_is_fenced(broker, start_group):
    """G1: 82."""
    group = start_group(broker)
    first = group.join(instance="same")
    group.settle()
    group.live.remove(first)
    group.join(instance="same")
    fatal = wait_until(lambda: [event for event in first.events("error") if event["fatal"]], "fenced")
    assert "fenced" in fatal[0]["texts"][0]
    group.settle()
    group.produce(60)
    group.wait_read()
