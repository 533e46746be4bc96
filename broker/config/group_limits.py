"""The broker keys that give each group config its default and bound it: `group.consumer.session.timeout.ms` and its
minimum and maximum for `consumer.session.timeout.ms` (KIP-848, KIP-932, KIP-1071).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from barnabas.broker.config.keys import groups as g
from barnabas.broker.config.keys import share_and_streams as s
from barnabas.coord.cluster.changes.group_configs import GroupLimits
from barnabas.wire.configdef import ConfigError, ConfigKey

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
"""Default, minimum and maximum of each group config that has any."""


def check_limits(value: Callable[[ConfigKey[Any]], Any]) -> None:
    """Raise ConfigError if a group default of the broker is outside its own limits, as Kafka does at start.

    `value` returns the broker's value of a key.
    """
    for default, lowest, highest in LIMITS.values():
        if lowest is not None and highest is not None and value(highest) < value(lowest):
            raise ConfigError(f"{highest.name} must be greater than or equal to {lowest.name}")
        if lowest is not None and value(default) < value(lowest):
            raise ConfigError(f"{default.name} must be greater than or equal to {lowest.name}")
        if highest is not None and value(default) > value(highest):
            raise ConfigError(f"{default.name} must be less than or equal to {highest.name}")
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = (
            LIMITS[f"{kind}.{key}"].default for key in ("session.timeout.ms", "heartbeat.interval.ms")
        )
        if value(heartbeat) >= value(session):
            raise ConfigError(f"{heartbeat.name} must be less than {session.name}")
