"""Reads partitions from given offsets: fetches from each leader, gives records in the order of each partition.

The next fetch is in flight while records are processed. Control records are skipped, and with `read_committed` the
records of aborted transactions (KIP-98). A read ends at a partition's end offset; without one it does not end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from select import select
from time import monotonic

from barnabas.client.cluster import Cluster
from barnabas.client.connection import NodeConnection
from barnabas.client.errors import ClientError, TimedOut, Unreachable, is_retriable, raise_for
from barnabas.client.offsets import READ_COMMITTED, READ_UNCOMMITTED, TopicPartition, start_offsets
from barnabas.wire.batches.records import (
    BatchView,
    ControlRecordType,
    Record,
    control_record_type,
    iter_batches,
    iter_records,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from barnabas.wire.schema import Message

MAX_WAIT_MS = 500
MAX_BYTES = 16 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
RETRY_PAUSE_S = 0.05
WAIT_S = 0.1


@dataclass(eq=False, slots=True)
class Position:
    """The position in one partition: the next offset, and the end offset or None.

    `readable_end` is the offset after the last readable record, as the latest fetch said; -1 before the first.
    """

    topic: str
    index: int
    offset: int
    end_offset: int | None
    readable_end: int = field(default=-1, init=False)

    @property
    def is_at_end(self) -> bool:
        """True if the latest fetch said that there is nothing more to read now."""
        return 0 <= self.readable_end <= self.offset

    @property
    def is_done(self) -> bool:
        """True if the end offset is reached."""
        return self.end_offset is not None and self.offset >= self.end_offset


class Fetched:
    """The data of a partition in one fetch: whole batches, and the range of wanted offsets."""

    __slots__ = ("aborted", "batches", "end", "first", "next_offset", "partition", "timestamp_type")

    def __init__(self, position: Position, batches: memoryview, aborted: Sequence[AbortedTransaction]) -> None:
        self.partition = (position.topic, position.index)
        self.first = position.offset
        self.end = position.end_offset
        self.batches = batches
        self.aborted = aborted
        self.next_offset = _next_offset(batches, self.first)
        self.timestamp_type = 0

    @property
    def record_count(self) -> int:
        """Records in the batches, from their headers; control records are not counted."""
        return sum(batch.record_count for batch in iter_batches(self.batches, partial_ok=True) if not batch.is_control)

    @property
    def size(self) -> int:
        """Bytes of the whole batches; a fetch may end within one, which is then fetched again."""
        return sum(batch.size for batch in iter_batches(self.batches, partial_ok=True))

    def records(self) -> Iterator[Record]:
        """The wanted records, in order. `timestamp_type` is the latest record's (0 CreateTime, 1 LogAppendTime)."""
        first, end = self.first, self.end
        batches: Iterator[BatchView] = iter_batches(self.batches, partial_ok=True)
        if self.aborted:
            batches = _committed(batches, self.aborted)
        for batch in batches:
            if batch.is_control or batch.next_offset <= first:
                continue
            self.timestamp_type = batch.timestamp_type
            if batch.base_offset >= first and (end is None or batch.next_offset <= end):
                yield from iter_records(batch)
                continue
            for record in iter_records(batch):
                if record.offset >= first and (end is None or record.offset < end):
                    yield record


