"""The topic ids of the metadata in data directories that no broker is using, to check the partitions against them."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coord.cluster.checkpoint import load_checkpoint, parse_checkpoint_name
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage, UnknownMetadataError
from barnabas.coord.cluster.metadata_batches import replay_batches
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.files import ReadOnlyFiles
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.types import ONE_UUID


def read_topic_ids(paths: Iterable[str]) -> dict[str, bytes] | None:
    """Topic -> id from the metadata log in one of the directories; None without a log that can be replayed."""
    files = ReadOnlyFiles()
    for path in paths:
        directory = f"{path}/{layout.partition_dir_name(CLUSTER_METADATA_TOPIC, 0)}"
        if files.exists(directory):
            try:
                image = _image(files, directory)
            except (OSError, KafkaError, ProtocolError, UnknownMetadataError):
                return None  # the check of the metadata log itself says what is wrong
            return {topic.name: topic.topic_id for topic in image.topics.values()} | {CLUSTER_METADATA_TOPIC: ONE_UUID}
    return None


def _image(files: ReadOnlyFiles, directory: str) -> ClusterImage:
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
