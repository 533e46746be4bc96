"""The 37 config keys of topics, with their defaults, and the broker keys that set a default for them.

Source: Kafka 4.4 `LogConfig` and `ServerTopicConfigSynonyms`.
"""

from __future__ import annotations

from typing import Any, Final

from barnabas.wire.configdef import (
    LONG_MAX,
    MEDIUM,
    ConfigKey,
    boolean,
    double,
    integer,
    list_of,
    long,
    string,
    without_effect,
)

CLEANUP_POLICY = list_of(
    "cleanup.policy",
    ("delete",),
    "[compact, delete]",
    MEDIUM,
    "Whether old segments are deleted, compacted, or both; empty: neither.",
)
DELETE_RETENTION_MS = long(
    "delete.retention.ms", 86_400_000, "[0,...]", MEDIUM, "Time for which delete markers are kept in a compacted topic."
)
ERRORS_DEADLETTERQUEUE_GROUP_ENABLE = boolean(
    "errors.deadletterqueue.group.enable",
    False,
    MEDIUM,
    "Whether share groups may use this topic as a dead-letter queue.",
)
FILE_DELETE_DELAY_MS = long(
    "file.delete.delay.ms", 60000, "[0,...]", MEDIUM, "Time between renaming a file as deleted and removing it."
)
FLUSH_MESSAGES = long(
    "flush.messages",
    LONG_MAX,
    "[1,...]",
    MEDIUM,
    "Messages written before a partition is flushed to disk; 1: each is flushed before it is acknowledged.",
)
FLUSH_MS = long("flush.ms", LONG_MAX, "[0,...]", MEDIUM, "Maximum time before a message is flushed to disk.")
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = list_of(
    "follower.replication.throttled.replicas",
    (),
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    MEDIUM,
    "Replicas whose fetching is throttled, as partition:broker pairs or *.",
)
INDEX_INTERVAL_BYTES = integer(
    "index.interval.bytes", 4096, "[0,...]", MEDIUM, "Bytes of a log between two entries of its offset index."
)
LEADER_REPLICATION_THROTTLED_REPLICAS = list_of(
    "leader.replication.throttled.replicas",
    (),
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    MEDIUM,
    "Replicas whose serving of followers is throttled, as partition:broker pairs or *.",
)
MAX_COMPACTION_LAG_MS = long(
    "max.compaction.lag.ms",
    LONG_MAX,
    "[1,...]",
    MEDIUM,
    "Maximum time before a record becomes eligible for compaction.",
)
MAX_DECOMPRESSED_MESSAGE_BYTES = integer(
    "max.decompressed.message.bytes",
    2_147_483_639,
    "[1,...,2147483639]",
    MEDIUM,
    "Maximum size of a record in a compressed batch.",
)
MAX_MESSAGE_BYTES = integer(
    "max.message.bytes", 1_048_588, "[0,...]", MEDIUM, "Maximum size of a record batch as it is sent (compressed)."
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "message.timestamp.after.max.ms",
    3_600_000,
    "[0,...]",
    MEDIUM,
    "Maximum time by which a record's timestamp may be ahead of the broker's clock.",
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "message.timestamp.before.max.ms",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum time by which a record's timestamp may be behind the broker's clock.",
)
MESSAGE_TIMESTAMP_TYPE = string(
    "message.timestamp.type",
    "CreateTime",
    "[CreateTime, LogAppendTime]",
    MEDIUM,
    "Whether the timestamp of a record is set by the producer or is the time of the append.",
)
MIN_CLEANABLE_DIRTY_RATIO = double(
    "min.cleanable.dirty.ratio",
    0.5,
    "[0,...,1]",
    MEDIUM,
    "Minimum ratio of dirty bytes to all bytes of a log before it is compacted.",
)
MIN_COMPACTION_LAG_MS = long(
    "min.compaction.lag.ms", 0, "[0,...]", MEDIUM, "Minimum time before a record is compacted."
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas", 1, "[1,...]", MEDIUM, "Minimum number of in-sync replicas for a write with acks=all."
)
RETENTION_BYTES = long(
    "retention.bytes", -1, "", MEDIUM, "Size of a partition above which old segments are deleted; -1: no limit."
)
RETENTION_MS = long("retention.ms", 604_800_000, "[-1,...]", MEDIUM, "Time for which a segment is kept; -1: no limit.")
SEGMENT_BYTES = integer("segment.bytes", 1_073_741_824, "[1048576,...]", MEDIUM, "Size at which a segment is rolled.")
SEGMENT_INDEX_BYTES = integer("segment.index.bytes", 10_485_760, "[4,...]", MEDIUM, "Maximum size of an index file.")
SEGMENT_JITTER_MS = long(
    "segment.jitter.ms",
    0,
    "[0,...]",
    MEDIUM,
    "Maximum random reduction of segment.ms, so that segments do not roll at the same time.",
)
SEGMENT_MS = long("segment.ms", 604_800_000, "[1,...]", MEDIUM, "Time after which a segment is rolled.")
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    MEDIUM,
    "Whether a replica outside the ISR may become leader, with loss of records.",
)