class Reader:
    """Reads partitions from given offsets. `on_note` gets a sentence when records were deleted before they were read.

    Without `on_note` that is a KafkaError. `on_fetched` gets the seconds between each fetch and its answer.
    """

    def __init__(
        self,
        cluster: Cluster,
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int] | None = None,
        *,
        committed_only: bool = False,
        on_note: Callable[[str], None] | None = None,
        on_fetched: Callable[[float], None] | None = None,
        partition_max_bytes: int = PARTITION_MAX_BYTES,
    ) -> None:
        self.cluster = cluster
        self.isolation_level = READ_COMMITTED if committed_only else READ_UNCOMMITTED
        self.on_note = on_note
        self.on_fetched = on_fetched
        self.partition_max_bytes = partition_max_bytes
        self.positions: dict[TopicPartition, Position] = {}
        self.current: Fetched | None = None
        """The fetched data that the latest record of `records` is in."""
        self._answers: list[tuple[dict[bytes, str], FetchResponse]] = []
        self._busy: set[int] = set()
        self._failing_since: float | None = None
        self._retry_at = 0.0
        self.assign(starts, ends)

    def assign(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int] | None = None) -> None:
        """Read these partitions from now on, and no others."""
        self.positions = {
            partition: Position(*partition, offset, None if ends is None else ends.get(partition))
            for partition, offset in starts.items()
        }

    @property
    def is_done(self) -> bool:
        """True if every partition was read to its end offset."""
        return all(position.is_done for position in self.positions.values())

    def records(self, on_idle: Callable[[], None] | None = None) -> Iterator[tuple[TopicPartition, Record]]:
        """Yield records up to the end offsets, or without end; `on_idle` is called before each wait.

        Errors: KafkaError, NotFound, TimedOut, Unreachable.
        """
        for fetched in self._fetches(on_idle):
            self.current = fetched
            partition = fetched.partition
            for record in fetched.records():
                yield partition, record

    def batches(self, on_idle: Callable[[], None] | None = None) -> Iterator[tuple[TopicPartition, BatchView]]:
        """Yield batches, also of control records, as `records` yields records; the first may begin before."""
        for fetched in self._fetches(on_idle):
            for batch in iter_batches(fetched.batches, partial_ok=True):
                if batch.next_offset > fetched.first:
                    yield fetched.partition, batch

    def _fetches(self, on_idle: Callable[[], None] | None) -> Iterator[Fetched]:
        """The fetched data, up to the end offsets."""
        while True:
            yield from self.poll(0.0)
            if self.is_done:
                return
            if on_idle is not None:
                on_idle()
            self.wait(WAIT_S)

    def poll(self, timeout_s: float) -> list[Fetched]:
        """Return the fetched data after at most `timeout_s` seconds; the next fetches are then in flight."""
        self._fetch()
        if not self._answers and timeout_s:
            self.wait(timeout_s)
        fetched: list[Fetched] = []
        while self._answers:
            fetched += self._fetched(*self._answers.pop(0))
        if fetched:
            self._fetch()
        return fetched

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
        by_leader: dict[int, list[Position]] = {}
        for position in self.positions.values():
            if not position.is_done:
                topic = self.cluster.topic(position.topic, now + self.cluster.timeout_s)
                by_leader.setdefault(topic.leaders[position.index], []).append(position)
        return by_leader

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
                    partition=position.index,
                    fetch_offset=position.offset,
                    partition_max_bytes=self.partition_max_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            isolation_level=self.isolation_level,
            topics=list(topics.values()),
        )

        def answered(reply: Message | None, error: ClientError | None) -> None:
            self._busy.discard(node_id)
            if isinstance(reply, FetchResponse):
                if self.on_fetched is not None:
                    self.on_fetched(monotonic() - now)
                self._answers.append((ids, reply))
            else:
                self._failed(error or Unreachable("the connection was lost"))

        self._busy.add(node_id)
        node.send(request, answered)

    def wait(self, timeout_s: float) -> None:
        """Receive answers, waiting at most `timeout_s` seconds for the first."""
        waiting: list[NodeConnection] = [node for node in self.cluster.open_connections if node.in_flight]
        readable, _, _ = select(waiting, [], [], timeout_s if waiting else min(timeout_s, RETRY_PAUSE_S))
        for connection in readable:
            connection.receive()

    # --- answers

    def _fetched(self, ids: dict[bytes, str], response: FetchResponse) -> Iterator[Fetched]:
        """The partitions with data; their positions are moved behind it."""
        try:
            raise_for(response.error_code, "fetch")
        except KafkaError as error:
            self._failed(error)
        for topic in response.responses:
            for data in topic.partitions:
                position = self.positions.get((_name(topic, ids), data.partition_index))
                if position is None:
                    continue  # not read any more
                batches = self._checked(position, data)
                if batches is not None:
                    fetched = Fetched(position, batches, data.aborted_transactions or ())
                    position.offset = fetched.next_offset
                    yield fetched

    def _checked(self, position: Position, data: FetchResponsePartitionData) -> memoryview | None:
        """The bytes of one partition's answer; None if there are none, or after a retriable error."""
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self.on_note is not None:
            self._skip_deleted(position, self.on_note)
            return None
        try:
            raise_for(data.error_code, f"{position.topic}-{position.index} at offset {position.offset}")
        except KafkaError as error:
            self._failed(error)
            return None
        self._failing_since = None
        committed_only = self.isolation_level == READ_COMMITTED
        position.readable_end = data.last_stable_offset if committed_only else data.high_watermark
        if data.records is None or not len(data.records):
            return None
        assert isinstance(data.records, memoryview)
        return data.records

    def _skip_deleted(self, position: Position, on_note: Callable[[str], None]) -> None:
        """Go on at the first record that exists."""
        partition = (position.topic, position.index)
        start = start_offsets(self.cluster, [partition])[partition]
        on_note(
            f"{position.topic}-{position.index}: offset {position.offset} does not exist any more "
            f"(deleted, or another topic of this name); reading goes on at the first record, {start}"
        )
        position.offset = start

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


def _committed(batches: Iterator[BatchView], aborted: Sequence[AbortedTransaction]) -> Iterator[BatchView]:
    """The batches without those of aborted transactions."""
    return (batch for batch, is_aborted in with_outcomes(batches, aborted) if not is_aborted)


def with_outcomes(
    batches: Iterator[BatchView], aborted: Sequence[AbortedTransaction]
) -> Iterator[tuple[BatchView, bool]]:
    """Each batch, and whether its transaction is aborted; a transaction ends with its marker, which is not aborted."""
    begins = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    aborting: set[int] = set()
    for batch in batches:
        while begins and begins[-1].first_offset <= batch.last_offset:
            aborting.add(begins.pop().producer_id)
        if batch.is_control:
            if control_record_type(next(iter_records(batch))) == ControlRecordType.ABORT:
                aborting.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in aborting:
            yield batch, True
            continue
        yield batch, False


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
