"""The `simple` assignor of share groups: partitions are shared, and moved as little as may be (KIP-932).

Of the partitions that the same members want, each gets equally many readers: one, or when there are more members than
partitions as many as it takes for everybody to have something. Members' shares differ by at most one, in each such set
of partitions. When all subscribe to the same topics that set is all partitions; otherwise each topic is shared alone,
and who has more of one topic gets less of the next.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from barnabas.coord.groups.assignors.spec import Assignment, MemberSpec, same_subscription, subscribed_topics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from barnabas.wire.types import Uuid

    Place = tuple[Uuid, int]

NAME = "simple"


def assign(members: Mapping[str, MemberSpec], topics: Mapping[Uuid, int]) -> Assignment:
    """Every partition of a subscribed topic to at least one member, every member of a topic with partitions to one."""
    wanted = subscribed_topics(members, topics)
    order = sorted(members)
    held: dict[str, set[Place]] = {member_id: set() for member_id in order}
    if same_subscription(members):
        _share(members, order, [(topic, index) for topic, size in wanted.items() for index in range(size)], held)
    else:
        for topic, size in wanted.items():
            subscribers = [member_id for member_id in order if topic in members[member_id].subscribed]
            _share(members, subscribers, [(topic, index) for index in range(size)], held)
    return {member_id: _by_topic(held[member_id]) for member_id in members}


def _by_topic(places: set[Place]) -> dict[Uuid, frozenset[int]]:
    grouped: dict[Uuid, set[int]] = {}
    for topic, index in places:
        grouped.setdefault(topic, set()).add(index)
    return {topic: frozenset(indexes) for topic, indexes in grouped.items()}


def _share(
    members: Mapping[str, MemberSpec], order: list[str], places: list[Place], held: dict[str, set[Place]]
) -> None:
    """Share `places` out over the members of `order`, on top of what each holds of other places."""
    if places:
        readers = -(-len(order) // len(places))
        sharing = _Sharing(places, readers)
        kept = {member_id: sharing.keep(members[member_id]) for member_id in order}
        quota, extra = divmod(readers * len(places), len(order))
        by_wish = sorted(order, key=lambda member_id: (len(held[member_id]), -len(kept[member_id])))
        quotas = {member_id: quota + (rank < extra) for rank, member_id in enumerate(by_wish)}
        for member_id in order:
            sharing.trim(kept[member_id], quotas[member_id])
        sharing.start_filling()
        for member_id in order:
            sharing.fill(kept[member_id], quotas[member_id])
        for member_id in order:
            while len(kept[member_id]) < quotas[member_id]:
                sharing.swap(member_id, kept)
        for member_id in order:
            held[member_id] |= kept[member_id]


class _Sharing:
    """How many readers each place still needs."""

    def __init__(self, places: list[Place], readers: int) -> None:
        self._needed = dict.fromkeys(places, readers)
        self._topics = {topic for topic, _ in places}
        self._queue: deque[Place] = deque()

    def keep(self, member: MemberSpec) -> set[Place]:
        """Of what the member has, what still wants a reader."""
        needed = self._needed
        kept = set()
        for topic in self._topics & member.assigned.keys():
            for index in member.assigned[topic]:
                place = (topic, index)
                if needed.get(place):
                    needed[place] -= 1
                    kept.add(place)
        return kept

    def trim(self, mine: set[Place], quota: int) -> None:
        """Give back what the member has over its quota: places that others read too before the rest."""
        over = len(mine) - quota
        if over > 0:
            for place in sorted(mine, key=lambda place: (-self._needed[place], place))[-over:]:
                mine.remove(place)
                self._needed[place] += 1

    def start_filling(self) -> None:
        """Queue the places that want readers, each once: whoever takes one puts it behind the others again."""
        self._queue.extend(place for place, needed in self._needed.items() if needed)

    def fill(self, mine: set[Place], quota: int) -> None:
        """Give the member up to its quota of the places that want readers and that it does not read."""
        passed = []
        while len(mine) < quota and self._queue:
            place = self._queue.popleft()
            if place in mine:
                passed.append(place)
            else:
                self._take(place, mine)
        self._queue.extendleft(reversed(passed))

    def _take(self, place: Place, mine: set[Place]) -> None:
        mine.add(place)
        self._needed[place] -= 1
        if self._needed[place]:
            self._queue.append(place)

    def swap(self, member_id: str, kept: dict[str, set[Place]]) -> None:
        """The member reads all that still wants readers: another takes such a place and gives it one of its own.

        There is always one who can: somebody does not read the place, since it lacks a reader, and has its full share,
        since otherwise it would have taken it; so it has something that this member, short of its share, has not.
        """
        mine = kept[member_id]
        place = self._queue.popleft()
        giver = next(theirs for theirs in kept.values() if place not in theirs)
        given = min(giver - mine)
        giver.remove(given)
        mine.add(given)
        self._take(place, giver)
