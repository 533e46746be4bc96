"""Snapshots of the metadata: the `<offset>-<epoch>.checkpoint` files beside the metadata log's segments (KIP-630)."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from barnabas.coord.cluster.metadata_log.checkpoint import parse_checkpoint_name
from barnabas.storage.directories.checkpoints import replace_file

if TYPE_CHECKING:
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.storage.log import Log


def load_newest(log: Log) -> tuple[ClusterImage, int] | None:
    """The image of the newest snapshot, and the offset that its records end before; None when there is no snapshot.

    Offset 0 is the snapshot of an empty log that `kafka-storage format` writes: the records that a new log begins with.
    """
    files, directory = log.files, log.directory
    snapshots = [(parsed, name) for name, _ in files.list_files(directory) if (parsed := parse_checkpoint_name(name))]
    if not snapshots:
        return None
    from barnabas.coord.cluster.metadata_log.checkpoint import load_checkpoint

    (end_offset, epoch), name = max(snapshots)
    return load_checkpoint(files.read_file(f"{directory}/{name}"), end_offset, epoch), end_offset


def snapshot_ids(log: Log) -> list[tuple[int, int]]:
    """(end offset, epoch) of the snapshots, oldest first, without the one that begins a new log."""
    snapshots = (parse_checkpoint_name(name) for name, _ in log.files.list_files(log.directory))
    return sorted(parsed for parsed in snapshots if parsed is not None and parsed[0])


class NewSnapshot:
    """A snapshot of an image that does not change while it is encoded."""

    def __init__(self, log: Log, image: ClusterImage, previous: tuple[int, int] | None = None) -> None:
        """`previous` is (end offset, epoch) of the older snapshot that is not removed."""
        self._log = log
        self._image = image
        self._content: list[bytes] = []
        from barnabas.coord.cluster.metadata_log.checkpoint import checkpoint_name

        self.name = checkpoint_name(image.offset + 1, image.epoch)
        """The name of the file."""
        self._names = {self.name} if previous is None else {self.name, checkpoint_name(*previous)}

    def encode(self, now_ms: int) -> Generator[None, None, None]:
        """Encode the image, in steps."""
        from barnabas.coord.cluster.metadata_log.checkpoint import build_checkpoint
        from barnabas.coord.cluster.metadata_log.image_records import image_records

        image = self._image
        for batch in build_checkpoint(
            image_records(image),
            quorum=image.quorum,
            epoch=image.epoch,
            last_timestamp_ms=now_ms,
            now_ms=now_ms,
            metadata_version=image.metadata_version,
        ):
            self._content.append(batch)
            yield

    def write(self) -> None:
        """Write the file durably and remove older snapshots; may be called in a thread. OSError when the disk fails."""
        files, directory = self._log.files, self._log.directory
        replace_file(files, f"{directory}/{self.name}", b"".join(self._content))
        remove_older(self._log, self._names)


def remove_older(log: Log, names: set[str]) -> None:
    """Remove the snapshots other than these. OSError when the disk fails."""
    for other, _ in log.files.list_files(log.directory):
        if parse_checkpoint_name(other) is not None and other not in names:
            log.files.unlink(f"{log.directory}/{other}")
