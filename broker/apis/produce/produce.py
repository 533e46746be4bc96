"""Produce (0): appends a batch to each partition, and answers when the acknowledgements are there (R12-R14).

v5 log start offset; v8 record errors (KIP-467); v10 new leaders (KIP-951); v12 adds partitions to the transaction
(KIP-890); v13 topic ids (KIP-516). Source: Kafka's `KafkaApis.handleProduceRequest`, `ReplicaManager`.

In order: access; the partitions without data of the transaction are added to it, or verified; each batch is appended;
batches that take long to validate are validated between the turns and appended after that; the response waits for
acknowledgements (`replicas.acknowledgement`); the response to a duplicate waits for the original batch's. An error
belongs to its partition. With acks=0 there is no response, so an error closes the connection (R13).

Nearly every request is read by `usual` and served by `_serve_usual`, which waits for nothing. Invariants: records
are copied out of the frame before the first wait; what was read before a wait is read again after it: leader, epoch,
ISR, topic id, access, transaction. So a step appends its batches in one turn, just after their partitions were
verified.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from barnabas.broker.apis.access import check_transactional_id, refused_as_named
from barnabas.broker.apis.current_leaders import MOVED, endpoints_of
from barnabas.broker.apis.produce.response import (
    NO_LEADER,
    Unacknowledged,
    UnverifiedError,
    acknowledged,
    answers_of,
    close_after_failure,
    failed,
    is_acknowledged,
    moved,
    not_acknowledged,
    rejected,
    whole_request_failed,
)
from barnabas.broker.apis.produce.usual import ReadUsual, UsualProduce, usual_reader
from barnabas.broker.apis.registry import HandlerOutcome, ServeUsual, api
from barnabas.broker.apis.sliced_response import FEW_ELEMENTS
from barnabas.broker.apis.transactions.verification import add_or_verify, client_error, is_fenced, unverified
from barnabas.broker.config.keys.transactions import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from barnabas.broker.event_loop.waiting import committed, in_slices, pause
from barnabas.broker.replicas.gathered_batches import GATHERED_BYTES, gather
from barnabas.coord.security.acls import Operation
from barnabas.storage.append.offset_assignment import AppendInfo
from barnabas.storage.batch_content import IN_PLACE_UNITS, Budget, UnfinishedCheck
from barnabas.wire.batches.records import CODEC_MASK, MAGIC, MAGIC_OFFSET, TRANSACTIONAL_BIT, Codec
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponseNodeEndpoint,
    TopicProduceData,
    TopicProduceResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext
    from barnabas.broker.net.connection import Connection
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.transactions.transaction import TopicPartition

    Refused = Mapping[TopicPartition, KafkaError]

FIRST_VERSION_WITH_ZSTD: Final = 7
FIRST_VERSION_WITH_LEADERS: Final = 10
FIRST_VERSION_WITH_ABORTABLE: Final = 11
FIRST_VERSION_THAT_ADDS: Final = 12
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
ADMIN_CLIENT_ID: Final = "__admin_client"
NO_TRANSACTIONAL_ID: Final = "The records are transactional, but the request has no transactional id."
SEVERAL_PRODUCERS: Final = "The batches of one request have different producers."
NOT_IN_TRANSACTION: Final = "Partition was not added to the transaction"
PARTITIONS_OF_A_STEP: Final = 100  # each takes up to ten microseconds

_BUDGET: Final = Budget()
"""Of the usual request that is being served."""
_NONE_REFUSED: Final[Refused] = {}
_WRITE: Final = int(Operation.WRITE)  # a plain number is found faster
_ATTRIBUTES_AT: Final = 22  # the low byte of a batch's attributes


class _Late(NamedTuple):
    """A batch whose validation is not finished, and the placeholder that the answer of its append replaces."""

    partition: Partition
    topic: TopicProduceData
    data: PartitionProduceData
    check: UnfinishedCheck
    placeholder: PartitionProduceResponse


class _Progress(Budget):
    """The progress of a request: the budget of validation in place, and what it has to wait for, which is rare."""

    late: list[_Late] | None = None
    leaders: set[int] | None = None  # of partitions that are led elsewhere
    unacknowledged: list[Unacknowledged] | None = None


Produce: TypeAlias = "ProduceRequest | UsualProduce"


def usual_server(version: int) -> ServeUsual | None:
    """The function that serves the usual requests of a version."""
    unusual = TRANSACTIONAL_BIT
    if version < FIRST_VERSION_WITH_ZSTD:
        unusual |= int(Codec.ZSTD)  # one bit, which no other codec has
    return partial(_serve_usual, usual_reader(version), unusual)


def _serve_usual(
    read: ReadUsual,
    unusual: int,
    broker: Broker,
    connection: Connection,
    frame: memoryview,
    position: int,
    correlation_id: int,
) -> bytes | UsualProduce | None:
    """Append one batch to a partition that this broker leads alone: that is acknowledged, unless it must be flushed.

    A batch with one of the attributes `unusual` takes the way of all requests.
    """
    request = read(frame, position)
    if request is None:
        return None
    known = request.known
    if broker.authorizer is not None and known.name not in connection.granted_topics.get(_WRITE, ()):
        return request
    records: memoryview = request.records  # type: ignore[assignment]
    try:
        partition = broker.partitions.get_leader(known.name, known.index)
    except KafkaError:
        return request
    if not partition.leads_alone or partition.is_internal or records[_ATTRIBUTES_AT] & unusual:
        return request
    loop = broker.loop
    _BUDGET.units = IN_PLACE_UNITS
    try:
        if loop.is_gathering and partition.flush_policy is None and len(records) <= GATHERED_BYTES:
            outcome = gather(loop, partition, records, _BUDGET, known, connection, correlation_id)
            if type(outcome) is bytes:
                return outcome
        else:
            info = partition.append_produced(records, connection.now, _BUDGET)
            if type(info) is AppendInfo and (
                partition.flush_policy is None or not known.acks or info.last_offset < partition.log.high_watermark
            ):
                return known.response(correlation_id, info.first_offset, info.log_append_time_ms, info.log_start_offset)
            outcome = info  # type: ignore[assignment] # to be flushed, or to be validated
    except Exception as error:
        request.outcome = partition, error
        return request
    request.outcome = partition, outcome  # type: ignore[assignment]
    return request


@api(ProduceRequest, on_error=whole_request_failed, send_before_close=True, usual=usual_server)
def produce(ctx: RequestContext, request: Produce) -> HandlerOutcome:
    """Append the batch of each partition."""
    if type(request) is UsualProduce and request.outcome is not None:
        return _go_on(ctx, request, *request.outcome)
    return _produce(ctx, request)


def _go_on(
    ctx: RequestContext, request: UsualProduce, partition: Partition, outcome: AppendInfo | UnfinishedCheck | Exception
) -> HandlerOutcome:
    """Answer a usual request whose batch is to be flushed, was refused, or takes long to validate."""
    if isinstance(outcome, AppendInfo):
        return _flushed(ctx, request, partition, outcome)
    progress = _Progress()
    topic = request.topic_data[0]
    if isinstance(outcome, UnfinishedCheck):
        placeholder = _unfinished(partition, topic, topic.partition_data[0], outcome, progress)
        return _answered(ctx, request, topic, placeholder, progress)
    request.outcome = None
    if not isinstance(outcome, KafkaError):
        raise outcome
    refused = _refused(ctx, topic, request.known.index, partition, outcome, progress)
    return _answered(ctx, request, topic, refused, progress)


async def _flushed(
    ctx: RequestContext, request: UsualProduce, partition: Partition, info: AppendInfo
) -> bytes | ProduceResponse:
    """The response to a usual request when its batch is flushed."""
    known, request.records = request.known, None
    code = await committed(partition, info.last_offset)
    response = known.response(ctx.correlation_id, info.first_offset, info.log_append_time_ms, info.log_start_offset)
    if not code and partition.leading is None:
        return response  # nearly always
    return not_acknowledged(request, partition, info, code) or response


def _produce(ctx: RequestContext, request: Produce) -> HandlerOutcome:
    """Append the batches of any request."""
    if request.acks not in (-1, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if ctx.broker.authorizer is not None:
        _check_access(ctx, request)
    topics = request.topic_data
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        return _produce_in_steps(ctx, request)
    topic = topics[0]
    if request.transactional_id is not None and _unverified(ctx, request, [(topic, topic.partition_data[0], None)]):
        return _produce_in_steps(ctx, request)
    progress = _Progress()
    partition_response = _append(ctx, request, topic, topic.partition_data[0], _NONE_REFUSED, progress)
    return _answered(ctx, request, topic, partition_response, progress)


def _answered(
    ctx: RequestContext,
    request: Produce,
    topic: TopicProduceData,
    partition_response: PartitionProduceResponse,
    progress: _Progress,
) -> HandlerOutcome:
    """The response to a request for one partition, or the coroutine that does what follows the append."""
    answered = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=[partition_response])
    response = ProduceResponse(responses=[answered])
    if request.acks and not (progress.unacknowledged or progress.late or progress.leaders):
        return response
    return _finish(ctx, request, response, progress)


async def _produce_in_steps(ctx: RequestContext, request: Produce) -> ProduceResponse | None:
    """Append to several partitions, or with a transactional id: step by step, each verified just before."""
    progress = _Progress()
    response = ProduceResponse(responses=[])
    items = _last_of_each(ctx, request, response)
    producers = _unverified(ctx, request, items)
    if len(set(producers.values())) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS)
    has_steps = len(items) > FEW_ELEMENTS
    if producers or has_steps:
        _keep_records(request, None)
    size = PARTITIONS_OF_A_STEP if has_steps else FEW_ELEMENTS
    for start in range(0, len(items), size):
        step = items[start : start + size]
        if start:
            await pause()
        if has_steps:
            producers = _unverified(ctx, request, step)
        refused = await _verified(ctx, request, producers) if producers else _NONE_REFUSED
        if start or producers:
            _check_access_again(ctx, request)
        for topic, data, answers in step:
            answers.append(_append(ctx, request, topic, data, refused, progress))
    return await _finish(ctx, request, response, progress)


def _last_of_each(
    ctx: RequestContext, request: Produce, response: ProduceResponse
) -> list[tuple[TopicProduceData, PartitionProduceData, list[PartitionProduceResponse]]]:
    """Each partition with its topic and where its answer belongs. Of one that is named twice the last data count."""
    items = {}
    answers_by_topic: dict[bytes | str, list[PartitionProduceResponse]] = {}
    for topic in request.topic_data:
        name = _named(ctx, topic)
        answers = answers_by_topic.get(name)
        if answers is None:
            answers = answers_by_topic[name] = answers_of(response, topic)
        for data in topic.partition_data:
            items[name, data.index] = topic, data, answers
    return list(items.values())


async def _finish(
    ctx: RequestContext, request: Produce, response: ProduceResponse, progress: _Progress
) -> ProduceResponse | None:
    """Do what follows the appends: batches that take long, the addresses of new leaders, the acknowledgements."""
    if progress.late:
        await _append_late(ctx, request, response, progress, progress.late)
    if progress.leaders:
        response.node_endpoints = endpoints_of(ctx, progress.leaders, ProduceResponseNodeEndpoint)
    if request.acks == 0:
        close_after_failure(ctx, response)
        return None
    if progress.unacknowledged:
        await acknowledged(ctx, request, progress.unacknowledged)
    return response


# ---- one batch


def _append(
    ctx: RequestContext,
    request: Produce,
    topic: TopicProduceData,
    data: PartitionProduceData,
    refused: Refused,
    progress: _Progress,
    validated: Partition | None = None,
) -> PartitionProduceResponse:
    """Append the batch of one partition; its answer. `validated` is the partition for which it was validated."""
    partition = None
    try:
        partition = _find(ctx, topic, data.index)
        if request.acks == -1:
            partition.check_in_sync_replicas()
        records: memoryview = data.records  # type: ignore[assignment]
        if records is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "The request has no records for this partition.")
        if ctx.api_version < FIRST_VERSION_WITH_ZSTD and _has_zstd(records):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "Records with zstd need Produce version 7.")
        if request.transactional_id is None and _is_transactional(records):
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, NO_TRANSACTIONAL_ID)
        if refused or validated is not None:
            _check_waited(partition, refused, validated)
        info = partition.append_produced(records, ctx.now, progress, is_validated=validated is not None)
    except KafkaError as error:
        return _refused(ctx, topic, data.index, partition, error, progress)
    if isinstance(info, UnfinishedCheck):
        return _unfinished(partition, topic, data, info, progress)
    partition_response = PartitionProduceResponse(
        index=data.index,
        base_offset=info.first_offset,
        log_append_time_ms=info.log_append_time_ms,
        log_start_offset=info.log_start_offset,
        current_leader=NO_LEADER,
    )
    if info.last_offset >= partition.log.high_watermark and not is_acknowledged(partition, request, info.last_offset):
        progress.unacknowledged = progress.unacknowledged or []
        progress.unacknowledged.append((partition, info.last_offset, partition_response))
    return partition_response


def _refused(
    ctx: RequestContext,
    topic: TopicProduceData,
    index: int,
    partition: Partition | None,
    error: KafkaError,
    progress: _Progress,
) -> PartitionProduceResponse:
    """The answer for a batch that was not appended."""
    _count_failure(ctx, partition)
    if error.code not in MOVED or ctx.api_version < FIRST_VERSION_WITH_LEADERS:
        return failed(index, error) if partition is None else rejected(index, error, partition)
    progress.leaders = progress.leaders or set()
    return moved(ctx, topic, index, error, progress.leaders)


def _count_failure(ctx: RequestContext, partition: Partition | None) -> None:
    if ctx.broker.meter is not None:
        ctx.broker.meter.failed_produce(partition)


def _unfinished(
    partition: Partition,
    topic: TopicProduceData,
    data: PartitionProduceData,
    check: UnfinishedCheck,
    progress: _Progress,
) -> PartitionProduceResponse:
    """The placeholder for the answer to a batch whose validation takes long."""
    placeholder = PartitionProduceResponse(index=data.index, current_leader=NO_LEADER)
    progress.late = progress.late or []
    progress.late.append(_Late(partition, topic, data, check, placeholder))
    return placeholder


def _find(ctx: RequestContext, topic: TopicProduceData, index: int) -> Partition:
    """The partition to append to. KafkaError if it is not served here, internal, or may not be written to."""
    if ctx.refused_topics and _named(ctx, topic) in ctx.refused_topics:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    name = topic.topic_id if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.name
    partition = ctx.broker.partitions.get_leader(name, index)
    if partition.is_internal and ctx.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Clients may not write to {partition.topic}.")
    return partition


def _check_waited(partition: Partition, refused: Refused, validated: Partition | None) -> None:
    """KafkaError if the batch may not be appended any more after the request has waited."""
    if (error := refused.get((partition.topic, partition.index))) is not None:
        raise error
    if validated is not None and (partition is not validated or partition.is_closed):
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # it has moved away and back, or was created again


def _is_transactional(records: memoryview) -> bool:
    """Whether the batch is transactional; a request has one batch per partition."""
    if len(records) <= _ATTRIBUTES_AT or not records[_ATTRIBUTES_AT] & TRANSACTIONAL_BIT:
        return False
    return records[MAGIC_OFFSET] == MAGIC  # older messages have another byte there


def _has_zstd(records: memoryview) -> bool:
    return len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & CODEC_MASK == Codec.ZSTD


# ---- batches that take long


async def _append_late(
    ctx: RequestContext, request: Produce, response: ProduceResponse, progress: _Progress, batches: list[_Late]
) -> None:
    """Validate the batches that take long, between the turns; then append all that are valid in one turn.

    The connection's next request waits, so batches stay in order, also with acks=0.
    """
    _keep_records(request, {id(late.data): late.check for late in batches})
    answers: dict[int, PartitionProduceResponse] = {}
    valid = []
    for late in batches:
        await pause()
        try:
            await in_slices(late.check.steps)
            valid.append(late)
        except KafkaError as error:
            _count_failure(ctx, late.partition)
            answers[id(late.placeholder)] = rejected(late.data.index, error, late.partition)
    producers = _unverified(ctx, request, [(late.topic, late.data, None) for late in valid])
    refused = await _verified(ctx, request, producers) if producers else _NONE_REFUSED
    _check_access_again(ctx, request)
    ctx.now = ctx.broker.loop.now()
    for partition, topic, data, _, placeholder in valid:
        answers[id(placeholder)] = _append(ctx, request, topic, data, refused, progress, partition)
    for topic_response in response.responses:
        responses = topic_response.partition_responses
        topic_response.partition_responses = [
            answers.get(id(partition_response), partition_response) for partition_response in responses
        ]


def _keep_records(request: Produce, late: Mapping[int, UnfinishedCheck] | None) -> None:
    """Copy the records out of the frame, whose memory is reused; with `late`, by id of the data, only its records."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            check = None if late is None else late.get(id(data))
            if late is not None and check is None:
                data.records = None
            elif data.records is not None:
                data.records = memoryview(bytearray(data.records))  # type: ignore[arg-type]
                if check is not None:
                    check.move_to(data.records)


