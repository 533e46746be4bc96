"""When a snapshot of the metadata is due (R31; KIP-630), for a controller and for a broker that follows one.

It is due when the log has `metadata.log.max.record.bytes.between.snapshots` bytes since the newest snapshot, or when it
has any records since then and `metadata.log.max.snapshot.interval.ms` have passed; the time counts from the start of
this process if the snapshot is older. A snapshot that could not be written is tried again after `RETRY_S`.

Source: Kafka 4.4 `SnapshotGenerator`, which looks at the time when records come. Kafka's controllers write an empty
record every 0.5 s; ours do not, so a timer has to be set to `deadline`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.controller import (
    METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS,
    METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS,
)

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig

RETRY_S: Final = 60.0
"""When a snapshot is tried again that could not be written, seconds."""


class SnapshotSchedule:
    """Counts the bytes written since the newest snapshot. Times are monotonic seconds."""

    def __init__(self, config: ServerConfig, now: float) -> None:
        self._max_bytes: int = config[METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS]
        self._interval_s = config[METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS] / 1000
        self.bytes = 0
        """The bytes of the records in the log since the newest snapshot."""
        self._since = now
        self._not_before = now

    def wrote(self, size: int) -> None:
        """Count `size` bytes of records that were written to the log."""
        self.bytes += size

    def has_snapshot(self, now: float) -> None:
        """A snapshot of everything in the log was written, or loaded."""
        self.bytes = 0
        self._since = self._not_before = now

    def failed(self, now: float) -> None:
        """A snapshot could not be written."""
        self._not_before = now + RETRY_S

    @property
    def deadline(self) -> float | None:
        """When a snapshot is due if nothing more is written; None if it depends on further records."""
        if self.bytes >= self._max_bytes:
            return self._not_before
        if not self.bytes or not self._interval_s:
            return None
        return max(self._since + self._interval_s, self._not_before)

    def is_due(self, now: float) -> bool:
        """Whether a snapshot is to be written now."""
        deadline = self.deadline
        return deadline is not None and deadline <= now
