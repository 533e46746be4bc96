"""The settings of groups: what ConfigRecords say of each over the broker's own keys (KIP-848, KIP-932, KIP-1071).

A group's value counts as far as the broker's limits of now allow; a limit that has moved is told in the log. Settings
are worked out when they are first asked for and kept until a config changes, so that asking costs a dictionary lookup.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.config.keys import groups as g
from barnabas.broker.config.keys import share_and_streams as s
from barnabas.broker.config.keys.resources import GROUP_KEYS
from barnabas.coord.cluster.group_configs import ASSIGNOR_NAME, AUTO_OFFSET_RESET, GroupLimits
from barnabas.coord.cluster.image import BROKER, GROUP
from barnabas.coord.groups.settings import GroupSettings, parse_auto_offset_reset
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.context import Broker
    from barnabas.coord.cluster.image import ClusterDelta

logger = logging.getLogger("kafka.coordinator.GroupConfig")

LIMITS: Final[dict[str, GroupLimits]] = {
    "consumer.session.timeout.ms": GroupLimits(
        g.GROUP_CONSUMER_SESSION_TIMEOUT_MS,
        g.GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
        g.GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    ),
    "consumer.heartbeat.interval.ms": GroupLimits(
        g.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
        g.GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
        g.GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    "consumer.assignment.interval.ms": GroupLimits(
        g.GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS,
        g.GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS,
        g.GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
    "share.session.timeout.ms": GroupLimits(
        s.GROUP_SHARE_SESSION_TIMEOUT_MS, s.GROUP_SHARE_MIN_SESSION_TIMEOUT_MS, s.GROUP_SHARE_MAX_SESSION_TIMEOUT_MS
    ),
    "share.heartbeat.interval.ms": GroupLimits(
        s.GROUP_SHARE_HEARTBEAT_INTERVAL_MS,
        s.GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS,
        s.GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    "share.assignment.interval.ms": GroupLimits(
        s.GROUP_SHARE_ASSIGNMENT_INTERVAL_MS,
        s.GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS,
        s.GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
    "share.record.lock.duration.ms": GroupLimits(
        s.GROUP_SHARE_RECORD_LOCK_DURATION_MS,
        s.GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS,
        s.GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS,
    ),
    "share.delivery.count.limit": GroupLimits(
        s.GROUP_SHARE_DELIVERY_COUNT_LIMIT,
        s.GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT,
        s.GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT,
    ),
    "share.partition.max.record.locks": GroupLimits(
        s.GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS,
        s.GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS,
        s.GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS,
    ),
    "streams.session.timeout.ms": GroupLimits(
        s.GROUP_STREAMS_SESSION_TIMEOUT_MS,
        s.GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS,
        s.GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS,
    ),
    "streams.heartbeat.interval.ms": GroupLimits(
        s.GROUP_STREAMS_HEARTBEAT_INTERVAL_MS,
        s.GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS,
        s.GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS,
    ),
    "streams.assignment.interval.ms": GroupLimits(
        s.GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS,
        s.GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS,
        s.GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS,
    ),
    "streams.num.standby.replicas": GroupLimits(
        s.GROUP_STREAMS_NUM_STANDBY_REPLICAS, highest=s.GROUP_STREAMS_MAX_STANDBY_REPLICAS
    ),
    "streams.initial.rebalance.delay.ms": GroupLimits(s.GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS),
    "streams.rack.aware.assignment.tags": GroupLimits(s.GROUP_STREAMS_RACK_AWARE_ASSIGNMENT_TAGS),
    "streams.assignor.name": GroupLimits(s.GROUP_STREAMS_ASSIGNORS),
}
"""The broker keys behind each key of groups that has any."""


def check_limits(config: ServerConfig) -> None:
    """Check that the broker's own values are within its limits, as Kafka's start does; ConfigError says which not."""
    for default, lowest, highest in LIMITS.values():
        if lowest is not None and highest is not None and config[highest] < config[lowest]:
            raise ConfigError(f"{highest.name} must be greater than or equal to {lowest.name}")
        if lowest is not None and config[default] < config[lowest]:
            raise ConfigError(f"{default.name} must be greater than or equal to {lowest.name}")
        if highest is not None and config[default] > config[highest]:
            raise ConfigError(f"{default.name} must be less than or equal to {highest.name}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = (
            LIMITS[f"{kind}.{key}"].default for key in ("session.timeout.ms", "heartbeat.interval.ms")
        )
        if config[heartbeat] >= config[session]:
            raise ConfigError(f"{heartbeat.name} must be less than {session.name}")


class GroupConfigs:
    """Gives the settings in force of a group, by its id."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._own: dict[str, GroupSettings] = {}
        self._default: GroupSettings | None = None
        self.on_change: list[Callable[[str], None]] = []
        """Called with the id of a group whose configs have changed, once they are in force."""

    def __call__(self, group_id: str) -> GroupSettings:
        """The settings of a group, whether it exists or not."""
        found = self._own.get(group_id)
        if found is not None:
            return found
        own = self._broker.image.config(GROUP, group_id)
        if own:
            found = self._own[group_id] = self._settings(group_id, own)
            return found
        if self._default is None:
            self._default = self._settings(group_id, {})
        return self._default

    def apply(self, delta: ClusterDelta) -> None:
        """Follow a change of the metadata."""
        if any(kind == BROKER for kind, _ in delta.changed_configs):
            self._own.clear()
            self._default = None
        for kind, name in delta.changed_configs:
            if kind == GROUP:
                self._own.pop(name, None)
                for listener in self.on_change:
                    listener(name)

    def _settings(self, group_id: str, own: dict[str, str]) -> GroupSettings:
        values = {name: self._value(group_id, name, own.get(name)) for name in GROUP_KEYS}
        for kind in ("consumer", "share", "streams"):
            session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
            if (session in own or heartbeat in own) and values[session] <= values[heartbeat]:
                logger.warning(
                    "The %s of group %r is %d, not greater than its %s %d: look at the broker's limits of both",
                    session,
                    group_id,
                    values[session],
                    heartbeat,
                    values[heartbeat],
                )
        return GroupSettings(**{name.replace(".", "_"): value for name, value in values.items()})

    def _value(self, group_id: str, name: str, text: str | None) -> Any:
        limits = LIMITS.get(name)
        config = self._broker.config
        if text is None:
            value = GROUP_KEYS[name].default if limits is None else config[limits.default]
            if name == ASSIGNOR_NAME:
                return value[0]
        else:
            value = GROUP_KEYS[name].parse(text)
        if name == AUTO_OFFSET_RESET:
            return parse_auto_offset_reset(value)
        if text is None or limits is None or (limits.lowest is None and limits.highest is None):
            return value
        allowed = limits.clamped(value, config.__getitem__)
        if allowed != value:
            logger.warning(
                "%s=%s of group %r is outside the broker's limits: %d counts", name, value, group_id, allowed
            )
        return allowed
