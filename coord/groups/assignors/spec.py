"""What every assignor is given and gives back (KIP-848, KIP-932).

An assignor is a pure function of the members, with what each has now, and of the sizes of the topics; equal input gives
equal output, whatever the order of the mappings. Topics that are not in `topics` count as having no partitions. Kafka
4.4's assignors look at no racks, so none are given here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from barnabas.wire.types import Uuid

Partitions = Mapping["Uuid", frozenset[int]]
"""Partitions by topic id; a topic without any is left out."""

Assignment = dict[str, dict["Uuid", frozenset[int]]]
"""What each member shall have, by member id. Every member is in it."""

NO_PARTITIONS: Partitions = {}


class MemberSpec(NamedTuple):
    """One member, as an assignor sees it."""

    subscribed: frozenset[Uuid]
    """Topics it wants to read, its regular expressions resolved."""
    assigned: Partitions = NO_PARTITIONS
    """The target assignment that it has up to now."""
    instance_id: str | None = None


class Assignor(Protocol):
    """A server-side assignor."""

    def __call__(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
        """Share out the partitions of `topics` (how many each has) over the members that subscribe to them."""
        ...  # pragma: no cover


def subscribed_topics(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> dict[Uuid, int]:
    """The topics that anybody subscribes to, with their sizes, in the order of their ids."""
    wanted: set[Uuid] = set().union(*{member.subscribed for member in members.values()})
    return {topic: topics[topic] for topic in sorted(wanted) if topics.get(topic, 0) > 0}


def same_subscription(members: Mapping[str, MemberSpec]) -> bool:
    """Whether all members subscribe to the same topics."""
    return len({member.subscribed for member in members.values()}) <= 1
