"""Produce with a transactional id: adds or verifies the partitions of the transaction, then appends (KIP-890)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from barnabas.broker.apis.produce_append import append_all, find
from barnabas.broker.apis.transaction_verification import (
    NO_COORDINATOR,
    Errors,
    add_or_verify,
    client_error,
    has_open_transaction,
)
from barnabas.broker.config.keys.transactions import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from barnabas.broker.guarded import log_failure
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.storage.batch_header import BatchHeader
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records import HEADER_SIZE, TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.coord.transactions.transaction import TopicPartition
    from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
    from barnabas.wire.schema import Message

Outcome: TypeAlias = "ProduceResponse | DelayedResponse | None"

FIRST_PRODUCE_THAT_ADDS = 12
FIRST_PRODUCE_WITH_ABORTABLE = 11


def produce_in_transaction(ctx: RequestContext, request: ProduceRequest) -> Outcome:
    """Append the batches whose partitions belong to the transaction; the others get an error."""
    adds = ctx.api_version >= FIRST_PRODUCE_THAT_ADDS
    unverified = _unverified(ctx, request)
    if not unverified or not (adds or ctx.broker.config[TRANSACTION_PARTITION_VERIFICATION_ENABLE]):
        return append_all(ctx, request, {})
    producers = set(unverified.values())
    if len(producers) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "The batches of one request have different producers.")
    delayed = DelayedResponse(send_before_close=True)
    outcomes: list[Outcome] = []

    def verified(rejected: Errors) -> None:
        errors = {partition: _produce_error(code, ctx.api_version) for partition, code in rejected.items()}
        outcome = append_all(ctx, request, errors)
        outcomes.append(outcome)
        if isinstance(outcome, DelayedResponse):
            outcome.attach(delayed.complete)
        elif outcome is not None:
            delayed.resolve(outcome)

    add_or_verify(
        ctx.broker, request.transactional_id or "", producers.pop(), list(unverified), verified, delayed, adds=adds
    )
    if outcomes:
        return outcomes[0] if not isinstance(outcomes[0], DelayedResponse) else delayed
    _keep_records(request)
    if request.acks == 0:
        delayed.attach(partial(_close_if_failed, ctx))
        return None
    return delayed


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


def _produce_error(code: ErrorCode, api_version: int) -> KafkaError:
    """The error of a partition that is not in the transaction (Kafka's ReplicaManager, AddPartitionsToTxnManager)."""
    answer = client_error(code, knows_abortable=api_version >= FIRST_PRODUCE_WITH_ABORTABLE)
    must_wait = code == ErrorCode.CONCURRENT_TRANSACTIONS and api_version < FIRST_PRODUCE_THAT_ADDS
    if code in NO_COORDINATOR or must_wait:
        answer = ErrorCode.NOT_ENOUGH_REPLICAS  # older clients retry without a metadata request first
    return KafkaError(answer, "The partition could not be found in the transaction.")


def _close_if_failed(ctx: RequestContext, outcome: Message | Exception) -> None:
    """Close the connection after an exception: with acks=0 the client gets no other sign of it (R13)."""
    if isinstance(outcome, Exception):
        log_failure(f"A transactional produce request with acks=0 from {ctx.client_host}", outcome)
        ctx.connection.is_closing = True
        ctx.connection.on_output(ctx.connection)


def _keep_records(request: ProduceRequest) -> None:
    """Copy the records: the buffer that the request was read from is reused."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            if data.records is not None:
                data.records = memoryview(bytearray(data.records))  # type: ignore[arg-type]
