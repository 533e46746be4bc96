"""The ids of deleted topics, as far as a directory of theirs may have been left (R22): such a directory is set aside.

Those of the log that is read at a start are all kept: the log is bounded, and the directories are looked at next. Of
those that are deleted while the broker serves only the newest are kept: their directories are renamed at once, and
every other topic that was deleted since the start would be kept for ever.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

RECENT: Final = 10_000
"""How many are kept at least of those that were added last."""


class DeletedTopics:
    """A set of ids that forgets the oldest."""

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: dict[bytes, None] = {}

    def __contains__(self, topic_id: object) -> bool:
        return topic_id in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add_all(self, topic_ids: Iterable[bytes]) -> None:
        """Keep all of these: they were read at a start."""
        self._ids.update(dict.fromkeys(topic_ids))

    def add_recent(self, topic_ids: Iterable[bytes]) -> None:
        """Keep these, which were deleted now, and forget the oldest."""
        self.add_all(topic_ids)
        while len(self._ids) > RECENT:
            del self._ids[next(iter(self._ids))]
