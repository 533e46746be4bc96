"""Snapshots of the metadata: the `<offset>-<epoch>.checkpoint` files beside the metadata log's segments (KIP-630)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coord.cluster.checkpoint import parse_checkpoint_name
from barnabas.storage.checkpoints import replace_file

if TYPE_CHECKING:
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.storage.log import Log


def load_newest(log: Log) -> tuple[ClusterImage, int] | None:
    """The image of the newest snapshot, and the offset that its records end before; None when there is no snapshot.

    Offset 0 is the snapshot of an empty log that `kafka-storage format` writes: the records that a new log begins with.
    """
    files, directory = log.files, log.directory
    found = [(parsed, name) for name, _ in files.list_files(directory) if (parsed := parse_checkpoint_name(name))]
    if not found:
        return None
    from barnabas.coord.cluster.checkpoint import load_checkpoint

    (end_offset, epoch), name = max(found)
    return load_checkpoint(files.read_file(f"{directory}/{name}"), end_offset, epoch), end_offset


def write_snapshot(log: Log, image: ClusterImage, now_ms: int) -> str:
    """Write the image as a snapshot and remove older ones; the name of the file. OSError when the disk fails."""
    from barnabas.coord.cluster.checkpoint import build_checkpoint, checkpoint_name
    from barnabas.coord.cluster.image_records import image_records

    content = b"".join(
        build_checkpoint(
            image_records(image),
            quorum=image.quorum,
            epoch=image.epoch,
            last_timestamp_ms=now_ms,
            now_ms=now_ms,
            metadata_version=image.metadata_version,
        )
    )
    name = checkpoint_name(image.offset + 1, image.epoch)
    replace_file(log.files, f"{log.directory}/{name}", content)
    for other, _ in log.files.list_files(log.directory):
        if parse_checkpoint_name(other) is not None and other != name:
            log.files.unlink(f"{log.directory}/{other}")
    return name
