"""The key of the share coordinator's state: a group and a partition (KIP-932)."""

from __future__ import annotations

from typing import NamedTuple

from barnabas.coord.short_key_cache import cached_if_short
from barnabas.wire.types import Uuid, uuid_from_text, uuid_to_text


class SharePartitionKey(NamedTuple):
    """A share group and a partition of a topic it reads."""

    group_id: str
    topic_id: Uuid
    partition: int

    def __str__(self) -> str:
        """The coordinator key of FindCoordinator: `group:topicId:partition`; its hash selects the state partition."""
        return _text(*self)


@cached_if_short(4096)  # used by every write
def _text(group_id: str, topic_id: Uuid, partition: int) -> str:
    return f"{group_id}:{uuid_to_text(topic_id)}:{partition}"


def parse_key(text: str) -> SharePartitionKey:
    """Parse a coordinator key; the group id may contain colons. ValueError when the text is invalid."""
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip():
        raise ValueError("The coordinator key must be of the form groupId:topicId:partition.")
    group_id, topic_id, partition = parts
    return SharePartitionKey(group_id, uuid_from_text(topic_id), int(partition))
