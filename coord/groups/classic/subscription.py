"""Reads the topics that members of a classic group subscribe to, from their metadata.

The metadata of protocol type `consumer` starts with a version and the topics of `ConsumerProtocolSubscription` v0;
every later version keeps this beginning. Metadata of other protocol types is opaque.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.wire.errors import ProtocolError
from barnabas.wire.messages.groups.consumer_protocol import ConsumerProtocolSubscription

CONSUMER = "consumer"
"""The protocol type of consumers."""


def topics_in(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """All topics of these `ConsumerProtocolSubscription`s together; None when one of them cannot be read."""
    topics: set[str] = set()
    try:
        for subscription in set(metadata):  # most members of a group send the same
            topics.update(_topics(subscription))
    except ProtocolError:
        return None
    return frozenset(topics)


def _topics(metadata: bytes) -> list[str]:
    subscription, _ = ConsumerProtocolSubscription.codec(0).parse(metadata, 2)
    return subscription.topics
