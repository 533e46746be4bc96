"""The error of topics that do not exist, in Metadata and DescribeTopicPartitions."""

from __future__ import annotations

from barnabas.coord.topic_names import topic_name_error
from barnabas.wire.errors import ErrorCode


def missing_topic_error(name: str) -> ErrorCode:
    """The error of a topic that does not exist: INVALID_TOPIC_EXCEPTION when no topic may have this name."""
    if topic_name_error(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
