"""The regular expressions that a group subscribes to, as a heartbeat changes them (KIP-848).

Expressions are resolved to topics afterwards (`regex_resolution.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from barnabas.coord.groups.consumer import records
from barnabas.coord.groups.consumer.regex import compiled

if TYPE_CHECKING:
    from barnabas.coord.groups.consumer.group import ConsumerGroup
    from barnabas.coord.groups.consumer.member import ConsumerMember
    from barnabas.coord.groups.consumer.records import ResolvedRegex
    from barnabas.coord.machine import CoordinatorRecord


class Update(NamedTuple):
    """The group's regular expressions after a heartbeat."""

    regexes: Mapping[str, ResolvedRegex]
    """Those that are resolved."""
    has_changed: bool = False
    """Whether the member subscribes to another expression."""
    has_bump: bool = False
    """Whether the member's topics have changed with it: the new expression is resolved, or there is none."""
    needs_resolving: bool = False
    """Whether expressions are not resolved yet."""
    records: tuple[CoordinatorRecord, ...] = ()


def update(group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> Update:
    """Follow a member's change of its expression. KafkaError INVALID_REGULAR_EXPRESSION."""
    if member.subscribed_regex == before.subscribed_regex:
        return Update(group.regexes, needs_resolving=len(group.regexes) < len(group.regex_counts))
    if member.subscribed_regex and member.subscribed_regex not in group.regex_counts:
        compiled(member.subscribed_regex)
    wanted = _wanted(group, before, member)
    regexes = {regex: resolved for regex, resolved in group.regexes.items() if regex in wanted}
    return Update(
        regexes,
        has_changed=True,
        has_bump=not member.subscribed_regex or member.subscribed_regex in regexes,
        needs_resolving=any(regex not in regexes for regex in wanted),
        records=tuple(records.regex_tombstone(group.group_id, regex) for regex in group.regexes if regex not in wanted),
    )


def _wanted(group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> set[str]:
    """The expressions that members subscribe to once `member` has replaced `before`."""
    counts = group.regex_counts.copy()
    if before.subscribed_regex:  # a static member with a new id replaces the old one
        counts[before.subscribed_regex] -= 1
    if member.subscribed_regex:
        counts[member.subscribed_regex] += 1
    return {regex for regex, count in counts.items() if count > 0}
