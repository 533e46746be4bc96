"""The `range` assignor: each subscriber of a topic gets one contiguous range of its partitions (KIP-848).

Members have the same order for all topics: static ones by instance id, then the others by member id. So topics of one
size with the same subscribers are co-partitioned, and a static member that returns gets the same ranges. The first
members of a topic have at most one partition more than the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors.spec import Assignment, MemberSpec, subscribed_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.wire.types import Uuid

NAME = "range"


def assign(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
    """The ranges of all members; their present assignments have no influence."""
    order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
    assignment: Assignment = {member_id: {} for member_id in members}
    for topic, size in subscribed_topics(members, topics).items():
        subscribers = [member_id for member_id in order if topic in members[member_id].subscribed]
        quota, extra = divmod(size, len(subscribers))
        start = 0
        for place, member_id in enumerate(subscribers[:size]):
            end = start + quota + (place < extra)
            assignment[member_id][topic] = frozenset(range(start, end))
            start = end
    return assignment


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, str, str]:
    return (member.instance_id is None, member.instance_id or "", member_id)
