"""`barnabas storage`: checks data directories and repairs damaged partitions, while no broker uses them (L2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import click

from barnabas.cli.command_groups import Group
from barnabas.cli.options.parameters import output_option, yes_option
from barnabas.cli.options.patterns import ask_or_refuse
from barnabas.coord.cluster.image import UnknownMetadataError
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.checking.check import check_directory
from barnabas.storage.checking.findings import DirectoryReport, Finding, PartitionReport
from barnabas.storage.checking.repair import Loss, Repair, put_checkpoint_aside
from barnabas.storage.directories.foreign import partition_in, refuse_cluster
from barnabas.storage.directories.meta_properties import DataDirMismatch
from barnabas.storage.files import File, Files, ReadOnlyFiles
from barnabas.storage.layout import TopicPartition
from barnabas.terminal.notes import note
from barnabas.terminal.tables import Row, is_document, show, show_rows
from barnabas.tools.dump.metadata_image import read_image
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.types import ONE_UUID

# --- the topic ids of the metadata


def read_topic_ids(paths: Iterable[str]) -> dict[str, bytes] | None:
    """Topic -> id from the metadata log in one of the directories; None without a log that can be replayed."""
    files = ReadOnlyFiles()
    for path in paths:
        directory = f"{path}/{layout.partition_dir_name(CLUSTER_METADATA_TOPIC, 0)}"
        if files.exists(directory):
            try:
                image = read_image(files, directory)
            except (OSError, KafkaError, ProtocolError, UnknownMetadataError):
                return None  # the check of the metadata log itself says what is wrong
            return {topic.name: topic.topic_id for topic in image.topics.values()} | {CLUSTER_METADATA_TOPIC: ONE_UUID}
    return None


# --- the commands

DAMAGED = 1
IF_MISSING = {
    layout.RECOVERY_POINT_CHECKPOINT: "the next start reads every log from its first record",
    layout.LOG_START_CHECKPOINT: "deleted records whose segment still exists are visible again",
    layout.REPLICATION_CHECKPOINT: "nothing is lost",
}
"""The effect of a missing checkpoint."""
COLUMNS = ("topic", "partition", "segments", "batches", "bytes", "start_offset", "end_offset", "state")

data_dirs = click.argument(
    "data_dirs", nargs=-1, required=True, metavar="DATA_DIR...", type=click.Path(exists=True, file_okay=False)
)


@click.group(cls=Group)
def storage() -> None:
    """Check and repair data directories that no broker is using."""


# --- check


@storage.command()
@data_dirs
@output_option
def check(data_dirs: tuple[str, ...], output: str) -> int:
    """Check all record batches, indexes, snapshots and checkpoints in DATA_DIR; change nothing.

    Damage keeps a partition offline or misleads readers; the exit code is then 1. Problems that the next start of a
    broker corrects, like a torn tail after a power failure, are notices. If a broker is running, data that is being
    written may look torn.
    """
    reports = []
    paths = [_log_dir(path) for path in data_dirs]
    topic_ids = read_topic_ids(paths)
    for path in paths:
        lock = _lock(path)
        if lock is None:
            note(f"barnabas storage check: a broker is using {path}; data that is being written may look torn")
        reports.append(check_directory(ReadOnlyFiles(), path, topic_ids))
    if is_document(output):
        show([_directory_fields(report) for report in reports], output)
    else:
        for report in reports:
            _show(report, output)
    return DAMAGED if any(report.is_damaged for report in reports) else 0


def _log_dir(path: str) -> str:
    """The path without a trailing slash; a usage error if it is not a data directory."""
    path = path.rstrip("/") or "/"
    files = ReadOnlyFiles()
    try:
        refuse_cluster(files, path)
    except DataDirMismatch:
        raise click.UsageError(f"{path} has the data of a cluster: name the directory of one of its nodes") from None
    if not files.exists(f"{path}/{layout.META_PROPERTIES}") and partition_in(files, path) is None:
        raise click.UsageError(f"{path} is not a data directory: it has no {layout.META_PROPERTIES} and no partition")
    return path


def _lock(path: str) -> File | None:
    """Lock the directory; None if a broker holds the lock."""
    name = f"{path}/{layout.LOCK}"
    try:
        return Files().lock(name) if Files().exists(name) else Files().open_read(path)
    except PermissionError:
        return Files().open_read(path)


def _show(report: DirectoryReport, output: str) -> None:
    stop = "after a clean stop" if report.is_clean else "after an unclean stop"
    rows = [_partition_fields(partition) for partition in report.partitions]
    show_rows(rows, output, columns=COLUMNS, title=f"{report.path} ({stop})")
    for finding in _findings(report):
        print(f"{finding.kind}: {finding.path}: {finding.text}")


def _findings(report: DirectoryReport) -> Iterator[Finding]:
    yield from report.findings
    for partition in report.partitions:
        yield from partition.findings


def _partition_fields(partition: PartitionReport) -> dict[str, object]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "segments": partition.segments,
        "batches": partition.batches,
        "bytes": partition.size,
        "start_offset": partition.start,
        "end_offset": partition.end_offset,
        "state": "damaged" if partition.is_damaged else "ok",
    }


def _directory_fields(report: DirectoryReport) -> Row:
    return {
        "path": report.path,
        "clean_stop": report.is_clean,
        "damaged": report.is_damaged,
        "findings": [finding._asdict() for finding in report.findings],
        "partitions": [
            _partition_fields(partition) | {"findings": [finding._asdict() for finding in partition.findings]}
            for partition in report.partitions
        ],
    }


# --- recover


@storage.command()
@data_dirs
@click.option("--topic", help="Only this topic, even if it is not damaged.")
@click.option("--partition", type=click.IntRange(min=0), help="Only this partition of the topic.")
@click.option("--dry-run", is_flag=True, help="Only show which records would be lost.")
@yes_option
def recover(data_dirs: tuple[str, ...], topic: str | None, partition: int | None, dry_run: bool, yes: bool) -> int:
    """Show which records are lost, ask, and repair the damaged partitions in DATA_DIR.

    Every whole record batch stays at its offset. Corrupt bytes are moved to a file `.damaged`, and an empty batch
    replaces lost records. Indexes, producer state and leader epochs are rebuilt.
    """
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    code = 0

    paths = [_log_dir(path) for path in data_dirs]
    topic_ids = read_topic_ids(paths)
    for path in paths:
        lock = _lock(path)
        if lock is None:
            raise click.UsageError(f"a broker is using {path}: stop it first")
        if not _recover(path, topic_ids, topic, partition, is_dry=dry_run, is_agreed=yes):
            code = DAMAGED
    return code


def _recover(
    path: str,
    topic_ids: dict[str, bytes] | None,
    topic: str | None,
    partition: int | None,
    *,
    is_dry: bool,
    is_agreed: bool,
) -> bool:
    """Repair a directory; returns whether it is now intact."""
    report = check_directory(ReadOnlyFiles(), path, topic_ids)
    if _has_wrong_identity(report):
        return False
    unreadable = [finding.path for finding in report.findings if finding.path.endswith("-checkpoint")]
    if unreadable:
        for name in unreadable:
            print(f"{name} cannot be read and is moved aside: {IF_MISSING[name.rpartition('/')[2]]}")
        if is_dry:
            return False
        ask_or_refuse("Move them aside?", "this moves files aside", yes=is_agreed)
        for name in unreadable:
            print(f"moved to {put_checkpoint_aside(Files(), name)}")
        return _recover(path, topic_ids, topic, partition, is_dry=is_dry, is_agreed=True)
    chosen = _chosen(report, topic, partition)
    if not chosen:
        print(f"{path}: no damage")
        return True
    for key in chosen:
        _print_losses(key, Repair(ReadOnlyFiles(), path, key).plan())
    if is_dry:
        return False
    ask_or_refuse("Repair?", f"this repairs {', '.join(f'{topic}-{index}' for topic, index in chosen)}", yes=is_agreed)
    for key in chosen:
        Repair(Files(), path, key, (topic_ids or {}).get(key[0])).run()
        print(f"{key[0]}-{key[1]}: repaired")
    return not check_directory(ReadOnlyFiles(), path, topic_ids).is_damaged


def _has_wrong_identity(report: DirectoryReport) -> bool:
    """Whether `meta.properties` is wrong, which only its owner can repair; says so."""
    wrong = [finding for finding in report.findings if finding.path.endswith(layout.META_PROPERTIES)]
    for finding in wrong:
        print(f"{finding.path} cannot be repaired, restore it from a copy: {finding.text}")
    return bool(wrong)


def _chosen(report: DirectoryReport, topic: str | None, partition: int | None) -> list[TopicPartition]:
    """The partitions to repair: the given ones, or all that are damaged or missing."""
    present = {(partition.topic, partition.partition) for partition in report.partitions}
    missing = {
        key
        for finding in report.findings
        if finding.kind == "damage" and (key := layout.parse_partition_dir(finding.path.rpartition("/")[2])) is not None
    }
    if topic is not None:
        named = sorted(key for key in present | missing if key[0] == topic and partition in (None, key[1]))
        if not named:
            what = topic if partition is None else f"{topic}-{partition}"
            raise click.UsageError(f"there is no partition of {what} in {report.path}")
        return named
    return sorted(
        {(partition.topic, partition.partition) for partition in report.partitions if partition.is_damaged} | missing
    )


def _print_losses(key: TopicPartition, losses: list[Loss]) -> None:
    name = f"{key[0]}-{key[1]}"
    if not losses:
        print(f"{name}: no record is lost; indexes, producer state and leader epochs are rebuilt")
    for loss in losses:
        lost = f"the records from offset {loss.first} to {loss.last} are lost"
        if loss.last < loss.first:
            lost = "no record is lost"
        bad = f": {loss.size} corrupt bytes are moved aside" if loss.size else ""
        print(f"{name}: {lost} ({loss.path}{bad})")
