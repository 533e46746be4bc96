"""The configuration of a transaction coordinator."""

from __future__ import annotations

TWO_PHASE_COMMIT_TIMEOUT_MS = 2**31 - 1


class TransactionConfig:
    """Kafka's `transaction.*` keys; the values are Kafka's defaults."""

    __slots__ = (
        "abort_interval_ms",
        "expiration_interval_ms",
        "id_expiration_ms",
        "is_two_phase_commit_enabled",
        "max_timeout_ms",
        "transaction_version",
    )

    def __init__(
        self,
        *,
        max_timeout_ms: int = 900_000,
        id_expiration_ms: int = 604_800_000,
        abort_interval_ms: int = 10_000,
        expiration_interval_ms: int = 3_600_000,
        is_two_phase_commit_enabled: bool = False,
        transaction_version: int = 2,
    ) -> None:
        """`transaction_version` is the finalized level of the feature; it selects how open transactions are fenced."""
        self.max_timeout_ms = max_timeout_ms
        self.id_expiration_ms = id_expiration_ms
        self.abort_interval_ms = abort_interval_ms
        self.expiration_interval_ms = expiration_interval_ms
        self.is_two_phase_commit_enabled = is_two_phase_commit_enabled
        self.transaction_version = transaction_version
