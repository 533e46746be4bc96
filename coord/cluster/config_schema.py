"""What the controller knows about configs: the declared keys of each kind of resource, and a broker's own settings.

The declarations live with those who act on them; they are handed in, so that this package knows none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

from barnabas.coord.cluster.group_configs import GroupLimits
from barnabas.coord.cluster.image import BROKER, CLIENT_METRICS, GROUP, TOPIC
from barnabas.wire.configdef import READ_ONLY, ConfigKey

Keys = Mapping[str, ConfigKey[Any]]

# Where a value comes from, as DescribeConfigs says it (Kafka's ConfigEntry.ConfigSource).
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
        """Each (source, value) that a broker key has, strongest first, Kafka's default last."""

    def topic_defaults(self) -> Mapping[str, str]:
        """Topic configs that follow from the broker's settings, as text."""


class ConfigSchema:
    """The keys of every kind of resource that has configs."""

    def __init__(
        self,
        *,
        topic_keys: Keys,
        broker_keys: Keys,
        group_keys: Keys,
        client_metrics_keys: Keys,
        topic_synonyms: Mapping[str, tuple[tuple[str, int], ...]],
        check_topic: Callable[[Mapping[str, str], Mapping[str, str]], None],
        group_limits: Mapping[str, GroupLimits] | None = None,
        unlisted: Collection[str] = (),
        fixed: Collection[str] = (),
    ) -> None:
        """`check_topic(configs, defaults)` raises ConfigError when a topic's configs do not go together.

        `group_limits` names the broker keys behind those of groups. `unlisted` are broker keys that
        DescribeConfigs tells only when they are set; `fixed` are those that cannot change here while the broker runs,
        although Kafka's can.
        """
        self.keys: dict[int, Keys] = {
            TOPIC: topic_keys,
            BROKER: broker_keys,
            GROUP: group_keys,
            CLIENT_METRICS: client_metrics_keys,
        }
        self.topic_synonyms = topic_synonyms
        self.check_topic = check_topic
        self.group_limits = group_limits or {}
        self.unlisted = unlisted
        self._fixed = fixed

    def group_synonym(self, name: str) -> str | None:
        """The broker key that gives a group key's default; None where there is none."""
        limits = self.group_limits.get(name)
        return None if limits is None else limits.default.name

    def is_read_only(self, key: ConfigKey[Any]) -> bool:
        """Whether a broker key holds until the broker is started again."""
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
"""Broker keys that stand in for one another. Source: `DynamicBrokerConfig.brokerConfigSynonyms`."""
