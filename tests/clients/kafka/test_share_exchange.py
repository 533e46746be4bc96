"""Share groups in a directory that Apache Kafka 4.4.0 and Barnabas use in turn."""

from __future__ import annotations

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.share_groups import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    ShareGroupDescribeRequest,
)
from tests.clients.groups.share_consumers import DEADLINE_S, ask, consumer_of, poll, prepare, produce
from tests.clients.kafka.exchange import HAS_JAVA, Directory
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.jvm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not HAS_JAVA, reason="needs Java and Maven, to run Apache Kafka"),
]

LOADING = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}
CONFIG = {"offsets.topic.num.partitions": "3", "share.coordinator.state.topic.num.partitions": "3"}


def observe(bootstrap, group):
    """The description of a group without members that must be equal on both brokers: its state and its offsets."""

    def describe():
        (share_group,) = ask(bootstrap, ShareGroupDescribeRequest(group_ids=[group]), 1).groups
        return share_group if share_group.error_code not in LOADING else None

    described = wait_for(describe, "the group's coordinator has loaded", DEADLINE_S)
    requested = DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
    (offsets,) = ask(bootstrap, DescribeShareGroupOffsetsRequest(groups=[requested]), 1).groups
    positions = {
        (topic.topic_name, partition.partition_index): (partition.start_offset, partition.lag)
        for topic in offsets.topics
        for partition in topic.partitions
    }
    return described.error_code, described.group_state, described.group_epoch, described.assignment_epoch, positions


def take(bootstrap, count):
    """Accept so many records, one at a time, so that a part of a batch stays available; their values."""
    consumer = consumer_of(bootstrap, "queue", "jobs", **{"share.acknowledgement.mode": "explicit"})
    values = []
    while len(values) < count:
        for message in poll(consumer, 1):
            is_wanted = len(values) < count
            consumer.acknowledge(message, 1 if is_wanted else 2)
            if is_wanted:
                values.append(message.value())
        assert set(consumer.commit_sync(30).values()) == {None}
    consumer.close()
    return values


def test_a_share_group_consumes_with_both_brokers_in_turn(tmp_path):
    """Records accepted with one broker are not delivered by the other; offsets, epochs and states are the same."""
    directory = Directory(tmp_path, config=CONFIG)
    bootstrap = directory.bootstrap
    accepted = []
    seen = None
    try:
        for turn, server in enumerate([directory.barnabas, directory.kafka, directory.barnabas]):
            directory.run(server)
            if turn == 0:
                prepare(bootstrap, "jobs", "queue", partitions=2)
                produce(bootstrap, "jobs", [f"v{n}" for n in range(60)])
            if seen is not None:
                assert observe(bootstrap, "queue") == seen, server.name
            accepted += take(bootstrap, 20)
            seen = observe(bootstrap, "queue")
            assert seen[:2] == (0, "Empty")
    finally:
        directory.stop()
    assert sorted(accepted) == sorted(f"v{n}".encode() for n in range(60))