# ---- access


def _check_access(ctx: RequestContext, request: Produce) -> None:
    """Find the topics that may not be written to; KafkaError if the transactional id of the records may not be used."""
    topics = request.topic_data
    if request.transactional_id is not None and any(
        records is not None and _is_transactional(records)  # type: ignore[arg-type]
        for records in (data.records for topic in topics for data in topic.partition_data)
    ):
        check_transactional_id(ctx, Operation.WRITE, request.transactional_id)
    if len(topics) == 1:  # the usual case: it should not cost more than without an authorizer
        granted = ctx.connection.granted_topics.get(_WRITE)  # of the client: Produce is never forwarded
        if granted is not None and _named(ctx, topics[0]) in granted:
            return
    ctx.refused_topics = refused_as_named(ctx, Operation.WRITE, [_named(ctx, topic) for topic in topics])


def _check_access_again(ctx: RequestContext, request: Produce) -> None:
    """After a wait: ACLs may have changed. Topics that were refused stay refused, and are logged once."""
    if ctx.broker.authorizer is not None:
        refused = ctx.refused_topics
        named = [name for topic in request.topic_data if (name := _named(ctx, topic)) not in refused]
        ctx.refused_topics = {*refused, *refused_as_named(ctx, Operation.WRITE, named)}


def _named(ctx: RequestContext, topic: TopicProduceData) -> bytes | str:
    return topic.topic_id if ctx.api_version >= FIRST_VERSION_WITH_TOPIC_IDS else topic.name


