"""The virtual clusters of a process: opened and closed on request; unused clusters are started ahead.

A test opens a cluster and closes it at its end. Most tests open one without keys of its own: such clusters are started
ahead, so that opening one only takes it; the next one is started while the test runs.
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

from barnabas.broker.start.start_errors import StartError
from barnabas.kit.clusters.options import USUAL, Options
from barnabas.kit.clusters.snapshots import Snapshot, Snapshots
from barnabas.kit.clusters.virtual_cluster import VirtualCluster
from barnabas.kit.errors import ControlError, NotFoundError
from barnabas.wire.configdef import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.config.options import Secured
    from barnabas.broker.config.server_config import ServerConfig

logger = logging.getLogger("barnabas.control")

STARTED_AHEAD: Final = 2
"""Clusters that are started ahead, once the first was asked for: one for each of two test processes."""
MOST_UNUSED: Final = 4
"""Unused clusters, with those that a test opened and did not use: another test gets them, at another address."""
CLOSED_PER_COLLECTION: Final = 100
"""Closed nodes, of 0.3 MB each, after which garbage is collected: they are full of reference cycles."""


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
        self._unused: deque[VirtualCluster] = deque()
        self._is_filling = False
        self._closed = 0

    def __getitem__(self, number: int) -> VirtualCluster:
        """An open cluster. NotFoundError if there is none with this number."""
        try:
            return self._open[number]
        except KeyError:
            raise NotFoundError(f"There is no cluster {number}: it was closed, or never opened") from None

    def all(self) -> list[VirtualCluster]:
        """The open clusters."""
        return list(self._open.values())

    async def open(self, options: Options, secured: Secured | None = None) -> VirtualCluster:
        """Open a cluster. ControlError if it cannot start with its keys. `secured` has users of SCRAM."""
        is_usual = options == USUAL
        if is_usual and self._unused:
            cluster = self._unused.popleft()
        else:
            cluster = await self._start(options, secured=secured)
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
        if cluster.is_untouched and len(self._unused) < MOST_UNUSED:
            self._give_on(cluster)
            return
        cluster.close()
        self._closed += 1 + (cluster.options.brokers or 0)
        if self._closed >= CLOSED_PER_COLLECTION:
            self._closed = 0
            gc.collect()

    def _give_on(self, cluster: VirtualCluster) -> None:
        """Keep an unused cluster for another test, at a new address: late connections to the old one are refused."""
        cluster.server.leave()
        cluster.id = next(self._numbers)
        try:
            cluster.server.move()
        except StartError as error:
            logger.warning("A cluster cannot be used again: %s", error)
            cluster.close()
        else:
            self._unused.append(cluster)

    async def fork(self, snapshot: Snapshot) -> VirtualCluster:
        """Open a cluster that begins with a snapshot's data. ControlError if it cannot start."""
        cluster = await self._start(snapshot.options, snapshot)
        self._open[cluster.id] = cluster
        return cluster

    async def _start(
        self, options: Options, snapshot: Snapshot | None = None, secured: Secured | None = None
    ) -> VirtualCluster:
        try:
            cluster = self._made(options)
        except ConfigError as error:
            raise ControlError(str(error)) from error
        self._introduce(cluster)
        if snapshot is not None:
            cluster.begin_with(snapshot)
        cluster.secured = secured
        failed: list[Exception] = []
        await self._nursery.start(self._run, cluster, failed)
        if failed:
            raise ControlError(str(failed[0])) from failed[0]
        return cluster

    def _made(self, options: Options) -> VirtualCluster:
        number = next(self._numbers)
        if options.brokers is None:
            return VirtualCluster.of(number, options, partial(self._config_of, options.keys), self._descriptors)
        from barnabas.kit.clusters.nodes import Nodes

        return Nodes(number, options, self._config_of, self._descriptors)

    async def _run(
        self,
        cluster: VirtualCluster,
        failed: list[Exception],
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run a cluster; an error of its start goes into `failed`, since all clusters share the nursery."""
        try:
            await cluster.run(task_status)
        except (StartError, ConfigError, ControlError) as error:
            failed.append(error)
            task_status.started()
        finally:
            self._open.pop(cluster.id, None)

    def _introduce(self, cluster: VirtualCluster) -> None:
        cluster.snapshots, cluster.fork = self.snapshots, self.fork

    async def _fill(self) -> None:
        """Start clusters ahead, after the request that opened one was answered."""
        try:
            while len(self._unused) < STARTED_AHEAD:
                await trio.lowlevel.checkpoint()
                self._unused.append(await self._start(USUAL))
        except ControlError as error:
            logger.warning("No cluster can be started ahead: %s", error)
        finally:
            self._is_filling = False
