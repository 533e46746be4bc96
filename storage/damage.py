"""The error of a damaged log (rule L2): its partition is taken offline, and an operator decides."""

from __future__ import annotations

from barnabas.storage import layout
from barnabas.storage.directories.checkpoints import topic_id_text
from barnabas.wire.errors import ErrorCode, KafkaError


class DamagedLog(KafkaError):  # noqa: N818 - named after the condition
    """Data that was synced is missing or changed; the message names the file and position."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)


def of_unknown_topic(path: str, stored: bytes, topic_id: bytes) -> DamagedLog:
    """The directory has the id of a topic that is neither the partition's nor was deleted."""
    return DamagedLog(
        f"{path}/{layout.PARTITION_METADATA} has the topic id {topic_id_text(stored)}, but the topic has the id "
        f"{topic_id_text(topic_id)}, and no topic with the former id was deleted"
    )


def missing_log(path: str, recovery_point: int) -> DamagedLog:
    """The directory is gone, with synced records."""
    return DamagedLog(f"{path} is missing, but everything up to offset {recovery_point} was synced")
