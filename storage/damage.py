"""What is raised when a log is not what was written to it: its partition goes offline, and an operator decides. L2."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, KafkaError


class DamagedLog(KafkaError):  # noqa: N818 - named for what is found
    """Data that was safely on the disk is missing or changed; the text says where, in one sentence."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
