"""The controller quorum and the metadata log. KIP-595, KIP-630."""

from __future__ import annotations

from barnabas.wire.configdef import (
    HIGH,
    LOW,
    MEDIUM,
    boolean,
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
        used=True,
    )
)
CONTROLLER_QUORUM_APPEND_LINGER_MS = integer(
    "controller.quorum.append.linger.ms",
    25,
    "[0,...]",
    MEDIUM,
    "Time the controller gathers records before it writes them.",
)
CONTROLLER_QUORUM_AUTO_JOIN_ENABLE = boolean(
    "controller.quorum.auto.join.enable", False, LOW, "Whether a controller adds itself to the quorum."
)
CONTROLLER_QUORUM_BOOTSTRAP_SERVERS = list_of(
    "controller.quorum.bootstrap.servers",
    (),
    "non-empty list",
    HIGH,
    "Addresses at which the controller quorum is found.",
    used=True,
)
CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS = integer(
    "controller.quorum.election.backoff.max.ms",
    1000,
    "[0,...]",
    HIGH,
    "Maximum wait before a controller stands for election again.",
)
CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS = integer(
    "controller.quorum.election.timeout.ms", 1000, "[0,...]", HIGH, "Time a controller waits for votes."
)
CONTROLLER_QUORUM_FETCH_MAX_BYTES = integer(
    "controller.quorum.fetch.max.bytes",
    1_048_576,
    "[1,...]",
    LOW,
    "Maximum number of bytes of one fetch of the metadata log.",
    used=True,
)
CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES = integer(
    "controller.quorum.fetch.snapshot.max.bytes",
    1_048_576,
    "[1,...]",
    LOW,
    "Maximum number of bytes of one fetch of a metadata snapshot.",
    used=True,
)
CONTROLLER_QUORUM_FETCH_TIMEOUT_MS = integer(
    "controller.quorum.fetch.timeout.ms",
    2000,
    "[0,...]",
    HIGH,
    "Time without a successful fetch after which a controller stands for election.",
)
CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS = integer(
    "controller.quorum.request.timeout.ms",
    2000,
    "[0,...]",
    MEDIUM,
    "Time to wait for an answer of the controller quorum.",
    used=True,
)
CONTROLLER_QUORUM_RETRY_BACKOFF_MS = integer(
    "controller.quorum.retry.backoff.ms",
    20,
    "[0,...]",
    LOW,
    "Wait before a failed request to the quorum is repeated.",
    used=True,
)
CONTROLLER_QUORUM_VOTERS = list_of(
    "controller.quorum.voters", (), "non-empty list", HIGH, "Voters of the quorum, as id@host:port.", used=True
)
CONTROLLER_SOCKET_TIMEOUT_MS = integer(
    "controller.socket.timeout.ms", 30000, "", MEDIUM, "Socket timeout between broker and controller.", used=True
)
METADATA_LOG_DIR = string(
    "metadata.log.dir",
    None,
    "",
    HIGH,
    "Directory of the metadata log, one of log.dirs; the first log directory when unset.",
    used=True,
)
METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS = long(
    "metadata.log.max.record.bytes.between.snapshots",
    20_971_520,
    "[1,...]",
    HIGH,
    "Bytes of metadata records after which a snapshot is written.",
    used=True,
)
METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS = long(
    "metadata.log.max.snapshot.interval.ms",
    3_600_000,
    "[0,...]",
    HIGH,
    "Time after which a snapshot of the metadata is written if there are records since the last one; 0 is never.",
    used=True,
)
METADATA_LOG_SEGMENT_BYTES = integer(
    "metadata.log.segment.bytes",
    1_073_741_824,
    "[8388608,...]",
    HIGH,
    "Size at which a segment of the metadata log is rolled.",
    used=True,
)
METADATA_LOG_SEGMENT_MS = long(
    "metadata.log.segment.ms", 604_800_000, "", HIGH, "Age at which a segment of the metadata log is rolled.", used=True
)
METADATA_MAX_IDLE_INTERVAL_MS = integer(
    "metadata.max.idle.interval.ms",
    500,
    "[0,...]",
    LOW,
    "Time after which an idle controller writes an empty record; 0 is never.",
)
METADATA_MAX_RETENTION_BYTES = long(
    "metadata.max.retention.bytes",
    104_857_600,
    "",
    HIGH,
    "Size of metadata log and snapshots above which old ones are deleted.",
)
METADATA_MAX_RETENTION_MS = long(
    "metadata.max.retention.ms",
    604_800_000,
    "",
    HIGH,
    "Age above which old metadata segments and snapshots are deleted.",
)
