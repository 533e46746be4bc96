"""Produce with a transactional id: adds or verifies the partitions of the transaction, then appends (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.produce_append import append_all, find, keep_records
from barnabas.broker.apis.produce_response import Errors, LateAppend
from barnabas.broker.apis.transaction_verification import (
    NO_COORDINATOR,
    add_or_verify,
    client_error,
    has_open_transaction,
)
from barnabas.broker.apis.transaction_verification import Errors as CoordinatorErrors
from barnabas.broker.config.keys.transactions import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.broker.waiting import start
from barnabas.wire.batches.batch_header import BatchHeader
from barnabas.wire.batches.records import HEADER_SIZE, TRANSACTIONAL_BIT
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.transactions.transaction import TopicPartition
    from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

Outcome: TypeAlias = "ProduceResponse | DelayedResponse | None"

FIRST_PRODUCE_THAT_ADDS = 12
FIRST_PRODUCE_WITH_ABORTABLE = 11
SEVERAL_PRODUCERS = "The batches of one request have different producers."


def produce_in_transaction(ctx: RequestContext, request: ProduceRequest) -> Outcome:
    """Append the batches whose partitions belong to the transaction; the others get an error."""
    adds = ctx.api_version >= FIRST_PRODUCE_THAT_ADDS
    unverified = _unverified(ctx, request)
    if not (adds or ctx.broker.config[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
        return append_all(ctx, request, {})
    verify = partial(_verify_late, ctx, request)
    if not unverified:
        return append_all(ctx, request, {}, verify)
    producers = set(unverified.values())
    if len(producers) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS)
    delayed = DelayedResponse(send_before_close=True)
    outcomes: list[Outcome] = []

    def verified(rejected: CoordinatorErrors | Exception) -> None:
        if isinstance(rejected, Exception):
            raise rejected
        outcome = append_all(ctx, request, _produce_errors(rejected, ctx.api_version), verify)
        outcomes.append(outcome)
        delayed.follow(outcome)

    verification = add_or_verify(
        ctx.broker, request.transactional_id or "", producers.pop(), list(unverified), adds=adds
    )
    start(verification, ctx.broker.loop.slices, delayed.guard(verified))
    if outcomes:
        return outcomes[0] if not isinstance(outcomes[0], DelayedResponse) else delayed
    keep_records(request)
    return delayed


def _verify_late(
    ctx: RequestContext,
    request: ProduceRequest,
    late: Sequence[LateAppend],
    then: Callable[[Errors], None],
    delayed: DelayedResponse,
) -> None:
    """Verify the partitions again whose batches were validated in slices: the transaction may have ended meanwhile."""
    unverified = {}
    for partition, data, _, _ in late:
        header = BatchHeader(data.records, 0, 0)  # type: ignore[arg-type]
        if header.attributes & TRANSACTIONAL_BIT and not has_open_transaction(
            partition, header.producer_id, header.producer_epoch
        ):
            unverified[partition.topic, partition.index] = (header.producer_id, header.producer_epoch)
    if not unverified:
        then({})
        return
    if len(set(unverified.values())) > 1:
        then(dict.fromkeys(unverified, KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS)))
        return

    def verified(rejected: CoordinatorErrors | Exception) -> None:
        if isinstance(rejected, Exception):
            raise rejected
        then(_produce_errors(rejected, ctx.api_version))

    verification = add_or_verify(
        ctx.broker,
        request.transactional_id or "",
        next(iter(unverified.values())),
        list(unverified),
        adds=ctx.api_version >= FIRST_PRODUCE_THAT_ADDS,
    )
    start(verification, ctx.broker.loop.slices, delayed.guard(verified))


def _unverified(ctx: RequestContext, request: ProduceRequest) -> dict[TopicPartition, tuple[int, int]]:
    """The partitions without data of the transaction, each with the producer id and epoch of its batch."""
    unverified = {}
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is None or len(data.records) < HEADER_SIZE:
                continue  # rejected when it is appended
            header = BatchHeader(data.records, 0, 0)  # type: ignore[arg-type]
            if not header.attributes & TRANSACTIONAL_BIT:
                continue
            try:
                partition = find(ctx, topic, data.index)
            except KafkaError:
                continue  # likewise
            if not has_open_transaction(partition, header.producer_id, header.producer_epoch):
                unverified[partition.topic, partition.index] = (header.producer_id, header.producer_epoch)
    return unverified


def _produce_errors(rejected: CoordinatorErrors, api_version: int) -> Errors:
    return {partition: _produce_error(code, api_version) for partition, code in rejected.items()}


def _produce_error(code: ErrorCode, api_version: int) -> KafkaError:
    """The error of a partition that is not in the transaction (Kafka's ReplicaManager, AddPartitionsToTxnManager)."""
    answer = client_error(code, knows_abortable=api_version >= FIRST_PRODUCE_WITH_ABORTABLE)
    must_wait = code == ErrorCode.CONCURRENT_TRANSACTIONS and api_version < FIRST_PRODUCE_THAT_ADDS
    if code in NO_COORDINATOR or must_wait:
        answer = ErrorCode.NOT_ENOUGH_REPLICAS  # older clients retry without a metadata request first
    return KafkaError(answer, "The partition could not be found in the transaction.")
