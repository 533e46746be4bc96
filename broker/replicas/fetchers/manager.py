"""Decides which fetcher follows which partition: `num.replica.fetchers` of them for each leader (R4).

A partition is followed from the moment at which the metadata names another broker as its leader, until it has another
leader or epoch, none, or is removed. A change of the epoch alone starts the fetches again as well: a fetch carries the
epoch, and responses to the old epoch are ignored. Source: Kafka's `AbstractFetcherManager` and
`ReplicaManager.applyDelta`.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.keys.replication import NUM_REPLICA_FETCHERS
from barnabas.broker.replicas.fetchers.context import FetchContext
from barnabas.broker.replicas.fetchers.fetcher import Fetcher
from barnabas.coord.cluster.topic_image import NO_LEADER

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.fetchers.context import Client
    from barnabas.broker.replicas.fetchers.session import PartitionKey
    from barnabas.broker.replicas.partition import Partition
    from barnabas.broker.replicas.partitions import Partitions
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.storage.directories.log_dirs import LogDirs

LOG_START_DELAY_S: Final = 1.0
"""How long moved log starts of followers wait for others, before they are persisted together, seconds."""


class FetcherManager:
    """All fetchers of a broker."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        partitions: Partitions,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        runner: StepRunner,
        client: Callable[[int, str], Client],
        *,
        image: Callable[[], ClusterImage],
        broker_epoch: Callable[[], int],
    ) -> None:
        """`client` is `InterBroker.client`; `broker_epoch` returns the epoch of this broker's registration (KIP-903).

        Subscribes to the changes of partitions; those that are open already are followed at once.
        """
        self._loop = loop
        self._config = config
        self._partitions = partitions
        self._is_persisting = False
        self._context = FetchContext(
            loop,
            config,
            runner,
            log_dirs,
            failures,
            client,
            image=image,
            broker_epoch=broker_epoch,
            persist_log_starts=self._persist_log_starts,
        )
        self._fetchers: dict[tuple[int, int], Fetcher] = {}
        self._fetcher_of: dict[PartitionKey, Fetcher] = {}
        self._count = config[NUM_REPLICA_FETCHERS]
        partitions.on_role_change.append(self.role_changed)
        partitions.on_removed.append(self.removed)
        for partition in partitions:
            self.role_changed(partition)

    def role_changed(self, partition: Partition) -> None:
        """Follow the partition's leader, if that is another broker."""
        self.removed(partition)
        leader_id = partition.leader_id
        if partition.is_leader or leader_id in {NO_LEADER, self._config.node_id}:
            return  # this broker leads, or it will when its registration is in the metadata
        if partition.is_closed or self._context.is_stopped or self._partitions.local_failures.is_exhausted(partition):
            return
        key = (partition.topic_id, partition.index)
        number = zlib.crc32(partition.topic_id + partition.index.to_bytes(4, "big")) % self._count
        fetcher = self._fetchers.get((leader_id, number))
        if fetcher is None:
            fetcher = self._fetchers[leader_id, number] = Fetcher(self._context, leader_id, number)
        self._fetcher_of[key] = fetcher
        fetcher.add(partition)

    def removed(self, partition: Partition) -> None:
        """Do not follow the partition any longer."""
        key = (partition.topic_id, partition.index)
        fetcher = self._fetcher_of.pop(key, None)
        if fetcher is not None:
            fetcher.remove(key)

    def config_changed(self, changed: set[str]) -> None:
        """Spread the partitions over as many fetchers as are configured now."""
        if NUM_REPLICA_FETCHERS.name not in changed or self._config[NUM_REPLICA_FETCHERS] == self._count:
            return
        self._count = self._config[NUM_REPLICA_FETCHERS]
        fetchers, self._fetchers = self._fetchers, {}
        self._fetcher_of.clear()
        for fetcher in fetchers.values():
            fetcher.close()
        for partition in self._partitions:
            self.role_changed(partition)

    def lag(self, partition: Partition) -> int:
        """Records below the leader's high watermark that a followed partition lacks; -1 while that is unknown."""
        key = (partition.topic_id, partition.index)
        fetcher = self._fetcher_of.get(key)
        followed = None if fetcher is None else fetcher.partitions.get(key)
        return -1 if followed is None else followed.lag

    def stop(self) -> None:
        """Fetch nothing any longer: the broker stops."""
        self._context.is_stopped = True
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetcher_of.clear()

    def _persist_log_starts(self) -> None:
        if not self._is_persisting:
            self._is_persisting = True
            self._loop.timers.at(self._loop.now() + LOG_START_DELAY_S, self._persist)

    def _persist(self) -> None:
        self._is_persisting = False
        if not self._context.is_stopped:
            self._partitions.persist_log_starts()
