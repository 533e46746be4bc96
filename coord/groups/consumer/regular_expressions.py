"""Subscriptions by regular expression: which topics each stands for, as of the cluster's topics now (KIP-848).

Resolved when a member brings a new expression and when topics have come or gone; the result is a record, so that all
members of a group see the same topics until the next time. Source: Kafka 4.4
`GroupMetadataManager.maybeUpdateRegularExpressions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.records import ResolvedRegex
from barnabas.coord.groups.regex import compiled, resolve, resolve_changes

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.consumer.member import ConsumerMember
    from barnabas.coord.groups.topics import Topics
    from barnabas.coord.machine import CoordinatorRecord, Moment


class Update(NamedTuple):
    """What the group's regular expressions stand for after a heartbeat."""

    regexes: Mapping[str, ResolvedRegex]
    has_changed: bool = False
    """Whether anybody reads other topics now."""
    records: tuple[CoordinatorRecord, ...] = ()


class RegularExpressions:
    """Resolves the regular expressions of the groups of one coordinator."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def update(self, group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember, at: Moment) -> Update:
        """Follow a member's change of its expression, and changed topics. INVALID_REGULAR_EXPRESSION if it is none."""
        is_new = member.subscribed_regex != before.subscribed_regex
        if not is_new and not (group.is_metadata_stale and group.regex_counts):
            return Update(group.regexes)
        if is_new and member.subscribed_regex and member.subscribed_regex not in group.regex_counts:
            compiled(member.subscribed_regex)
        wanted = _wanted(group, before, member)
        made = [records.regex_tombstone(group.group_id, regex) for regex in group.regexes if regex not in wanted]
        regexes: dict[str, ResolvedRegex] = {}
        for regex in wanted:
            known = group.regexes.get(regex)
            topics = self._resolve(regex, known, group)
            if known is not None and known.topics == topics:
                regexes[regex] = known
                continue
            regexes[regex] = ResolvedRegex(topics, timestamp_ms=at.now_ms)
            made.append(records.regular_expression(group.group_id, regex, regexes[regex]))
        has_changed = is_new or any(regexes[regex] is not group.regexes.get(regex) for regex in wanted)
        return Update(regexes, has_changed, tuple(made))

    def _resolve(self, regex: str, known: ResolvedRegex | None, group: ConsumerGroup) -> frozenset[str]:
        if known is None or group.changed_topics is None:
            return resolve([regex], self._topics.names())[regex]
        return resolve_changes(regex, known.topics, group.changed_topics, self._exists)

    def _exists(self, name: str) -> bool:
        return self._topics.by_name(name) is not None


def _wanted(group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> list[str]:
    """The expressions that members subscribe to once `member` has taken the place of `before`."""
    counts = group.regex_counts.copy()
    if before.subscribed_regex:  # a static member under a new id has what the old one had
        counts[before.subscribed_regex] -= 1
    if member.subscribed_regex:
        counts[member.subscribed_regex] += 1
    return [regex for regex, count in counts.items() if count > 0]
