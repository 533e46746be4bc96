"""Every metric of the broker, declared once: name, type, what one series is of, where its value comes from, help.

Three families of names, so that existing dashboards work: ours (`barnabas_`), those of Kafka's metrics as the usual
rules of the JMX exporter name them, and those of kafka_exporter. Metrics of one *source* are written together: the
source gives a value for each field, of one broker, topic, partition, group ... The labels of a series follow from it.

`docs/reference/metrics.md` is generated from this table (`scripts.pages`). Names and labels of the other families:
the rules in the examples of prometheus/jmx_exporter and strimzi-kafka-operator, and the README of kafka_exporter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

GAUGE: Final = "gauge"
COUNTER: Final = "counter"
HISTOGRAM: Final = "histogram"
SUMMARY: Final = "summary"
"""Sum and count, without quantiles."""

OURS: Final = "Barnabas"
JMX: Final = "JMX exporter"
EXPORTER: Final = "kafka_exporter"

LABELS: Final[dict[str, tuple[str, ...]]] = {
    "broker": (),
    "cluster": (),
    "topic": ("topic",),
    "partition": ("topic", "partition"),
    "led partition": ("topic", "partition"),
    "group": ("consumergroup",),
    "group and topic": ("consumergroup", "topic"),
    "group and partition": ("consumergroup", "topic", "partition"),
    "group state": ("type", "state"),
    "known broker": ("id", "address"),
    "listener": ("listener",),
    "network processor": ("listener", "networkprocessor"),
    "API": ("request",),
    "API and error": ("request", "error"),
    "API and quantile": ("request", "quantile"),
    "garbage collector": ("gc",),
    "generation": ("generation",),
    "memory area": ("area",),
    "log directory": ("directory",),
    "disk": (),
    "process": (),
}
"""The labels by source."""


class Metric(NamedTuple):
    """One metric."""

    name: str
    kind: str
    source: str
    field: str
    """Which of the values that its source gives."""
    unit: str
    help: str
    family: str = OURS
    is_summed: bool = True
    """Whether topics and groups beyond the limit of labels are summed under one label; else they have no series."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the labels."""
        return LABELS[self.source]


_Row = tuple[str, str, str, str, str]
"""Name without the family's prefix, type, field, unit, help."""


def _family(family: str, prefix: str, source: str, *rows: _Row) -> Iterable[Metric]:
    for name, kind, field, unit, text in rows:
        yield Metric(prefix + name, kind, source, field, unit, text, family)


def _ours(source: str, *rows: _Row) -> Iterable[Metric]:
    return _family(OURS, "barnabas_", source, *rows)


def _jmx(source: str, *rows: _Row) -> Iterable[Metric]:
    return _family(JMX, "", source, *rows)


def _exporter(source: str, *rows: _Row) -> Iterable[Metric]:
    return _family(EXPORTER, "kafka_", source, *rows)


_TOPIC_METRICS: Final[tuple[_Row, ...]] = (
    (
        "kafka_server_brokertopicmetrics_messagesin_total",
        COUNTER,
        "messages",
        "records",
        "Records appended as leader, control records included.",
    ),
    ("kafka_server_brokertopicmetrics_bytesin_total", COUNTER, "bytes", "bytes", "Bytes appended as leader."),
    (
        "kafka_server_brokertopicmetrics_bytesout_total",
        COUNTER,
        "bytes_out",
        "bytes",
        "Bytes of records sent to consumers.",
    ),
    (
        "kafka_server_brokertopicmetrics_totalproducerequests_total",
        COUNTER,
        "appends",
        "",
        "Appends as leader: one for each partition of a Produce.",
    ),
    (
        "kafka_server_brokertopicmetrics_failedproducerequests_total",
        COUNTER,
        "failed_produces",
        "",
        "Batches of Produce requests that were refused or failed.",
    ),
    (
        "kafka_server_brokertopicmetrics_totalfetchrequests_total",
        COUNTER,
        "fetches",
        "",
        "Reads of partitions for Fetch requests.",
    ),
    (
        "kafka_server_brokertopicmetrics_failedfetchrequests_total",
        COUNTER,
        "failed_fetches",
        "",
        "Partitions that a Fetch could not read.",
    ),
)
"""Kafka's BrokerTopicMetrics: one series without a label for all topics, and one for each topic."""

