"""Reads partitions without a group: fetches from each leader and yields records in the order of each partition.

The next fetch is in flight while records are processed. Control records are skipped. A read ends at a partition's end
offset; without one it does not end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from select import select
from time import monotonic

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import ClientError, TimedOut, Unreachable, is_retriable, raise_for
from barnabas.client.offsets import TopicPartition
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.records import BatchView, Record, iter_batches, iter_records
from barnabas.wire.schema import Message

MAX_WAIT_MS = 500
MAX_BYTES = 16 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
RETRY_PAUSE_S = 0.05


class Position:
    """The position in one partition: the next offset, and the end offset or None."""

    __slots__ = ("end_offset", "index", "offset", "topic")

    def __init__(self, topic: str, index: int, offset: int, end_offset: int | None) -> None:
        self.topic = topic
        self.index = index
        self.offset = offset
        self.end_offset = end_offset

    @property
    def is_done(self) -> bool:
        """True if the end offset is reached."""
        return self.end_offset is not None and self.offset >= self.end_offset


class Reader:
    """Reads partitions from given offsets."""

    def __init__(
        self, cluster: Cluster, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int] | None = None
    ) -> None:
        self.cluster = cluster
        self.positions = {
            partition: Position(*partition, offset, None if ends is None else ends.get(partition))
            for partition, offset in starts.items()
        }
        self._answers: list[tuple[dict[bytes, str], FetchResponse]] = []
        self._busy: set[int] = set()
        self._failing_since: float | None = None
        self._retry_at = 0.0

    def records(self, on_idle: Callable[[], None] | None = None) -> Iterator[tuple[TopicPartition, Record]]:
        """Yield records up to the end offsets, or without end; `on_idle` is called before each wait.

        Errors: KafkaError, NotFound, TimedOut, Unreachable.
        """
        for position, first, end, data in self._pieces(on_idle):
            yield from self._decoded(position, first, end, data)

    def batches(self, on_idle: Callable[[], None] | None = None) -> Iterator[tuple[TopicPartition, BatchView]]:
        """Yield batches, also those of control records, as `records` yields records; the first may begin before."""
        for position, first, _, data in self._pieces(on_idle):
            for batch in iter_batches(data, partial_ok=True):
                if batch.next_offset > first:
                    yield (position.topic, position.index), batch

    def _pieces(self, on_idle: Callable[[], None] | None) -> Iterator[tuple[Position, int, int | None, memoryview]]:
        """What is fetched, up to the end offsets: (position, first wanted offset, end, batches)."""
        while True:
            self._fetch()
            while self._answers:
                ids, response = self._answers.pop(0)
                fetched = list(self._fetched(ids, response))
                self._fetch()
                yield from fetched
            if all(position.is_done for position in self.positions.values()):
                return
            if on_idle is not None:
                on_idle()
            self._wait()

    # --- asking

    def _fetch(self) -> None:
        """Send a fetch to each leader without one in flight."""
        now = monotonic()
        if now < self._retry_at:
            return
        try:
            for node_id, positions in self._by_leader(now).items():
                if node_id not in self._busy:
                    self._fetch_from(node_id, positions, now)
        except (KafkaError, ClientError) as error:
            self._failed(error)

    def _by_leader(self, now: float) -> dict[int, list[Position]]:
        wanted: dict[int, list[Position]] = {}
        for position in self.positions.values():
            if not position.is_done:
                topic = self.cluster.topic(position.topic, now + self.cluster.timeout_s)
                wanted.setdefault(topic.leaders[position.index], []).append(position)
        return wanted

    def _fetch_from(self, node_id: int, positions: list[Position], now: float) -> None:
        deadline = now + self.cluster.timeout_s
        node = self.cluster.node(node_id, deadline)
        topics: dict[str, FetchRequestFetchTopic] = {}
        ids: dict[bytes, str] = {}
        for position in positions:
            if position.topic not in topics:
                topic_id = self.cluster.topic(position.topic, deadline).topic_id
                topics[position.topic] = FetchRequestFetchTopic(topic=position.topic, topic_id=topic_id)
                ids[topic_id] = position.topic
            topics[position.topic].partitions.append(
                FetchRequestFetchPartition(
                    partition=position.index, fetch_offset=position.offset, partition_max_bytes=PARTITION_MAX_BYTES
                )
            )
        request = FetchRequest(max_wait_ms=MAX_WAIT_MS, min_bytes=1, max_bytes=MAX_BYTES, topics=list(topics.values()))

        def answered(reply: Message | None, error: ClientError | None) -> None:
            self._busy.discard(node_id)
            if isinstance(reply, FetchResponse):
                self._answers.append((ids, reply))
            else:
                self._failed(error or Unreachable("the connection was lost"))

        self._busy.add(node_id)
        node.send(request, answered)

    def _wait(self) -> None:
        """Process answers, for at most the duration of a fetch."""
        waiting: list[NodeConnection] = [node for node in self.cluster.open_connections if node.in_flight]
        readable, _, _ = select(waiting, [], [], 0.1 if waiting else RETRY_PAUSE_S)
        for connection in readable:
            connection.receive()

    # --- answers

    def _fetched(
        self, ids: dict[bytes, str], response: FetchResponse
    ) -> Iterator[tuple[Position, int, int | None, memoryview]]:
        """The partitions with data, with updated positions: (position, first wanted offset, end, batches)."""
        try:
            raise_for(response.error_code, "fetch")
        except KafkaError as error:
            self._failed(error)
        for topic in response.responses:
            for data in topic.partitions:
                position = self.positions[_name(topic, ids), data.partition_index]
                batches = self._checked(position, data)
                if batches is not None:
                    first = position.offset
                    position.offset = _next_offset(batches, first)
                    yield position, first, position.end_offset, batches

    def _checked(self, position: Position, data: FetchResponsePartitionData) -> memoryview | None:
        """The bytes of one partition's answer; None if there are none, or after a retriable error."""
        try:
            raise_for(data.error_code, f"{position.topic}-{position.index} at offset {position.offset}")
        except KafkaError as error:
            self._failed(error)
            return None
        self._failing_since = None
        if data.records is None or not len(data.records):
            return None
        assert isinstance(data.records, memoryview)
        return data.records

    def _decoded(
        self, position: Position, first: int, end: int | None, batches: memoryview
    ) -> Iterator[tuple[TopicPartition, Record]]:
        partition = (position.topic, position.index)
        for batch in iter_batches(batches, partial_ok=True):
            if batch.is_control or batch.next_offset <= first:
                continue
            for record in iter_records(batch):
                if record.offset >= first and (end is None or record.offset < end):
                    yield partition, record

    def _failed(self, error: Exception) -> None:
        """Retry until the cluster's timeout; raise errors that are not retriable."""
        if not is_retriable(error):
            raise error
        now = monotonic()
        self._failing_since = self._failing_since or now
        if now - self._failing_since > self.cluster.timeout_s:
            raise TimedOut(f"failed for {self.cluster.timeout_s:g} s: {error}") from error
        self._retry_at = now + RETRY_PAUSE_S
        for position in self.positions.values():
            self.cluster.forget(position.topic)


def _name(topic: FetchableTopicResponse, ids: dict[bytes, str]) -> str:
    return topic.topic or ids[topic.topic_id]


def _next_offset(batches: memoryview, offset: int) -> int:
    """The offset after the last whole batch; an answer without a whole batch is an error."""
    last = -1
    for batch in iter_batches(batches, partial_ok=True):
        last = batch.next_offset
    if last < 0:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"no whole batch at offset {offset}")
    return max(last, offset)
