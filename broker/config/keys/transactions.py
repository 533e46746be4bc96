"""The transaction coordinator and its state topic. KIP-98, KIP-890."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    boolean,
    integer,
    short,
)

TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = integer(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10000,
    "[1,...]",
    LOW,
    "Time between two checks for transactions that timed out.",
)
TRANSACTION_MAX_TIMEOUT_MS = integer(
    "transaction.max.timeout.ms", 900_000, "[1,...]", HIGH, "Maximum transaction timeout a producer may request."
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = boolean(
    "transaction.partition.verification.enable",
    True,
    LOW,
    "Whether the broker verifies that a partition belongs to the transaction of a write.",
    dynamic=CLUSTER_WIDE,
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = integer(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    "[1,...]",
    LOW,
    "Time between two checks for expired transactional ids.",
)
TRANSACTION_STATE_LOG_MIN_ISR = integer(
    "transaction.state.log.min.isr", 2, "[1,...]", HIGH, "In-sync replicas that the transaction state topic needs."
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS = integer(
    "transaction.state.log.num.partitions", 50, "[1,...]", HIGH, "Partitions of __transaction_state."
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = short(
    "transaction.state.log.replication.factor", 3, "[1,...]", HIGH, "Replicas of __transaction_state."
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = integer(
    "transaction.state.log.segment.bytes", 104_857_600, "[1,...]", HIGH, "Segment size of __transaction_state."
)
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = boolean(
    "transaction.two.phase.commit.enable", False, LOW, "Whether producers may use two-phase commit."
)
TRANSACTIONAL_ID_EXPIRATION_MS = integer(
    "transactional.id.expiration.ms",
    604_800_000,
    "[1,...]",
    HIGH,
    "Time after which a transactional id that is not used is removed.",
)
