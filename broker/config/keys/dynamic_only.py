"""Keys that Kafka knows only as dynamic configs of a running broker: throttles, and work of group coordinators."""

from __future__ import annotations

from barnabas.wire.configdef import LONG_MAX, MEDIUM, PER_BROKER, long

LEADER_REPLICATION_THROTTLED_RATE = long(
    "leader.replication.throttled.rate",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum bytes per second that throttled leaders send to followers.",
    dynamic=PER_BROKER,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = long(
    "follower.replication.throttled.rate",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum bytes per second that throttled followers fetch.",
    dynamic=PER_BROKER,
)
REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND = long(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum bytes per second moved between log directories.",
    dynamic=PER_BROKER,
)
