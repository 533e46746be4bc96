"""The configuration of a transaction coordinator."""

from __future__ import annotations

from dataclasses import dataclass

TWO_PHASE_COMMIT_TIMEOUT_MS = 2**31 - 1


@dataclass(kw_only=True, slots=True, eq=False, repr=False)
class TransactionConfig:
    """Kafka's `transaction.*` keys; the values are Kafka's defaults."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_interval_ms: int = 10_000
    expiration_interval_ms: int = 3_600_000
    is_two_phase_commit_enabled: bool = False
    transaction_version: int = 2
    """The finalized level of the feature; it selects how open transactions are fenced."""
