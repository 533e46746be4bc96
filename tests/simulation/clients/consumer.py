"""A read_committed consumer: fetches records and leaves out records of aborted transactions (rule T6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages.groups import offsets as o
from tests.support.requests.fetch import Records, committed_records

if TYPE_CHECKING:
    from tests.simulation.clients.process import Process, Steps

READ_COMMITTED = 1
READ_BYTES = 20_000
RETRIABLE = frozenset(
    {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.UNSTABLE_OFFSET_COMMIT}
)
_NOT_SERVED = frozenset({E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION, E.KAFKA_STORAGE_ERROR})


class Reader:
    """A read_committed consumer's positions in one topic."""

    def __init__(self, process: Process, topic: str) -> None:
        self._process = process
        self.topic = topic

    def fetch(self, partition: int, position: int, wait_s: float = 0.0) -> Steps[tuple[int, Records] | None]:
        """The next position and the records from `position` on; None without a response."""
        requested = f.FetchRequestFetchPartition(
            partition=partition, fetch_offset=position, partition_max_bytes=READ_BYTES, log_start_offset=-1
        )
        request = f.FetchRequest(
            max_wait_ms=int(wait_s * 1000),
            min_bytes=1,
            max_bytes=READ_BYTES,
            isolation_level=READ_COMMITTED,
            session_epoch=-1,
            topics=[f.FetchRequestFetchTopic(topic=self.topic, partitions=[requested])],
        )
        response = yield from self._process.ask(request, 12, lane=f"fetch {self.topic}", timeout_s=wait_s + 2.0)
        if response is None:
            return None
        (partition_data,) = response.responses[0].partitions
        if partition_data.error_code:
            assert partition_data.error_code in _NOT_SERVED, E(partition_data.error_code)
            return None
        assert partition_data.last_stable_offset <= partition_data.high_watermark
        return committed_records(position, partition_data)

    def fetch_all(self, positions: dict[int, int]) -> Steps[tuple[dict[int, int], list[bytes]]]:
        """Fetch from all partitions and advance `positions`; the positions that changed, and the values."""
        advanced: dict[int, int] = {}
        values: list[bytes] = []
        for partition in positions:
            fetched = yield from self.fetch(partition, positions[partition])
            if fetched is not None and fetched[1]:
                positions[partition], records = fetched
                advanced[partition] = positions[partition]
                values += [value for _, value in records]
        return advanced, values


def committed_offsets(process: Process, group: str, topic: str, partitions: list[int]) -> Steps[dict[int, int] | None]:
    """A group's offsets that no open transaction may change (RequireStable); None: try again later.

    A coordinator that was deposed and does not know it answers from its memory, in Kafka too. Clients cannot detect
    that; the effects of an old offset are no fault of the broker's, so it is not used here.
    """
    topics = [o.OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)]
    request = o.OffsetFetchRequest(
        require_stable=True, groups=[o.OffsetFetchRequestGroup(group_id=group, topics=topics)]
    )
    response = yield from process.ask(request, 9, lane="group")
    if response is None or not process.is_current:
        return None
    (group_data,) = response.groups
    found_partitions = [partition_data for topic_ in group_data.topics for partition_data in topic_.partitions]
    errors = {E(partition_data.error_code) for partition_data in found_partitions} | {E(group_data.error_code)}
    if errors != {E.NONE}:
        assert errors - {E.NONE} <= RETRIABLE, errors
        return None
    return {
        partition_data.partition_index: max(partition_data.committed_offset, 0) for partition_data in found_partitions
    }
