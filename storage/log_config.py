"""The 37 config keys of topics, and `LogConfig`: their values for one topic.

A topic's value is its own override, else the broker's synonym (`log.segment.bytes` for `segment.bytes`),
else Kafka's default. `SYNONYMS` names the broker keys that give a default, strongest first, each with the
factor from its unit to the topic key's (hours to milliseconds). Source: Kafka 4.4 `LogConfig` and
`ServerTopicConfigSynonyms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from barnabas.wire.configdef import (
    LONG_MAX,
    MEDIUM,
    ConfigError,
    ConfigKey,
    ConfigValue,
    boolean,
    double,
    integer,
    list_of,
    long,
    string,
)

CLEANUP_POLICY = list_of(
    "cleanup.policy",
    ("delete",),
    "[compact, delete]",
    MEDIUM,
    "What happens to old segments: delete, compact, both, or nothing when empty.",
    used=True,
)
COMPRESSION_GZIP_LEVEL = integer(
    "compression.gzip.level",
    -1,
    "[1,...,9] or -1",
    MEDIUM,
    "Level of gzip where the broker compresses; -1 is gzip's own default.",
)
COMPRESSION_LZ4_LEVEL = integer(
    "compression.lz4.level", 9, "[1,...,17]", MEDIUM, "Level of lz4 where the broker compresses."
)
COMPRESSION_TYPE = string(
    "compression.type",
    "producer",
    "[uncompressed, zstd, lz4, snappy, gzip, producer]",
    MEDIUM,
    "Codec in which batches are kept; producer keeps what the producer sent.",
)
COMPRESSION_ZSTD_LEVEL = integer(
    "compression.zstd.level", 3, "[-131072,...,22]", MEDIUM, "Level of zstd where the broker compresses."
)
DELETE_RETENTION_MS = long(
    "delete.retention.ms",
    86_400_000,
    "[0,...]",
    MEDIUM,
    "Time delete markers stay readable in a compacted topic.",
    used=True,
)
ERRORS_DEADLETTERQUEUE_GROUP_ENABLE = boolean(
    "errors.deadletterqueue.group.enable",
    False,
    MEDIUM,
    "Whether share groups may use this topic as a dead-letter queue.",
    used=True,
)
FILE_DELETE_DELAY_MS = long(
    "file.delete.delay.ms",
    60000,
    "[0,...]",
    MEDIUM,
    "Time between renaming a file as deleted and removing it.",
    used=True,
)
FLUSH_MESSAGES = long(
    "flush.messages",
    LONG_MAX,
    "[1,...]",
    MEDIUM,
    "Messages written before a partition is flushed to disk; with 1 each is, before it is acknowledged.",
    used=True,
)
FLUSH_MS = long("flush.ms", LONG_MAX, "[0,...]", MEDIUM, "Longest time a message stays unflushed.", used=True)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = list_of(
    "follower.replication.throttled.replicas",
    (),
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    MEDIUM,
    "Replicas whose fetching is throttled, as partition:broker pairs or *.",
)
INDEX_INTERVAL_BYTES = integer(
    "index.interval.bytes",
    4096,
    "[0,...]",
    MEDIUM,
    "Bytes of a log between two entries of its offset index.",
    used=True,
)
LEADER_REPLICATION_THROTTLED_REPLICAS = list_of(
    "leader.replication.throttled.replicas",
    (),
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
    MEDIUM,
    "Replicas whose serving of followers is throttled, as partition:broker pairs or *.",
)
LOCAL_RETENTION_BYTES = long(
    "local.retention.bytes", -2, "[-2,...]", MEDIUM, "Bytes of a tiered partition kept locally; -2 is retention.bytes."
)
LOCAL_RETENTION_MS = long(
    "local.retention.ms",
    -2,
    "[-2,...]",
    MEDIUM,
    "Time segments of a tiered partition are kept locally; -2 is retention.ms.",
)
MAX_COMPACTION_LAG_MS = long(
    "max.compaction.lag.ms", LONG_MAX, "[1,...]", MEDIUM, "Longest time a record stays out of compaction.", used=True
)
MAX_DECOMPRESSED_MESSAGE_BYTES = integer(
    "max.decompressed.message.bytes",
    2_147_483_639,
    "[1,...,2147483639]",
    MEDIUM,
    "Largest batch after decompression that is accepted.",
)
MAX_MESSAGE_BYTES = integer(
    "max.message.bytes", 1_048_588, "[0,...]", MEDIUM, "Largest record batch, as it is sent.", used=True
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = long(
    "message.timestamp.after.max.ms",
    3_600_000,
    "[0,...]",
    MEDIUM,
    "How far a record's timestamp may lie ahead of the broker's clock.",
    used=True,
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long(
    "message.timestamp.before.max.ms",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "How far a record's timestamp may lie behind the broker's clock.",
    used=True,
)
MESSAGE_TIMESTAMP_TYPE = string(
    "message.timestamp.type",
    "CreateTime",
    "[CreateTime, LogAppendTime]",
    MEDIUM,
    "Whether records carry the time they were made or the time they were appended.",
    used=True,
)
MIN_CLEANABLE_DIRTY_RATIO = double(
    "min.cleanable.dirty.ratio",
    0.5,
    "[0,...,1]",
    MEDIUM,
    "Part of a log that must be dirty before it is compacted.",
    used=True,
)
MIN_COMPACTION_LAG_MS = long(
    "min.compaction.lag.ms", 0, "[0,...]", MEDIUM, "Shortest time a record stays out of compaction.", used=True
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas", 1, "[1,...]", MEDIUM, "In-sync replicas that acks=all needs.", used=True
)
PREALLOCATE = boolean("preallocate", False, MEDIUM, "Whether segment files are given their full size when created.")
REMOTE_COPY_LAG_BYTES = long(
    "remote.copy.lag.bytes",
    -1,
    "[-1,...]",
    MEDIUM,
    "Bytes a rolled segment lags behind before it is copied to remote storage.",
)
REMOTE_COPY_LAG_MS = long(
    "remote.copy.lag.ms", 0, "[-1,...]", MEDIUM, "Time a rolled segment waits before it is copied to remote storage."
)
REMOTE_LOG_COPY_DISABLE = boolean(
    "remote.log.copy.disable", False, MEDIUM, "Whether a tiered topic stops copying segments to remote storage."
)
REMOTE_LOG_DELETE_ON_DISABLE = boolean(
    "remote.log.delete.on.disable", False, MEDIUM, "Whether remote segments are deleted when tiering is switched off."
)
REMOTE_STORAGE_ENABLE = boolean("remote.storage.enable", False, MEDIUM, "Whether the topic is tiered.")
RETENTION_BYTES = long(
    "retention.bytes",
    -1,
    "",
    MEDIUM,
    "Size of a partition above which old segments are deleted; -1 is no limit.",
    used=True,
)
RETENTION_MS = long(
    "retention.ms", 604_800_000, "[-1,...]", MEDIUM, "Time a segment is kept; -1 is for ever.", used=True
)
SEGMENT_BYTES = integer(
    "segment.bytes", 1_073_741_824, "[1048576,...]", MEDIUM, "Size at which a segment is rolled.", used=True
)
SEGMENT_INDEX_BYTES = integer(
    "segment.index.bytes", 10_485_760, "[4,...]", MEDIUM, "Largest size of an index file.", used=True
)
SEGMENT_JITTER_MS = long(
    "segment.jitter.ms",
    0,
    "[0,...]",
    MEDIUM,
    "Random shortening of the time after which a segment is rolled.",
    used=True,
)
SEGMENT_MS = long("segment.ms", 604_800_000, "[1,...]", MEDIUM, "Time after which a segment is rolled.", used=True)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    MEDIUM,
    "Whether a replica outside the ISR may lead, at the price of lost records.",
)

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

TOPIC_KEYS: Final[dict[str, ConfigKey[Any]]] = {
    key.name: key for key in list(globals().values()) if isinstance(key, ConfigKey)
}
"""Every topic key by name."""

for _name, _synonyms in SYNONYMS.items():
    TOPIC_KEYS[_name].synonyms = _synonyms

_ATTRIBUTES: Final = {name: name.replace(".", "_") for name in TOPIC_KEYS}


class LogConfig:
    """The configs of one topic as plain attributes, named after the keys; `LogConfig()` is Kafka's defaults.

    Sizes are bytes, times milliseconds; -1 as a limit means none. `cleanup_policy` is a set, since its order
    means nothing.
    """

    __slots__ = tuple(_ATTRIBUTES.values())

    cleanup_policy: frozenset[str]
    compression_gzip_level: int
    compression_lz4_level: int
    compression_type: str
    compression_zstd_level: int
    delete_retention_ms: int
    errors_deadletterqueue_group_enable: bool
    file_delete_delay_ms: int
    flush_messages: int
    flush_ms: int
    follower_replication_throttled_replicas: tuple[str, ...]
    index_interval_bytes: int
    leader_replication_throttled_replicas: tuple[str, ...]
    local_retention_bytes: int
    local_retention_ms: int
    max_compaction_lag_ms: int
    max_decompressed_message_bytes: int
    max_message_bytes: int
    message_timestamp_after_max_ms: int
    message_timestamp_before_max_ms: int
    message_timestamp_type: str
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    min_insync_replicas: int
    preallocate: bool
    remote_copy_lag_bytes: int
    remote_copy_lag_ms: int
    remote_log_copy_disable: bool
    remote_log_delete_on_disable: bool
    remote_storage_enable: bool
    retention_bytes: int
    retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    segment_jitter_ms: int
    segment_ms: int
    unclean_leader_election_enable: bool

    def __init__(self) -> None:
        for name, attribute in _ATTRIBUTES.items():
            setattr(self, attribute, _plain(name, TOPIC_KEYS[name].default))

    @staticmethod
    def from_map(overrides: Mapping[str, str], defaults: Mapping[str, str]) -> LogConfig:
        """Build from a topic's own configs over the broker's defaults, both as text; ConfigError on a bad one."""
        config = LogConfig()
        for source in (defaults, overrides):
            for name, text in source.items():
                if name not in TOPIC_KEYS:
                    raise ConfigError(f"Unknown topic config name: {name}")
                setattr(config, _ATTRIBUTES[name], _plain(name, TOPIC_KEYS[name].parse(text)))
        return config

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LogConfig):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        default = LogConfig()
        changed = (n for n in self.__slots__ if getattr(self, n) != getattr(default, n))
        return f"LogConfig({', '.join(f'{n}={getattr(self, n)!r}' for n in changed)})"


def _plain(name: str, value: ConfigValue) -> ConfigValue | frozenset[str]:
    return frozenset(value) if name == "cleanup.policy" and isinstance(value, tuple) else value


def check_topic_configs(configs: Mapping[str, str], defaults: Mapping[str, str]) -> None:
    """Check a topic's configs as a whole, beyond each value: ConfigError says what does not go together."""
    config = LogConfig.from_map(configs, defaults)
    if config.max_compaction_lag_ms < config.min_compaction_lag_ms:
        raise ConfigError(
            f"conflict topic config setting min.compaction.lag.ms ({config.min_compaction_lag_ms}) > "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
    if config.remote_storage_enable:
        raise ConfigError(
            "Tiered storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
