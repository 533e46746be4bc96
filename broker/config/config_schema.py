"""The declared keys of every type of resource, with which the controller validates and describes configs."""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.group_limits import LIMITS
from barnabas.broker.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from barnabas.broker.config.keys.network import LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS
from barnabas.broker.config.keys.resources import CLIENT_METRICS_KEYS, GROUP_KEYS
from barnabas.coord.cluster.config_schema import ConfigSchema
from barnabas.storage.log_config import check_topic_configs
from barnabas.storage.topic_keys import SYNONYMS, TOPIC_KEYS

FIXED: Final = frozenset({LISTENERS.name, LISTENER_SECURITY_PROTOCOL_MAP.name})
"""Keys that are dynamic in Kafka, but not in this broker: a change is rejected."""

CONFIG_SCHEMA: Final = ConfigSchema(
    topic_keys=TOPIC_KEYS,
    broker_keys={**BROKER_KEYS, **DYNAMIC_ONLY_KEYS},
    group_keys=GROUP_KEYS,
    client_metrics_keys=CLIENT_METRICS_KEYS,
    topic_synonyms=SYNONYMS,
    check_topic=check_topic_configs,
    group_limits=LIMITS,
    unlisted=DYNAMIC_ONLY_KEYS,
    fixed=FIXED,
)
