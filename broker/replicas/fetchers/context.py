"""The shared context of all fetchers of a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.config.keys.dynamic_only import FOLLOWER_REPLICATION_THROTTLED_RATE
from barnabas.broker.replicas.fetchers.throttle import ReplicationQuota, is_throttled
from barnabas.wire.configdef import LONG_MAX

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner
    from barnabas.broker.log_dir_failures import LogDirFailures
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.image import ClusterImage
    from barnabas.storage.directories.log_dirs import LogDirs
    from barnabas.wire.errors import KafkaError
    from barnabas.wire.schema import Message


class Client(Protocol):
    """Requests to one other broker, one at a time (`NetworkClient`)."""

    def send(self, request: Message, then: Callable[[Message | KafkaError], None], *, timeout_s: float) -> None:
        """Send a request; `then` gets the response or an error, never within the call."""

    def disconnect(self) -> None:
        """Close the connection: the request in flight fails with NETWORK_EXCEPTION."""


class FetchContext:
    """The parts of the broker that fetchers use."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        runner: StepRunner,
        log_dirs: LogDirs,
        failures: LogDirFailures,
        client: Callable[[int, str], Client],
        *,
        image: Callable[[], ClusterImage],
        broker_epoch: Callable[[], int],
        persist_log_starts: Callable[[], None],
    ) -> None:
        """`client` returns the client for a broker and a purpose; `broker_epoch` the registration's epoch (KIP-903).

        `persist_log_starts` writes the log starts that have moved, and deletes the segments below them.
        """
        self.loop = loop
        self.config = config
        self.runner = runner
        self.log_dirs = log_dirs
        self.failures = failures
        self.client = client
        self.image = image
        self.broker_epoch = broker_epoch
        self.persist_log_starts = persist_log_starts
        self.quota = ReplicationQuota()
        self.is_stopped = False
        self.truncating: dict[Partition, list[Callable[[], None]]] = {}
        """Partitions whose log is being truncated -> callbacks for the end of the truncation."""

    @property
    def quota_rate(self) -> int | None:
        """The quota for throttled replicas in bytes a second, None without one."""
        rate = self.config[FOLLOWER_REPLICATION_THROTTLED_RATE]
        return None if rate == LONG_MAX else rate

    def is_throttled(self, partition: Partition) -> bool:
        """Whether the topic's config names this replica as throttled."""
        entries = partition.log.config.follower_replication_throttled_replicas
        return is_throttled(entries, partition.index, self.config.node_id)
