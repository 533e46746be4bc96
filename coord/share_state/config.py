"""The configuration of a share coordinator."""

from __future__ import annotations

from typing import NamedTuple


class ShareStateConfig(NamedTuple):
    """Kafka's `share.coordinator.*` keys; the defaults are Kafka's. The two intervals are internal keys in Kafka."""

    updates_per_snapshot: int = 500
    cold_snapshot_interval_ms: int = 300_000
    prune_interval_ms: int = 300_000
    records_per_prune: int = 50_000
    """Not in Kafka: it keeps a busy log short, since a start reads all of it."""
