"""The answers of a quorum of one to readers of the metadata log: leader, epochs, positions, observers, voters.

Kafka's checks of a leader, for a leader that is never deposed: its epoch changes only with a start, its end is its high
watermark, and only synced records are below that. A reader whose log cannot be continued gets the id of a snapshot, or
the offset at which its log diverges. Source: Kafka 4.4 `KafkaRaftClient`, `RaftLog.validateOffsetAndEpoch`. KIP-595,
KIP-630.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.event_loop.guarded import call_guarded
from barnabas.coord.cluster.metadata_log.checkpoint import checkpoint_name
from barnabas.wire.errors import ErrorCode
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.metadata.log.metadata_log import MetadataLog
    from barnabas.storage.read.log_reader import LogRead
    from barnabas.wire.types import Uuid

OBSERVER_SESSION_S: Final = 300.0
"""How long a reader that no longer fetches is shown as an observer, seconds; as in Kafka."""
MAX_OBSERVERS: Final = 10_000
"""The most readers that are kept; the reader that fetched least recently is dropped first."""

SnapshotId = tuple[int, int]
"""End offset and epoch of a snapshot."""


class Position(NamedTuple):
    """How a reader's log differs from the controller's: it does not when both are None."""

    diverging: SnapshotId | None = None
    """The last epoch that both logs have, or one before it, and its end: (end offset, epoch)."""
    snapshot: SnapshotId | None = None
    """The snapshot to begin with instead."""


class Observer:
    """One reader of the metadata log."""

    __slots__ = ("caught_up_ms", "end_offset", "fetched_at", "fetched_ms")

    def __init__(self) -> None:
        self.end_offset = -1
        self.fetched_at = 0.0
        self.fetched_ms = -1
        self.caught_up_ms = -1


class ControllerQuorum:
    """The quorum whose only voter is this node: its observers, and the fetches that wait for records."""

    def __init__(self, loop: Loop, log: MetadataLog, node_id: int, cluster_id: str, directory_id: Uuid) -> None:
        self._loop = loop
        self._log = log
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.directory_id = directory_id
        """The id of the log directory of the metadata log."""
        self.endpoints: list[Endpoint] = []
        """The controller's listeners, as advertised."""
        self._observers: dict[tuple[int, Uuid], Observer] = {}
        self._waiting: dict[object, Callable[[], None]] = {}
        log.on_commit.append(self._wake)

    @property
    def epoch(self) -> int:
        """The epoch that this node leads since its start."""
        return self._log.image.epoch

    @property
    def high_watermark(self) -> int:
        """The end of the committed records."""
        return self._log.high_watermark

    @property
    def log_start_offset(self) -> int:
        """The offset of the first record that is left in the log."""
        return self._log.log.log_start_offset

    def endpoint(self, listener: str) -> Endpoint | None:
        """The address of this node on `listener`."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def is_cluster(self, cluster_id: str | None) -> bool:
        """Whether a request is for this cluster; one without a cluster id is for any."""
        return cluster_id is None or cluster_id == self.cluster_id

    def epoch_error(self, epoch: int) -> ErrorCode:
        """The error for a reader whose current leader epoch is `epoch`."""
        if epoch == self.epoch:
            return ErrorCode.NONE
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH

    def position(self, offset: int, epoch: int) -> Position:
        """The position of a reader whose log ends at `offset` with a record of `epoch`."""
        log, snapshots = self._log.log, self._log.snapshots
        if offset == 0:
            if snapshots:  # quicker than the records of the log from its beginning
                return Position(snapshot=snapshots[-1])
            if log.log_start_offset == 0:
                return Position()
        if snapshots:
            start, first_epoch = log.log_start_offset, snapshots[0][1]
            if offset < start or (offset == start and epoch != first_epoch) or epoch < first_epoch:
                return Position(snapshot=snapshots[-1])
            if offset == start:
                return Position()
        last_epoch, end = log.end_offset_for_epoch(epoch)
        if last_epoch < 0:  # an epoch that this log does not have yet
            last_epoch, end = log.leader_epochs.latest_epoch, log.log_end_offset
        if last_epoch != epoch or end < offset:
            return Position(diverging=(end, last_epoch))
        return Position()

    def read(self, offset: int, max_bytes: int) -> LogRead | None:
        """Committed batches from `offset` on; None when there are none yet. Raises the errors of reading the log."""
        if offset >= self.high_watermark:
            return None
        return self._log.log.read(offset, max_bytes, limit_offset=self.high_watermark, min_one_batch=True)

    def has_snapshot(self, snapshot_id: SnapshotId) -> bool:
        """Whether a snapshot can be read."""
        return snapshot_id in self._log.snapshots

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes]:
        """The size of a snapshot, and bytes of it; waits for the disk. FileNotFoundError when it has been removed."""
        files = self._log.log.files
        path = f"{self._log.log.directory}/{checkpoint_name(*snapshot_id)}"
        file = files.open_read(path)
        try:
            size = files.size(file)
            return size, files.read_at(file, max_bytes, position) if 0 <= position < size else b""
        finally:
            file.close()

    # Waiting readers

    def wait(self, key: object, more: Callable[[], None]) -> None:
        """Call `more` once when something is committed."""
        self._waiting[key] = more

    def forget(self, key: object) -> None:
        """Remove the callback with this key."""
        self._waiting.pop(key, None)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for more in waiting.values():
            call_guarded("Answering a reader of the metadata log", more)

    # Observers

    def fetched(self, replica_id: int, directory_id: Uuid, offset: int) -> None:
        """Note that a node has fetched from `offset`: its log ends there."""
        if replica_id < 0:
            return
        observer = self._observers.pop((replica_id, directory_id), None) or Observer()
        if len(self._observers) >= MAX_OBSERVERS:
            del self._observers[next(iter(self._observers))]
        self._observers[replica_id, directory_id] = observer
        observer.end_offset = offset
        observer.fetched_at, observer.fetched_ms = self._loop.now(), self._loop.now_ms()
        if offset >= self.high_watermark:
            observer.caught_up_ms = observer.fetched_ms

    def observers(self) -> list[tuple[int, Uuid, Observer]]:
        """(node id, directory id, state) of the nodes that have fetched lately, by node id."""
        oldest = self._loop.now() - OBSERVER_SESSION_S
        self._observers = {key: observer for key, observer in self._observers.items() if observer.fetched_at >= oldest}
        return sorted(
            ((*key, observer) for key, observer in self._observers.items() if key[0] != self.node_id),
            key=lambda entry: entry[:2],
        )

    def voter_key(self) -> tuple[int, Uuid]:
        """Node id and directory id of the voter: without voters in records the directory is not known to the quorum."""
        return self.node_id, self.directory_id if self._log.image.quorum.voters is not None else ZERO_UUID
