"""Writes inside transactions: what Produce (0) asks first, and TxnOffsetCommit (28). Rules T7, T11; KIP-890.

A partition that holds no data of a transaction yet must be in it before it gets some: data that the coordinator does
not know of would never get a marker. Clients from Produce v12 and TxnOffsetCommit v5 on leave it to this broker to add
the partition; of older ones, which have added it themselves, it is verified. Once a partition holds data of the
transaction, nobody is asked any more: its end is the marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.groups import client_of
from barnabas.broker.apis.offsets import settle_topics
from barnabas.broker.apis.registry import api
from barnabas.broker.config.keys.general import (
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS,
    ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS,
)
from barnabas.broker.config.keys.transactions import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.coord.cluster.topic_names import GROUP_METADATA_TOPIC
from barnabas.storage.batch_header import BatchHeader
from barnabas.storage.producer_entry import NO_OFFSET
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offsets import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from barnabas.wire.messages.transactions import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.wire.records import HEADER_SIZE, TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.machine import Moment, Result
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.coord.transactions.transaction import TopicPartition
    from barnabas.wire.messages.offsets import OffsetCommitResponse
    from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceData
    from barnabas.wire.messages.transactions import AddPartitionsToTxnResult

Refused: TypeAlias = "Mapping[TopicPartition, ErrorCode]"
Outcome: TypeAlias = "ProduceResponse | DelayedResponse | None"
Find: TypeAlias = "Callable[[RequestContext, TopicProduceData, int], Partition]"
AppendAll: TypeAlias = "Callable[[RequestContext, ProduceRequest, Mapping[TopicPartition, KafkaError]], Outcome]"

FIRST_PRODUCE_THAT_ADDS = 12
FIRST_PRODUCE_WITH_ABORTABLE = 11
FIRST_OFFSETS_THAT_ADD = 5
FIRST_OFFSETS_WITH_ABORTABLE = 4
CLIENTS_VERSION = 2

_NO_COORDINATOR = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)


def admit(
    broker: Broker,
    transactional_id: str,
    producer: tuple[int, int],
    places: Collection[TopicPartition],
    then: Callable[[Refused], None],
    *,
    adds: bool,
) -> None:
    """Have the coordinator add partitions to a transaction, or verify that they are in; `then` gets the refused ones.

    `then` may be called at once. While the transaction before is being ended, adding is tried again for a moment
    (add.partitions.to.txn.retry.backoff.ms): a client would pause for longer.
    """

    deadline = broker.now() + broker.config[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS] / 1000

    def answer(result: AddPartitionsToTxnResult) -> None:
        refused = {
            (topic.name, partition.partition_index): ErrorCode(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
            if partition.partition_error_code
        }
        again_s = broker.now() + broker.config[ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS] / 1000
        if adds and again_s <= deadline and ErrorCode.CONCURRENT_TRANSACTIONS in refused.values():
            broker.timers.at(again_s, ask)  # the markers of the transaction before are on their way to the disk
        else:
            then(refused)

    def event(them: TransactionCoordinator, at: Moment) -> Result:
        if adds:
            return them.add_partitions(transactional_id, *producer, places, CLIENTS_VERSION, answer, at)
        return them.verify_partitions(transactional_id, *producer, places, answer)

    def ask() -> None:
        try:
            broker.transactions.handle(transactional_id, event)
        except KafkaError as error:
            then(dict.fromkeys(places, error.code))

    ask()


def has_open_transaction(partition: Partition, producer_id: int, producer_epoch: int) -> bool:
    """Whether the partition holds data of the producer's transaction already."""
    entry = partition.log.producers.producers.get(producer_id)
    return entry is not None and entry.current_txn_first_offset != NO_OFFSET and entry.producer_epoch == producer_epoch


# ---- Produce


