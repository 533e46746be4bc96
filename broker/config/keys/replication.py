"""Replication between brokers."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    MEDIUM,
    integer,
    long,
    string,
)

NUM_REPLICA_ALTER_LOG_DIRS_THREADS = integer(
    "num.replica.alter.log.dirs.threads",
    None,
    "",
    HIGH,
    "Replicas that are moved between log directories at a time; as many as there are directories if not set.",
)
NUM_REPLICA_FETCHERS = integer(
    "num.replica.fetchers", 1, "[1,...]", HIGH, "Threads that fetch from each other broker.", dynamic=CLUSTER_WIDE
)
REPLICA_FETCH_BACKOFF_MS = integer(
    "replica.fetch.backoff.ms", 1000, "[0,...]", MEDIUM, "Wait after a failed fetch of a follower."
)
REPLICA_FETCH_MAX_BYTES = integer(
    "replica.fetch.max.bytes", 1_048_576, "[0,...]", MEDIUM, "Bytes a follower fetches of one partition at a time."
)
REPLICA_FETCH_MIN_BYTES = integer(
    "replica.fetch.min.bytes", 1, "", HIGH, "Minimum number of bytes that a follower's fetch waits for."
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = integer(
    "replica.fetch.response.max.bytes",
    10_485_760,
    "[0,...]",
    MEDIUM,
    "Maximum number of bytes of one response to a follower.",
)
REPLICA_FETCH_WAIT_MAX_MS = integer("replica.fetch.wait.max.ms", 500, "", HIGH, "Maximum wait of a follower's fetch.")
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = long(
    "replica.high.watermark.checkpoint.interval.ms",
    5000,
    "",
    HIGH,
    "Time between two checkpoints of the high watermarks.",
)
REPLICA_LAG_TIME_MAX_MS = long(
    "replica.lag.time.max.ms", 30000, "", HIGH, "Time after which a follower that has not caught up leaves the ISR."
)
REPLICA_SELECTOR_CLASS = string(
    "replica.selector.class",
    None,
    "",
    MEDIUM,
    "How a consumer's replica is chosen: org.apache.kafka.common.replica.RackAwareReplicaSelector sends it to one in "
    "its rack. Not set: it reads from the leader.",
)
REPLICA_SOCKET_TIMEOUT_MS = integer(
    "replica.socket.timeout.ms", 30000, "", HIGH, "Socket timeout of a follower's connections."
)
