"""FindCoordinator (10). v4 several keys (KIP-699), v6 share groups (KIP-932).

The first request creates the internal topic and waits for it; the leaders of its partitions and their addresses are
looked up after that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.apis.access import check_group, check_transactional_id
from barnabas.broker.apis.parts import Parts, distinct_names
from barnabas.broker.apis.registry import api, check_cluster
from barnabas.broker.event_loop.waiting import Future
from barnabas.coord.security.acls import Operation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups.classic_groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.coordinators.runtime import CoordinatorRuntime
    from barnabas.broker.event_loop.waiting import Waiting
    from barnabas.coord.share_state.key import SharePartitionKey

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
"""Kafka's text of INVALID_REQUEST, here for a type of coordinator that does not exist."""
_WITHOUT_FORM = (GROUP_KEY, TRANSACTION_KEY)
FIRST_VERSION_WITH_KEYS = 4
FIRST_VERSION_WITH_SHARE_KEYS = 6


def _whole_request_failed(request: FindCoordinatorRequest, error: KafkaError) -> FindCoordinatorResponse:
    if request.coordinator_keys:  # from version 4 on each key has its error
        return FindCoordinatorResponse(coordinators=[_failed(key, error) for key in request.coordinator_keys])
    return FindCoordinatorResponse(error_code=int(error.code), error_message=error.message, node_id=-1, port=-1)


@api(
    FindCoordinatorRequest,
    on_error=_whole_request_failed,
    parts=Parts("coordinator_keys", "coordinators", distinct=distinct_names),
    send_before_close=True,
)
def find_coordinator(
    ctx: RequestContext, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Waiting[FindCoordinatorResponse]:
    """Return the broker that leads the key's partition; the first request creates the internal topic."""
    key_type = request.key_type
    keys = request.coordinator_keys if ctx.api_version >= FIRST_VERSION_WITH_KEYS else [request.key]
    runtime = ctx.broker.group_coordinators if key_type == GROUP_KEY else _runtime(ctx, key_type)
    if runtime is None or runtime.has_topic:
        if ctx.broker.authorizer is None and len(keys) == 1 and key_type in _WITHOUT_FORM:  # any key is right
            coordinator = _find(ctx, runtime, key_type, keys[0], None)
            if keys is request.coordinator_keys:
                return FindCoordinatorResponse(coordinators=[coordinator])
            return _response(ctx, [coordinator])
        return _response(ctx, [_find(ctx, runtime, key_type, key, _key_error(ctx, key_type, key)) for key in keys])
    refused = {key: error for key in keys if (error := _key_error(ctx, key_type, key)) is not None}
    if len(refused) == len(set(keys)):
        return _response(ctx, [_failed(key, refused[key]) for key in keys])
    return _find_later(ctx, runtime, key_type, keys, refused)


async def _find_later(
    ctx: RequestContext,
    runtime: CoordinatorRuntime[Any],
    key_type: int,
    keys: list[str],
    refused: dict[str, KafkaError],
) -> FindCoordinatorResponse:
    """Create the internal topic, then find the coordinators."""
    topic: Future[None] = Future()
    runtime.ensure_topic(topic.complete)
    missing = None
    try:
        await topic
    except KafkaError as error:
        missing = error
    return _response(ctx, [_find(ctx, runtime, key_type, key, refused.get(key) or missing) for key in keys])


def _response(ctx: RequestContext, coordinators: list[Coordinator]) -> FindCoordinatorResponse:
    if ctx.api_version >= FIRST_VERSION_WITH_KEYS:
        for coordinator in coordinators:
            coordinator.error_message = ""  # as in Kafka: only an error of the whole request has a text
        return FindCoordinatorResponse(coordinators=coordinators)
    (coordinator,) = coordinators
    if not coordinator.error_code:
        coordinator.error_message = "NONE"  # as Kafka up to v3
    elif coordinator.error_code == ErrorCode.INVALID_REQUEST:
        coordinator.error_message = MALFORMED
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


def _runtime(ctx: RequestContext, key_type: int) -> CoordinatorRuntime[Any] | None:
    """The coordinators of this type."""
    broker = ctx.broker
    if key_type == TRANSACTION_KEY:
        return broker.transaction_coordinators
    return broker.share_coordinators if key_type == SHARE_KEY else None


def _key_error(ctx: RequestContext, key_type: int, key: str) -> KafkaError | None:
    """Why no coordinator can have this key. A share coordinator's are `group:topicId:partition` (KIP-932)."""
    try:
        if key_type == GROUP_KEY:
            check_group(ctx, Operation.DESCRIBE, key)
            return None
        if key_type == TRANSACTION_KEY:
            check_transactional_id(ctx, Operation.DESCRIBE, key)
            return None
    except KafkaError as refused:
        return refused
    if key_type != SHARE_KEY:
        raise KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED)
    if ctx.api_version < FIRST_VERSION_WITH_SHARE_KEYS:
        return KafkaError(ErrorCode.INVALID_REQUEST, MALFORMED)
    try:
        check_cluster(ctx, Operation.CLUSTER_ACTION)
        _share_partition(key)
    except KafkaError as refused:
        return refused
    except ValueError as error:
        return KafkaError(ErrorCode.INVALID_REQUEST, str(error))
    return None


def _share_partition(key: str) -> SharePartitionKey:
    from barnabas.coord.share_state.key import parse_key

    return parse_key(key)


def _find(
    ctx: RequestContext, runtime: CoordinatorRuntime[Any] | None, key_type: int, key: str, error: KafkaError | None
) -> Coordinator:
    """Find the coordinator of one key; `error` is the error of the key or of the internal topic.

    COORDINATOR_NOT_AVAILABLE if its broker is not alive, or not on this listener.
    """
    if error is not None:
        return _failed(key, error)
    assert runtime is not None  # a key of another type has an error
    try:
        broker_id = runtime.find(str(_share_partition(key)) if key_type == SHARE_KEY else key)
    except KafkaError as refused:
        return _failed(key, refused)
    for node_id, host, port, _ in ctx.broker.endpoints(ctx):
        if node_id == broker_id:
            return Coordinator(key=key, node_id=node_id, host=host, port=port)
    return _failed(key, KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))


def _failed(key: str, error: KafkaError) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message)
