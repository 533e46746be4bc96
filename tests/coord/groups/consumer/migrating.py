"""A group of the classic protocol that moves to the consumer protocol, event by event."""

from __future__ import annotations

from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.consumer.embedded_protocol import read_assignment
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from tests.coord.groups.cluster_driver import topic_id
from tests.coord.groups.consumer.consumer_driver import ConsumerDriver

EAGER, COOPERATIVE = "range", "cooperative-sticky"


def subscription(topics, owned=None, version=3):
    entries = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=sorted(partitions))
        for topic, partitions in (owned or {}).items()
    ]
    message = ConsumerProtocolSubscription(topics=list(topics), owned_partitions=entries)
    return version.to_bytes(2, "big") + message.encode(version)


def assignment(partitions, user_data=None, version=3):
    entries = [ConsumerProtocolAssignmentTopicPartition(topic=t, partitions=list(p)) for t, p in partitions.items()]
    message = ConsumerProtocolAssignment(assigned_partitions=entries, user_data=user_data)
    return version.to_bytes(2, "big") + message.encode(version)


def read(assigned):
    return {entry.topic: set(entry.partitions) for entry in read_assignment(bytes(assigned)).assigned_partitions}


class ClassicClient:
    """A member that does what the classic protocol requires, eager or cooperative."""

    def __init__(self, driver, *, protocol=EAGER, topics=("t",), instance_id=None):
        self.driver, self.protocol, self.topics, self.instance_id = driver, protocol, topics, instance_id
        self.member_id = ""
        self.generation = -1
        self.owned = {}
        self.must_join = True

    def join(self):
        """Send JoinGroup, twice if a member id is required; returns the response, or None while it is parked."""
        if self.protocol == EAGER:
            self.owned = {}
        metadata = subscription(self.topics, self.owned)
        options = {"names": (self.protocol,), "metadata": metadata, "instance_id": self.instance_id}
        self.ticket = self.driver.join(self.member_id, **options)
        response = self.driver.answers.get(self.ticket)
        if response is not None and response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            self.ticket = self.driver.join(self.member_id, **options)
            response = self.driver.answers.get(self.ticket)
        if response is not None and not response.error_code:
            self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def sync(self):
        ticket = self.driver.sync(self.member_id, self.generation, instance_id=self.instance_id)
        response = self.driver.answers[ticket]
        if not response.error_code:
            assigned = read(response.assignment)
            # A cooperative member that has to revoke partitions joins again immediately.
            self.must_join = any(not ps <= assigned.get(topic, set()) for topic, ps in self.owned.items())
            self.owned = assigned
        return response

    def beat(self):
        """Send the next request: JoinGroup and SyncGroup, or Heartbeat."""
        if not self.must_join:
            error = self.driver.heartbeat(self.member_id, self.generation, instance_id=self.instance_id)
            assert error in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS), error
            self.must_join = error == ErrorCode.REBALANCE_IN_PROGRESS
        if self.must_join:
            assert self.join().error_code == 0
            assert self.sync().error_code in (0, ErrorCode.REBALANCE_IN_PROGRESS)

    @property
    def partitions(self):
        return {(topic_id(topic), index) for topic, indexes in self.owned.items() for index in indexes}


def classic_group(driver, count=2, **options):
    """A Stable classic group of members that share the six partitions of `t`."""
    clients = [ClassicClient(driver, **options) for _ in range(count)]
    for client in clients:
        assert client.join() is None, "it waits for the others"
    driver.advance(10.0)
    joined = [driver.answers[client.ticket] for client in clients]
    share = 6 // count
    assignments = {
        response.member_id: assignment({"t": range(place * share, (place + 1) * share)})
        for place, response in enumerate(joined)
    }
    for client, response in sorted(
        zip(clients, joined, strict=True), key=lambda pair: pair[1].leader != pair[1].member_id
    ):
        client.member_id, client.generation, client.must_join = response.member_id, response.generation_id, False
        synced = driver.answers[
            driver.sync(client.member_id, client.generation, assignments, instance_id=client.instance_id)
        ]
        client.owned = read(synced.assignment)
    assert driver.state() is GroupState.STABLE
    return clients


def new_driver(**config):
    return ConsumerDriver(initial_rebalance_delay_ms=3_000, **config)
