"""Classic groups, committed offsets, and the consumer protocol of KIP-848."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    INT_MAX,
    MEDIUM,
    integer,
    list_of,
    long,
    short,
    string,
)

GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS = integer(
    "group.consumer.assignment.interval.ms",
    1000,
    "[0,...]",
    MEDIUM,
    "Minimum time between two assignments of a consumer group (KIP-848).",
    dynamic=CLUSTER_WIDE,
)
GROUP_CONSUMER_ASSIGNORS = list_of(
    "group.consumer.assignors",
    ("uniform", "range"),
    "",
    MEDIUM,
    "Assignors that consumer groups may use, the first by default.",
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.heartbeat.interval.ms",
    5000,
    "[1,...]",
    MEDIUM,
    "Heartbeat interval sent to members of consumer groups.",
)
GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS = integer(
    "group.consumer.max.assignment.interval.ms",
    15000,
    "[0,...]",
    MEDIUM,
    "Upper limit for a group's own consumer.assignment.interval.ms.",
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.max.heartbeat.interval.ms",
    15000,
    "[1,...]",
    MEDIUM,
    "Upper limit for a group's own consumer.heartbeat.interval.ms.",
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS = integer(
    "group.consumer.max.session.timeout.ms",
    60000,
    "[1,...]",
    MEDIUM,
    "Upper limit for a group's own consumer.session.timeout.ms.",
)
GROUP_CONSUMER_MAX_SIZE = integer(
    "group.consumer.max.size", INT_MAX, "[1,...]", MEDIUM, "Maximum number of members of a consumer group."
)
GROUP_CONSUMER_MIGRATION_POLICY = string(
    "group.consumer.migration.policy",
    "bidirectional",
    "(case insensitive) [DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL]",
    MEDIUM,
    "Directions in which groups may change between the classic and the consumer protocol.",
)
GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS = integer(
    "group.consumer.min.assignment.interval.ms",
    0,
    "[0,...]",
    MEDIUM,
    "Lower limit for a group's own consumer.assignment.interval.ms.",
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = integer(
    "group.consumer.min.heartbeat.interval.ms",
    5000,
    "[1,...]",
    MEDIUM,
    "Lower limit for a group's own consumer.heartbeat.interval.ms.",
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS = integer(
    "group.consumer.min.session.timeout.ms",
    45000,
    "[1,...]",
    MEDIUM,
    "Lower limit for a group's own consumer.session.timeout.ms.",
)
GROUP_CONSUMER_SESSION_TIMEOUT_MS = integer(
    "group.consumer.session.timeout.ms",
    45000,
    "[1,...]",
    MEDIUM,
    "Time without heartbeat after which a member of a consumer group is removed.",
)
GROUP_COORDINATOR_REBALANCE_PROTOCOLS = list_of(
    "group.coordinator.rebalance.protocols",
    ("classic", "consumer", "streams"),
    "[consumer, classic, share, streams]",
    MEDIUM,
    "Group protocols that are enabled.",
)
GROUP_INITIAL_REBALANCE_DELAY_MS = integer(
    "group.initial.rebalance.delay.ms",
    3000,
    "",
    MEDIUM,
    "Time an empty classic group waits for more members before its first rebalance.",
)
GROUP_MAX_SESSION_TIMEOUT_MS = integer(
    "group.max.session.timeout.ms",
    1_800_000,
    "",
    MEDIUM,
    "Maximum session timeout a member of a classic group may request.",
)
GROUP_MAX_SIZE = integer("group.max.size", INT_MAX, "[1,...]", MEDIUM, "Maximum number of members of a classic group.")
GROUP_MIN_SESSION_TIMEOUT_MS = integer(
    "group.min.session.timeout.ms", 6000, "", MEDIUM, "Minimum session timeout a member of a classic group may request."
)
OFFSET_METADATA_MAX_BYTES = integer(
    "offset.metadata.max.bytes", 4096, "", HIGH, "Maximum length of the metadata string of a committed offset."
)
OFFSETS_COMMIT_TIMEOUT_MS = integer(
    "offsets.commit.timeout.ms", 5000, "[1,...]", HIGH, "Time an offset commit waits to be replicated."
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = long(
    "offsets.retention.check.interval.ms", 600_000, "[1,...]", HIGH, "Time between two checks for expired offsets."
)
OFFSETS_RETENTION_MINUTES = integer(
    "offsets.retention.minutes",
    10080,
    "[1,...]",
    HIGH,
    "Time committed offsets are kept after their group became empty.",
)
OFFSETS_TOPIC_COMPRESSION_CODEC = integer(
    "offsets.topic.compression.codec", 0, "", HIGH, "Codec id of the batches of the offsets topic."
)
OFFSETS_TOPIC_NUM_PARTITIONS = integer(
    "offsets.topic.num.partitions", 50, "[1,...]", HIGH, "Partitions of __consumer_offsets."
)
OFFSETS_TOPIC_REPLICATION_FACTOR = short(
    "offsets.topic.replication.factor", 3, "[1,...]", HIGH, "Replicas of __consumer_offsets."
)
OFFSETS_TOPIC_SEGMENT_BYTES = integer(
    "offsets.topic.segment.bytes", 104_857_600, "[1,...]", HIGH, "Segment size of __consumer_offsets."
)
