"""Input and output of every assignor (KIP-848, KIP-932).

An assignor is a pure function of the members, with their present assignments, and of the sizes of the topics. Equal
input gives equal output, whatever the order of the mappings. Topics that are not in `topics` have no partitions. As in
Kafka 4.4, racks have no influence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from barnabas.wire.types import Uuid

Partitions = Mapping["Uuid", frozenset[int]]
"""Partitions by topic id, without empty sets."""

Assignment = dict[str, dict["Uuid", frozenset[int]]]
"""The target assignment of every member, by member id."""

NO_PARTITIONS: Partitions = {}


class MemberSpec(NamedTuple):
    """One member, as input of an assignor."""

    subscribed: frozenset[Uuid]
    """The topics it subscribes to, by name or by resolved regular expression."""
    assigned: Partitions = NO_PARTITIONS
    """Its present target assignment."""
    instance_id: str | None = None


class Assignor(Protocol):
    """A server-side assignor."""

    def __call__(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
        """Assign the partitions of `topics` (by topic their number) to the members that subscribe to them."""
        ...  # pragma: no cover


def subscribed_topics(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> dict[Uuid, int]:
    """The topics with subscribers, with their sizes, ordered by id."""
    subscribed: set[Uuid] = set().union(*{member.subscribed for member in members.values()})
    return {topic: topics[topic] for topic in sorted(subscribed) if topics.get(topic, 0) > 0}


def same_subscription(members: Mapping[str, MemberSpec]) -> bool:
    """Whether all members subscribe to the same topics."""
    return len({member.subscribed for member in members.values()}) <= 1
