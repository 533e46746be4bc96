"""The shared part of all partitions with followers: brokers' metadata, ISR changes, the check for laggards (R9).

Made with the first partition that has followers; a broker without such partitions never imports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from barnabas.broker.config.keys.dynamic_only import LEADER_REPLICATION_THROTTLED_RATE
from barnabas.broker.config.keys.replication import REPLICA_LAG_TIME_MAX_MS
from barnabas.broker.replicas.fetchers.throttle import ReplicationQuota, is_throttled
from barnabas.broker.replicas.leader.isr_changes import IsrChanges
from barnabas.broker.replicas.leader.leading import Leading
from barnabas.wire.configdef import LONG_MAX

if TYPE_CHECKING:
    from barnabas.broker.config.server_config import ServerConfig
    from barnabas.broker.event_loop.loop import Loop
    from barnabas.broker.event_loop.steps import StepRunner, Steps
    from barnabas.broker.replicas.leader.isr_changes import Send
    from barnabas.broker.replicas.partition import Partition
    from barnabas.coord.cluster.broker_image import BrokerImage
    from barnabas.coord.cluster.image import ClusterImage

PARTITIONS_OF_A_STEP = 100


class Replication:
    """The shared part of leading partitions that have followers."""

    def __init__(
        self,
        loop: Loop,
        config: ServerConfig,
        runner: StepRunner,
        *,
        image: Callable[[], ClusterImage],
        partitions: Callable[[], Iterable[Partition]],
        send: Send,
    ) -> None:
        """`send` sends a request to the active controller."""
        self.loop = loop
        self._config = config
        self._runner = runner
        self._image = image
        self._partitions = partitions
        self.now = loop.now
        self.node_id = config.node_id
        self.quota = ReplicationQuota()
        """The bytes of throttled partitions that followers were sent (KIP-73)."""
        self.changes = IsrChanges(loop, config.node_id, self._own_epoch, send)
        self._check_later()

    @property
    def max_lag_s(self) -> float:
        """How long a replica of the ISR may lag, seconds."""
        lag_ms: int = self._config[REPLICA_LAG_TIME_MAX_MS]
        return lag_ms / 1000

    def is_throttled(self, partition: Partition) -> bool:
        """Whether the bytes that this leader sends to followers of a partition count for the quota."""
        rate = self._config[LEADER_REPLICATION_THROTTLED_RATE]
        if rate is None or rate == LONG_MAX:
            return False
        return is_throttled(partition.log.config.leader_replication_throttled_replicas, partition.index, self.node_id)

    def holds_back(self, partition: Partition, replica_id: int) -> bool:
        """Whether a follower that is not in sync gets no records now, since the quota is used up."""
        if replica_id in partition.isr or not self.is_throttled(partition):
            return False
        return self.quota.is_exceeded(self._config[LEADER_REPLICATION_THROTTLED_RATE], self.now())

    def broker(self, broker_id: int) -> BrokerImage | None:
        """A broker in the metadata, None if it is not registered."""
        return self._image().brokers.get(broker_id)

    def _own_epoch(self) -> int:
        own = self.broker(self.node_id)
        return -1 if own is None else own.epoch

    def lead(self, partition: Partition) -> Leading:
        """The leader's side of a partition that this broker begins to lead with followers."""
        return Leading(partition, self)

    def _check_later(self) -> None:
        self.loop.timers.at(self.loop.now() + self.max_lag_s / 2, self._check)

    def _check(self) -> None:
        self._runner.start(self._check_in_steps(), lambda _: self._check_later(), lambda _: self._check_later())

    def _check_in_steps(self) -> Steps[None]:
        """Check all partitions that this broker leads for replicas that lag."""
        now = self.loop.now()
        for number, partition in enumerate(list(self._partitions()), 1):
            leading = partition.leading
            if leading is not None and not partition.is_closed:
                leading.check_in_sync(now)
                leading.check_log_starts()
            if number % PARTITIONS_OF_A_STEP == 0:
                yield None

    def brokers_changed(self) -> Steps[None]:
        """Brokers were registered, fenced or unfenced: the waits for their replicas are checked again."""
        for number, partition in enumerate(list(self._partitions()), 1):
            if partition.leading is not None:
                partition.leading.advance()
                partition.leading.check_log_starts()
            if number % PARTITIONS_OF_A_STEP == 0:
                yield None
