"""The records of a topic, read from the logs of a broker of this process: no consumer, no group, no position.

Records of transactions are there once they are committed, unless the request asks for all. Reading goes on between the
turns, `STEP_RECORDS` at a time; a reader that waits is woken by the partitions' high watermarks.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import trio

from barnabas.wire.batches.record_reader import iter_records
from barnabas.wire.batches.records import iter_batches

if TYPE_CHECKING:
    from barnabas.broker.replicas.partition import Partition
    from barnabas.kit.clusters.virtual_cluster import VirtualCluster
    from barnabas.wire.batches.batch_format import Record
    from barnabas.wire.batches.batch_header import BatchView

READ_BYTES: Final = 1024 * 1024
STEP_RECORDS: Final = 500


class RecordAt(NamedTuple):
    """A record and its partition."""

    partition: int
    record: Record

    def to_json(self, topic: str) -> dict[str, Any]:
        """The record for the test's process; bytes in base64."""
        record = self.record
        return {
            "topic": topic,
            "partition": self.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _base64(record.key),
            "value": _base64(record.value),
            "headers": [[name, _base64(value)] for name, value in record.headers],
        }


def _base64(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode("ascii")


class TopicReader:
    """Reads the partitions of a topic that this broker leads, each from a position on."""

    def __init__(self, cluster: VirtualCluster, topic: str, positions: dict[int, int], *, committed: bool) -> None:
        """`positions` are the first offsets to read by partition, the start of the log if not given."""
        self._cluster = cluster
        self.topic = topic
        self.positions = positions
        self._committed = committed
        self._changed = trio.Event()

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions, as they are now; none while the topic does not exist."""
        return sorted(self._cluster.partitions_of(self.topic), key=lambda partition: partition.index)

    def skip_to_ends(self) -> None:
        """Skip the records that exist already."""
        self.positions.update({partition.index: self._end(partition) for partition in self.partitions})

    async def read(self) -> AsyncIterator[list[RecordAt]]:
        """Yield the records between the positions and the ends, in steps; the positions are moved."""
        for partition in self.partitions:
            async for step in self._read_partition(partition):
                yield step

    async def wait(self) -> None:
        """Wait until a partition has changed since the last read, or one of the topic was created."""
        self._changed = trio.Event()
        watched = self.partitions
        for partition in watched:
            partition.waiters[self] = lambda _: self._changed.set()
        self._cluster.metadata_waiters[self] = self._changed.set
        try:
            if not any(self._has_more(partition) for partition in watched):
                await self._changed.wait()
        finally:
            self._cluster.metadata_waiters.pop(self, None)
            for partition in watched:
                partition.waiters.pop(self, None)

    def _end(self, partition: Partition) -> int:
        return partition.log.last_stable_offset if self._committed else partition.log.high_watermark

    def _has_more(self, partition: Partition) -> bool:
        return self.positions.get(partition.index, 0) < self._end(partition)

    async def _read_partition(self, partition: Partition) -> AsyncIterator[list[RecordAt]]:
        log, index = partition.log, partition.index
        position = max(self.positions.get(index, 0), log.log_start_offset)
        end = self._end(partition)
        while position < end and not partition.is_closed:
            read = log.read(position, READ_BYTES, limit_offset=end, min_one_batch=True)
            if read.slice is None:
                break
            data = read.slice.read()
            aborted = log.aborted_transactions(position, end) if self._committed else []
            step: list[RecordAt] = []
            for batch in iter_batches(data, partial_ok=True):
                if not batch.is_control and not _is_aborted(batch, aborted):
                    records = [record for record in iter_records(batch) if position <= record.offset < end]
                    step += [RecordAt(index, record) for record in records]
                position = max(position, batch.last_offset + 1)
                if len(step) >= STEP_RECORDS:
                    self.positions[index] = position
                    yield step
                    step = []
                    await trio.lowlevel.checkpoint()
            self.positions[index] = position
            if step:
                yield step
            await trio.lowlevel.checkpoint()


def _is_aborted(batch: BatchView, aborted: Sequence[Any]) -> bool:
    return batch.is_transactional and any(
        transaction.producer_id == batch.producer_id
        and transaction.first_offset <= batch.base_offset <= transaction.last_offset
        for transaction in aborted
    )


def matches(record: Record, key: bytes | None, value: bytes | None, headers: dict[str, bytes | None]) -> bool:
    """Whether a record has this key, this value and these headers; None means any."""
    if (key is not None and record.key != key) or (value is not None and record.value != value):
        return False
    own = dict(record.headers) if headers else {}
    return all(name in own and own[name] == expected for name, expected in headers.items())


def offsets(partitions: Sequence[Partition]) -> Iterator[dict[str, int]]:
    """Start, high watermark and end of each partition."""
    for partition in partitions:
        log = partition.log
        yield {
            "partition": partition.index,
            "start": log.log_start_offset,
            "high_watermark": log.high_watermark,
            "end": log.log_end_offset,
        }
