"""The image of the cluster metadata from the files of a data directory, for commands that only read.

A broker may be writing the log meanwhile: an incomplete batch at its end is left out.
"""

from __future__ import annotations

from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.checkpoint import load_checkpoint, parse_checkpoint_name
from barnabas.coord.cluster.metadata_log.metadata_batches import replay_batches
from barnabas.storage import layout
from barnabas.storage.files import ReadOnlyFiles


def read_image(files: ReadOnlyFiles, directory: str) -> ClusterImage:
    """The image of a directory of the metadata log: its newest snapshot, and the log after that.

    Raises OSError, KafkaError, ProtocolError, UnknownMetadataError.
    """
    names = [name for name, _ in files.list_files(directory)]
    image = ClusterImage()
    snapshots = [(parsed, name) for name in names if (parsed := parse_checkpoint_name(name)) is not None]
    if snapshots:
        (end_offset, epoch), name = max(snapshots)
        if end_offset:
            image = load_checkpoint(files.read_file(f"{directory}/{name}"), end_offset, epoch)
    logs = sorted(name for name in names if name.endswith(layout.LOG_SUFFIX) and layout.offset_of(name) is not None)
    for at, name in enumerate(logs):
        if at + 1 == len(logs) or (layout.offset_of(logs[at + 1]) or 0) > image.offset + 1:
            _replay(image, files.read_file(f"{directory}/{name}"))
    return image


def _replay(image: ClusterImage, data: bytes) -> None:
    """Replay the batches after the image's offset."""
    position = 0
    while position + 12 <= len(data):
        base_offset, size = int.from_bytes(data[position : position + 8], "big"), data[position + 8 : position + 12]
        end = position + 12 + int.from_bytes(size, "big")
        if end > len(data):
            break
        if base_offset > image.offset:
            replay_batches(memoryview(data)[position:end], image, ClusterDelta())
        position = end
