"""Topic configs: Kafka's table, values over defaults, and combinations that are rejected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from barnabas.storage.log_config import LogConfig, check_topic_configs
from barnabas.storage.topic_keys import SYNONYMS, TOPIC_KEYS
from barnabas.wire.configdef import ConfigError

TABLE = json.loads((Path(__file__).parents[1] / "data" / "kafka-4.4.0-configs.json").read_text())


def test_every_topic_key_is_declared_as_kafka_declares_it() -> None:
    declared = [
        {
            "name": key.name,
            "type": key.type,
            "default": key.format(key.default),
            "required": key.required,
            "importance": key.importance,
            **({"valid": key.valid} if key.valid else {}),
        }
        for key in TOPIC_KEYS.values()
    ]
    assert declared == TABLE["topic_configs"]


def test_defaults_of_every_key_are_valid_values() -> None:
    for key in TOPIC_KEYS.values():
        assert key.parse(key.format(key.default) or "") == key.default


def test_synonyms_are_broker_keys_of_kafka() -> None:
    broker_keys = {entry["name"] for entry in TABLE["broker_configs"]}
    assert {name for synonyms in SYNONYMS.values() for name, _ in synonyms} <= broker_keys


def test_an_untouched_config_has_kafkas_defaults() -> None:
    config = LogConfig()
    assert config.segment_bytes == 1 << 30
    assert config.retention_ms == 7 * 24 * 3600 * 1000
    assert config.cleanup_policy == frozenset({"delete"})
    assert config.message_timestamp_type == "CreateTime"
    assert config.min_cleanable_dirty_ratio == 0.5
    assert config.preallocate is False
    assert config == LogConfig.from_map({}, {})


def test_a_topics_own_value_wins_over_the_brokers() -> None:
    config = LogConfig.from_map({"retention.ms": "1"}, {"retention.ms": "2", "segment.ms": "3"})
    assert (config.retention_ms, config.segment_ms) == (1, 3)
    assert config != LogConfig()
    assert repr(config) == "LogConfig(retention_ms=1, segment_ms=3)"


def test_order_of_cleanup_policies_is_ignored() -> None:
    first = LogConfig.from_map({"cleanup.policy": "compact,delete"}, {})
    second = LogConfig.from_map({"cleanup.policy": "delete, compact"}, {})
    assert first == second


def test_unknown_names_and_bad_values_are_refused() -> None:
    with pytest.raises(ConfigError, match="Unknown topic config name: retention"):
        LogConfig.from_map({"retention": "1"}, {})
    with pytest.raises(ConfigError, match="Value must be at least -1"):
        LogConfig.from_map({"retention.ms": "-2"}, {})


def test_min_compaction_lag_must_not_exceed_the_max() -> None:
    with pytest.raises(ConfigError, match=r"min.compaction.lag.ms \(5\) > max.compaction.lag.ms \(4\)"):
        check_topic_configs({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"}, {})
    check_topic_configs({"min.compaction.lag.ms": "4", "max.compaction.lag.ms": "4"}, {})


def test_tiered_topics_are_refused() -> None:
    with pytest.raises(ConfigError, match="Tiered storage functionality is disabled"):
        check_topic_configs({"remote.storage.enable": "true"}, {})
