"""General keys: ids, roles, defaults of topics, limits, policies, metrics, quotas."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    HIGH,
    LOW,
    MEDIUM,
    PER_BROKER,
    boolean,
    class_name,
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
    used=True,
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS = integer(
    "add.partitions.to.txn.retry.backoff.ms",
    20,
    "[1,...]",
    HIGH,
    "Time between retries to add a partition to a transaction while the previous one is completing.",
    used=True,
)
ALTER_CONFIG_POLICY_CLASS_NAME = class_name(
    "alter.config.policy.class.name", None, LOW, "Java class that validates changes of configs."
)
AUTHORIZER_CLASS_NAME = string(
    "authorizer.class.name",
    "",
    "non-null string",
    LOW,
    "Whether ACLs decide what a principal may do: org.apache.kafka.metadata.authorizer.StandardAuthorizer, or barnabas "
    "for short. With another class the broker does not start. Without one every user may do everything.",
    used=True,
)
AUTO_CREATE_TOPICS_ENABLE = boolean(
    "auto.create.topics.enable",
    True,
    HIGH,
    "Whether a metadata request for a topic that does not exist creates it.",
    used=True,
)
AUTO_LEADER_REBALANCE_ENABLE = boolean(
    "auto.leader.rebalance.enable",
    True,
    HIGH,
    "Whether leadership is moved back to preferred replicas periodically.",
    used=True,
)
BACKGROUND_THREADS = integer(
    "background.threads", 10, "[1,...]", HIGH, "Threads for background work.", dynamic=CLUSTER_WIDE
)
BROKER_HEARTBEAT_INTERVAL_MS = integer(
    "broker.heartbeat.interval.ms",
    2000,
    "",
    MEDIUM,
    "Time between two heartbeats of a broker to the controller.",
    used=True,
)
BROKER_ID = integer("broker.id", -1, "", HIGH, "Old name of node.id; -1 leaves it to node.id.", used=True)
BROKER_RACK = string(
    "broker.rack", None, "", MEDIUM, "Rack of this broker, reported to clients and used to place replicas.", used=True
)
BROKER_SESSION_TIMEOUT_MS = integer(
    "broker.session.timeout.ms",
    9000,
    "",
    MEDIUM,
    "Time without heartbeat after which the controller fences a broker.",
    used=True,
)
CLIENT_QUOTA_CALLBACK_CLASS = class_name(
    "client.quota.callback.class", None, LOW, "Java class that computes client quotas."
)
COMPRESSION_GZIP_LEVEL = integer(
    "compression.gzip.level",
    -1,
    "[1,...,9] or -1",
    MEDIUM,
    "Level of gzip where the broker compresses; -1 is gzip's own default.",
    dynamic=CLUSTER_WIDE,
)
COMPRESSION_LZ4_LEVEL = integer(
    "compression.lz4.level", 9, "[1,...,17]", MEDIUM, "Level of lz4 where the broker compresses.", dynamic=CLUSTER_WIDE
)
COMPRESSION_TYPE = string(
    "compression.type",
    "producer",
    "[uncompressed, zstd, lz4, snappy, gzip, producer]",
    HIGH,
    "Compression of batches in the log; producer keeps the compression of the producer.",
    dynamic=CLUSTER_WIDE,
)
COMPRESSION_ZSTD_LEVEL = integer(
    "compression.zstd.level",
    3,
    "[-131072,...,22]",
    MEDIUM,
    "Level of zstd where the broker compresses.",
    dynamic=CLUSTER_WIDE,
)
CONFIG_PROVIDERS = list_of(
    "config.providers",
    (),
    "",
    LOW,
    "Names of providers that resolve indirections in config values.",
    dynamic=CLUSTER_WIDE,
)
CONTROLLED_SHUTDOWN_ENABLE = boolean(
    "controlled.shutdown.enable", True, MEDIUM, "Whether a stopping broker first hands over its leaderships."
)
CREATE_TOPIC_POLICY_CLASS_NAME = class_name(
    "create.topic.policy.class.name", None, LOW, "Java class that validates new topics."
)
DEFAULT_REPLICATION_FACTOR = integer(
    "default.replication.factor",
    1,
    "",
    MEDIUM,
    "Replicas of topics created without a number, automatic ones included.",
    used=True,
)
DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS = long(
    "delegation.token.expiry.check.interval.ms",
    3_600_000,
    "[1,...]",
    LOW,
    "Time between two checks for expired delegation tokens.",
    used=True,
)
DELEGATION_TOKEN_EXPIRY_TIME_MS = long(
    "delegation.token.expiry.time.ms",
    86_400_000,
    "[1,...]",
    MEDIUM,
    "Time after which a delegation token must be renewed.",
    used=True,
)
DELEGATION_TOKEN_MAX_LIFETIME_MS = long(
    "delegation.token.max.lifetime.ms",
    604_800_000,
    "[1,...]",
    MEDIUM,
    "Maximum life of a delegation token.",
    used=True,
)
DELEGATION_TOKEN_SECRET_KEY = password(
    "delegation.token.secret.key", MEDIUM, "Secret with which delegation tokens are signed.", used=True
)
DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "delete.records.purgatory.purge.interval.requests",
    1,
    "",
    MEDIUM,
    "Kafka's housekeeping of waiting DeleteRecords requests, by number of requests.",
)
DELETE_TOPIC_ENABLE = boolean("delete.topic.enable", True, HIGH, "Whether DeleteTopics is allowed.", used=True)
EARLY_START_LISTENERS = list_of(
    "early.start.listeners", None, "", HIGH, "Listeners opened before the broker has caught up with the metadata."
)
ERRORS_DEADLETTERQUEUE_AUTO_CREATE_TOPICS_ENABLE = boolean(
    "errors.deadletterqueue.auto.create.topics.enable",
    False,
    MEDIUM,
    "Whether topics for undeliverable records of share groups are created when missing.",
    dynamic=CLUSTER_WIDE,
    used=True,
)
ERRORS_DEADLETTERQUEUE_TOPIC_NAME_PREFIX = string(
    "errors.deadletterqueue.topic.name.prefix",
    "dlq.",
    "",
    MEDIUM,
    "Prefix that names of topics for undeliverable records must have.",
    dynamic=CLUSTER_WIDE,
    used=True,
)
FETCH_MAX_BYTES = integer(
    "fetch.max.bytes",
    57_671_680,
    "[1024,...]",
    MEDIUM,
    "Maximum number of bytes in one fetch response; the client's limit may be lower.",
    used=True,
)
FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "fetch.purgatory.purge.interval.requests",
    1000,
    "",
    MEDIUM,
    "Kafka's housekeeping of waiting Fetch requests, by number of requests.",
)
FOLLOWER_FETCH_LAST_TIERED_OFFSET_ENABLE = boolean(
    "follower.fetch.last.tiered.offset.enable",
    False,
    MEDIUM,
    "Whether a new follower starts at the last offset in remote storage.",
    dynamic=CLUSTER_WIDE,
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = integer(
    "initial.broker.registration.timeout.ms",
    60000,
    "",
    MEDIUM,
    "Maximum time a starting broker waits for its registration.",
    used=True,
)
KAFKA_METRICS_POLLING_INTERVAL_SECS = integer(
    "kafka.metrics.polling.interval.secs", 10, "[1,...]", LOW, "Polling interval of kafka.metrics.reporters."
)
KAFKA_METRICS_REPORTERS = list_of("kafka.metrics.reporters", (), "", LOW, "Java classes that report Yammer metrics.")
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = long(
    "leader.imbalance.check.interval.seconds",
    300,
    "[1,...]",
    HIGH,
    "Time between two checks for leaders that are not the preferred replica.",
    used=True,
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = integer(
    "max.incremental.fetch.session.cache.slots",
    1000,
    "[0,...]",
    MEDIUM,
    "Maximum number of incremental fetch sessions kept at a time.",
    used=True,
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = integer(
    "max.request.partition.size.limit",
    2000,
    "[1,...]",
    MEDIUM,
    "Maximum number of partitions in one DescribeTopicPartitions response.",
    used=True,
)
METRIC_REPORTERS = list_of(
    "metric.reporters",
    ("org.apache.kafka.common.metrics.JmxReporter",),
    "",
    LOW,
    "Java classes that report metrics.",
    dynamic=CLUSTER_WIDE,
)
METRICS_NUM_SAMPLES = integer("metrics.num.samples", 2, "[1,...]", LOW, "Samples kept for a metric.")
METRICS_RECORDING_LEVEL = string("metrics.recording.level", "INFO", "", LOW, "Level of detail of metrics.")
METRICS_SAMPLE_WINDOW_MS = long(
    "metrics.sample.window.ms", 30000, "[1,...]", LOW, "Time one sample of a metric covers."
)
MIN_INSYNC_REPLICAS = integer(
    "min.insync.replicas", 1, "[1,...]", HIGH, "In-sync replicas that acks=all needs.", dynamic=CLUSTER_WIDE, used=True
)
NODE_ID = required(
    integer("node.id", 1, "[0,...]", HIGH, "Id of this node; every node of a cluster has its own.", used=True)
)
NUM_IO_THREADS = integer(
    "num.io.threads",
    8,
    "[1,...]",
    HIGH,
    "Threads that handle requests; Barnabas handles them in one loop.",
    dynamic=CLUSTER_WIDE,
)
NUM_PARTITIONS = integer(
    "num.partitions",
    1,
    "[1,...]",
    MEDIUM,
    "Partitions of topics created without a number, automatic ones included.",
    used=True,
)
PRINCIPAL_BUILDER_CLASS = class_name(
    "principal.builder.class",
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
    MEDIUM,
    "Java class that turns an authenticated connection into a principal.",
    dynamic=PER_BROKER,
)
PROCESS_ROLES = required(
    list_of(
        "process.roles",
        ("broker", "controller"),
        "[broker, controller]",
        HIGH,
        "Roles of this process. When unset, broker and controller without a controller listener.",
        used=True,
    )
)
PRODUCER_ID_EXPIRATION_MS = integer(
    "producer.id.expiration.ms",
    86_400_000,
    "[1,...]",
    LOW,
    "Time after which the sequence state of an idle producer is removed.",
    dynamic=CLUSTER_WIDE,
    used=True,
)
PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS = integer(
    "producer.purgatory.purge.interval.requests",
    1000,
    "",
    MEDIUM,
    "Kafka's housekeeping of waiting Produce requests, by number of requests.",
)
REQUEST_TIMEOUT_MS = integer(
    "request.timeout.ms", 30000, "", HIGH, "Time a broker waits for the answer to a request of its own.", used=True
)
SECURITY_INTER_BROKER_PROTOCOL = string(
    "security.inter.broker.protocol",
    "PLAINTEXT",
    "[PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]",
    MEDIUM,
    "Security protocol between brokers; without inter.broker.listener.name, also the name of their listener.",
    used=True,
)
SECURITY_PROVIDERS = string("security.providers", None, "", LOW, "Java classes that provide security algorithms.")
TELEMETRY_MAX_BYTES = integer(
    "telemetry.max.bytes",
    1_048_576,
    "[1,...]",
    LOW,
    "Largest metrics message a client may push, before and after decompression.",
    used=True,
)
UNCLEAN_LEADER_ELECTION_ENABLE = boolean(
    "unclean.leader.election.enable",
    False,
    HIGH,
    "Whether a replica outside the ISR may become leader, which loses records.",
    dynamic=CLUSTER_WIDE,
    used=True,
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM = integer(
    "alter.log.dirs.replication.quota.window.num",
    11,
    "[1,...]",
    LOW,
    "Samples kept for the quota of moves between log directories.",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "alter.log.dirs.replication.quota.window.size.seconds",
    1,
    "[1,...]",
    LOW,
    "Time one sample covers, for the quota of moves between log directories.",
)
CONTROLLER_QUOTA_WINDOW_NUM = integer(
    "controller.quota.window.num",
    11,
    "[1,...]",
    LOW,
    "Samples kept for controller_mutation_rate: the amount that all samples allow may be used at once.",
    used=True,
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "controller.quota.window.size.seconds",
    1,
    "[1,...]",
    LOW,
    "Time one sample covers, for controller_mutation_rate.",
    used=True,
)
QUOTA_WINDOW_NUM = integer(
    "quota.window.num",
    11,
    "[1,...]",
    LOW,
    "Samples kept for quotas of clients and addresses, and for max.connection.creation.rate: the amount that all "
    "samples but one allow may be used at once.",
    used=True,
)
QUOTA_WINDOW_SIZE_SECONDS = integer(
    "quota.window.size.seconds",
    1,
    "[1,...]",
    LOW,
    "Time one sample covers, for quotas: the longest time that a quota of requests or connections throttles.",
    used=True,
)
REPLICATION_QUOTA_WINDOW_NUM = integer(
    "replication.quota.window.num", 11, "[1,...]", LOW, "Samples kept for replication quotas."
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "replication.quota.window.size.seconds", 1, "[1,...]", LOW, "Time one sample covers, for replication quotas."
)
