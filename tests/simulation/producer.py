"""A transactional producer as client libraries have it, request by request, in both generations of the protocol.

Generation 1 (KIP-98): partitions and groups are added by requests of their own, a transaction that went wrong is
aborted and the epoch bumped through InitProducerId (KIP-360). Generation 2 (KIP-890): writes add their partitions, and
every EndTxn answers the next epoch. Requests are repeated until they are answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.messages import groups as g
from barnabas.wire.messages import produce as p
from barnabas.wire.messages import transactions as t
from barnabas.wire.records import BatchBuilder
from tests.simulation.clock import START_MS

if TYPE_CHECKING:
    from barnabas.wire.schema import Message
    from tests.simulation.process import Process, Steps

BACKOFF_S = 0.05
TRANSACTION_KEY, GROUP_KEY = 1, 0

RETRIABLE = frozenset(
    {
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.CONCURRENT_TRANSACTIONS,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_LEADER_OR_FOLLOWER,
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.REQUEST_TIMED_OUT,
    }
)
FENCED = frozenset({E.PRODUCER_FENCED, E.INVALID_PRODUCER_EPOCH, E.INVALID_TXN_STATE, E.FENCED_INSTANCE_ID})


class Abortable(Exception):  # noqa: N818 - the name of Kafka's class
    """The transaction has to be aborted; then the next may begin."""

    def __init__(self, error: E | None = None) -> None:
        super().__init__(error)
        self.error = error


class Fenced(Exception):  # noqa: N818
    """This producer is at its end."""


def find(process: Process, key: str, key_type: int) -> Steps[None]:
    """FindCoordinator, which makes the coordinators' topic."""
    request = g.FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)
    while True:
        answer = yield from process.ask(request, 4)
        if answer is not None and not answer.coordinators[0].error_code:
            return
        yield BACKOFF_S


class Producer:
    """One transactional producer."""

    def __init__(self, process: Process, transactional_id: str, generation: int, timeout_ms: int) -> None:
        self._process = process
        self._random = process.world.random
        self.transactional_id = transactional_id
        self.generation = generation
        self._timeout_ms = timeout_ms
        self._patience = self._random.choice((2, 5, 30))  # how often a write is tried
        self._producer = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}
        self._added: set[object] = set()
        self._needs_bump = False

    # ---- requests

    def _ask(self, request: Message, version: int, lane: str = "coordinator", **options: Any) -> Steps[Any]:
        """Until there is an answer."""
        while True:
            answer = yield from self._process.ask(request, version, lane=lane, **options)
            if answer is not None:
                return answer
            yield BACKOFF_S * self._random.random()

    def _settled(self, request: Message, version: int, **options: Any) -> Steps[Any]:
        """Until there is an answer that says something; Fenced and Abortable for those that say no."""
        while True:
            answer = yield from self._ask(request, version, **options)
            error = E(_error(answer))
            if error == E.NONE:
                return answer
            if error in RETRIABLE:
                yield BACKOFF_S * (0.5 + self._random.random())
            elif error in FENCED:
                raise Fenced(error.name)
            else:
                self._needs_bump = True
                raise Abortable(error)

    def init(self) -> Steps[None]:
        """InitProducerId, of a new producer or to bump the epoch of this one."""
        yield from find(self._process, self.transactional_id, TRANSACTION_KEY)
        request = p.InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
        )
        answer = yield from self._settled(request, 5)
        self._take((answer.producer_id, answer.producer_epoch))

    def _take(self, producer: tuple[int, int]) -> None:
        self._producer = producer
        self._sequences.clear()
        self._added.clear()
        self._needs_bump = False

    def send(self, topic: str, partition: int, values: Sequence[bytes]) -> Steps[None]:
        """One batch in the transaction."""
        place = (topic, partition)
        if self.generation == 1 and place not in self._added:
            yield from self._add(place)
        data = p.PartitionProduceData(index=partition, records=self._batch(place, values))
        request = p.ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[p.TopicProduceData(name=topic, partition_data=[data])],
        )
        version = 12 if self.generation == 2 else 11
        for _ in range(self._patience):
            answer = yield from self._process.ask(request, version)
            error = None if answer is None else E(answer.responses[0].partition_responses[0].error_code)
            if error == E.NONE:
                self._added.add(place)
                return
            if error in FENCED:
                raise Fenced(error.name if error is not None else "")
            if error is not None and error not in RETRIABLE:
                self._needs_bump = True
                raise Abortable(error)
            yield BACKOFF_S * (0.5 + self._random.random())
        self._needs_bump = True
        raise Abortable  # nobody knows the fate of the batch

    def _batch(self, place: tuple[str, int], values: Sequence[bytes]) -> bytes:
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + len(values)
        builder = BatchBuilder(
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        for value in values:
            builder.append(START_MS, None, value)
        return builder.build()

    def _add(self, place: tuple[str, int]) -> Steps[None]:
        request = t.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[t.AddPartitionsToTxnTopic(name=place[0], partitions=[place[1]])],
        )
        yield from self._settled(request, 3)
        self._added.add(place)

    def send_offsets(
        self, group: str, topic: str, offsets: Mapping[int, int], member: Mapping[str, Any] | None = None
    ) -> Steps[None]:
        """Offsets of a group, to count when the transaction commits; `member` is what KIP-447 sends along."""
        if self.generation == 1 and group not in self._added:
            add = t.AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._producer[0],
                producer_epoch=self._producer[1],
                group_id=group,
            )
            yield from self._settled(add, 3)
            self._added.add(group)
        yield from find(self._process, group, GROUP_KEY)
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
        yield from self._settled(request, 5 if self.generation == 2 else 3, lane="group")
        self._added.add(group)

    def end(self, *, commit: bool) -> Steps[None]:
        """Commit or abort, and be ready for the next transaction."""
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
            return  # nothing was added, there is nothing to end
        answer = yield from self._settled(request, 5 if self.generation == 2 else 3, may_outlive=self._ends_may_be_late)
        if self.generation == 2:
            self._take((answer.producer_id, answer.producer_epoch))

    @property
    def _ends_may_be_late(self) -> bool:
        """Before KIP-890 a late EndTxn ends whatever transaction it meets, in Kafka too: T9."""
        return self.generation == 2 or self._process.world.late_ends_of_generation_1


def _error(answer: Any) -> int:
    """The first error anywhere in an answer."""
    match answer:
        case t.AddPartitionsToTxnResponse():
            places = [one for topic in answer.results_by_topic_v3_and_below for one in topic.results_by_partition]
            return next((one.partition_error_code for one in places if one.partition_error_code), 0)
        case t.TxnOffsetCommitResponse():
            places = [one for topic in answer.topics for one in topic.partitions]
            return next((one.error_code for one in places if one.error_code), 0)
        case _:
            return int(answer.error_code)