METRICS: Final[tuple[Metric, ...]] = (
    # ---- ours
    *_ours(
        "broker",
        ("cpu_ratio", GAUGE, "cpu", "ratio", "Part of the machine's CPUs that the broker uses."),
        ("memory_ratio", GAUGE, "memory", "ratio", "Part of the machine's memory that the broker uses."),
        ("memory_bytes", GAUGE, "memory_bytes", "bytes", "Resident memory of the broker."),
        ("log_dir_used_ratio", GAUGE, "disk", "ratio", "Used part of the fullest file system with a log directory."),
        ("appended_bytes_per_second", GAUGE, "bytes_per_s", "bytes/s", "Bytes appended to partitions, lately."),
        ("appended_records_per_second", GAUGE, "messages_per_s", "records/s", "Records appended, lately."),
        ("leader_partitions", GAUGE, "leaders", "", "Partitions that the broker leads."),
        ("uptime_seconds", GAUGE, "uptime_s", "seconds", "Time since the start."),
        ("connections", GAUGE, "connections", "", "Open connections of clients and other brokers."),
        ("messages_in_total", COUNTER, "messages", "records", "Records appended as leader, control records included."),
        ("bytes_in_total", COUNTER, "bytes", "bytes", "Bytes appended as leader."),
        ("bytes_out_total", COUNTER, "bytes_out", "bytes", "Bytes of records sent to consumers."),
        ("replication_bytes_in_total", COUNTER, "follower_bytes", "bytes", "Bytes appended as follower."),
        ("replication_bytes_out_total", COUNTER, "replication_bytes_out", "bytes", "Bytes sent to followers."),
        ("produce_failures_total", COUNTER, "failed_produces", "", "Batches that were refused or failed."),
        ("fetch_failures_total", COUNTER, "failed_fetches", "", "Partitions that a Fetch could not read."),
        ("leader_elections_total", COUNTER, "elections", "", "Elections that this broker has won."),
        ("unclean_leader_elections_total", COUNTER, "unclean_elections", "", "Unclean elections that it has won."),
        ("isr_shrinks_total", COUNTER, "isr_shrinks", "", "ISRs of led partitions that became smaller."),
        ("isr_expands_total", COUNTER, "isr_expands", "", "ISRs of led partitions that became larger."),
        ("offline_replicas", GAUGE, "offline", "", "Replicas of this broker that cannot be served."),
        ("transactions_open", GAUGE, "open_transactions", "", "Open transactions of this broker's coordinators."),
        ("transactions_late", GAUGE, "late_transactions", "", "Open transactions beyond their timeout."),
        ("groups_total_lag", GAUGE, "lag", "records", "Lag of all groups of this broker's coordinators."),
        ("turn_seconds", HISTOGRAM, "turns", "seconds", "Turns of the event loop that had something to do."),
        ("turn_longest_seconds", GAUGE, "longest_turn", "seconds", "The longest turn since the start."),
        ("disk_wait_seconds", HISTOGRAM, "disk_waits", "seconds", "Work in threads that waits for disks."),
        ("disk_wait_longest_seconds", GAUGE, "longest_disk_wait", "seconds", "The longest of it since the start."),
        ("compactions_total", COUNTER, "compactions", "", "Logs that were compacted."),
        ("compaction_seconds_total", COUNTER, "compaction_s", "seconds", "Time that compacting logs has taken."),
        ("compaction_read_bytes_total", COUNTER, "compaction_read", "bytes", "Bytes that compaction has read."),
        ("compaction_written_bytes_total", COUNTER, "compaction_written", "bytes", "Bytes that it has written."),
        ("compaction_read_records_total", COUNTER, "records_read", "records", "Records that it has read."),
        ("compaction_kept_records_total", COUNTER, "records_kept", "records", "Records that it has kept."),
        ("uncleanable_partitions", GAUGE, "uncleanable", "", "Logs that are not compacted because that failed."),
        ("labels_hidden", GAUGE, "hidden", "", "Topics and groups without series, which are summed as (other)."),
        ("client_metrics_instances", GAUGE, "instances", "", "Client instances that have a subscription."),
        ("client_metrics_clients", GAUGE, "clients", "", "Client instances whose metrics are shown."),
        ("client_metrics_bytes", GAUGE, "kept_bytes", "bytes", "Memory of these metrics, about."),
        ("client_metrics_pushes_total", COUNTER, "pushes", "", "Pushes that clients have made."),
        (
            "client_metrics_dropped_total",
            COUNTER,
            "dropped",
            "",
            "Values that barnabas.client.metrics.max.bytes had no room for.",
        ),
    ),
    *_ours(
        "topic",
        ("topic_messages_in_total", COUNTER, "messages", "records", "Records appended as leader."),
        ("topic_bytes_in_total", COUNTER, "bytes", "bytes", "Bytes appended as leader."),
        ("topic_bytes_out_total", COUNTER, "bytes_out", "bytes", "Bytes of records sent to consumers."),
        ("topic_produce_failures_total", COUNTER, "failed_produces", "", "Batches that were refused or failed."),
        ("topic_fetch_failures_total", COUNTER, "failed_fetches", "", "Partitions that a Fetch could not read."),
        ("topic_log_bytes", GAUGE, "size", "bytes", "Bytes of the logs of this broker's replicas."),
        ("topic_open_transactions", GAUGE, "open_transactions", "", "Transactions open in led partitions."),
    ),
    *_ours(
        "API",
        ("requests_total", COUNTER, "requests", "", "Requests."),
        ("request_queue_seconds", HISTOGRAM, "queue", "seconds", "From the poll of the socket to the handler."),
        ("request_handling_seconds", HISTOGRAM, "handling", "seconds", "Of the handler, without what it waits for."),
        ("request_waiting_seconds", HISTOGRAM, "waiting", "seconds", "Of requests that wait: up to the response."),
        ("request_sending_seconds", HISTOGRAM, "sending", "seconds", "From the response to its last byte sent."),
        ("request_seconds", HISTOGRAM, "total", "seconds", "Of whole requests."),
        ("throttle_seconds", HISTOGRAM, "throttled", "seconds", "Times for which quotas have throttled clients."),
    ),
    *_ours("API and error", ("request_errors_total", COUNTER, "errors", "", "Errors in responses.")),
    *_ours(
        "listener",
        ("listener_connections", GAUGE, "connections", "", "Open connections."),
        ("successful_authentications_total", COUNTER, "successful_authentications", "", "Log-ins by SASL or TLS."),
        ("failed_authentications_total", COUNTER, "failed_authentications", "", "Log-ins and handshakes that failed."),
        ("successful_reauthentications_total", COUNTER, "successful_reauthentications", "", "Log-ins in a session."),
        (
            "failed_reauthentications_total",
            COUNTER,
            "failed_reauthentications",
            "",
            "Log-ins in a session that failed.",
        ),
        (
            "expired_connections_killed_total",
            COUNTER,
            "expired_connections_killed",
            "",
            "Connections that were closed because their session was over.",
        ),
    ),
    *_ours("group state", ("groups", GAUGE, "groups", "", "Groups of this broker's coordinators.")),
    *_ours(
        "generation",
        ("gc_seconds", HISTOGRAM, "collections", "seconds", "Collections of Python's garbage collector."),
        ("gc_longest_seconds", GAUGE, "longest", "seconds", "The longest collection since the start."),
    ),
    *_ours(
        "log directory",
        ("log_dir_size_bytes", GAUGE, "volume_size", "bytes", "Size of the file system."),
        ("log_dir_free_bytes", GAUGE, "volume_free", "bytes", "Free bytes of the file system."),
    ),
    # ---- as the JMX exporter names Kafka's metrics
    *_jmx("broker", *_TOPIC_METRICS),
    *_jmx("topic", *_TOPIC_METRICS),
    *_jmx(
        "broker",
        (
            "kafka_server_brokertopicmetrics_replicationbytesin_total",
            COUNTER,
            "follower_bytes",
            "bytes",
            "Bytes appended as follower.",
        ),
        (
            "kafka_server_brokertopicmetrics_replicationbytesout_total",
            COUNTER,
            "replication_bytes_out",
            "bytes",
            "Bytes of records sent to followers.",
        ),
        ("kafka_server_replicamanager_leadercount", GAUGE, "is_led", "", "Partitions that the broker leads."),
        ("kafka_server_replicamanager_partitioncount", GAUGE, "is_replica", "", "Replicas of the broker."),
        ("kafka_server_replicamanager_offlinereplicacount", GAUGE, "offline", "", "Replicas that are offline."),
        (
            "kafka_server_replicamanager_underreplicatedpartitions",
            GAUGE,
            "under_replicated",
            "",
            "Led partitions with replicas that are not in sync.",
        ),
        (
            "kafka_server_replicamanager_underminisrpartitioncount",
            GAUGE,
            "under_min_isr",
            "",
            "Led partitions with fewer replicas in sync than min.insync.replicas.",
        ),
        (
            "kafka_server_replicamanager_atminisrpartitioncount",
            GAUGE,
            "at_min_isr",
            "",
            "Led partitions with exactly min.insync.replicas replicas in sync.",
        ),
        (
            "kafka_server_replicamanager_partitionswithlatetransactionscount",
            GAUGE,
            "is_late",
            "",
            "Led partitions with a transaction that is open for much longer than any timeout.",
        ),
        ("kafka_server_replicamanager_isrshrinks_total", COUNTER, "isr_shrinks", "", "ISRs that became smaller."),
        ("kafka_server_replicamanager_isrexpands_total", COUNTER, "isr_expands", "", "ISRs that became larger."),
        (
            "kafka_controller_controllerstats_leaderelectionrateandtimems_count",
            COUNTER,
            "elections",
            "",
            "Elections that this broker has won.",
        ),
        (
            "kafka_controller_controllerstats_uncleanleaderelections_total",
            COUNTER,
            "unclean_elections",
            "",
            "Unclean elections that this broker has won.",
        ),
        ("kafka_coordinator_group_groupmetadatamanager_numgroups", GAUGE, "groups", "", "Groups coordinated here."),
        ("kafka_coordinator_group_groupmetadatamanager_numoffsets", GAUGE, "offsets", "", "Their committed offsets."),
        (
            "kafka_network_socketserver_networkprocessoravgidle_percent",
            GAUGE,
            "idle",
            "ratio",
            "Part of the last minute in which the event loop was idle, 0 to 1.",
        ),
        (
            "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
            GAUGE,
            "idle",
            "ratio",
            "The same: one thread reads requests and handles them.",
        ),
        ("kafka_server_kafkaserver_brokerstate", GAUGE, "state", "", "Kafka's number of the state, 3: running."),
        (
            "kafka_log_logcleanermanager_uncleanable_partitions_count",
            GAUGE,
            "uncleanable",
            "",
            "Logs that are not compacted because that failed.",
        ),
    ),
    *_jmx(
        "cluster",
        (
            "kafka_controller_kafkacontroller_activecontrollercount",
            GAUGE,
            "controllers",
            "",
            "1 on the live broker with the lowest id, which tells the figures of the cluster; 0 on others.",
        ),
        ("kafka_controller_kafkacontroller_activebrokercount", GAUGE, "active_brokers", "", "Unfenced brokers."),
        ("kafka_controller_kafkacontroller_fencedbrokercount", GAUGE, "fenced_brokers", "", "Fenced brokers."),
        ("kafka_controller_kafkacontroller_globaltopiccount", GAUGE, "topics", "", "Topics of the cluster."),
        (
            "kafka_controller_kafkacontroller_globalpartitioncount",
            GAUGE,
            "partitions",
            "",
            "Partitions of the cluster.",
        ),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", GAUGE, "leaderless", "", "Without a leader."),
        (
            "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
            GAUGE,
            "imbalanced",
            "",
            "Partitions that another replica leads than the preferred one.",
        ),
    ),
    *_jmx(
        "partition",
        ("kafka_log_log_size", GAUGE, "size", "bytes", "Bytes of the log."),
        ("kafka_log_log_numlogsegments", GAUGE, "segments", "", "Segments of the log."),
        ("kafka_log_log_logstartoffset", GAUGE, "start", "", "First offset of the log."),
        ("kafka_log_log_logendoffset", GAUGE, "end", "", "Offset after the last record."),
        ("kafka_cluster_partition_replicascount", GAUGE, "replicas", "", "Replicas, 0 where it is not led."),
        ("kafka_cluster_partition_insyncreplicascount", GAUGE, "in_sync", "", "In sync, 0 where it is not led."),
        ("kafka_cluster_partition_underreplicated", GAUGE, "under_replicated", "", "1 if led and not all are in sync."),
        ("kafka_cluster_partition_atminisr", GAUGE, "at_min_isr", "", "1 if led and just min.insync.replicas are."),
        ("kafka_cluster_partition_underminisr", GAUGE, "under_min_isr", "", "1 if led and fewer than these are."),
        (
            "kafka_cluster_partition_laststableoffsetlag",
            GAUGE,
            "stable_lag",
            "records",
            "Records between the last stable offset and the high watermark, where it is led.",
        ),
    ),
    *_jmx(
        "API",
        ("kafka_network_requestmetrics_requests_total", COUNTER, "requests", "", "Requests."),
        ("kafka_network_requestmetrics_totaltimems_count", COUNTER, "total_count", "", "Requests whose times count."),
    ),
    *_jmx(
        "API and error", ("kafka_network_requestmetrics_errors_total", COUNTER, "errors", "", "Errors in responses.")
    ),
    *_jmx(
        "API and quantile",
        ("kafka_network_requestmetrics_totaltimems", GAUGE, "total", "ms", "Of whole requests, since the start."),
        ("kafka_network_requestmetrics_requestqueuetimems", GAUGE, "queue", "ms", "Before the handler."),
        ("kafka_network_requestmetrics_localtimems", GAUGE, "handling", "ms", "Of the handler."),
        ("kafka_network_requestmetrics_remotetimems", GAUGE, "waiting", "ms", "Of requests that wait."),
        ("kafka_network_requestmetrics_responsesendtimems", GAUGE, "sending", "ms", "Of sending the response."),
        ("kafka_network_requestmetrics_throttletimems", GAUGE, "throttled", "ms", "Of throttling by quotas."),
    ),
    *_jmx(
        "network processor",
        ("kafka_server_socket_server_metrics_connection_count", GAUGE, "connections", "", "Open connections."),
        (
            "kafka_server_socket_server_metrics_successful_authentication_total",
            COUNTER,
            "successful_authentications",
            "",
            "Log-ins.",
        ),
        (
            "kafka_server_socket_server_metrics_failed_authentication_total",
            COUNTER,
            "failed_authentications",
            "",
            "Log-ins that failed.",
        ),
    ),
    *_jmx(
        "disk",
        ("kafka_server_kafkaserver_linux_disk_read_bytes", GAUGE, "disk_read", "bytes", "Read from disks so far."),
        ("kafka_server_kafkaserver_linux_disk_write_bytes", GAUGE, "disk_written", "bytes", "Written so far."),
    ),
    *_jmx(
        "process",
        ("process_cpu_seconds_total", COUNTER, "cpu_s", "seconds", "CPU time, user and system."),
        ("process_open_fds", GAUGE, "open_fds", "", "Open file descriptors."),
        ("process_max_fds", GAUGE, "max_fds", "", "Limit of file descriptors."),
        ("process_resident_memory_bytes", GAUGE, "resident", "bytes", "Resident memory."),
        ("process_virtual_memory_bytes", GAUGE, "virtual", "bytes", "Virtual memory."),
        ("process_start_time_seconds", GAUGE, "started_at", "seconds", "Start of the process, in Unix time."),
        ("jvm_threads_current", GAUGE, "threads", "", "Threads of the process, under the name of Java's."),
    ),
    *_jmx(
        "memory area",
        ("jvm_memory_bytes_used", GAUGE, "resident", "bytes", "Resident memory, under the name of Java's heap."),
    ),
    *_jmx(
        "garbage collector",
        ("jvm_gc_collection_seconds", SUMMARY, "collections", "seconds", "Collections of Python's garbage collector."),
    ),
    # ---- as kafka_exporter names them
    *_exporter("cluster", ("brokers", GAUGE, "brokers", "", "Number of Brokers in the Kafka Cluster.")),
    *_exporter("known broker", ("broker_info", GAUGE, "info", "", "Information about the Kafka Broker: its id.")),
    *_exporter(
        "topic",
        ("topic_partitions", GAUGE, "led", "", "Number of partitions for this Topic, of each broker those it leads."),
    ),
    *_exporter(
        "led partition",
        ("topic_partition_current_offset", GAUGE, "high_watermark", "", "High watermark."),
        ("topic_partition_oldest_offset", GAUGE, "start", "", "First offset."),
        ("topic_partition_in_sync_replica", GAUGE, "in_sync", "", "Number of replicas in sync."),
        ("topic_partition_replicas", GAUGE, "replicas", "", "Number of replicas."),
        ("topic_partition_under_replicated_partition", GAUGE, "under_replicated", "", "1 if it is under-replicated."),
    ),
    *(
        metric._replace(is_summed=False)
        for metric in _exporter(
            "led partition",
            ("topic_partition_leader", GAUGE, "leader", "", "Broker id of the leader."),
            ("topic_partition_leader_is_preferred", GAUGE, "is_preferred", "", "1 if it is the preferred replica."),
        )
    ),
    *_exporter(
        "group and partition",
        ("consumergroup_current_offset", GAUGE, "offset", "", "Committed offset."),
        ("consumergroup_lag", GAUGE, "lag", "records", "Records between it and the high watermark."),
    ),
    *_exporter(
        "group and topic",
        ("consumergroup_current_offset_sum", GAUGE, "offset", "", "Committed offsets of the topic's partitions."),
        ("consumergroup_lag_sum", GAUGE, "lag", "records", "Lag in the topic's partitions."),
    ),
    *_exporter("group", ("consumergroup_members", GAUGE, "members", "", "Members.")),
)
"""All metrics, in the order of the page; those with one name and two sources follow each other there."""