def produce_in_transaction(
    ctx: RequestContext,
    request: ProduceRequest,
    find: Find,
    append_all: AppendAll,
) -> Outcome:
    """Append with `append_all` what belongs to the transaction, and tell it what does not."""
    adds = ctx.api_version >= FIRST_PRODUCE_THAT_ADDS
    asked = _to_be_asked(ctx, request, find)
    if not asked or not (adds or ctx.broker.config[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
        return append_all(ctx, request, {})
    producers = set(asked.values())
    if len(producers) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "The batches of one request are of several producers.")
    delayed = DelayedResponse(send_before_close=True)
    outcomes: list[Outcome] = []

    def admitted(refused: Refused) -> None:
        errors = {place: _produce_error(code, ctx.api_version) for place, code in refused.items()}
        outcome = append_all(ctx, request, errors)
        outcomes.append(outcome)
        if isinstance(outcome, DelayedResponse):
            outcome.attach(lambda decided: _pass_on(decided, delayed))
        elif outcome is not None:
            delayed.resolve(outcome)

    admit(ctx.broker, request.transactional_id or "", producers.pop(), list(asked), admitted, adds=adds)
    if outcomes:
        return outcomes[0] if not isinstance(outcomes[0], DelayedResponse) else delayed
    _keep_records(request)
    return delayed if request.acks else None


def _to_be_asked(ctx: RequestContext, request: ProduceRequest, find: Find) -> dict[TopicPartition, tuple[int, int]]:
    """The partitions that hold nothing of the transaction yet, each with the producer id and epoch of its batch."""
    asked = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is None or len(data.records) < HEADER_SIZE:
                continue  # refused when it is appended
            header = BatchHeader(data.records, 0, 0)  # type: ignore[arg-type]
            if not header.attributes & TRANSACTIONAL_BIT:
                continue
            try:
                partition = find(ctx, topic, data.index)
            except KafkaError:
                continue  # likewise
            if not has_open_transaction(partition, header.producer_id, header.producer_epoch):
                asked[partition.topic, partition.index] = (header.producer_id, header.producer_epoch)
    return asked


def _produce_error(code: ErrorCode, api_version: int) -> KafkaError:
    """What the client is told when its write was not admitted (Kafka's ReplicaManager, AddPartitionsToTxnManager)."""
    told = _known_error(code, knows_abortable=api_version >= FIRST_PRODUCE_WITH_ABORTABLE)
    waits = code == ErrorCode.CONCURRENT_TRANSACTIONS and api_version < FIRST_PRODUCE_THAT_ADDS
    if code in _NO_COORDINATOR or waits:
        told = ErrorCode.NOT_ENOUGH_REPLICAS  # older clients try again, and do not ask for metadata first
    return KafkaError(told, "The partition could not be found in the transaction.")


def _known_error(code: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _pass_on(decided: object, delayed: DelayedResponse) -> None:
    if isinstance(decided, KafkaError):
        delayed.fail(decided.code, decided.message)
    else:
        delayed.resolve(decided)  # type: ignore[arg-type]


def _keep_records(request: ProduceRequest) -> None:
    """The buffer that the request was read from is for others now."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))  # type: ignore[arg-type]


# ---- TxnOffsetCommit


def _offsets_failed(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=int(error.code)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@api(TxnOffsetCommitRequest, on_error=_offsets_failed)
def txn_offset_commit(
    ctx: RequestContext, request: TxnOffsetCommitRequest
) -> DelayedResponse | TxnOffsetCommitResponse:
    """Commits offsets that count when the transaction commits."""
    delayed = DelayedResponse(send_before_close=True)
    commit = _as_commit(request)

    def answer(decided: OffsetCommitResponse) -> None:
        delayed.resolve(_as_answer(decided))

    response, complete = settle_topics(ctx, commit, answer, by_id=ctx.api_version >= 6)
    if not commit.topics:
        return _as_answer(response)
    producer = (request.producer_id, request.producer_epoch)
    client = client_of(ctx)

    def admitted(refused: Refused) -> None:
        for code in refused.values():
            delayed.resolve(_offsets_failed(request, KafkaError(_offsets_error(code, ctx.api_version))))
            return
        try:
            ctx.broker.coordinators.handle(
                request.group_id, lambda groups, at: groups.commit_offsets(commit, complete, client, at, producer)
            )
        except KafkaError as error:
            delayed.resolve(_offsets_failed(request, error))

    _admit_offsets(ctx, request, producer, admitted)
    return delayed


def _admit_offsets(
    ctx: RequestContext,
    request: TxnOffsetCommitRequest,
    producer: tuple[int, int],
    admitted: Callable[[Refused], None],
) -> None:
    broker = ctx.broker
    adds = ctx.api_version >= FIRST_OFFSETS_THAT_ADD
    index = broker.coordinators.partition_of(request.group_id)
    is_known = has_open_transaction(broker.partitions.get(GROUP_METADATA_TOPIC, index), *producer)
    if is_known or not (adds or broker.config[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
        admitted({})
    else:
        admit(broker, request.transactional_id, producer, [(GROUP_METADATA_TOPIC, index)], admitted, adds=adds)


def _offsets_error(code: ErrorCode, api_version: int) -> ErrorCode:
    waits = code == ErrorCode.CONCURRENT_TRANSACTIONS and api_version < FIRST_OFFSETS_THAT_ADD
    if code in _NO_COORDINATOR or waits:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS  # of the transaction's coordinator: that of the group is right
    return _known_error(code, knows_abortable=api_version >= FIRST_OFFSETS_WITH_ABORTABLE)


def _as_commit(request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    """The same as OffsetCommit."""
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        committed_metadata=partition.committed_metadata,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _as_answer(decided: OffsetCommitResponse) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=partition.error_code
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in decided.topics
        ]
    )
