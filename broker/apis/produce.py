"""Produce (0).

v5 log start offset; v8 record errors and messages (KIP-467); v13 topic ids (KIP-516). An error is reported for its
partition only. With acks=0 there is no response, so an error closes the connection (R13). The records are appended in
`produce_append`; what a transactional produce checks first is in `transactional_produce`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.apis.produce_access import check_access
from barnabas.broker.apis.produce_append import append_all
from barnabas.broker.apis.produce_response import failed
from barnabas.broker.apis.registry import api
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse, TopicProduceResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.net.delayed_response import DelayedResponse
    from barnabas.coord.transactions.transaction import TopicPartition

_NO_ERRORS: Mapping[TopicPartition, KafkaError] = {}


def _whole_request_failed(request: ProduceRequest, error: KafkaError) -> ProduceResponse | None:
    if request.acks == 0:
        return None
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[failed(data.index, error) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


@api(ProduceRequest, on_error=_whole_request_failed)
def produce(ctx: RequestContext, request: ProduceRequest) -> ProduceResponse | DelayedResponse | None:
    """Append the batch of each partition."""
    if request.acks not in (-1, 0, 1):
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if ctx.broker.authorizer is not None:
        check_access(ctx, request)
    if request.transactional_id is not None:
        from barnabas.broker.apis.transactional_produce import produce_in_transaction

        return produce_in_transaction(ctx, request)
    return append_all(ctx, request, _NO_ERRORS)
