"""The current leaders, with addresses, in Produce and Fetch responses of a broker that is not the leader (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.context import Broker, RequestContext

T = TypeVar("T")

MOVED: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""The errors for which a response names the leader."""


def leader_of(broker: Broker, topic: str, topic_id: bytes, index: int) -> tuple[int, int]:
    """(leader, leader epoch) of a partition, as far as it is known here, else (-1, -1)."""
    try:
        partition = broker.partitions.get(topic or topic_id, index)
    except KafkaError:
        topic_image = broker.image.topic(topic) if topic else broker.image.topic_by_id(topic_id)
        image = None if topic_image is None else topic_image.partitions.get(index)
        return (-1, -1) if image is None else (image.leader, image.leader_epoch)
    return partition.leader_id, partition.leader_epoch


def endpoints_of(ctx: RequestContext, leaders: Collection[int], make: Callable[..., T]) -> list[T]:
    """The addresses of these brokers, for clients of this listener."""
    return [
        make(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in ctx.broker.endpoints(ctx)
        if node_id in leaders
    ]
