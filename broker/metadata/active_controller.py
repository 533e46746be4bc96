"""The controller of a cluster of several processes: answers brokers, and fences those that send no more heartbeats.

It is the single node's `Controller` with `ClusterController` behind it: the same queue of changes, the same log. One
timer is set to the next deadline after each change: the end of a session, or a periodic election. Only the image is
durable: after a start every broker that is not fenced has a new session. It is a quorum of one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.config.listeners import Endpoint
from barnabas.broker.event_loop.steps import run_in_place
from barnabas.broker.metadata.controller import Controller
from barnabas.coord.cluster.cluster_controller import ClusterController
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.records.raft_records import VotersRecordEndpoint

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.event_loop.timers import Timer
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.coord.cluster.local_controller import Outcome
    from barnabas.storage.directories.log_dirs import LogDirs

R = TypeVar("R")

logger = logging.getLogger("kafka.server.Controller")

RETRY_S = 1.0
"""When a deadline is handled again whose records could not be written, seconds."""


class ActiveController(Controller):
    """Changes the metadata of a cluster for the brokers of other processes."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        runner: StepRunner,
        *,
        cluster_id: str,
    ) -> None:
        super().__init__(loop, config, log_dirs, failures, runner, cluster_id=cluster_id, is_of_cluster=True)
        self._timer: Timer | None = None
        self._is_closed = False
        self._endpoints: list[Endpoint] = []

    @cached_property
    def local(self) -> ClusterController:
        """Validates requests against the image."""
        return self.cluster

    def open_for(self, endpoints: Sequence[Endpoint]) -> None:
        """Read the metadata and begin to lead; `endpoints` are the controller's listeners as advertised.

        Waits for the sync of its records, so that readers see only durable ones.
        """
        self._endpoints = list(endpoints)
        first = self._endpoints[0]
        self._log.voter_endpoint = VotersRecordEndpoint(name=first.name, host=first.host, port=first.port)
        self.open()
        self._log.sync()
        self.quorum.endpoints = self._endpoints
        self.local.activate(self.at())
        self.local.end_session(self._config.node_id)  # a broker in this process has ended with it
        self._arm()
        self._plan_snapshot()

    def open(self) -> None:
        """Read the metadata; a new log gets its first records. The leaders of the image stay until sessions end."""
        self._log.open()
        self.loader.image = self._log.image
        if self._log.is_new:
            run_in_place(self._log.write(self._log.bootstrap_records(), False))
        self.loader.apply_dynamic_configs()

    def close(self) -> int:
        """Finish the change in progress; those behind it are refused. The brokers keep their registrations."""
        self._is_closed = True
        self._disarm()
        self._queue.close()
        self._cancel_snapshot()
        return -1

    # Time

    def _change(self, validate: Callable[[], Outcome[R] | Steps[Outcome[R]]]) -> Steps[R]:
        try:
            return (yield from super()._change(validate))
        finally:
            self._arm()

    def _arm(self, at_least: float = 0.0) -> None:
        """Set the timer to the next deadline, unless it fires before that: then it is set again."""
        deadline = self.local.next_deadline()
        if deadline is None or self._is_closed:
            return
        deadline = max(deadline, at_least)
        if self._timer is not None and self._timer.deadline <= deadline:
            return
        self._disarm()
        self._timer = self._loop.timers.at(deadline, self._tick)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        self._timer = None
        deadline = self.local.next_deadline()
        if deadline is None or deadline > self._loop.now():
            self._arm()
            return
        self.commit(lambda: self.local.tick_in_steps(self.at()), self._ticked)

    def _ticked(self, outcome: KafkaError | None) -> None:
        if outcome is not None and not self._is_closed:
            logger.error("A deadline of the controller could not be handled: %s. Trying again", outcome)
            self._disarm()
            self._arm(self._loop.now() + RETRY_S)
