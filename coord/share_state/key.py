"""What the share coordinator keeps state of: one partition as one share group sees it."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from barnabas.wire.types import Uuid, uuid_to_text


class SharePartitionKey(NamedTuple):
    """A group and a partition of a topic that it shares out."""

    group_id: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """The coordinator key of FindCoordinator: `group:topicId:partition`; its hash picks the state partition."""
        return _text(*self)


@lru_cache(4096)  # every write asks for it
def _text(group_id: str, topic_id: Uuid, partition: int) -> str:
    return f"{group_id}:{uuid_to_text(topic_id)}:{partition}"


def parse_key(text: str) -> SharePartitionKey:
    """The parts of a coordinator key; the group's name may contain colons. ValueError when the text is none."""
    from barnabas.wire.types import uuid_from_text

    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip():
        raise ValueError("The coordinator key must be of the form groupId:topicId:partition.")
    group_id, topic_id, partition = parts
    return SharePartitionKey(group_id, uuid_from_text(topic_id), int(partition))
