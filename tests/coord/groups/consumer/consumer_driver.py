"""Plays broker and clients for the consumer groups of a GroupCoordinator: a cluster of topics, heartbeats, a log."""

from __future__ import annotations

from barnabas.coord.groups.consumer.regex_resolution import STEP_PAUSE_S
from barnabas.coord.groups.context import ClientContext
from barnabas.coord.groups.coordinator import GroupCoordinator
from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.topics import Topic
from barnabas.wire.messages import consumer_groups as c
from tests.coord.groups.group_driver import Driver

V0 = ClientContext("client", "/127.0.0.1", 0)
V1 = ClientContext("client", "/127.0.0.1", 1)


def topic_id(name):
    return name.encode().ljust(16, b"\0")


class Cluster:
    """Topics by name; the ids follow from the names and from how often a topic was made."""

    def __init__(self, **sizes):
        self.topics = {}
        for name, partitions in sizes.items():
            self.create(name, partitions)

    def create(self, name, partitions, incarnation=0, racks=()):
        self.topics[name] = Topic(topic_id(f"{name}{incarnation or ''}"), name, partitions, racks)

    def by_name(self, name):
        return self.topics.get(name)

    def by_id(self, wanted):
        return next((topic for topic in self.topics.values() if topic.topic_id == wanted), None)

    def names(self):
        return list(self.topics)


class ConsumerDriver(Driver):
    def __init__(self, cluster=None, settings=None, **config):
        self.cluster = cluster or Cluster(t=6)
        self.settings = settings or GroupSettings(consumer_assignment_interval_ms=0)
        super().__init__(**config)

    def fresh(self):
        return GroupCoordinator(
            self.config, lambda: f"id{next(self.ids)}", self.cluster, lambda group_id: self.settings
        )

    def changed(self, *names):
        """These topics have come, gone or changed."""
        self.handle(self.coordinator.metadata_changed(set(names), self.at))

    def resolve(self):
        """Resolve the regular expressions that are new, or due to be refreshed."""
        while (deadline := self.coordinator.next_deadline()) is not None and deadline <= self.now + STEP_PAUSE_S:
            self.advance(STEP_PAUSE_S)

    def beat(self, member_id="m1", epoch=0, *, owned=None, group_id="g", context=V1, **fields):
        """One ConsumerGroupHeartbeat; gives the answer. A join says by default that it reads `t`."""
        if epoch == 0:
            fields.setdefault("rebalance_timeout_ms", 5_000)
            owned = owned if owned is not None else {}
            if "subscribed_topic_regex" not in fields:
                fields.setdefault("subscribed_topic_names", ["t"])
        partitions = None
        if owned is not None:
            partitions = [
                c.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=key, partitions=sorted(indexes))
                for key, indexes in owned.items()
            ]
        request = c.ConsumerGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, member_epoch=epoch, topic_partitions=partitions, **fields
        )
        ticket = f"beat{next(self.tickets)}"
        self.handle(self.coordinator.consumer_groups.heartbeat(request, ticket, context, self.at))
        return self.answers.pop(ticket)

    def describe(self, group_id="g"):
        return self.coordinator.consumer_groups.describe(group_id)


def given(answer):
    """The assignment in an answer: {topic id: {partitions}}, or None when it tells none."""
    if answer.assignment is None:
        return None
    return {entry.topic_id: set(entry.partitions) for entry in answer.assignment.topic_partitions}


class Client:
    """A member that does what the protocol asks: gives up first, acknowledges, then takes."""

    def __init__(self, driver, member_id, *, topics=("t",), regex=None, instance_id=None, assignor=None, group_id="g"):
        self.driver, self.member_id, self.group_id = driver, member_id, group_id
        self.topics, self.regex, self.instance_id, self.assignor = list(topics), regex, instance_id, assignor
        self.rack_id = None
        self.reset()

    def reset(self):
        self.epoch = 0
        self.owned = {}
        self.target = None
        self.tells_all = True
        self.told = {}
        self.interval_ms = None

    def request(self):
        """The fields of the next heartbeat."""
        is_full = self.epoch == 0 or self.tells_all
        fields = {"instance_id": self.instance_id, "owned": None}
        if is_full:
            fields.update(rebalance_timeout_ms=5_000, server_assignor=self.assignor, rack_id=self.rack_id)
            fields["subscribed_topic_names"] = list(self.topics)
            fields["subscribed_topic_regex"] = self.regex
        if is_full or self.owned != self.told:
            fields["owned"] = {key: set(indexes) for key, indexes in self.owned.items()}
        return fields

    def beat(self):
        """Send a heartbeat and take the answer; gives it."""
        fields = self.request()
        epoch = self.epoch
        answer = self.driver.beat(self.member_id, epoch, group_id=self.group_id, **fields)
        self.take(answer, fields)
        return answer

    def take(self, answer, fields):
        if answer.error_code:
            return
        self.tells_all = False
        if fields["owned"] is not None:
            self.told = fields["owned"]
        self.epoch = answer.member_epoch
        self.interval_ms = answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self.target = given(answer)

    def reconcile(self):
        """Give up and take what the last assignment says, at once."""
        if self.target is not None:
            self.owned = {key: set(indexes) for key, indexes in self.target.items() if indexes}

    @property
    def partitions(self):
        return {(key, index) for key, indexes in self.owned.items() for index in indexes}


def settle(*clients, rounds=20):
    """Let the clients beat in turns until nothing moves any more."""
    for _ in range(rounds):
        before = [(client.epoch, client.owned) for client in clients]
        for client in clients:
            client.driver.resolve()
            answer = client.beat()
            assert answer.error_code == 0, answer
            client.reconcile()
        if before == [(client.epoch, client.owned) for client in clients]:
            return
    raise AssertionError("the group does not settle")
