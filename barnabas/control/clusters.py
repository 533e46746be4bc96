"""The virtual clusters of a process: opened and closed on request, with spares that are started ahead.

A test opens one and closes it at its end. A spare has the configuration that most of them have, none of their own, so
that opening one costs no more than taking it; another one is started when the test runs.
"""

from __future__ import annotations

import gc
import logging
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final

import trio

from barnabas.broker.start_errors import StartError
from barnabas.control.errors import ControlError, NotFoundError
from barnabas.control.snapshots import Snapshot, Snapshots
from barnabas.control.virtual_cluster import VirtualCluster
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.options import Secured
    from barnabas.broker.config.server_config import ServerConfig

logger = logging.getLogger("barnabas.control")

SPARES: Final = 2
"""Clusters that are started ahead, once the first was asked for: one for each of two test processes."""
CLOSED_PER_COLLECTION: Final = 100
"""Closed clusters, of 0.3 MB each, after which garbage is collected: they are full of reference cycles."""


class Clusters:
    """The virtual clusters of one process; number 0 is its own broker."""

    def __init__(
        self,
        own: VirtualCluster,
        config_of: Callable[[Mapping[str, str]], ServerConfig],
        descriptors: int,
        nursery: trio.Nursery,
    ) -> None:
        """`config_of` gives the configuration of a cluster with these keys of its own."""
        self._config_of = config_of
        self._descriptors = descriptors
        self._nursery = nursery
        self._numbers = count(1)
        self._open = {own.id: own}
        self.snapshots = Snapshots()
        self._introduce(own)
        nursery.start_soon(self.snapshots.remove_at_end)
        self._spares: deque[VirtualCluster] = deque()
        self._is_filling = False
        self._closed = 0

    def __getitem__(self, number: int) -> VirtualCluster:
        """An open cluster. NotFoundError if there is none with this number."""
        try:
            return self._open[number]
        except KeyError:
            raise NotFoundError(f"There is no cluster {number}: it was closed, or never opened") from None

    def all(self) -> list[VirtualCluster]:
        """Those that are open."""
        return list(self._open.values())

    async def open_nodes(self, keys: Mapping[str, str], brokers: int) -> VirtualCluster:
        """Open a cluster of several brokers. ControlError for keys that it cannot start with."""
        from barnabas.control.nodes import Nodes

        cluster = Nodes(next(self._numbers), brokers, keys, self._config_of, self._descriptors)
        self._introduce(cluster)
        await self._run(cluster)
        self._open[cluster.id] = cluster
        return cluster

    async def open(
        self,
        keys: Mapping[str, str],
        seed: int | None = None,
        as_version: str | None = None,
        secured: Secured | None = None,
    ) -> VirtualCluster:
        """Open a cluster, with config keys of its own. ControlError for keys that it cannot start with.

        With a `seed` the ids that it gives out follow from that, and from the requests before. `as_version` is the
        release of Kafka that it answers as, 3.9; `secured` has users of SCRAM.
        """
        is_usual = not keys and seed is None and as_version is None
        if is_usual and self._spares:
            cluster = self._spares.popleft()
        else:
            cluster = await self._start(keys, seed, as_version=as_version, secured=secured)
        self._open[cluster.id] = cluster
        if is_usual and not self._is_filling:
            self._is_filling = True
            self._nursery.start_soon(self._fill)
        return cluster

    def close(self, number: int) -> None:
        """Close a cluster and remove its data. Its client connections are closed at once."""
        if number == 0:
            raise ControlError("Cluster 0 is the broker itself, which ends with its process")
        cluster = self[number]
        del self._open[number]
        cluster.close()
        self._closed += 1
        if self._closed % CLOSED_PER_COLLECTION == 0:
            gc.collect()

    async def fork(self, snapshot: Snapshot) -> VirtualCluster:
        """Open a cluster that begins with what a snapshot has. ControlError if it cannot start."""
        cluster = await self._start(snapshot.keys, snapshot.seed, snapshot.copy_to_temporary())
        cluster.clock.set_state(snapshot.clock)
        self._open[cluster.id] = cluster
        return cluster

    async def _start(
        self,
        keys: Mapping[str, str],
        seed: int | None = None,
        prepared_dir: str | None = None,
        as_version: str | None = None,
        secured: Secured | None = None,
    ) -> VirtualCluster:
        release = None
        if as_version is not None:
            from barnabas.control.traffic.release import release_named

            release = release_named(as_version)
        try:
            make_config = partial(self._config_of, keys)
            cluster = VirtualCluster.of(next(self._numbers), make_config, self._descriptors, seed, release)
        except ConfigError as error:
            raise ControlError(str(error)) from error
        cluster.keys = dict(keys)
        self._introduce(cluster)
        cluster.server.prepared_dir, cluster.server.secured = prepared_dir, secured
        await self._run(cluster)
        return cluster

    async def _run(self, cluster: VirtualCluster) -> None:
        failed: list[Exception] = []
        await self._nursery.start(_run, cluster, failed)
        if failed:
            raise ControlError(str(failed[0])) from failed[0]

    def _introduce(self, cluster: VirtualCluster) -> None:
        cluster.snapshots, cluster.fork = self.snapshots, self.fork

    async def _fill(self) -> None:
        """Start spares, when the one who has opened a cluster has its answer."""
        try:
            while len(self._spares) < SPARES:
                await trio.lowlevel.checkpoint()
                self._spares.append(await self._start({}))
        except ControlError as error:
            logger.warning("No cluster can be started ahead: %s", error)
        finally:
            self._is_filling = False


async def _run(
    cluster: VirtualCluster, failed: list[Exception], task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
) -> None:
    """Run a cluster; what it could not start for is in `failed`, as the nursery is that of all clusters."""
    try:
        await cluster.run(task_status)
    except (StartError, ConfigError) as error:
        failed.append(error)
        task_status.started()
