"""The details that are recorded of a request beside its names, by API: a few numbers that say what the client did.

The details have the names of Kafka's fields in snake case, where there is one. Batches are counted by their headers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.api_keys import ApiKey
from barnabas.wire.batches.batch_header import BatchHeader, walk_batches
from barnabas.wire.types import chunk_bytes

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.wire.schema import Message

Details = dict[str, Any]

MAX_NAMED: Final = 20
"""Offsets that are kept of one commit."""


def of_request(request: Message, ctx: RequestContext) -> Details:
    """The details of a request."""
    function = _REQUESTS.get(ctx.api_key)
    return {} if function is None else function(request, ctx)


def of_response(response: Message) -> Details:
    """The details of a response."""
    function = _RESPONSES.get(ApiKey(response.api_key))
    return {} if function is None else function(response)


def _produce(request: Any, ctx: RequestContext) -> Details:  # noqa: ARG001
    batches = records = size = 0
    is_idempotent = False
    for topic in request.topic_data:
        for partition in topic.partition_data:
            data = memoryview(partition.records or b"")
            size += len(data)
            headers = list(walk_batches(BatchHeader, data, len(data)))
            batches += len(headers)
            records += sum(header.record_count for header in headers)
            is_idempotent |= bool(headers) and headers[0].producer_id >= 0
    return {"acks": request.acks, "batches": batches, "records": records, "bytes": size, "idempotent": is_idempotent}


def _fetch(request: Any, ctx: RequestContext) -> Details:  # noqa: ARG001
    return {"max_wait_ms": request.max_wait_ms, "min_bytes": request.min_bytes}


def _fetched(response: Any) -> Details:
    size = partitions = 0
    for topic in response.responses:
        for partition in topic.partitions:
            count = sum(map(len, _pieces(partition.records)))
            size += count
            partitions += count > 0
    return {"bytes": size, "partitions_with_records": partitions}


def _commit(request: Any, ctx: RequestContext) -> Details:
    offsets = {}
    for topic in request.topics:
        image = ctx.broker.image.topic_by_id(getattr(topic, "topic_id", b""))
        name = topic.name or (image.name if image is not None else "")
        for partition in topic.partitions[:MAX_NAMED]:
            offsets[f"{name}-{partition.partition_index}"] = partition.committed_offset
    return {"offsets": dict(list(offsets.items())[:MAX_NAMED])} | _fields("member_id")(request, ctx)


def _fields(*names: str) -> Callable[[Any, RequestContext], Details]:
    """Details that are fields."""

    def read(message: Any, ctx: RequestContext) -> Details:  # noqa: ARG001
        return {name: getattr(message, name) for name in names}

    return read


def _joined(response: Any) -> Details:
    return {
        "generation_id": response.generation_id,
        "member_id": response.member_id,
        "is_leader": bool(response.member_id) and response.leader == response.member_id,
        "members": len(response.members),
    }


def _heartbeat_answered(response: Any) -> Details:
    details = {"member_epoch": response.member_epoch, "member_id": response.member_id}
    if response.assignment is not None:
        details["assigned"] = sum(len(topic.partitions) for topic in response.assignment.topic_partitions)
    return details


def _left(request: Any, ctx: RequestContext) -> Details:  # noqa: ARG001
    return {"members": [member.member_id for member in request.members] or [request.member_id]}


def bytes_of(records: Any) -> bytearray:
    """The bytes of a message's records, in one piece."""
    return bytearray(b"".join(map(chunk_bytes, _pieces(records))))


def _pieces(records: Any) -> Sequence[Any]:
    return records if isinstance(records, (list, tuple)) else () if records is None else (records,)


_REQUESTS: Final[dict[ApiKey, Callable[[Any, RequestContext], Details]]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.TXN_OFFSET_COMMIT: _commit,
    ApiKey.JOIN_GROUP: _fields("member_id", "rebalance_timeout_ms", "session_timeout_ms"),
    ApiKey.SYNC_GROUP: _fields("member_id", "generation_id"),
    ApiKey.HEARTBEAT: _fields("member_id", "generation_id"),
    ApiKey.LEAVE_GROUP: _left,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _fields("member_id", "member_epoch"),
    ApiKey.SHARE_GROUP_HEARTBEAT: _fields("member_id", "member_epoch"),
    ApiKey.STREAMS_GROUP_HEARTBEAT: _fields("member_id", "member_epoch"),
    ApiKey.INIT_PRODUCER_ID: _fields("transaction_timeout_ms"),
    ApiKey.END_TXN: _fields("producer_id", "producer_epoch", "committed"),
    ApiKey.API_VERSIONS: _fields("client_software_name", "client_software_version"),
}
_RESPONSES: Final[dict[ApiKey, Callable[[Any], Details]]] = {
    ApiKey.FETCH: _fetched,
    ApiKey.JOIN_GROUP: _joined,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _heartbeat_answered,
    ApiKey.INIT_PRODUCER_ID: lambda response: {
        "producer_id": response.producer_id,
        "producer_epoch": response.producer_epoch,
    },
}
