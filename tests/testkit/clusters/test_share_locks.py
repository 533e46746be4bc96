"""The lock of a record that a member of a share group has acquired goes by the clock of the cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from barnabas.client.connection import NodeConnection
from barnabas.testing import Cluster
from barnabas.wire.messages.groups import share_groups as g
from barnabas.wire.types import Uuid, uuid_from_text

LIMIT_S = 60.0
VERSION = 1


class Member:
    """A member of the share group g, on a connection of its own."""

    def __init__(self, kafka: Cluster, member_id: str, topic_id: Uuid) -> None:
        host, port = kafka.bootstrap_servers.split(":")
        self.connection = NodeConnection(host, int(port), member_id, "1")
        self._deadline = time.monotonic() + LIMIT_S
        self.connection.open(self._deadline)
        self._id, self._topic_id, self._epoch = member_id, topic_id, 0
        self._join()

    def _join(self) -> None:
        epoch, assigned = 0, False
        while not assigned:
            request = g.ShareGroupHeartbeatRequest(
                group_id="g", member_id=self._id, member_epoch=epoch, subscribed_topic_names=["orders"]
            )
            response = self.connection.call(request, g.ShareGroupHeartbeatResponse, self._deadline)
            assert response.error_code in {0, 14, 15, 16}, response
            epoch = response.member_epoch if not response.error_code else epoch
            assigned = response.assignment is not None and bool(response.assignment.topic_partitions)

    def acquire(self, max_wait_ms: int = 0) -> list[tuple[int, int]]:
        """Fetch; offset and delivery count of the records that were acquired."""
        partition = g.ShareFetchRequestFetchPartition(partition_index=0)
        topic = g.ShareFetchRequestFetchTopic(topic_id=self._topic_id, partitions=[partition])
        request = g.ShareFetchRequest(
            group_id="g",
            member_id=self._id,
            share_session_epoch=self._epoch,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=10,
            batch_size=10,
            topics=[topic] if self._epoch == 0 else [],
        )
        fetched = self.connection.call(request, g.ShareFetchResponse, self._deadline, VERSION)
        assert not fetched.error_code, fetched
        self._epoch += 1
        return [
            (records.first_offset, records.delivery_count)
            for response in fetched.responses
            for partition_data in response.partitions
            for records in partition_data.acquired_records
        ]


@pytest.fixture
def closing() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_share_lock_expires(kafka: Cluster, closing: ExitStack) -> None:
    kafka.topic("orders").create()
    kafka.request("FindCoordinator", {"keyType": 0, "coordinatorKeys": ["g"]}, 4)
    body = {"topics": [{"name": "orders"}], "responsePartitionLimit": 1, "cursor": None}
    topic_id = uuid_from_text(kafka.request("DescribeTopicPartitions", body)["topics"][0]["topicId"])
    first, second = (Member(kafka, name, topic_id) for name in ("first", "second"))
    for member in (first, second):
        closing.callback(member.connection.close)
        assert member.acquire() == []  # the group begins at the end of the log
    kafka.clock.freeze()
    kafka.topic("orders").produce("x")
    assert first.acquire(10_000) == [(0, 1)]
    assert second.acquire() == []
    kafka.clock.advance(29)
    assert second.acquire() == []
    kafka.clock.advance(2)
    assert second.acquire(10_000) == [(0, 2)]
    assert first.acquire() == []
