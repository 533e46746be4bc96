"""The configuration of a share coordinator."""

from __future__ import annotations


class ShareStateConfig:
    """Kafka's `share.coordinator.*` keys; the defaults are Kafka's. The two intervals are internal keys in Kafka."""

    __slots__ = ("cold_snapshot_interval_ms", "prune_interval_ms", "records_per_prune", "updates_per_snapshot")

    def __init__(
        self,
        *,
        updates_per_snapshot: int = 500,
        cold_snapshot_interval_ms: int = 300_000,
        prune_interval_ms: int = 300_000,
        records_per_prune: int = 50_000,
    ) -> None:
        """`records_per_prune` is not in Kafka: it keeps a busy log short, since a start reads all of it."""
        self.updates_per_snapshot = updates_per_snapshot
        self.cold_snapshot_interval_ms = cold_snapshot_interval_ms
        self.prune_interval_ms = prune_interval_ms
        self.records_per_prune = records_per_prune
