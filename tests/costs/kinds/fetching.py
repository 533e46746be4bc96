"""Fetch requests, and one that waits while everything else is counted."""

from __future__ import annotations

from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchRequestReplicaState,
)
from tests.costs.client import Client

VERSION = 17
FULL_BYTES = 256 * 1024
LONG_MS = 24 * 3_600_000


def fetch_request(
    topic_id: bytes,
    offset: int,
    *,
    session: tuple[int, int] = (0, -1),
    replica: tuple[int, int] = (-1, -1),
    wait_ms: int,
) -> FetchRequest:
    """Partition 0 from an offset; `session` is (id, epoch), `replica` (id, epoch)."""
    partition = FetchRequestFetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FULL_BYTES)
    if replica[0] >= 0:
        partition.log_start_offset = 0
    return FetchRequest(
        replica_state=FetchRequestReplicaState(replica_id=replica[0], replica_epoch=replica[1]),
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchRequestFetchTopic(topic_id=topic_id, partitions=[partition])],
    )


def wait_for_ever(client: Client) -> None:
    """Leave a fetch waiting: a broker always has a timer that is not due yet, whatever was counted before."""
    topic_id = client.create_topic("never-written")
    list(client.send(fetch_request(topic_id, 0, wait_ms=LONG_MS), VERSION))
