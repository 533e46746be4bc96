"""`LogConfig`: the values of all config keys for one topic.

A value is the topic's own override, else the value of the broker's synonym (`log.segment.bytes` for `segment.bytes`),
else Kafka's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.storage.batch_content import FULL, UNLIMITED_MS
from barnabas.storage.topic_keys import TOPIC_KEYS
from barnabas.wire.configdef import ConfigError, ConfigValue

_ATTRIBUTES: Final = {name: name.replace(".", "_") for name in TOPIC_KEYS}


class LogConfig:
    """The configs of one topic as attributes, named after the keys; `LogConfig()` has Kafka's defaults.

    Sizes are bytes, times milliseconds; the limit -1 means no limit. `cleanup_policy` is a set: its order is ignored.
    """

    __slots__ = ("_checks_as_usual", *_ATTRIBUTES.values(), "record_validation")

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
    _checks_as_usual: bool | None
    record_validation: str
    """How produced batches are checked: `barnabas.produce.validation` of the broker, no config of the topic."""

    def __init__(self) -> None:
        for name, attribute in _ATTRIBUTES.items():
            setattr(self, attribute, _plain(name, TOPIC_KEYS[name].default))
        self.record_validation = "full"

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        object.__setattr__(self, "_checks_as_usual", None)

    @property
    def checks_as_usual(self) -> bool:
        """Whether records are checked in full, with timestamps of their producers and no keys needed."""
        known = self._checks_as_usual
        if known is None:
            known = (
                self.record_validation == FULL
                and self.message_timestamp_type == "CreateTime"
                and self.message_timestamp_before_max_ms == UNLIMITED_MS
                and "compact" not in self.cleanup_policy
            )
            object.__setattr__(self, "_checks_as_usual", known)
        return known

    @staticmethod
    def from_map(overrides: Mapping[str, str], defaults: Mapping[str, str]) -> LogConfig:
        """Make it from a topic's own configs and the broker's defaults, as text; ConfigError for an invalid value."""
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
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__[1:])

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        default = LogConfig()
        changed = (n for n in self.__slots__[1:] if getattr(self, n) != getattr(default, n))
        return f"LogConfig({', '.join(f'{n}={getattr(self, n)!r}' for n in changed)})"


def _plain(name: str, value: ConfigValue) -> ConfigValue | frozenset[str]:
    return frozenset(value) if name == "cleanup.policy" and isinstance(value, tuple) else value


def check_topic_configs(configs: Mapping[str, str], defaults: Mapping[str, str]) -> None:
    """Check combinations of a topic's configs; ConfigError for a combination that is not allowed."""
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