_WITHOUT_EFFECT: Final = without_effect(
    integer(
        "compression.gzip.level",
        -1,
        "[1,...,9] or -1",
        MEDIUM,
        "Compression level of gzip, for compression by the broker; -1 is gzip's default.",
    ),
    integer(
        "compression.lz4.level", 9, "[1,...,17]", MEDIUM, "Compression level of lz4, for compression by the broker."
    ),
    string(
        "compression.type",
        "producer",
        "[uncompressed, zstd, lz4, snappy, gzip, producer]",
        MEDIUM,
        "Codec in which batches are stored; producer: the codec of the producer.",
    ),
    integer(
        "compression.zstd.level",
        3,
        "[-131072,...,22]",
        MEDIUM,
        "Compression level of zstd, for compression by the broker.",
    ),
    long(
        "local.retention.bytes",
        -2,
        "[-2,...]",
        MEDIUM,
        "Bytes of a tiered partition kept locally; -2: retention.bytes.",
    ),
    long(
        "local.retention.ms",
        -2,
        "[-2,...]",
        MEDIUM,
        "Time for which segments of a tiered partition are kept locally; -2: retention.ms.",
    ),
    boolean("preallocate", False, MEDIUM, "Whether segment files get their full size when they are created."),
    long(
        "remote.copy.lag.bytes",
        -1,
        "[-1,...]",
        MEDIUM,
        "Bytes written after a segment before it is copied to remote storage.",
    ),
    long(
        "remote.copy.lag.ms",
        0,
        "[-1,...]",
        MEDIUM,
        "Time after the roll of a segment before it is copied to remote storage.",
    ),
    boolean(
        "remote.log.copy.disable", False, MEDIUM, "Whether a tiered topic no longer copies segments to remote storage."
    ),
    boolean(
        "remote.log.delete.on.disable",
        False,
        MEDIUM,
        "Whether remote segments are deleted when tiered storage is disabled.",
    ),
    boolean("remote.storage.enable", False, MEDIUM, "Whether the topic uses tiered storage."),
)
"""Kafka's topic keys that Barnabas does not act on."""

SYNONYMS: Final[dict[str, tuple[tuple[str, int], ...]]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (
        ("log.flush.interval.ms", 1),
        ("log.flush.scheduler.interval.ms", 1),
    ),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    "max.decompressed.message.bytes": (("max.decompressed.message.bytes", 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "remote.copy.lag.bytes": (("log.remote.copy.lag.bytes", 1),),
    "remote.copy.lag.ms": (("log.remote.copy.lag.ms", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (
        ("log.roll.jitter.ms", 1),
        ("log.roll.jitter.hours", 3_600_000),
    ),
    "segment.ms": (
        ("log.roll.ms", 1),
        ("log.roll.hours", 3_600_000),
    ),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
"""For each topic key the broker keys that set its default, by priority, with the factor from their unit to the topic
key's (hours to milliseconds)."""

TOPIC_KEYS: Final[dict[str, ConfigKey[Any]]] = {
    key.name: key
    for key in sorted(
        [*(key for key in list(globals().values()) if isinstance(key, ConfigKey)), *_WITHOUT_EFFECT],
        key=lambda key: key.name,
    )
}
"""Every topic key by name."""

for _name, _synonyms in SYNONYMS.items():
    TOPIC_KEYS[_name].synonyms = _synonyms
