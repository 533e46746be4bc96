"""Barnabas' own keys, named `barnabas.*`: only where Kafka has no key of that meaning."""

from __future__ import annotations

from barnabas.wire.configdef import CLUSTER_WIDE, HIGH, LOW, MEDIUM, ConfigKey, boolean, integer, string

ALWAYS, INTERVAL, OS = "always", "interval", "os"

LOG_SYNC = string(
    "barnabas.log.sync",
    None,
    f"[{ALWAYS}, {INTERVAL}, {OS}]",
    HIGH,
    "When records are flushed to disk. With always: before they are acknowledged and readable. With interval: within "
    "log.flush.interval.ms, by default a second. With os: when the operating system does it, as in Kafka. The default "
    "is always if a data directory is configured, and os for a temporary one.",
)

REQUEST_MAX_ELEMENTS = integer(
    "barnabas.request.max.elements",
    30_000,
    "[1,...]",
    MEDIUM,
    "Most elements of a request: all elements of its arrays, also of nested ones, and tagged fields. The connection of "
    "a request with more is closed before it takes memory and time. The default fits CreateTopics of 10,000 topics "
    "with assigned replicas; no request within it delays other clients by more than 250 ms.",
)

AUTHENTICATION_TIMEOUT_MS = integer(
    "barnabas.authentication.timeout.ms",
    30_000,
    "[1,...]",
    MEDIUM,
    "Time within which a connection must be authenticated on a listener where clients authenticate, handshake of TLS "
    "and log-in by SASL together. Then it is closed. In Kafka connections.max.idle.ms is the only limit.",
    dynamic=CLUSTER_WIDE,
)
UNAUTHENTICATED_CONNECTIONS_MAX = integer(
    "barnabas.unauthenticated.connections.max",
    1000,
    "[1,...]",
    MEDIUM,
    "Most connections at a time that have not authenticated yet. Further ones wait until they are accepted: for "
    "another to be authenticated or closed, or for the oldest, which is closed after two seconds.",
    dynamic=CLUSTER_WIDE,
)
UNAUTHENTICATED_REQUESTS_MAX_BYTES = integer(
    "barnabas.unauthenticated.requests.max.bytes",
    33_554_432,
    "[-1,...]",
    MEDIUM,
    "Most bytes of requests over 64 KB that are being received on connections that have not authenticated yet; further "
    "ones are not read until then. -1 is no limit. sasl.server.max.receive.size limits each of them.",
    dynamic=CLUSTER_WIDE,
)

FULL, LENGTHS, HEADER = "full", "lengths", "header"

PRODUCE_VALIDATION = string(
    "barnabas.produce.validation",
    FULL,
    f"[{FULL}, {LENGTHS}, {HEADER}]",
    MEDIUM,
    "The checks of produced batches. With header: the header, the length and the CRC. With lengths: also that the "
    "records fill the batch by their lengths and are as many as counted, and all fields of the first and the last one. "
    "With full: every field of every record, as in Kafka. For lengths and full, compressed batches are decompressed. "
    "If a topic's configs need it (compaction, limits for timestamps in the past), batches are always checked fully.",
    dynamic=CLUSTER_WIDE,
)

LOG_READ_CHECK_CRCS = boolean(
    "barnabas.log.read.check.crcs",
    False,
    LOW,
    "Whether the CRC of each record batch is checked before it is sent to a reader. A batch with a wrong one, which "
    "was damaged on the disk, fails the reads that cross it (KAFKA_STORAGE_ERROR), and in a cluster another replica in "
    "sync leads the partition instead. If false, only clients check CRCs, as with Kafka. For the check records are "
    "read into memory, instead of being sent from the file by the kernel.",
)

