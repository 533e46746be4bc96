"""Tiered storage. KIP-405."""

from __future__ import annotations

from barnabas.wire.configdef import (
    CLUSTER_WIDE,
    LONG_MAX,
    LOW,
    MEDIUM,
    boolean,
    integer,
    long,
    string,
)

REMOTE_FETCH_MAX_WAIT_MS = integer(
    "remote.fetch.max.wait.ms",
    500,
    "[1,...]",
    MEDIUM,
    "Maximum wait for data from remote storage.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LIST_OFFSETS_REQUEST_TIMEOUT_MS = long(
    "remote.list.offsets.request.timeout.ms",
    30000,
    "[1,...]",
    MEDIUM,
    "Maximum wait for an offset found in remote storage.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_INDEX_FILE_CACHE_TOTAL_SIZE_BYTES = long(
    "remote.log.index.file.cache.total.size.bytes",
    1_073_741_824,
    "[1,...]",
    LOW,
    "Disk space for cached indexes of remote segments.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.copier.thread.pool.size",
    10,
    "[1,...]",
    MEDIUM,
    "Threads that copy segments to remote storage.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_COPY_MAX_BYTES_PER_SECOND = long(
    "remote.log.manager.copy.max.bytes.per.second",
    LONG_MAX,
    "[1,...]",
    MEDIUM,
    "Maximum bytes per second copied to remote storage.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_NUM = integer(
    "remote.log.manager.copy.quota.window.num",
    11,
    "[1,...]",
    MEDIUM,
    "Samples kept for the quota of copying to remote storage.",
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "remote.log.manager.copy.quota.window.size.seconds",
    1,
    "[1,...]",
    MEDIUM,
    "Time one sample covers, for the quota of copying to remote storage.",
)
REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE = integer(
    "remote.log.manager.expiration.thread.pool.size",
    10,
    "[1,...]",
    MEDIUM,
    "Threads that delete expired remote segments.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_FETCH_MAX_BYTES_PER_SECOND = long(
    "remote.log.manager.fetch.max.bytes.per.second",
    LONG_MAX,
    "[1,...]",
    MEDIUM,
    "Maximum bytes per second read from remote storage.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_NUM = integer(
    "remote.log.manager.fetch.quota.window.num",
    11,
    "[1,...]",
    MEDIUM,
    "Samples kept for the quota of reading from remote storage.",
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_SIZE_SECONDS = integer(
    "remote.log.manager.fetch.quota.window.size.seconds",
    1,
    "[1,...]",
    MEDIUM,
    "Time one sample covers, for the quota of reading from remote storage.",
)
REMOTE_LOG_MANAGER_FOLLOWER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.follower.thread.pool.size",
    2,
    "[1,...]",
    MEDIUM,
    "Threads for remote work of followers.",
    dynamic=CLUSTER_WIDE,
)
REMOTE_LOG_MANAGER_TASK_INTERVAL_MS = long(
    "remote.log.manager.task.interval.ms", 30000, "[1,...]", LOW, "Time between two rounds of copying and deleting."
)
REMOTE_LOG_MANAGER_THREAD_POOL_SIZE = integer(
    "remote.log.manager.thread.pool.size", 2, "[1,...]", MEDIUM, "Threads of the remote log."
)
REMOTE_LOG_METADATA_CUSTOM_METADATA_MAX_BYTES = integer(
    "remote.log.metadata.custom.metadata.max.bytes", 128, "[0,...]", LOW, "Largest custom metadata of a remote segment."
)
REMOTE_LOG_METADATA_MANAGER_CLASS_NAME = string(
    "remote.log.metadata.manager.class.name",
    "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    "non-empty string",
    MEDIUM,
    "Java class that keeps the metadata of remote segments.",
)
REMOTE_LOG_METADATA_MANAGER_CLASS_PATH = string(
    "remote.log.metadata.manager.class.path", None, "", MEDIUM, "Class path of remote.log.metadata.manager.class.name."
)
REMOTE_LOG_METADATA_MANAGER_IMPL_PREFIX = string(
    "remote.log.metadata.manager.impl.prefix",
    "rlmm.config.",
    "non-empty string",
    MEDIUM,
    "Prefix of the keys handed to remote.log.metadata.manager.class.name.",
)
REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME = string(
    "remote.log.metadata.manager.listener.name",
    None,
    "non-empty string",
    MEDIUM,
    "Listener over which metadata of remote segments travels.",
)
REMOTE_LOG_READER_MAX_PENDING_TASKS = integer(
    "remote.log.reader.max.pending.tasks",
    100,
    "[1,...]",
    MEDIUM,
    "Maximum number of reads from remote storage that wait.",
)
REMOTE_LOG_READER_THREADS = integer(
    "remote.log.reader.threads", 10, "[1,...]", MEDIUM, "Threads that read from remote storage.", dynamic=CLUSTER_WIDE
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_NAME = string(
    "remote.log.storage.manager.class.name", None, "non-empty string", MEDIUM, "Java class that stores remote segments."
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_PATH = string(
    "remote.log.storage.manager.class.path", None, "", MEDIUM, "Class path of remote.log.storage.manager.class.name."
)
REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX = string(
    "remote.log.storage.manager.impl.prefix",
    "rsm.config.",
    "non-empty string",
    MEDIUM,
    "Prefix of the keys handed to remote.log.storage.manager.class.name.",
)
REMOTE_LOG_STORAGE_SYSTEM_ENABLE = boolean(
    "remote.log.storage.system.enable", False, MEDIUM, "Whether tiered storage is on."
)
