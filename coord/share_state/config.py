"""What a share coordinator needs to know of the broker's configuration."""

from __future__ import annotations


class ShareStateConfig:
    """Kafka's `share.coordinator.*` keys; the values are Kafka's defaults, the two intervals internal keys there."""

    __slots__ = ("cold_snapshot_interval_ms", "prune_interval_ms", "records_per_prune", "updates_per_snapshot")

    def __init__(
        self,
        *,
        updates_per_snapshot: int = 500,
        cold_snapshot_interval_ms: int = 300_000,
        prune_interval_ms: int = 300_000,
        records_per_prune: int = 50_000,
    ) -> None:
        """`records_per_prune` is not Kafka's: a busy log is cut before its interval is over, since a start reads it."""
        self.updates_per_snapshot = updates_per_snapshot
        self.cold_snapshot_interval_ms = cold_snapshot_interval_ms
        self.prune_interval_ms = prune_interval_ms
        self.records_per_prune = records_per_prune
