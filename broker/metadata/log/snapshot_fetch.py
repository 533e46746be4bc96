"""Fetches a snapshot of the metadata from the controller, piece by piece, into the directory of the metadata log.

The pieces go to `<snapshot>.checkpoint.part`, written by a thread; the complete file is synced, checked by loading it,
and renamed. A fetch that fails begins again with whatever snapshot the controller then names. Source: KIP-630.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.metadata.log.metadata_copy import records_in_memory
from barnabas.broker.metadata.log.snapshots import remove_older
from barnabas.coord.cluster.metadata_log.checkpoint import checkpoint_name, load_checkpoint
from barnabas.coord.topic_names import CLUSTER_METADATA_TOPIC
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.raft import (
    FetchSnapshotRequest,
    FetchSnapshotRequestPartitionSnapshot,
    FetchSnapshotRequestSnapshotId,
    FetchSnapshotRequestTopicSnapshot,
    FetchSnapshotResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.net.client.network_client import NetworkClient
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.storage.log import Log
    from barnabas.wire.types import Uuid

logger = logging.getLogger("kafka.raft.KafkaRaftClient")

PART_SUFFIX: Final = ".part"


class SnapshotFetch:
    """The fetch of one snapshot."""

    def __init__(
        self,
        client: NetworkClient,
        runner: StepRunner,
        log: Log,
        *,
        snapshot_id: tuple[int, int],
        identity: tuple[str, int, Uuid],
        leader_epoch: int,
        max_bytes: int,
        timeout_s: float,
        then: Callable[[ClusterImage | Exception], None],
    ) -> None:
        """`snapshot_id` is (end offset, epoch), `identity` (cluster id, this node's id, directory id).

        `then` gets the image of the snapshot, whose file is in its place, or the error: KafkaError, OSError, or
        UnknownMetadataError for a snapshot that this broker does not understand.
        """
        self._client = client
        self._runner = runner
        self._log = log
        self.end_offset, self.epoch = snapshot_id
        self._cluster_id, self._node_id, self._directory_id = identity
        self._leader_epoch = leader_epoch
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._then = then
        self._position = 0
        self._path = f"{log.directory}/{checkpoint_name(*snapshot_id)}"

    def start(self) -> None:
        """Fetch the first piece."""
        logger.info("Fetching the snapshot of the metadata up to offset %d", self.end_offset)
        self._runner.start(self._begin(), lambda _: self._fetch(), self._then)

    def _begin(self) -> Steps[None]:
        files, path = self._log.files, self._path + PART_SUFFIX

        def empty() -> None:
            file = files.open(path)
            try:
                files.truncate(file, 0)
            finally:
                file.close()

        yield empty

    def _fetch(self) -> None:
        partition = FetchSnapshotRequestPartitionSnapshot(
            current_leader_epoch=self._leader_epoch,
            snapshot_id=FetchSnapshotRequestSnapshotId(end_offset=self.end_offset, epoch=self.epoch),
            position=self._position,
            replica_directory_id=self._directory_id,
        )
        request = FetchSnapshotRequest(
            cluster_id=self._cluster_id,
            replica_id=self._node_id,
            max_bytes=self._max_bytes,
            topics=[FetchSnapshotRequestTopicSnapshot(name=CLUSTER_METADATA_TOPIC, partitions=[partition])],
        )
        self._client.send(request, self._fetched, timeout_s=self._timeout_s)

    def _fetched(self, response: FetchSnapshotResponse | KafkaError) -> None:
        if isinstance(response, KafkaError):
            self._then(response)
            return
        partitions = [partition for topic in response.topics for partition in topic.partitions]
        code = response.error_code or (partitions[0].error_code if partitions else ErrorCode.UNKNOWN_SERVER_ERROR)
        if code:
            self._then(KafkaError(ErrorCode(code), f"The controller refuses the snapshot: {ErrorCode(code).name}."))
            return
        piece = partitions[0]
        data = records_in_memory(piece.unaligned_records)
        if piece.position != self._position or (not data and self._position < piece.size):
            self._then(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "The controller sent another piece of the snapshot."))
            return
        is_last = self._position + len(data) >= piece.size
        self._runner.start(self._write(data, is_last=is_last), self._written, self._then)

    def _write(self, data: bytes, *, is_last: bool) -> Steps[ClusterImage | None]:
        """Write a piece; after the last one the snapshot is loaded and gets its name."""
        files, path = self._log.files, self._path + PART_SUFFIX
        position = self._position
        loaded: list[ClusterImage] = []

        def write() -> None:
            file = files.open(path)
            try:
                files.write_at(file, data, position)
                if is_last:
                    files.sync(file)
            finally:
                file.close()

        def load() -> None:
            loaded.append(load_checkpoint(files.read_file(path), self.end_offset, self.epoch))
            files.rename(path, self._path)
            files.sync_dir(self._log.directory)
            remove_older(self._log, {self._path.rpartition("/")[2]})

        yield write
        self._position += len(data)
        if not is_last:
            return None
        yield load
        return loaded[0]

    def _written(self, image: ClusterImage | None) -> None:
        if image is None:
            self._fetch()
        else:
            self._then(image)
