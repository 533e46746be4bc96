"""Logs: segments, retention, compaction, flushing, limits of records."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    DOUBLE_MAX,
    HIGH,
    LONG_MAX,
    MEDIUM,
    boolean,
    double,
    integer,
    list_of,
    long,
    string,
)

LOG_CLEANER_BACKOFF_MS = long(
    "log.cleaner.backoff.ms",
    15000,
    "[0,...]",
    MEDIUM,
    "Time the cleaner sleeps when no log needs compaction.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = long(
    "log.cleaner.dedupe.buffer.size",
    134_217_728,
    "",
    MEDIUM,
    "Memory for the cleaner's map of keys, in total.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_DELETE_RETENTION_MS = long(
    "log.cleaner.delete.retention.ms",
    86_400_000,
    "[0,...]",
    MEDIUM,
    "Time delete markers stay readable in compacted topics.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_ENABLE = boolean("log.cleaner.enable", True, MEDIUM, "Whether compacted topics are compacted.")
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR = double(
    "log.cleaner.io.buffer.load.factor",
    0.9,
    "",
    MEDIUM,
    "Maximum load factor of the cleaner's map of keys.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_IO_BUFFER_SIZE = integer(
    "log.cleaner.io.buffer.size",
    524_288,
    "[0,...]",
    MEDIUM,
    "Memory for the cleaner's I/O buffers, in total.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = double(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE_MAX,
    "",
    MEDIUM,
    "Maximum bytes per second the cleaner reads and writes.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = long(
    "log.cleaner.max.compaction.lag.ms",
    LONG_MAX,
    "[1,...]",
    MEDIUM,
    "Maximum time a record stays out of compaction.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = double(
    "log.cleaner.min.cleanable.ratio",
    0.5,
    "[0,...,1]",
    MEDIUM,
    "Part of a log that must be dirty before it is compacted.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = long(
    "log.cleaner.min.compaction.lag.ms",
    0,
    "[0,...]",
    MEDIUM,
    "Minimum time a record stays out of compaction.",
    dynamic=CLUSTER_WIDE,
)
LOG_CLEANER_THREADS = integer(
    "log.cleaner.threads", 1, "[0,...]", MEDIUM, "Threads of the cleaner.", dynamic=CLUSTER_WIDE
)
LOG_CLEANUP_POLICY = list_of(
    "log.cleanup.policy",
    ("delete",),
    "[compact, delete]",
    MEDIUM,
    "Whether old segments are deleted, compacted or both.",
    dynamic=CLUSTER_WIDE,
)
LOG_DIR = list_of(
    "log.dir",
    ("/tmp/kafka-logs",),  # noqa: S108  (Kafka's default)
    "",
    HIGH,
    "Directory of the data, where log.dirs is not set.",
)
LOG_DIRS = list_of("log.dirs", None, "", HIGH, "Directories of the data, separated by commas.")
LOG_FLUSH_INTERVAL_MESSAGES = long(
    "log.flush.interval.messages",
    LONG_MAX,
    "[1,...]",
    HIGH,
    "Messages written to a partition before it is flushed to disk.",
    dynamic=CLUSTER_WIDE,
)
LOG_FLUSH_INTERVAL_MS = long(
    "log.flush.interval.ms",
    None,
    "",
    HIGH,
    "Maximum time a message stays unflushed; log.flush.scheduler.interval.ms when unset.",
    dynamic=CLUSTER_WIDE,
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = integer(
    "log.flush.offset.checkpoint.interval.ms",
    60000,
    "[0,...]",
    HIGH,
    "Time between two checkpoints of the flushed offsets, the recovery points.",
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = long(
    "log.flush.scheduler.interval.ms",
    LONG_MAX,
    "",
    HIGH,
    "Maximum time a message stays unflushed, where log.flush.interval.ms is not set.",
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = integer(
    "log.flush.start.offset.checkpoint.interval.ms",
    60000,
    "[0,...]",
    HIGH,
    "Time between two checkpoints of the log start offsets.",
)
LOG_INDEX_INTERVAL_BYTES = integer(
    "log.index.interval.bytes",
    4096,
    "[0,...]",
    MEDIUM,
    "Bytes of a log between two entries of its offset index.",
    dynamic=CLUSTER_WIDE,
)
LOG_INDEX_SIZE_MAX_BYTES = integer(
    "log.index.size.max.bytes", 10_485_760, "[4,...]", MEDIUM, "Largest size of an index file.", dynamic=CLUSTER_WIDE
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "log.message.timestamp.after.max.ms",
    3_600_000,
    "[0,...]",
    MEDIUM,
    "Maximum time by which a record's timestamp may be ahead of the broker's clock.",
    dynamic=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "log.message.timestamp.before.max.ms",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum time by which a record's timestamp may be behind the broker's clock.",
    dynamic=CLUSTER_WIDE,
)
LOG_MESSAGE_TIMESTAMP_TYPE = string(
    "log.message.timestamp.type",
    "CreateTime",
    "[CreateTime, LogAppendTime]",
    MEDIUM,
    "Whether record timestamps are set by the producer or when records are appended.",
    dynamic=CLUSTER_WIDE,
)
LOG_RETENTION_BYTES = long(
    "log.retention.bytes",
    -1,
    "",
    HIGH,
    "Size of a partition above which old segments are deleted; -1 is no limit.",
    dynamic=CLUSTER_WIDE,
)
LOG_RETENTION_CHECK_INTERVAL_MS = long(
    "log.retention.check.interval.ms", 300_000, "[1,...]", MEDIUM, "Time between two checks for segments to delete."
)
LOG_RETENTION_HOURS = integer(
    "log.retention.hours", 168, "", HIGH, "Hours a segment is kept, where minutes and ms are not set."
)
LOG_RETENTION_MINUTES = integer(
    "log.retention.minutes", None, "", HIGH, "Minutes a segment is kept, where ms is not set."
)
LOG_RETENTION_MS = long(
    "log.retention.ms", None, "", HIGH, "Time a segment is kept; -1 is no limit.", dynamic=CLUSTER_WIDE
)
LOG_ROLL_HOURS = integer(
    "log.roll.hours", 168, "[1,...]", HIGH, "Hours after which a segment is rolled, where ms is not set."
)
LOG_ROLL_JITTER_HOURS = integer(
    "log.roll.jitter.hours", 0, "[0,...]", HIGH, "Hours of random shortening of the roll time, where ms is not set."
)
LOG_ROLL_JITTER_MS = long(
    "log.roll.jitter.ms",
    None,
    "",
    HIGH,
    "Random shortening of the time after which a segment is rolled.",
    dynamic=CLUSTER_WIDE,
)
LOG_ROLL_MS = long("log.roll.ms", None, "", HIGH, "Time after which a segment is rolled.", dynamic=CLUSTER_WIDE)
LOG_SEGMENT_BYTES = integer(
    "log.segment.bytes",
    1_073_741_824,
    "[1048576,...]",
    HIGH,
    "Size at which a segment is rolled.",
    dynamic=CLUSTER_WIDE,
)
LOG_SEGMENT_DELETE_DELAY_MS = long(
    "log.segment.delete.delay.ms",
    60000,
    "[0,...]",
    HIGH,
    "Time between renaming a file as deleted and removing it.",
    dynamic=CLUSTER_WIDE,
)
MAX_DECOMPRESSED_MESSAGE_BYTES = integer(
    "max.decompressed.message.bytes",
    2_147_483_639,
    "[1,...,2147483639]",
    MEDIUM,
    "Largest record in a compressed batch. It is refused with INVALID_RECORD. All records of a compressed batch "
    "together may have 100 MiB.",
    dynamic=CLUSTER_WIDE,
)
MESSAGE_MAX_BYTES = integer(
    "message.max.bytes", 1_048_588, "[0,...]", HIGH, "Largest record batch, as it is sent.", dynamic=CLUSTER_WIDE
)
