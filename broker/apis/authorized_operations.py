"""The authorized operations in responses (KIP-430): what the client may do; without an authorizer, all operations.

Bit n stands for AclOperation n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coord.security.acls import CLUSTER_NAME, SUPPORTED_OPERATIONS, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext

NOT_REQUESTED: Final = -(2**31)
"""The value if the client did not request them."""
_ALL: Final = {
    kind: sum(1 << operation for operation in operations) for kind, operations in SUPPORTED_OPERATIONS.items()
}


def cluster_operations(ctx: RequestContext, is_requested: bool) -> int:
    """The operations on the cluster, if they are requested; 0 if the client may not describe it."""
    if not is_requested:
        return NOT_REQUESTED
    if not ctx.is_allowed_on_cluster(Operation.DESCRIBE):
        return 0
    return _operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)


def topic_operations(ctx: RequestContext, name: str, is_requested: bool) -> int:
    """The operations on a topic, if they are requested."""
    return _operations(ctx, ResourceType.TOPIC, name) if is_requested else NOT_REQUESTED


def group_operations(ctx: RequestContext, group_id: str) -> int:
    """The operations on a group."""
    return _operations(ctx, ResourceType.GROUP, group_id)


def _operations(ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
    authorizer = ctx.broker.authorizer
    return _ALL[resource_type] if authorizer is None else authorizer.operations(ctx, resource_type, name)
