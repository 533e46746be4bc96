"""General keys: ids, roles, defaults of topics, limits, policies, metrics, quotas."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    MEDIUM,
    boolean,
    integer,
    list_of,
    long,
    password,
    required,
    string,
)

ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS = integer(
    "add.partitions.to.txn.retry.backoff.max.ms",
    100,
    "[0,...]",
    HIGH,
    "Maximum time of retries to add a partition to a transaction while the previous one is completing.",
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS = integer(
    "add.partitions.to.txn.retry.backoff.ms",
    20,
    "[1,...]",
    HIGH,
    "Time between retries to add a partition to a transaction while the previous one is completing.",
)
AUTHORIZER_CLASS_NAME = string(
    "authorizer.class.name",
    "",
    "non-null string",
    LOW,
    "Whether ACLs decide what a principal may do: org.apache.kafka.metadata.authorizer.StandardAuthorizer, or barnabas "
    "for short. With another class the broker does not start. Without one every user may do everything.",
)
AUTO_CREATE_TOPICS_ENABLE = boolean(
    "auto.create.topics.enable", True, HIGH, "Whether a metadata request for a topic that does not exist creates it."
)
AUTO_LEADER_REBALANCE_ENABLE = boolean(
    "auto.leader.rebalance.enable", True, HIGH, "Whether leadership is moved back to preferred replicas periodically."
)
BROKER_HEARTBEAT_INTERVAL_MS = integer(
    "broker.heartbeat.interval.ms", 2000, "", MEDIUM, "Time between two heartbeats of a broker to the controller."
)
BROKER_ID = integer("broker.id", -1, "", HIGH, "Old name of node.id; -1 leaves it to node.id.")
BROKER_RACK = string(
    "broker.rack", None, "", MEDIUM, "Rack of this broker, reported to clients and used to place replicas."
)
BROKER_SESSION_TIMEOUT_MS = integer(
    "broker.session.timeout.ms", 9000, "", MEDIUM, "Time without heartbeat after which the controller fences a broker."
)
DEFAULT_REPLICATION_FACTOR = integer(
    "default.replication.factor", 1, "", MEDIUM, "Replicas of topics created without a number, automatic ones included."
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS = long(
    "delegation.token.expiry.check.interval.ms",
    3_600_000,
    "[1,...]",
    LOW,
    "Time between two checks for expired delegation tokens.",
)
DELEGATION_TOKEN_EXPIRY_TIME_MS = long(
    "delegation.token.expiry.time.ms",
    86_400_000,
    "[1,...]",
    MEDIUM,
    "Time after which a delegation token must be renewed.",
)
DELEGATION_TOKEN_MAX_LIFETIME_MS = long(
    "delegation.token.max.lifetime.ms", 604_800_000, "[1,...]", MEDIUM, "Maximum life of a delegation token."
)
DELEGATION_TOKEN_SECRET_KEY = password(
    "delegation.token.secret.key", MEDIUM, "Secret with which delegation tokens are signed."
)
DELETE_TOPIC_ENABLE = boolean("delete.topic.enable", True, HIGH, "Whether DeleteTopics is allowed.")
ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE = boolean(
    "errors.deadletterqueue.auto.create.topics.enable",
    False,
    MEDIUM,
    "Whether topics for undeliverable records of share groups are created when missing.",
    dynamic=CLUSTER_WIDE,
)
ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX = string(
    "errors.deadletterqueue.topic.name.prefix",
    "dlq.",
    "",
    MEDIUM,
    "Prefix that names of topics for undeliverable records must have.",
    dynamic=CLUSTER_WIDE,
)
FETCH_MAX_BYTES = integer(
    "fetch.max.bytes",
    57_671_680,
    "[1024,...]",
    MEDIUM,
    "Maximum number of bytes in one fetch response; the client's limit may be lower.",
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = integer(
    "initial.broker.registration.timeout.ms",
    60000,
    "",
    MEDIUM,
    "Maximum time a starting broker waits for its registration.",
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = long(
    "leader.imbalance.check.interval.seconds",
    300,
    "[1,...]",
    HIGH,
    "Time between two checks for leaders that are not the preferred replica.",
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = integer(
    "max.incremental.fetch.session.cache.slots",
    1000,
    "[0,...]",
    MEDIUM,
    "Maximum number of incremental fetch sessions kept at a time.",
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = integer(
    "max.request.partition.size.limit",
    2000,
    "[1,...]",
    MEDIUM,
    "Maximum number of partitions in one DescribeTopicPartitions response.",
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas", 1, "[1,...]", HIGH, "In-sync replicas that acks=all needs.", dynamic=CLUSTER_WIDE
)
NODE_ID = required(integer("node.id", 1, "[0,...]", HIGH, "Id of this node; every node of a cluster has its own."))
NUM_PARTITIONS = integer(
    "num.partitions", 1, "[1,...]", MEDIUM, "Partitions of topics created without a number, automatic ones included."
)
PROCESS_ROLES = required(
    list_of(
        "process.roles",
        ("broker", "controller"),
        "[broker, controller]",
        HIGH,
        "Roles of this process. When unset, broker and controller without a controller listener.",
    )
)
PRODUCER_ID_EXPIRATION_MS = integer(
    "producer.id.expiration.ms",
    86_400_000,
    "[1,...]",
    LOW,
    "Time after which the sequence state of an idle producer is removed.",
    dynamic=CLUSTER_WIDE,
)
REQUEST_TIMEOUT_MS = integer(
    "request.timeout.ms", 30000, "", HIGH, "Time a broker waits for the answer to a request of its own."
)
SECURITY_INTER_BROKER_PROTOCOL = string(
    "security.inter.broker.protocol",
    "PLAINTEXT",
    "[PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]",
    MEDIUM,
    "Security protocol between brokers; without inter.broker.listener.name, also the name of their listener.",
)
TELEMETRY_MAX_BYTES = integer(
    "telemetry.max.bytes",
    1_048_576,
    "[1,...]",
    LOW,
    "Largest metrics message a client may push, before and after decompression.",
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    HIGH,
    "Whether a replica outside the ISR may become leader, which loses records.",
    dynamic=CLUSTER_WIDE,
)
CONTROLLER_QUOTA_WINDOW_NUM = integer(
    "controller.quota.window.num",
    11,
    "[1,...]",
    LOW,
    "Samples kept for controller_mutation_rate: the amount that all samples allow may be used at once.",
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "controller.quota.window.size.seconds", 1, "[1,...]", LOW, "Time one sample covers, for controller_mutation_rate."
)
QUOTA_WINDOW_NUM = integer(
    "quota.window.num",
    11,
    "[1,...]",
    LOW,
    "Samples kept for quotas of clients and addresses, and for max.connection.creation.rate: the amount that all "
    "samples but one allow may be used at once.",
)
QUOTA_WINDOW_SIZE_SECONDS = integer(
    "quota.window.size.seconds",
    1,
    "[1,...]",
    LOW,
    "Time one sample covers, for quotas: the longest time that a quota of requests or connections throttles.",
)
