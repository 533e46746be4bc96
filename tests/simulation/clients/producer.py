"""A transactional producer, as in client libraries, in both generations of the protocol.

Generation 1 (KIP-98): partitions and groups are added by separate requests; after an error the transaction is aborted
and the epoch bumped by InitProducerId (KIP-360). Generation 2 (KIP-890): writes add their partitions, and every EndTxn
response has the next epoch. Requests are retried until there is a response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.wire.batches.records import BatchBuilder
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.messages.groups import classic_groups as g
from tests.simulation.clock import START_MS

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.clients.process import Process, Steps

BACKOFF_S = 0.05
TRANSACTION_KEY, GROUP_KEY = 1, 0

RETRIABLE = frozenset(
    {
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.CONCURRENT_TRANSACTIONS,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.REQUEST_TIMED_OUT,
    }
)
FENCED = frozenset({E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE, E.FENCED_INSTANCE_ID})


class Abortable(Exception):  # noqa: N818 - the name of Kafka's class
    """The transaction has to be aborted; the producer can then start another."""

    def __init__(self, error: E | None = None) -> None:
        super().__init__(error)
        self.error = error


class Fenced(Exception):  # noqa: N818
    """The producer cannot be used any more."""


def find_coordinator(process: Process, key: str, key_type: int) -> Steps[None]:
    """Send FindCoordinator, which creates the coordinator's topic, until it succeeds."""
    request = g.FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    while True:
        response = yield from process.ask(request, 4)
        if response is not None and not response.coordinators[0].error_code:
            return
        yield BACKOFF_S


