"""Appends batches whose records take long to validate: after the validation, which is done in slices between the turns.

The response is delayed, so the connection's next request waits and batches stay in order, also with acks=0. The append
itself is done in one turn, with all checks that do not look at records (sequences, in-sync replicas, the partition is
still served). If the client disconnects before, nothing is appended.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.broker.apis.produce_response import (
    Appends,
    Errors,
    LateAppend,
    Verify,
    failed,
    is_stored,
    rejected,
    respond,
)
from barnabas.broker.apis.sliced_response import respond_in_steps
from barnabas.broker.net.delayed_response import DelayedResponse
from barnabas.storage.batch_content import RecordValidationError
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.messages.produce import PartitionProduceResponse, ProduceRequest, ProduceResponse


def append_late(
    ctx: RequestContext, request: ProduceRequest, response: ProduceResponse, appends: Appends, verify: Verify | None
) -> ProduceResponse | DelayedResponse | None:
    """Validate the batches of `appends.late` in slices, then append them and answer.

    `verify` is called in between: what it checks may have changed during the slices.
    """
    _keep_only(request, appends.late)
    return respond_in_steps(ctx, _steps(ctx, request, response, appends, verify))


def _keep_only(request: ProduceRequest, late: list[LateAppend]) -> None:
    """Copy the records that are needed later, and release the others: the memory of the frame is reused."""
    kept = {id(append.data): append.check for append in late}
    for topic in request.topic_data:
        for data in topic.partition_data:
            check = kept.get(id(data))
            if check is None:
                data.records = None
            else:
                copy = memoryview(bytearray(data.records))  # type: ignore[arg-type]
                check.move_to(copy)
                data.records = copy


def _steps(
    ctx: RequestContext, request: ProduceRequest, response: ProduceResponse, appends: Appends, verify: Verify | None
) -> Generator[None, None, ProduceResponse | DelayedResponse | None]:
    valid = []
    for late in appends.late:
        yield
        try:
            yield from late.check.steps
            valid.append(late)
        except RecordValidationError as error:
            _copy(rejected(late.data.index, error, late.partition), late.answer)
        except KafkaError as error:
            _copy(failed(late.data.index, error), late.answer)
    if verify is None:
        _append_validated(ctx, request, valid, appends, {})
        return respond(ctx, request, response, appends)
    return _verified(ctx, request, response, appends, valid, verify)


def _verified(
    ctx: RequestContext,
    request: ProduceRequest,
    response: ProduceResponse,
    appends: Appends,
    valid: list[LateAppend],
    verify: Verify,
) -> DelayedResponse:
    delayed = DelayedResponse(send_before_close=True)

    def append(errors: Errors) -> None:
        _append_validated(ctx, request, valid, appends, errors)
        delayed.follow(respond(ctx, request, response, appends))

    verify(valid, append, delayed)
    return delayed


def _append_validated(
    ctx: RequestContext, request: ProduceRequest, valid: list[LateAppend], appends: Appends, errors: Errors
) -> None:
    for partition, data, _, answer in valid:
        try:
            error = errors.get((partition.topic, partition.index))
            if error is not None:
                raise error
            if partition.is_closed or not partition.is_leader:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if request.acks == -1:
                partition.check_in_sync_replicas()
            now = ctx.broker.loop.now()
            info = partition.append(data.records, now, is_validated=True)  # type: ignore[arg-type]
        except KafkaError as refusal:
            _copy(failed(data.index, refusal), answer)
            continue
        answer.base_offset = info.first_offset
        answer.log_append_time_ms = info.log_append_time_ms
        answer.log_start_offset = info.log_start_offset
        if info.last_offset >= partition.log.high_watermark and not is_stored(partition, request, info.last_offset):
            appends.uncommitted.append((partition, info.last_offset, answer))


def _copy(source: PartitionProduceResponse, target: PartitionProduceResponse) -> None:
    target.error_code = source.error_code
    target.error_message = source.error_message
    target.base_offset = source.base_offset
    target.log_start_offset = source.log_start_offset
    target.record_errors = source.record_errors
