"""The declared keys of every type of resource, with which the controller validates and describes configs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.broker.config.checks import check_broker_configs
from barnabas.broker.config.group_limits import LIMITS
from barnabas.broker.config.keys import BROKER_KEYS, DYNAMIC_ONLY_KEYS
from barnabas.broker.config.keys.network import LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS
from barnabas.broker.config.keys.resources import CLIENT_METRICS_KEYS, GROUP_KEYS
from barnabas.broker.config.keys.security import (
    SASL_ENABLED_MECHANISMS,
    SASL_JAAS_CONFIG,
    SASL_MECHANISM_INTER_BROKER_PROTOCOL,
)
from barnabas.broker.config.listener_keys import MECHANISMS, PER_LISTENER, SASL_KEYS, listener_key, sasl_key
from barnabas.coord.cluster.changes.config_schema import ConfigSchema
from barnabas.storage.log_config import check_topic_configs
from barnabas.storage.topic_keys import SYNONYMS, TOPIC_KEYS

ONLY_PER_LISTENER: Final = frozenset(
    name for name in PER_LISTENER if name.startswith(("ssl.keystore.", "ssl.truststore.", "ssl.key."))
)
"""Keys that are dynamic with the prefix of a listener only, as in Kafka (KIP-226)."""
FIXED: Final = frozenset(
    {
        LISTENERS.name,
        LISTENER_SECURITY_PROTOCOL_MAP.name,
        SASL_ENABLED_MECHANISMS.name,
        SASL_JAAS_CONFIG.name,
        SASL_MECHANISM_INTER_BROKER_PROTOCOL.name,
        *ONLY_PER_LISTENER,
    }
)
"""Keys that are dynamic in Kafka, but not in this broker, or not without a prefix: a change is rejected."""


def config_schema(listeners: Iterable[str] = ()) -> ConfigSchema:
    """The schema of a broker with these listeners."""
    listeners = list(listeners)
    of_listeners = {
        key.name: key for base in PER_LISTENER.values() for name in listeners if (key := listener_key(base, name))
    }
    of_listeners |= {
        key.name: key
        for base in SASL_KEYS.values()
        for name in listeners
        for mechanism in (None, *MECHANISMS)
        if (key := sasl_key(base, name, mechanism))
    }
    return ConfigSchema(
        topic_keys=TOPIC_KEYS,
        broker_keys={**BROKER_KEYS, **DYNAMIC_ONLY_KEYS, **of_listeners},
        group_keys=GROUP_KEYS,
        client_metrics_keys=CLIENT_METRICS_KEYS,
        topic_synonyms=SYNONYMS,
        check_topic=check_topic_configs,
        check_broker=check_broker_configs,
        group_limits=LIMITS,
        unlisted={*DYNAMIC_ONLY_KEYS, *of_listeners},
        fixed=FIXED,
    )
