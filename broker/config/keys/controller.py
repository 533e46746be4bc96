"""The controller quorum and the metadata log. KIP-595, KIP-630."""

from __future__ import annotations

from barnabas.wire.configdef import (
    HIGH,
    LOW,
    MEDIUM,
    integer,
    list_of,
    long,
    required,
    string,
)

CONTROLLER_LISTENER_NAMES = required(
    list_of(
        "controller.listener.names",
        ("CONTROLLER",),
        "",
        HIGH,
        "Names of the controller's listeners; they are opened if process.roles has the controller.",
    )
)
CONTROLLER_QUORUM_BOOTSTRAP_SERVERS = list_of(
    "controller.quorum.bootstrap.servers",
    (),
    "non-empty list",
    HIGH,
    "Addresses at which the controller quorum is found.",
)
CONTROLLER_QUORUM_FETCH_MAX_BYTES = integer(
    "controller.quorum.fetch.max.bytes",
    1_048_576,
    "[1,...]",
    LOW,
    "Maximum number of bytes of one fetch of the metadata log.",
)
CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES = integer(
    "controller.quorum.fetch.snapshot.max.bytes",
    1_048_576,
    "[1,...]",
    LOW,
    "Maximum number of bytes of one fetch of a metadata snapshot.",
)
CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS = integer(
    "controller.quorum.request.timeout.ms",
    2000,
    "[0,...]",
    MEDIUM,
    "Time to wait for an answer of the controller quorum.",
)
CONTROLLER_QUORUM_RETRY_BACKOFF_MS = integer(
    "controller.quorum.retry.backoff.ms", 20, "[0,...]", LOW, "Wait before a failed request to the quorum is repeated."
)
CONTROLLER_QUORUM_VOTERS = list_of(
    "controller.quorum.voters", (), "non-empty list", HIGH, "Voters of the quorum, as id@host:port."
)
CONTROLLER_SOCKET_TIMEOUT_MS = integer(
    "controller.socket.timeout.ms", 30000, "", MEDIUM, "Socket timeout between broker and controller."
)
METADATA_LOG_DIR = string(
    "metadata.log.dir",
    None,
    "",
    HIGH,
    "Directory of the metadata log, one of log.dirs; the first log directory when unset.",
)
METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS = long(
    "metadata.log.max.record.bytes.between.snapshots",
    20_971_520,
    "[1,...]",
    HIGH,
    "Bytes of metadata records after which a snapshot is written.",
)
METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS = long(
    "metadata.log.max.snapshot.interval.ms",
    3_600_000,
    "[0,...]",
    HIGH,
    "Time after which a snapshot of the metadata is written if there are records since the last one; 0 is never.",
)
METADATA_LOG_SEGMENT_BYTES = integer(
    "metadata.log.segment.bytes",
    1_073_741_824,
    "[8388608,...]",
    HIGH,
    "Size at which a segment of the metadata log is rolled.",
)
METADATA_LOG_SEGMENT_MS = long(
    "metadata.log.segment.ms", 604_800_000, "", HIGH, "Age at which a segment of the metadata log is rolled."
)
