"""FindCoordinator (10). v4 several keys (KIP-699), v6 share groups (KIP-932)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.apis.registry import api
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2
FIRST_VERSION_WITH_KEYS = 4
FIRST_VERSION_WITH_SHARE_KEYS = 6


@api(FindCoordinatorRequest)
def find_coordinator(ctx: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """Return this broker, which has all coordinators; the first request creates their internal topic."""
    if ctx.api_version >= FIRST_VERSION_WITH_KEYS:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=[_find(ctx, request.key_type, key) for key in keys])
    found = _find(ctx, request.key_type, request.key)
    if not found.error_code:
        found.error_message = "NONE"  # as Kafka up to v3
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


def _find(ctx: RequestContext, key_type: int, key: str) -> Coordinator:
    try:
        if key_type == TRANSACTION_KEY:
            ctx.broker.transaction_coordinators.check_available(key)
        elif key_type == GROUP_KEY:
            ctx.broker.group_coordinators.check_available(key)
        elif key_type == SHARE_KEY:
            _find_share(ctx, key)
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown coordinator type {key_type}.")
    except KafkaError as error:
        return Coordinator(
            key=key, node_id=-1, host="", port=-1, error_code=int(error.code), error_message=error.message
        )
    node_id, host, port, _ = ctx.broker.endpoints(ctx)[0]
    return Coordinator(key=key, node_id=node_id, host=host, port=port)


def _find_share(ctx: RequestContext, key: str) -> None:
    """Check a key of the share coordinator: `group:topicId:partition` (KIP-932)."""
    from barnabas.coord.share_state.key import parse_key

    if ctx.api_version < FIRST_VERSION_WITH_SHARE_KEYS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Share coordinators require FindCoordinator version 6.")
    try:
        share_partition = parse_key(key)
    except ValueError as error:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
    ctx.broker.share_coordinators.check_available(str(share_partition))
