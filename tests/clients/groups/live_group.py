"""A group of real members, each a process that writes a diary (`group_member.py`), and checks of the whole group."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.wire.messages.groups.classic_groups import DescribeGroupsRequest
from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolAssignment
from compat.java import program
from tests.support.requests.raw_client import RawClient, ask_coordinator
from tests.support.waiting import wait_for

DEADLINE_S = 120.0
"""A coordinator that moves begins all sessions again, as in Kafka: under kills a member may be missed for several."""
PARTITIONS = 6
SESSIONS_MS = {"barnabas": 6_000, "barnabas-cluster": 20_000, "kafka": 20_000}
"""Sessions that outlive a restart of the broker: a JVM on a busy machine takes longer than 6 s, and the controller
keeps the sessions of brokers that were killed with it."""


LONG_SESSION_MS = 30_000
"""Of groups whose members do not die: none is missed because the machine is busy."""


def _partitions(assignment):
    """The partitions of one topic's consumer assignment."""
    decoded, _ = ConsumerProtocolAssignment.codec(0).parse(assignment, 2)
    return [partition for topic in decoded.assigned_partitions for partition in topic.partitions]


class Member:
    """The process of one member, and its diary."""

    def __init__(self, library, diary, **options):
        self.library, self.diary = library, Path(diary)
        options |= {"diary": str(diary)}
        if library == "java":
            command = program.java("GroupMember", *(f"{name}={value}" for name, value in options.items()))
        else:
            script = Path(__file__).with_name("group_member.py")
            command = [sys.executable, str(script), library, json.dumps(options)]
        with Path(f"{diary}.err").open("ab") as errors:
            self.process = subprocess.Popen(command, stderr=errors)

    def events(self, *kinds):
        text = self.diary.read_text() if self.diary.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last line may be incomplete
        return [event for line in lines if (event := json.loads(line))["event"] in kinds]

    def owned(self):
        """The partitions that it owns according to its diary."""
        owned = set()
        for event in self.events("assigned", "revoked", "lost"):
            if event["event"] == "assigned":
                owned |= set(event["partitions"])
            else:
                owned -= set(event["partitions"])
        return owned

    def leave(self):
        """Stop the process with SIGTERM: the member leaves the group."""
        self.process.terminate()
        assert self.process.wait(DEADLINE_S) == 0, Path(f"{self.diary}.err").read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()


class Group:
    """A group, its topic, and all its members so far."""

    def __init__(self, server, name, folder):
        self.server, self.name, self.topic, self.folder = server, f"g-{name}", name, folder
        self._create_topic()
        settings = {"bootstrap.servers": server.bootstrap, "linger.ms": 5, "enable.idempotence": True}
        self.producer = Producer(settings)  # offsets are compared, and a repeated request could add records twice
        self.members = []
        self.live = []
        self.produced = 0

    def _create_topic(self):
        """Create the topic, and wait for the group's coordinator; begun again if the asked broker is killed."""
        tries = 0

        def is_made():
            nonlocal tries
            tries += 1
            try:
                with closing(RawClient(self.server.bootstrap)) as client:
                    client.create_topic(self.topic, PARTITIONS, may_exist=tries > 1)
                    client.find(self.name)
            except OSError:
                return False
            return True

        wait_for(is_made, "a topic", DEADLINE_S)

    def join(self, library="confluent-kafka", **options):
        diary = self.folder / f"member-{len(self.members)}.jsonl"
        options |= {"bootstrap": self.server.bootstrap, "group": self.name, "topic": self.topic}
        options.setdefault("session_ms", SESSIONS_MS[self.server.name])
        member = Member(library, diary, **options)
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
        """The group in the answer of DescribeGroups, over a new connection, since the broker may have restarted."""
        request = DescribeGroupsRequest(groups=[self.name])
        response = ask_coordinator(
            self.server.bootstrap, self.name, request, 5, lambda reply: reply.groups[0].error_code
        )
        return response.groups[0]

    def described_as_consumer_group(self):
        """The group in the answer of ConsumerGroupDescribe, or None if it does not use the consumer protocol."""
        request = ConsumerGroupDescribeRequest(group_ids=[self.name])
        response = ask_coordinator(
            self.server.bootstrap, self.name, request, 1, lambda reply: reply.groups[0].error_code
        )
        (group,) = response.groups
        return None if group.error_code else group

    def shares(self):
        """Member id and partitions of every member of a Stable group; None while it is not Stable."""
        group = self.described_as_consumer_group()
        if group is not None:
            if group.group_state != "Stable" or any(
                member.member_epoch != group.group_epoch for member in group.members
            ):
                return None
            return {
                member.member_id: [index for topic in member.assignment.topic_partitions for index in topic.partitions]
                for member in group.members
            }
        group = self.described()
        if group.group_state != "Stable":
            return None
        return {member.member_id: _partitions(member.member_assignment) for member in group.members}

    def members_by_instance(self):
        """Member ids by instance id."""
        group = self.described_as_consumer_group()
        if group is not None:
            return {member.instance_id: member.member_id for member in group.members}
        return {member.group_instance_id: member.member_id for member in self.described().members}

    def settle(self):
        """Wait until exactly the live members own all partitions, each what the coordinator has assigned to it."""

        def holds():
            shares = self.shares()
            if shares is None or len(shares) != len(self.live):
                return False
            assigned = sorted(map(sorted, shares.values()))
            own = sorted(sorted(member.owned()) for member in self.live)
            return assigned == own and sorted(index for part in own for index in part) == list(range(PARTITIONS))

        wait_for(
            holds,
            lambda: f"{self.shares()}, {self.described()}, {[member.owned() for member in self.live]}",
            DEADLINE_S,
        )

    def values(self):
        """How often each value was read by all members together."""
        return Counter(int(event["value"]) for member in self.members for event in member.events("record"))

    def wait_read(self):
        wait_for(
            lambda: len(self.values()) >= self.produced,
            lambda: f"{len(self.values())} of {self.produced} read",
            DEADLINE_S,
        )
        assert set(self.values()) == set(range(self.produced))

    def committed(self):
        consumer = Consumer({"bootstrap.servers": self.server.bootstrap, "group.id": self.name})
        try:
            partitions = [TopicPartition(self.topic, index) for index in range(PARTITIONS)]
            return [partition.offset for partition in consumer.committed(partitions, timeout=30)]
        except KafkaException as error:  # after its start Kafka answers COORDINATOR_LOAD_IN_PROGRESS for a while
            return [str(error)]
        finally:
            consumer.close()

    def ends(self):
        return [len(range(index, self.produced, PARTITIONS)) for index in range(PARTITIONS)]

    def wait_committed(self):
        wait_for(
            lambda: self.committed() == self.ends(), lambda: f"{self.committed()} is not {self.ends()}", DEADLINE_S
        )


@contextmanager
def live_groups(new_name, folder):
    """A factory of groups on a given broker; the processes of their members are stopped when the context ends."""
    groups = []

    def start(server):
        groups.append(Group(server, new_name(), folder))
        return groups[-1]

    try:
        yield start
    finally:
        for group in groups:
            for member in group.members:
                if member.process.poll() is None:
                    member.kill()
