"""The markers of the transactions that a turn ends: one write for each partition and for each coordinator (T4, T5).

While the reactor serves several connections, an EndTxn writes its outcome and gets its response as always, and its
markers wait for the end of the turn, before the responses are sent. Then the markers of all its transactions are
appended to each partition as one write, and the records that complete the transactions to each partition of
`__transaction_state`. A marker that is refused, or whose write fails, is treated as if it were alone: it is not needed
any more, or tried again.

Invariants: a transaction has at most one marker for a partition in a turn, because its next EndTxn is refused until it
is completed; so the markers of one write are of different producers. A marker is written after its outcome (T4), and a
transaction is completed after all its markers.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.coordinators.markers import Marker
    from barnabas.broker.coordinators.shard import Shard
    from barnabas.broker.coordinators.transactions import TransactionCoordinators
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.transactions.coordinator import TransactionCoordinator
    from barnabas.coord.transactions.markers import Markers
    from barnabas.coord.transactions.transaction import TopicPartition

MOST_MARKERS: Final = 200
"""How many markers are gathered at most, so that the end of a turn stays short; 16 KB if all are of one partition."""


class _Ended(NamedTuple):
    """A transaction that ends, and its partitions where the marker is committed."""

    shard: Shard[TransactionCoordinator]
    markers: Markers
    done: list[TopicPartition]


class _Writing(NamedTuple):
    """A marker for a partition of this broker."""

    ended: _Ended
    target: TopicPartition
    marker: Marker


class GatheredMarkers:
    """The markers that are not written yet."""

    __slots__ = ("_coordinators", "_count", "_ended", "_loop", "_writing")

    def __init__(self, coordinators: TransactionCoordinators, loop: Loop) -> None:
        self._coordinators = coordinators
        self._loop = loop
        self._ended: list[_Ended] = []
        self._count = 0
        self._writing: dict[Partition, list[_Writing]] = {}

    def add(self, shard: Shard[TransactionCoordinator], markers: Markers) -> None:
        """Write the markers of a transaction at the end of the turn."""
        if not self._ended:
            self._loop.call_after_turn(self.write)
        self._ended.append(_Ended(shard, markers, []))
        self._count += len(markers.partitions)
        if self._count >= MOST_MARKERS:
            self.write()

    def write(self) -> None:
        """Write all markers, and complete the transactions."""
        ended, self._ended, self._count = self._ended, [], 0
        coordinators = self._coordinators
        for transaction in ended:
            shard, markers, done = transaction
            write_here = partial(self._collect, transaction)
            done += coordinators.write_markers(shard, markers, sorted(markers.partitions), write_here)
        writing, self._writing = self._writing, {}
        for partition, of_partition in writing.items():
            self._append(partition, of_partition)
        marked: dict[Shard[TransactionCoordinator], list[tuple[Markers, list[TopicPartition]]]] = {}
        for shard, markers, done in ended:
            if done:
                marked.setdefault(shard, []).append((markers, done))
        for shard, of_shard in marked.items():
            if coordinators.is_current(shard):
                coordinators.report(shard, of_shard)

    def _collect(self, transaction: _Ended, target: TopicPartition, attempt: int) -> bool:
        """Take a marker into the next write of its partition; True if it is not needed, or committed already."""
        coordinators = self._coordinators
        shard, markers, _ = transaction
        marker = coordinators.marker_of(shard, markers)
        try:
            partition = coordinators.leader(target)
            if coordinators.markers.is_repeated(partition, marker):
                offset = partition.log.log_end_offset - 1
                return coordinators.is_marked(shard, markers, target, attempt, partition, offset)
        except Exception as error:
            return coordinators.marker_failed(shard, markers, target, attempt, error)
        self._writing.setdefault(partition, []).append(_Writing(transaction, target, marker))
        return False

    def _append(self, partition: Partition, writing: list[_Writing]) -> None:
        """Append the markers for one partition; if one of them is refused, each by itself."""
        coordinators = self._coordinators
        try:
            offset = coordinators.markers.write_all(partition, [marker for _, _, marker in writing])
        except Exception as error:
            if len(writing) > 1 and coordinators.is_late(error):
                for marker in writing:
                    self._append(partition, [marker])
                return
            for (shard, markers, done), target, _ in writing:
                if coordinators.marker_failed(shard, markers, target, 0, error):
                    done.append(target)
            return
        for (shard, markers, done), target, _ in writing:
            if coordinators.is_marked(shard, markers, target, 0, partition, offset):
                done.append(target)
