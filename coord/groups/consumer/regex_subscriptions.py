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
    """The expressions that are resolved."""
    has_changed: bool = False
    """Whether the member subscribes to another expression."""
    has_bump: bool = False
    """Whether the member's topics have changed with it: the new expression is resolved, or there is none."""
    needs_resolving: bool = False
    """Whether expressions are not resolved yet."""
    records: tuple[CoordinatorRecord, ...] = ()


def update(group: ConsumerGroup, before: ConsumerMember, member: ConsumerMember) -> Update:
    """Follow a member's change of its expression. KafkaError INVALID_REGULAR_EXPRESSION.

    A static member with a new id is `before` with what the one had that it replaces.
    """
    old, new = before.subscribed_regex, member.subscribed_regex
    if new == old:
        return Update(group.regexes, needs_resolving=bool(group.unresolved_regexes))
    if new and new not in group.regex_counts:
        compiled(new)
    given_up = {old} if old and group.regex_counts[old] <= 1 else set()
    dropped = (group.unused_regexes | given_up) - {new}
    regexes: Mapping[str, ResolvedRegex] = group.regexes
    tombstones: list[CoordinatorRecord] = []
    if dropped:
        regexes = {regex: resolved for regex, resolved in group.regexes.items() if regex not in dropped}
        tombstones = [records.regex_tombstone(group.group_id, regex) for regex in group.regexes if regex in dropped]
    is_resolved = not new or new in group.regexes
    return Update(
        regexes,
        has_changed=True,
        has_bump=is_resolved,
        needs_resolving=not (is_resolved and group.unresolved_regexes <= given_up),
        records=tuple(tombstones),
    )