GROUPS_MAX = integer(
    "barnabas.groups.max",
    100_000,
    "[1,...]",
    MEDIUM,
    "Most groups of all types on this broker, including groups that only commit offsets. A member that would create "
    "another group is answered GROUP_MAX_SIZE_REACHED, a commit POLICY_VIOLATION.",
)
GROUP_MEMBER_MAX_BYTES = integer(
    "barnabas.group.member.max.bytes",
    1_048_576,
    "[1,...]",
    MEDIUM,
    "Most bytes that a group keeps of one member: its subscription with the data of its assignor, its assignment, its "
    "topology. A request with more is answered INVALID_REQUEST.",
)
GROUP_MAX_BYTES = integer(
    "barnabas.group.max.bytes",
    33_554_432,
    "[1,...]",
    MEDIUM,
    "Most bytes that a group keeps of all its members. A request that would add more is answered "
    "GROUP_MAX_SIZE_REACHED.",
)
GROUP_MEMBERS_MAX = integer(
    "barnabas.group.members.max",
    20_000,
    "[1,...]",
    MEDIUM,
    "Most members of a group of any type, each of which takes about 1.5 KB. Another member is answered "
    "GROUP_MAX_SIZE_REACHED. Kafka's keys for each type (group.max.size, group.consumer.max.size ...) apply as well.",
)
TRANSACTIONAL_IDS_MAX = integer(
    "barnabas.transactional.ids.max",
    100_000,
    "[1,...]",
    MEDIUM,
    "Most transactional ids on this broker. A producer with another one is answered POLICY_VIOLATION.",
)
PARTITION_PRODUCERS_MAX = integer(
    "barnabas.partition.producers.max",
    20_000,
    "[1,...]",
    MEDIUM,
    "Most producer ids whose last batches a partition remembers. For another producer id, the ids that have not "
    "written for 15 minutes, by the timestamps of their records, are removed; if there are none, it is answered "
    "POLICY_VIOLATION. In Kafka producer.id.expiration.ms is the only limit.",
)


def _metadata_limit(name: str, default: int, what: str) -> ConfigKey[int]:
    text = f"Most {what}. A request that would make more is answered POLICY_VIOLATION."
    return integer(name, default, "[0,...]", MEDIUM, text)


PARTITIONS_MAX = _metadata_limit("barnabas.partitions.max", 200_000, "partitions of all topics together")
ACLS_MAX = _metadata_limit("barnabas.acls.max", 100_000, "ACLs")
SCRAM_CREDENTIALS_MAX = _metadata_limit(
    "barnabas.scram.credentials.max", 100_000, "credentials of SCRAM, each of a user and a mechanism"
)
DELEGATION_TOKENS_MAX = _metadata_limit("barnabas.delegation.tokens.max", 10_000, "delegation tokens")
DELEGATION_TOKENS_OF_OWNER_MAX = _metadata_limit(
    "barnabas.delegation.tokens.of.owner.max", 1_000, "delegation tokens of one owner"
)
CLIENT_QUOTAS_MAX = _metadata_limit(
    "barnabas.client.quotas.max", 100_000, "entities with quotas (users, client ids, addresses)"
)
CONFIG_RESOURCES_MAX = _metadata_limit(
    "barnabas.config.resources.max", 10_000, "groups and subscriptions of client metrics with configs of their own"
)
METRICS_LISTENER = string(
    "barnabas.metrics.listener",
    None,
    "",
    MEDIUM,
    "Address, host:port, on which a broker answers GET /metrics over HTTP in Prometheus' text format, with its own "
    "metrics and those that clients push (KIP-714), and GET /health and /ready for probes. ApiVersions offers client "
    "telemetry only when this key is set. There is no authentication: listen on a loopback or a private address.",
)
METRICS_LABELS_MAX = integer(
    "barnabas.metrics.labels.max",
    1_000,
    "[0,...]",
    LOW,
    "Most topics and most groups that have series of their own at barnabas.metrics.listener, and ten times as many of "
    "their partitions. A topic or group keeps its place until it is deleted; the others are summed under the label "
    "(other).",
)
CLIENT_METRICS_MAX_BYTES = integer(
    "barnabas.client.metrics.max.bytes",
    33_554_432,
    "[1,...]",
    LOW,
    "Most memory, about, for the metrics that clients push. Above it, the metrics of the client that pushed least "
    "recently are dropped.",
)
