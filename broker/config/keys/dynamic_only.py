"""Keys that Kafka knows only as dynamic configs of a running broker: throttles, and work of group coordinators."""

from __future__ import annotations

from barnabas.wire.configdef import CLUSTER_WIDE, LONG_MAX, MEDIUM, PER_BROKER, boolean, long

LEADER_REPLICATION_THROTTLED_RATE = long(
    "leader.replication.throttled.rate",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum bytes per second that throttled leaders send to followers.",
    dynamic=PER_BROKER,
    used=True,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = long(
    "follower.replication.throttled.rate",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum bytes per second that throttled followers fetch.",
    dynamic=PER_BROKER,
    used=True,
)
REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND = long(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG_MAX,
    "[0,...]",
    MEDIUM,
    "Maximum bytes per second moved between log directories.",
    dynamic=PER_BROKER,
    used=True,
)
GROUP_CONSUMER_ASSIGNOR_OFFLOAD_ENABLE = boolean(
    "group.consumer.assignor.offload.enable",
    True,
    MEDIUM,
    "Whether assignments of consumer groups are computed in the background.",
    dynamic=CLUSTER_WIDE,
)
GROUP_SHARE_ASSIGNOR_OFFLOAD_ENABLE = boolean(
    "group.share.assignor.offload.enable",
    True,
    MEDIUM,
    "Whether assignments of share groups are computed in the background.",
    dynamic=CLUSTER_WIDE,
)
GROUP_STREAMS_ASSIGNOR_OFFLOAD_ENABLE = boolean(
    "group.streams.assignor.offload.enable",
    True,
    MEDIUM,
    "Whether assignments of streams groups are computed in the background.",
    dynamic=CLUSTER_WIDE,
)
