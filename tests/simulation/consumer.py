"""Reading as a consumer does it: fetches, and under read_committed the aborted transactions left out (T6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import fetch as f
from barnabas.wire.messages import offsets as o
from barnabas.wire.records import ControlRecordType, control_record_type, iter_batches, iter_records

if TYPE_CHECKING:
    from tests.simulation.process import Process, Steps

READ_COMMITTED = 1
READ_BYTES = 20_000
RETRIABLE = frozenset(
    {E.COORDINATOR_LOAD_IN_PROGRESS, E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.UNSTABLE_OFFSET_COMMIT}
)

Found = list[tuple[int, bytes]]
"""Offsets and values."""


class Reader:
    """A read_committed consumer's positions in one topic."""

    def __init__(self, process: Process, topic: str) -> None:
        self._process = process
        self.topic = topic

    def fetch(self, partition: int, position: int, wait_s: float = 0.0) -> Steps[tuple[int, Found] | None]:
        """What there is from a position on, and the next position; None when there was no answer."""
        asked = f.FetchRequestFetchPartition(
            partition=partition, fetch_offset=position, partition_max_bytes=READ_BYTES, log_start_offset=-1
        )
        request = f.FetchRequest(
            max_wait_ms=int(wait_s * 1000),
            min_bytes=1,
            max_bytes=READ_BYTES,
            isolation_level=READ_COMMITTED,
            session_epoch=-1,
            topics=[f.FetchRequestFetchTopic(topic=self.topic, partitions=[asked])],
        )
        answer = yield from self._process.ask(request, 12, lane=f"fetch {self.topic}", timeout_s=wait_s + 2.0)
        if answer is None:
            return None
        (found,) = answer.responses[0].partitions
        if found.error_code:
            assert found.error_code in (E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION), E(found.error_code)
            return None
        assert found.last_stable_offset <= found.high_watermark
        return decided(position, found)


def decided(position: int, found: f.FetchResponsePartitionData) -> tuple[int, Found]:
    """The records of an answer that count, and the position behind it."""
    aborted = sorted(found.aborted_transactions or (), key=lambda one: one.first_offset)
    under_way: set[int] = set()
    records: Found = []
    for batch in iter_batches(bytes(found.records or b""), partial_ok=True):
        while aborted and aborted[0].first_offset <= batch.last_offset:
            under_way.add(aborted.pop(0).producer_id)
        if batch.is_control:
            (marker,) = iter_records(batch)
            if control_record_type(marker) == ControlRecordType.ABORT:
                under_way.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in under_way):
            records += [(one.offset, one.value or b"") for one in iter_records(batch) if one.offset >= position]
        position = max(position, batch.next_offset)
    return position, records


def committed_offsets(process: Process, group: str, topic: str, partitions: list[int]) -> Steps[dict[int, int] | None]:
    """A group's offsets, once no transaction is about to change them (RequireStable); None: ask again."""
    topics = [o.OffsetFetchRequestTopics(name=topic, partition_indexes=partitions)]
    request = o.OffsetFetchRequest(
        require_stable=True, groups=[o.OffsetFetchRequestGroup(group_id=group, topics=topics)]
    )
    answer = yield from process.ask(request, 9, lane="group")
    if answer is None:
        return None
    (found,) = answer.groups
    places = [one for topic_ in found.topics for one in topic_.partitions]
    errors = {E(one.error_code) for one in places} | {E(found.error_code)}
    if errors != {E.NONE}:
        assert errors - {E.NONE} <= RETRIABLE, errors
        return None
    return {one.partition_index: max(one.committed_offset, 0) for one in places}
