"""The leaders that a ShareFetch or ShareAcknowledge response names for partitions that this broker does not lead.

With NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH the client learns leader, epoch and address, and need not ask for
metadata first (KIP-932, as KIP-951 for Fetch).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.context import RequestContext
    from barnabas.broker.sharing.share_sessions import SharedPartition

MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


def name_leaders(
    ctx: RequestContext,
    moved: Iterable[tuple[SharedPartition, Any]],
    node_endpoint: Callable[..., Any],
) -> list[Any]:
    """Set the current leader of the answers in `moved`; returns the addresses of these leaders."""
    leaders = set()
    for (topic_id, index), answer in moved:
        topic = ctx.broker.image.topic_by_id(topic_id)
        partition = None if topic is None else topic.partitions.get(index)
        if partition is not None and partition.leader >= 0:
            answer.current_leader.leader_id = partition.leader
            answer.current_leader.leader_epoch = partition.leader_epoch
            leaders.add(partition.leader)
    if not leaders:
        return []
    return [
        node_endpoint(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in ctx.broker.endpoints(ctx)
        if node_id in leaders
    ]
