"""The error of a damaged log (rule L2): its partition is taken offline, and an operator decides."""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode, KafkaError


class DamagedLog(KafkaError):  # noqa: N818 - named after the condition
    """Data that was synced is missing or changed; the message names the file and position."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.KAFKA_STORAGE_ERROR, message)