# ---- transactions


def _unverified(
    ctx: RequestContext,
    request: Produce,
    items: Iterable[tuple[TopicProduceData, PartitionProduceData, list[PartitionProduceResponse] | None]],
) -> Mapping[TopicPartition, tuple[int, int]]:
    """The partitions that must be added to the transaction or verified, with producer id and epoch of their batches."""
    adds = ctx.api_version >= FIRST_VERSION_THAT_ADDS
    if request.transactional_id is None or not (adds or ctx.broker.config[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
        return {}
    batches = []
    for topic, data, _ in items:
        try:
            batches.append((_find(ctx, topic, data.index), data.records))
        except KafkaError:
            continue  # refused when it is appended
    return unverified(batches)  # type: ignore[arg-type]


async def _verified(
    ctx: RequestContext, request: Produce, producers: Mapping[TopicPartition, tuple[int, int]]
) -> Refused:
    """Add these partitions to the transaction, or verify that it has them; the errors of the others."""
    adds, knows = ctx.api_version >= FIRST_VERSION_THAT_ADDS, ctx.api_version >= FIRST_VERSION_WITH_ABORTABLE
    producer, *others = set(producers.values())
    if others:
        return dict.fromkeys(producers, UnverifiedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS))
    codes = await add_or_verify(ctx.broker, request.transactional_id or "", producer, list(producers), adds=adds)
    retriable = ErrorCode.NOT_ENOUGH_REPLICAS  # older clients retry without a metadata request first
    refused = {}
    for place, code in codes.items():
        seen = ErrorCode.PRODUCER_FENCED if is_fenced(ctx.broker, place, producer) else code
        told = client_error(seen, retriable, adds=adds, knows_abortable=knows)
        refused[place] = UnverifiedError(told, NOT_IN_TRANSACTION)
    return refused
