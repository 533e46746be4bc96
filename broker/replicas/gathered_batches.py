"""Batches of a partition that one turn writes together: one write for the requests of many connections.

The reactor reads several connections before it sends anything. A small batch is checked and gets its offsets when its
request is read, and its response goes into the connection's output; it is written, with all others of its partition,
before the output is sent (`Loop.write_gathered`). If the write fails, the response to each of them becomes an error,
and the log is unchanged. Only partitions that this broker leads alone gather, without a flush policy.

Invariants: nothing reads or changes the partition between the first gathered batch and the write, since the dispatcher
has everything written before it serves a request of any other kind; a producer has at most one batch in it, so that
each is checked against the one before (I1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from barnabas.broker.event_loop.guarded import answer_for
from barnabas.storage.append.batch_check import check_client_batch
from barnabas.storage.append.offset_assignment import assign_offset
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.net.connection import Connection
    from barnabas.storage.batch_content import Budget, UnfinishedCheck
    from barnabas.storage.log import Log

GATHERED_BYTES: Final = 4096
"""A larger batch is written by itself: it would be copied, which costs as much as a write saves."""
MOST_BYTES: Final = 64 * 1024
"""How many bytes are gathered at most."""


class Responder(Protocol):
    """What makes the responses to gathered batches."""

    def response(self, correlation_id: int, offset: int, append_time_ms: int, log_start_offset: int) -> bytes:
        """The frame of the response to a batch that was appended at `offset`; b"" if the request asks for none."""

    def fail(self, connection: Connection, correlation_id: int, response: bytes, error: KafkaError) -> None:
        """Make a response, which is in the connection's output already, the one for an error."""


Response: TypeAlias = tuple[Responder, "Connection", int, bytes]
"""The response to a gathered batch: its connection, the correlation id, and its frame, b"" if there is none."""


class GatheringPartition(Protocol):
    """The part of a partition that gathered batches use."""

    log: Log
    leader_epoch: int
    is_leader: bool
    is_closed: bool
    gathered: GatheredBatches | None

    def append_gathered(self, records: memoryview, headers: list[BatchHeader]) -> None:
        """Append batches that have their offsets. KafkaError."""


class GatheredBatches:
    """The batches of one partition that are not written yet."""

    __slots__ = (
        "_epoch",
        "_partition",
        "batches",
        "headers",
        "most_bytes",
        "next_offset",
        "producers",
        "responses",
        "size",
    )

    def __init__(self, partition: GatheringPartition) -> None:
        self._partition = partition
        self._epoch = partition.leader_epoch
        self.batches: list[bytes] = []
        self.headers: list[BatchHeader] = []
        self.producers: set[int] = set()
        """The ids of idempotent producers that have a batch here."""
        self.responses: list[Response] = []
        self.size = 0
        self.most_bytes = min(MOST_BYTES, partition.log.config.segment_bytes)
        self.next_offset = partition.log.log_end_offset

    def write(self) -> None:
        """Write all batches; if that fails, all responses become errors."""
        partition = self._partition
        partition.gathered = None
        try:
            if partition.is_closed or not partition.is_leader or partition.leader_epoch != self._epoch:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            partition.append_gathered(memoryview(b"".join(self.batches)), self.headers)
        except Exception as failure:
            error = answer_for(f"Writing the batches of a turn to {partition!r}", failure)
            for responder, connection, correlation_id, response in self.responses:
                responder.fail(connection, correlation_id, response, error)


def gather(
    loop: Loop,
    partition: GatheringPartition,
    records: memoryview,
    budget: Budget,
    responder: Responder,
    connection: Connection,
    correlation_id: int,
) -> bytes | UnfinishedCheck:
    """Check a batch, which has at most `GATHERED_BYTES`, and take it into the partition's gathered batches.

    Returns the frame of its response, which the caller appends to the connection's output before anything else; or the
    rest of its validation if that takes more than `budget`. KafkaError as of `Partition.append_produced`.
    """
    log = partition.log
    config = log.config
    now_ms = loop.now_ms()
    header = check_client_batch(records, config, now_ms, budget)
    if type(header) is not BatchHeader:
        return header  # type: ignore[return-value]
    gathered = partition.gathered
    size, producer_id = header.size, header.producer_id
    if gathered is not None and (producer_id in gathered.producers or gathered.size + size > gathered.most_bytes):
        loop.write_gathered()
        gathered = None
    if producer_id >= 0 or size > config.segment_bytes:
        repeated = log.check_batch(header, now_ms)
        if repeated is not None:
            return responder.response(
                correlation_id, repeated.first_offset, repeated.log_append_time_ms, repeated.log_start_offset
            )
    if gathered is None:
        gathered = partition.gathered = GatheredBatches(partition)
        loop.gathered.append(gathered)
    if producer_id >= 0:
        gathered.producers.add(producer_id)
    offset = gathered.next_offset
    append_time_ms = assign_offset(
        records, header, offset, partition.leader_epoch, now_ms, config.message_timestamp_type
    )
    header.position = gathered.size
    gathered.batches.append(bytes(records))
    gathered.headers.append(header)
    gathered.size += size
    gathered.next_offset = header.last_offset + 1
    response = responder.response(correlation_id, offset, append_time_ms, log.log_start_offset)
    gathered.responses.append((responder, connection, correlation_id, response))
    return response
