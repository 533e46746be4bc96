"""Computes the target assignment of a consumer group (rule G3; KIP-848).

An assignor computes it from the members, their subscriptions and the present target assignment. Source: Kafka 4.4
`TargetAssignmentBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors.spec import MemberSpec

if TYPE_CHECKING:
    from barnabas.coord.groups.assignors.spec import Assignor
    from barnabas.coord.groups.consumer.member import ConsumerMember
    from barnabas.coord.groups.consumer.records import ResolvedRegex
    from barnabas.coord.groups.modern.partitions import Partitions
    from barnabas.coord.groups.topics import Topic, Topics
    from barnabas.wire.types import Uuid


class Subscriptions:
    """The topics that members subscribe to by name or regular expression; each topic is looked up once."""

    def __init__(self, topics: Topics, regexes: Mapping[str, ResolvedRegex]) -> None:
        self._topics = topics
        self._regexes = regexes
        self._by_name: dict[str, Topic | None] = {}
        self._ids: dict[tuple[frozenset[str], str | None], frozenset[Uuid]] = {}

    def names(self, member: ConsumerMember) -> frozenset[str]:
        """The names of the topics that a member subscribes to; they need not exist."""
        resolved = self._regexes.get(member.subscribed_regex or "")
        return member.subscribed_topics if resolved is None else member.subscribed_topics | resolved.topics

    def ids(self, member: ConsumerMember) -> frozenset[Uuid]:
        """The ids of the topics that exist. Members with the same subscription share one set."""
        subscription = (member.subscribed_topics, member.subscribed_regex)
        ids = self._ids.get(subscription)
        if ids is None:
            topics = map(self._topic, self.names(member))
            ids = self._ids[subscription] = frozenset(topic.topic_id for topic in topics if topic is not None)
        return ids

    def sizes(self) -> dict[Uuid, int]:
        """The number of partitions of the topics that were looked up."""
        return {topic.topic_id: topic.partitions for topic in self._by_name.values() if topic is not None}

    def _topic(self, name: str) -> Topic | None:
        if name not in self._by_name:
            self._by_name[name] = self._topics.by_name(name)
        return self._by_name[name]


def assign(
    members: Iterable[ConsumerMember],
    target: Mapping[str, Partitions],
    subscriptions: Subscriptions,
    assignor: Assignor,
) -> dict[str, Partitions]:
    """The new target assignment of each member; `target` is the present one."""
    specs = {
        member.member_id: MemberSpec(
            subscribed=subscriptions.ids(member),
            assigned=target.get(member.member_id, {}),
            instance_id=member.instance_id,
        )
        for member in members
    }
    return assignor(specs, subscriptions.sizes())