class Producer:
    """One transactional producer."""

    def __init__(self, process: Process, transactional_id: str, generation: int, timeout_ms: int) -> None:
        self._process = process
        self._random = process.random
        self.transactional_id = transactional_id
        self.generation = generation
        self._timeout_ms = timeout_ms
        self._max_attempts = self._random.choice((2, 5, 30))
        self._producer = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[object] = set()
        self._needs_bump = False

    # ---- requests

    def _ask(self, request: Message, version: int, lane: str = "coordinator", **options: Any) -> Steps[Any]:
        """Send a request until there is a response."""
        while True:
            response = yield from self._process.ask(request, version, lane=lane, **options)
            if response is not None:
                return response
            yield BACKOFF_S * self._random.random()

    def _send(self, request: Message, version: int, **options: Any) -> Steps[Any]:
        """Send a request until it succeeds; Fenced or Abortable for errors that a retry does not solve."""
        while True:
            newest = self._newest()
            response = yield from self._ask(request, version, **options)
            error = E(_error(response))
            if error == E.NONE:
                assert isinstance(request, p.InitProducerIdRequest) or self._producer >= newest, (
                    f"{request} of {self.transactional_id} succeeds, while {newest} is newer"
                )
                return response
            if error in RETRIABLE:
                yield BACKOFF_S * (0.5 + self._random.random())
            elif error in FENCED:
                raise Fenced(error.name)
            else:
                self._needs_bump = True
                raise Abortable(error)

    def init(self) -> Steps[None]:
        """InitProducerId: get a producer id, or bump the epoch."""
        yield from find_coordinator(self._process, self.transactional_id, TRANSACTION_KEY)
        request = p.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
        )
        response = yield from self._send(request, 5)
        self._take((response.producer_id, response.producer_epoch))

    def _newest(self) -> tuple[int, int]:
        """The newest producer id and epoch of this transactional id; requests of older ones must fail."""
        return self._process.environment.newest_producers.get(self.transactional_id, (-1, -1))

    def _take(self, producer: tuple[int, int]) -> None:
        self._producer = producer
        self._process.environment.newest_producers[self.transactional_id] = max(producer, self._newest())
        self._sequences.clear()
        self._added.clear()
        self._needs_bump = False

    def send(self, topic: str, partition: int, values: Sequence[bytes]) -> Steps[None]:
        """Send one batch in the transaction."""
        topic_partition = (topic, partition)
        if self.generation == 1 and topic_partition not in self._added:
            yield from self._add(topic_partition)
        data = p.PartitionProduceData(index=partition, records=self._batch(topic_partition, values))
        request = p.ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[p.TopicProduceData(name=topic, partition_data=[data])],
        )
        version = 12 if self.generation == 2 else 11
        for _ in range(self._max_attempts):
            newest = self._newest()
            response = yield from self._process.ask(request, version)
            error = None if response is None else E(response.responses[0].partition_responses[0].error_code)
            if error == E.NONE:
                assert self._producer >= newest, f"{self.transactional_id} writes as {self._producer} after {newest}"
                self._added.add(topic_partition)
                return
            if error in FENCED:
                raise Fenced(error.name if error is not None else "")
            if error is not None and error not in RETRIABLE:
                self._needs_bump = True
                raise Abortable(error)
            yield BACKOFF_S * (0.5 + self._random.random())
        self._needs_bump = True
        raise Abortable  # whether the batch was written is unknown

    def _batch(self, topic_partition: tuple[str, int], values: Sequence[bytes]) -> bytes:
        sequence = self._sequences.get(topic_partition, 0)
        self._sequences[topic_partition] = sequence + len(values)
        builder = BatchBuilder(
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        for value in values:
            builder.append(START_MS, None, value)
        return builder.build()

    def _add(self, topic_partition: tuple[str, int]) -> Steps[None]:
        request = t.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[t.AddPartitionsToTxnTopic(name=topic_partition[0], partitions=[topic_partition[1]])],
        )
        yield from self._send(request, 3)
        self._added.add(topic_partition)

    def send_offsets(
        self, group: str, topic: str, offsets: Mapping[int, int], member: Mapping[str, Any] | None = None
    ) -> Steps[None]:
        """Commit offsets of a group in the transaction; `member` has the member's fields of the request (KIP-447)."""
        if self.generation == 1 and group not in self._added:
            add = t.AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._producer[0],
                producer_epoch=self._producer[1],
                group_id=group,
            )
            yield from self._send(add, 3)
            self._added.add(group)
        yield from find_coordinator(self._process, group, GROUP_KEY)
        request = t.TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            topics=[
                t.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        t.TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
                        for index, offset in offsets.items()
                    ],
                )
            ],
            **(member or {}),
        )
        yield from self._send(request, 5 if self.generation == 2 else 3, lane="group")
        self._added.add(group)

    def end(self, *, commit: bool) -> Steps[None]:
        """Commit or abort the transaction."""
        if self._added or not commit or self._needs_bump:
            yield from self._end(commit)
        if self.generation == 1 and self._needs_bump:
            yield from self.init()
        self._added.clear()
        self._needs_bump = False

    def _end(self, commit: bool) -> Steps[None]:
        request = t.EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            committed=commit,
        )
        if self.generation == 1 and not self._added:
            return  # there is no transaction to end
        response = yield from self._send(request, 5 if self.generation == 2 else 3, may_outlive=self._ends_may_be_late)
        if self.generation == 2:
            self._take((response.producer_id, response.producer_epoch))

    @property
    def _ends_may_be_late(self) -> bool:
        """Before KIP-890 a late EndTxn ends any later transaction, in Kafka too (rule T9)."""
        return self.generation == 2 or self._process.environment.late_ends_of_generation_1


def _error(response: Any) -> int:
    """The first error in a response."""
    match response:
        case t.AddPartitionsToTxnResponse():
            partitions = [
                partition
                for topic in response.results_by_topic_v3_and_below
                for partition in topic.results_by_partition
            ]
            return next(
                (partition.partition_error_code for partition in partitions if partition.partition_error_code), 0
            )
        case t.TxnOffsetCommitResponse():
            partitions = [partition for topic in response.topics for partition in topic.partitions]
            return next((partition.error_code for partition in partitions if partition.error_code), 0)
        case _:
            return int(response.error_code)
