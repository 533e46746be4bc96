"""The topic ids of the metadata in data directories that no broker is using, to check the partitions against them."""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.coord.cluster.image import UnknownMetadataError
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.storage import layout
from barnabas.storage.files import ReadOnlyFiles
from barnabas.tools.dump.metadata_image import read_image
from barnabas.wire.errors import KafkaError, ProtocolError
from barnabas.wire.types import ONE_UUID


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
