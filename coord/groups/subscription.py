"""Which topics the members of a consumer group read, as far as their metadata tells.

The metadata of protocol type `consumer` starts with a version and the topics of `ConsumerProtocolSubscription` v0,
which every later version keeps as its beginning. Anything else is the members' own affair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from barnabas.coord.groups.classic import ClassicGroup

CONSUMER = "consumer"


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """The topics all members together subscribe to; None when the group's protocol does not tell."""
    if group.protocol_type != CONSUMER:
        return None
    if not group.members:
        return frozenset()
    if group.protocol is None:
        return None
    topics: set[str] = set()
    try:
        for member in group.members.values():
            topics.update(_topics(member.metadata(group.protocol)))
    except ProtocolError:
        return None
    return frozenset(topics)


def _topics(metadata: bytes) -> list[str]:
    subscription, _ = ConsumerProtocolSubscription.codec(0).parse(metadata, 2)
    return subscription.topics
