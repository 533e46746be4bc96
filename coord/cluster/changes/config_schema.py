"""The interfaces to the declared config keys of each resource type, and to a broker's own settings.

The keys are declared in the packages that use them and are passed in, so that this package depends on none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

from barnabas.coord.cluster.changes.group_configs import GroupLimits
from barnabas.coord.cluster.resources import BROKER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.wire.configdef import READ_ONLY, ConfigKey

Keys = Mapping[str, ConfigKey[Any]]

# Sources of a value in DescribeConfigs (Kafka's ConfigEntry.ConfigSource).
DYNAMIC_TOPIC_CONFIG: Final = 1
DYNAMIC_BROKER_CONFIG: Final = 2
DYNAMIC_DEFAULT_BROKER_CONFIG: Final = 3
STATIC_BROKER_CONFIG: Final = 4
DEFAULT_CONFIG: Final = 5
DYNAMIC_BROKER_LOGGER_CONFIG: Final = 6
CLIENT_METRICS_CONFIG: Final = 7
GROUP_CONFIG: Final = 8


class BrokerSettings(Protocol):
    """A broker's own settings."""

    def text_layers(self, name: str) -> list[tuple[int, str]]:
        """(source, value) of a broker key by precedence; Kafka's default is the last."""

    def topic_defaults(self) -> Mapping[str, str]:
        """The topic configs that are derived from the broker's settings, as text by key."""


class ConfigSchema:
    """The config keys of every resource type."""

    def __init__(
        self,
        *,
        topic_keys: Keys,
        broker_keys: Keys,
        group_keys: Keys,
        client_metrics_keys: Keys,
        topic_synonyms: Mapping[str, tuple[tuple[str, int], ...]],
        check_topic: Callable[[Mapping[str, str], Mapping[str, str]], None],
        check_broker: Callable[[Mapping[str, Any]], None] = lambda _: None,
        group_limits: Mapping[str, GroupLimits] | None = None,
        unlisted: Collection[str] = (),
        fixed: Collection[str] = (),
    ) -> None:
        """`check_topic(configs, defaults)` raises ConfigError when a topic's configs contradict each other, and
        `check_broker(values)` when the dynamic configs of a broker do.

        `group_limits` has the broker keys that give the default and limits of group keys. `unlisted` are broker keys
        that DescribeConfigs returns only when they are set; `fixed` are dynamic keys of Kafka that are read-only here.
        """
        self.keys: dict[int, Keys] = {
            TOPIC: topic_keys,
            BROKER: broker_keys,
            GROUP: group_keys,
            CLIENT_METRICS: client_metrics_keys,
        }
        self.topic_synonyms = topic_synonyms
        self.check_topic = check_topic
        self.check_broker = check_broker
        self.group_limits = group_limits or {}
        self.unlisted = unlisted
        self._fixed = fixed

    def group_synonym(self, name: str) -> str | None:
        """The broker key with the default of a group key, or None."""
        limits = self.group_limits.get(name)
        return None if limits is None else limits.default.name

    def is_read_only(self, key: ConfigKey[Any]) -> bool:
        """Whether a change of a broker key needs a restart of the broker."""
        return key.dynamic == READ_ONLY or key.name in self._fixed


BROKER_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "log.roll.ms": ("log.roll.ms", "log.roll.hours"),
    "log.roll.hours": ("log.roll.ms", "log.roll.hours"),
    "log.roll.jitter.ms": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.roll.jitter.hours": ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    "log.retention.ms": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.minutes": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    "log.retention.hours": ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
}
"""Synonyms of broker keys, by precedence. Source: `DynamicBrokerConfig.brokerConfigSynonyms`."""
