"""Topic names: validation, and the internal topics. Source: Kafka 4.4 `org.apache.kafka.common.internals.Topic`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.wire.errors import ErrorCode, KafkaError

MAX_NAME_LENGTH: Final = 249
GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
INTERNAL_TOPICS: Final = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
"""Topics that responses mark as internal."""

_LEGAL: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def topic_name_error(name: str) -> str | None:
    """Kafka's error message for an invalid name; None for a valid one."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in {".", ".."}:
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.issuperset(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def check_topic_name(name: str) -> None:
    """KafkaError(INVALID_TOPIC_EXCEPTION) for an invalid name."""
    error = topic_name_error(name)
    if error is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, error)


class MetricNames:
    """Topic names as metrics have them, with `_` for `.`: no two topics may have the same."""

    def __init__(self, topics: Iterable[str]) -> None:
        """`topics` are the existing ones, each looked at once."""
        self._topics: dict[str, str] = {}
        for topic in topics:
            self.add(topic)

    def add(self, topic: str) -> None:
        """A topic was created. Only names with `.` or `_` can be equal to another one."""
        if "." in topic or "_" in topic:
            self._topics.setdefault(topic.replace(".", "_"), topic)

    def colliding(self, topic: str) -> str | None:
        """The first topic that differs from this new one only in `.` and `_`, or None."""
        return self._topics.get(topic.replace(".", "_")) if "." in topic or "_" in topic else None
