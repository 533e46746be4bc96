"""Acts as the broker and the clients of the consumer groups of a GroupCoordinator."""

from __future__ import annotations

from barnabas.coord.groups.consumer.regex_resolution import STEP_PAUSE_S
from barnabas.coord.groups.context import ClientContext
from barnabas.coord.groups.settings import GroupSettings
from barnabas.wire.messages.groups import consumer_groups as c
from tests.coord.groups.cluster_driver import ClusterDriver, GroupTopics
from tests.coord.groups.modern.modern_client import ModernClient

V0 = ClientContext("client", "/127.0.0.1", 0)
V1 = ClientContext("client", "/127.0.0.1", 1)


class ConsumerDriver(ClusterDriver):
    def __init__(self, cluster=None, settings=None, **config):
        settings = settings or GroupSettings(consumer_assignment_interval_ms=0)
        super().__init__(cluster or GroupTopics(t=6), settings, **config)

    def resolve(self):
        """Resolve the regular expressions that are new, or due to be refreshed."""
        while (deadline := self.coordinator.next_deadline()) is not None and deadline <= self.now + STEP_PAUSE_S:
            self.advance(STEP_PAUSE_S)

    def beat(self, member_id="m1", epoch=0, *, owned=None, group_id="g", context=V1, **fields):
        """Send one ConsumerGroupHeartbeat; returns the response. A join subscribes to `t` by default."""
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


def given(response):
    """The assignment in a response: {topic id: {partitions}}, or None."""
    if response.assignment is None:
        return None
    return {entry.topic_id: set(entry.partitions) for entry in response.assignment.topic_partitions}


class Client(ModernClient):
    """A member of a consumer group."""

    def __init__(self, driver, member_id, *, topics=("t",), regex=None, instance_id=None, assignor=None, group_id="g"):
        self.driver, self.member_id, self.group_id = driver, member_id, group_id
        self.topics, self.regex, self.instance_id, self.assignor = list(topics), regex, instance_id, assignor
        self.rack_id = None
        self.reset()

    def nothing(self):
        return {}

    def request(self):
        """The fields of the next heartbeat."""
        is_full = self.epoch == 0 or self.sends_all
        fields = {"instance_id": self.instance_id, "owned": None}
        if is_full:
            fields.update(rebalance_timeout_ms=5_000, server_assignor=self.assignor, rack_id=self.rack_id)
            fields["subscribed_topic_names"] = list(self.topics)
            fields["subscribed_topic_regex"] = self.regex
        if is_full or self.owned != self.sent_owned:
            fields["owned"] = {key: set(indexes) for key, indexes in self.owned.items()}
        return fields

    def given(self, response):
        return given(response)

    def send(self, fields):
        return self.driver.beat(self.member_id, self.epoch, group_id=self.group_id, **fields)

    def reconcile(self):
        """Revoke and take partitions by the last assignment."""
        if self.target is not None:
            self.owned = {key: set(indexes) for key, indexes in self.target.items() if indexes}

    @property
    def partitions(self):
        return {(key, index) for key, indexes in self.owned.items() for index in indexes}


def settle(*clients, rounds=20):
    """Let the clients send heartbeats in turns until nothing changes."""
    for _ in range(rounds):
        before = [(client.epoch, client.owned) for client in clients]
        for client in clients:
            client.driver.resolve()
            response = client.beat()
            assert response.error_code == 0, response
            client.reconcile()
        if before == [(client.epoch, client.owned) for client in clients]:
            return
    raise AssertionError("the group does not become stable")
