"""Share groups (KIP-932) and streams groups (KIP-1071), with the share coordinator."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    INT_MAX,
    LOW,
    MEDIUM,
    integer,
    list_of,
    short,
)

GROUP_SHARE_ASSIGNMENT_INTERVAL_MS = integer(
    "group.share.assignment.interval.ms",
    1000,
    "[0,...]",
    MEDIUM,
    "Minimum time between two assignments of a share group (KIP-932).",
    dynamic=CLUSTER_WIDE,
)
GROUP_SHARE_ASSIGNORS = list_of(
    "group.share.assignors", ("simple",), "", MEDIUM, "Assignors that share groups may use."
)
GROUP_SHARE_DELIVERY_COUNT_LIMIT = integer(
    "group.share.delivery.count.limit",
    5,
    "[2,...,10]",
    MEDIUM,
    "How often a record is delivered to a share group at most.",
)
GROUP_SHARE_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.heartbeat.interval.ms", 5000, "[1,...]", MEDIUM, "Heartbeat interval sent to members of share groups."
)
GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS = integer(
    "group.share.max.assignment.interval.ms",
    15000,
    "[0,...]",
    MEDIUM,
    "Upper limit for a group's own share.assignment.interval.ms.",
)
GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT = integer(
    "group.share.max.delivery.count.limit",
    10,
    "[5,...,25]",
    MEDIUM,
    "Upper limit for a group's own share.delivery.count.limit.",
)
GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.max.heartbeat.interval.ms",
    15000,
    "[1,...]",
    MEDIUM,
    "Upper limit for a group's own share.heartbeat.interval.ms.",
)
GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.max.partition.max.record.locks",
    4000,
    "[2000,...,10000]",
    MEDIUM,
    "Upper limit for a group's own share.partition.max.record.locks.",
)
GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS = integer(
    "group.share.max.record.lock.duration.ms",
    60000,
    "[30000,...,3600000]",
    MEDIUM,
    "Upper limit for a group's own share.record.lock.duration.ms.",
)
GROUP_SHARE_MAX_SESSION_TIMEOUT_MS = integer(
    "group.share.max.session.timeout.ms",
    60000,
    "[1,...]",
    MEDIUM,
    "Upper limit for a group's own share.session.timeout.ms.",
)
GROUP_SHARE_MAX_SHARE_SESSIONS = integer(
    "group.share.max.share.sessions", 2000, "[1,...]", MEDIUM, "Maximum number of share sessions at a time."
)
GROUP_SHARE_MAX_SIZE = integer(
    "group.share.max.size", 200, "[1,...,1000]", MEDIUM, "Maximum number of members of a share group."
)
GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS = integer(
    "group.share.min.assignment.interval.ms",
    0,
    "[0,...]",
    MEDIUM,
    "Lower limit for a group's own share.assignment.interval.ms.",
)
GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT = integer(
    "group.share.min.delivery.count.limit",
    2,
    "[2,...,5]",
    MEDIUM,
    "Lower limit for a group's own share.delivery.count.limit.",
)
GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.share.min.heartbeat.interval.ms",
    5000,
    "[1,...]",
    MEDIUM,
    "Lower limit for a group's own share.heartbeat.interval.ms.",
)
GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.min.partition.max.record.locks",
    100,
    "[100,...,2000]",
    MEDIUM,
    "Lower limit for a group's own share.partition.max.record.locks.",
)
GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS = integer(
    "group.share.min.record.lock.duration.ms",
    15000,
    "[1000,...,30000]",
    MEDIUM,
    "Lower limit for a group's own share.record.lock.duration.ms.",
)
GROUP_SHARE_MIN_SESSION_TIMEOUT_MS = integer(
    "group.share.min.session.timeout.ms",
    45000,
    "[1,...]",
    MEDIUM,
    "Lower limit for a group's own share.session.timeout.ms.",
)
GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS = integer(
    "group.share.partition.max.record.locks",
    2000,
    "[100,...,10000]",
    MEDIUM,
    "Maximum number of records of one partition that a share group holds locked.",
)
GROUP_SHARE_RECORD_LOCK_DURATION_MS = integer(
    "group.share.record.lock.duration.ms",
    30000,
    "[1000,...,3600000]",
    MEDIUM,
    "Time a record stays locked for the member that acquired it.",
)
GROUP_SHARE_SESSION_TIMEOUT_MS = integer(
    "group.share.session.timeout.ms",
    45000,
    "[1,...]",
    MEDIUM,
    "Time without heartbeat after which a member of a share group is removed.",
)
GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS = integer(
    "group.streams.assignment.interval.ms",
    1000,
    "[0,...]",
    MEDIUM,
    "Minimum time between two assignments of a streams group (KIP-1071).",
    dynamic=CLUSTER_WIDE,
)
GROUP_STREAMS_ASSIGNORS = list_of(
    "group.streams.assignors", ("sticky",), "", MEDIUM, "Assignors that streams groups may use."
)
GROUP_STREAMS_HEARTBEAT_INTERVAL_MS = integer(
    "group.streams.heartbeat.interval.ms",
    5000,
    "[1,...]",
    MEDIUM,
    "Heartbeat interval sent to members of streams groups.",
)
GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS = integer(
    "group.streams.initial.rebalance.delay.ms",
    3000,
    "[0,...]",
    MEDIUM,
    "Time an empty streams group waits for more members before its first rebalance.",
)
GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS = integer(
    "group.streams.max.assignment.interval.ms",
    15000,
    "[0,...]",
    MEDIUM,
    "Upper limit for a group's own streams.assignment.interval.ms.",
)
GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.streams.max.heartbeat.interval.ms",
    15000,
    "[1,...]",
    MEDIUM,
    "Upper limit for a group's own streams.heartbeat.interval.ms.",
)
GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS = integer(
    "group.streams.max.session.timeout.ms",
    60000,
    "[1,...]",
    MEDIUM,
    "Upper limit for a group's own streams.session.timeout.ms.",
)
GROUP_STREAMS_MAX_SIZE = integer(
    "group.streams.max.size", INT_MAX, "[1,...]", MEDIUM, "Maximum number of members of a streams group."
)
GROUP_STREAMS_MAX_STANDBY_REPLICAS = integer(
    "group.streams.max.standby.replicas",
    2,
    "[0,...]",
    MEDIUM,
    "Upper limit for a group's own streams.num.standby.replicas.",
)
GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS = integer(
    "group.streams.min.assignment.interval.ms",
    0,
    "[0,...]",
    MEDIUM,
    "Lower limit for a group's own streams.assignment.interval.ms.",
)
GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.streams.min.heartbeat.interval.ms",
    5000,
    "[1,...]",
    MEDIUM,
    "Lower limit for a group's own streams.heartbeat.interval.ms.",
)
GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS = integer(
    "group.streams.min.session.timeout.ms",
    45000,
    "[1,...]",
    MEDIUM,
    "Lower limit for a group's own streams.session.timeout.ms.",
)
GROUP_STREAMS_NUM_STANDBY_REPLICAS = integer(
    "group.streams.num.standby.replicas", 0, "[0,...]", MEDIUM, "Standby replicas of each task of a streams group."
)
GROUP_STREAMS_RACK_AWARE_ASSIGNMENT_TAGS = list_of(
    "group.streams.rack.aware.assignment.tags", (), "", LOW, "Client tags over which standby replicas are spread."
)
GROUP_STREAMS_SESSION_TIMEOUT_MS = integer(
    "group.streams.session.timeout.ms",
    45000,
    "[1,...]",
    MEDIUM,
    "Time without heartbeat after which a member of a streams group is removed.",
)
SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT = integer(
    "share.coordinator.snapshot.update.records.per.snapshot",
    500,
    "[0,...,500]",
    MEDIUM,
    "Updates of a share partition's state between two snapshots of it.",
)
SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC = integer(
    "share.coordinator.state.topic.compression.codec", 0, "", HIGH, "Codec id of the batches of the share state topic."
)
SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR = short(
    "share.coordinator.state.topic.min.isr", 2, "[1,...]", HIGH, "In-sync replicas that the share state topic needs."
)
SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS = integer(
    "share.coordinator.state.topic.num.partitions", 50, "[1,...]", HIGH, "Partitions of __share_group_state."
)
SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR = short(
    "share.coordinator.state.topic.replication.factor", 3, "[1,...]", HIGH, "Replicas of __share_group_state."
)
SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES = integer(
    "share.coordinator.state.topic.segment.bytes", 104_857_600, "[1,...]", HIGH, "Segment size of __share_group_state."
)
SHARE_COORDINATOR_WRITE_TIMEOUT_MS = integer(
    "share.coordinator.write.timeout.ms",
    5000,
    "[1,...]",
    HIGH,
    "Time a write of the share coordinator waits to be replicated.",
)
