"""The names of files and directories in a log directory, as in Kafka.

`<topic>-<partition>/` holds `<base offset, 20 digits>.log .index .timeindex .txnindex .snapshot`, and the files
named below. Source of the names: Kafka's `LogFileUtils` and `LocalLog`.
"""

from __future__ import annotations

TopicPartition = tuple[str, int]
"""A topic's name and a partition of it."""

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"
DAMAGED_SUFFIX = ".damaged"
SEGMENT_SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)

DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"
LOCK = ".lock"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
REPLICATION_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_CHECKPOINT = "cleaner-offset-checkpoint"
CLUSTER_STATE = "cluster.json"
"""A file that only the directory of a cluster of several nodes has; each node's log directory is below it."""

MOVED = "moved"
"""An empty file in the directory of a partition that was moved here from another log directory: this copy counts."""

_MAX_NAME = 255
_MAX_PARTITION = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
OFFSET_DIGITS = 20


def segment_name(base_offset: int, suffix: str) -> str:
    """The name of one of a segment's files: the base offset in 20 digits, so that names sort like offsets."""
    return f"{base_offset:020d}{suffix}"


def snapshot_name(offset: int) -> str:
    """The name of the producer snapshot at an offset."""
    return segment_name(offset, SNAPSHOT_SUFFIX)


def offset_of(name: str) -> int | None:
    """The offset in a segment file's or snapshot's name; None for any other name or a number that is no offset."""
    digits = name[:OFFSET_DIGITS]
    if (
        len(digits) == OFFSET_DIGITS
        and digits.isascii()
        and digits.isdigit()
        and name[OFFSET_DIGITS : OFFSET_DIGITS + 1] == "."
    ):
        offset = int(digits)
        return offset if offset <= _MAX_OFFSET else None
    return None


def partition_dir_name(topic: str, partition: int) -> str:
    """The directory of a partition."""
    return f"{topic}-{partition}"


def deleted_dir_name(topic: str, partition: int, unique: str) -> str:
    """The name to which a partition's directory is renamed on deletion; `unique` is 32 hex digits.

    Long topic names are shortened so that the name is a valid file name, as in Kafka's `LocalLog`.
    """
    suffix = f"-{partition}.{unique}{DELETE_DIR_SUFFIX}"
    return topic[: _MAX_NAME - len(suffix)] + suffix


def stray_dir_name(topic: str, partition: int, unique: str) -> str:
    """The name to which the directory of a partition is renamed that is not in the metadata; see `deleted_dir_name`."""
    return deleted_dir_name(topic, partition, unique).removesuffix(DELETE_DIR_SUFFIX) + STRAY_DIR_SUFFIX


def future_dir_name(topic: str, partition: int, unique: str) -> str:
    """The directory of a future replica (KIP-113); `unique` is 32 hex digits. Never shortened."""
    return f"{topic}-{partition}.{unique}{FUTURE_DIR_SUFFIX}"


def may_have_future(topic: str, partition: int) -> bool:
    """Whether the name of a future replica's directory is a valid file name, as Kafka requires for a move."""
    return len(future_dir_name(topic, partition, "0" * 32)) <= _MAX_NAME


def parse_future_dir(name: str) -> TopicPartition | None:
    """(topic, partition) of the name of a future replica's directory; None if it is not one."""
    if not name.endswith(FUTURE_DIR_SUFFIX):
        return None
    partition, dot, unique = name.removesuffix(FUTURE_DIR_SUFFIX).rpartition(".")
    return parse_partition_dir(partition) if dot and len(unique) == 32 else None


def is_node_dir(name: str) -> bool:
    """Whether a directory in a cluster's directory has the name of a node's: `broker-1`, `controller-3000`."""
    role, dash, node_id = name.partition("-")
    return role in ("broker", "controller") and bool(dash) and node_id.isascii() and node_id.isdigit()


def is_deleted_dir(name: str) -> bool:
    """Whether a directory has the name of a partition's that was renamed for deletion."""
    partition, dot, unique = name.removesuffix(DELETE_DIR_SUFFIX).rpartition(".")
    is_deleted = name.endswith(DELETE_DIR_SUFFIX) and bool(dot) and len(unique) == 32
    return is_deleted and parse_partition_dir(partition) is not None


def parse_partition_dir(name: str) -> TopicPartition | None:
    """(topic, partition) of a directory's name; None if it is not the name of a partition's directory."""
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        return None
    partition = int(digits)
    return (topic, partition) if partition <= _MAX_PARTITION and str(partition) == digits else None
