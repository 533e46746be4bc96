"""Barnabas' own keys, named `barnabas.*`: only where Kafka has no key of that meaning."""

from __future__ import annotations

from barnabas.wire.configdef import CLUSTER_WIDE, HIGH, LOW, MEDIUM, boolean, integer, string

ALWAYS, INTERVAL, OS = "always", "interval", "os"

LOG_SYNC = string(
    "barnabas.log.sync",
    None,
    f"[{ALWAYS}, {INTERVAL}, {OS}]",
    HIGH,
    "When records are flushed to disk. always: before they are acknowledged and readable. interval: within "
    "log.flush.interval.ms, by default a second. os: when the operating system does it, as in Kafka. The default is "
    "always if a data directory is configured, and os for a temporary one.",
    used=True,
)

REQUEST_MAX_ELEMENTS = integer(
    "barnabas.request.max.elements",
    50_000,
    "[1,...]",
    MEDIUM,
    "Most elements that a request may have: those of all its arrays, nested ones too, and tagged fields. The "
    "connection of a request with more is closed, before they take memory and time.",
    used=True,
)

FULL, LENGTHS, HEADER = "full", "lengths", "header"

PRODUCE_VALIDATION = string(
    "barnabas.produce.validation",
    LENGTHS,
    f"[{FULL}, {LENGTHS}, {HEADER}]",
    MEDIUM,
    "What is checked of the batches that clients produce. header: what header, length and CRC tell. lengths: also that "
    "the records fill the batch by their lengths, as many as counted, and the first and the last one completely. full: "
    "every field of every record, as in Kafka. For lengths and full, compressed batches are decompressed. Where a "
    "topic's configs need it (compaction, limits for timestamps in the past), batches are always checked fully.",
    dynamic=CLUSTER_WIDE,
    used=True,
)

LOG_READ_CHECK_CRCS = boolean(
    "barnabas.log.read.check.crcs",
    False,
    LOW,
    "Whether the CRC of each record batch is checked before it is sent to a reader. A batch with a wrong one, which "
    "was damaged on the disk, takes its partition offline (KAFKA_STORAGE_ERROR). Without it clients check CRCs, as "
    "with Kafka. Records are read into memory for that, instead of being sent from the file by the kernel.",
    used=True,
)
