"""Requests of a member of the consumer protocol (KIP-848)."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import consumer_groups as c
from tests.support.waiting import wait_for

E = ErrorCode


LOADING = (E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR)


def beat(client, group, member_id, epoch, *, owned=None, version=1, **fields):
    if epoch == 0:
        fields.setdefault("rebalance_timeout_ms", 30_000)
        owned = owned or {}
    partitions = None
    if owned is not None:
        partitions = [
            c.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=key, partitions=sorted(indexes))
            for key, indexes in owned.items()
        ]
    request = c.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=epoch, topic_partitions=partitions, **fields
    )

    def loaded():  # Kafka loads its coordinators asynchronously
        response = client(request, version)
        return None if response.error_code in LOADING else response

    return wait_for(loaded, f"the coordinator of {group}")


def given(response):
    if response.assignment is None:
        return None
    return {entry.topic_id: set(entry.partitions) for entry in response.assignment.topic_partitions}


def beat_until(client, group, member_id, epoch, condition, **fields):
    """Send heartbeats until a response matches; assignments have a minimum interval."""
    assignments = []

    def matches():
        response = beat(client, group, member_id, epoch, **fields)
        assert response.error_code == 0, response
        assignments[:] = [response]
        return response if condition(response) else None

    return wait_for(matches, lambda: f"another response to the heartbeat than {assignments}")


def join(client, group, member_id, partitions=4, **fields):
    """Join, and send heartbeats until so many partitions are assigned: Kafka applies new topics asynchronously."""
    response = beat(client, group, member_id, 0, **fields)
    assert response.error_code == 0, response
    while sum(map(len, given(response).values())) < partitions:
        fields["version"] = fields.get("version", 1)
        response = beat_until(
            client, group, response.member_id, response.member_epoch, given, version=fields["version"]
        )
    return response


def describe(client, group, version=1):
    (group_data,) = client(c.ConsumerGroupDescribeRequest(group_ids=[group]), version).groups
    return group_data
