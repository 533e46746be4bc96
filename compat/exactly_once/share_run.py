"""A run with a share group: a writer and three members that accept, release and reject, under the same kills.

The checker verifies that no record is locked for two members, that none is delivered after its accept or reject was
answered, and that in the end every record is accepted, rejected or at the delivery limit.
"""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from compat.exactly_once.processes import Progress
from compat.exactly_once.run import BROKER, KilledCluster, Run, make_topic
from tests.support.processes.server import Server

LOCK_S = 2.0
DELIVERY_LIMIT = 5
QUIET_S = 2.5 * LOCK_S
SHARE_BROKER = BROKER | {
    "share.coordinator.state.topic.num.partitions": "3",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
    "group.share.delivery.count.limit": str(DELIVERY_LIMIT),
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "500",
}


class ShareRun(Run):
    """`server` was started with the settings in SHARE_BROKER."""

    clients = ("share-0", "share-1", "share-2", "share-0", "share-1", "share-2", "write-0")
    step, step_name = "acknowledged", "acknowledgement"

    def __init__(self, server: Server | KilledCluster, client: str, folder: Path, seed: int, rate: int = 300) -> None:
        self.share_group = f"share-{seed}"
        super().__init__(server, client, folder, seed, rate, share_group=self.share_group)

    def _make_topics(self) -> None:
        make_topic(self.server.bootstrap, self.source)
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        from_start = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
        group = ConfigResource(ResourceType.GROUP, self.share_group, incremental_configs=[from_start])
        for future in admin.incremental_alter_configs([group]).values():
            future.result(30)
        limits = {"delivery_limit": DELIVERY_LIMIT, "lock_s": LOCK_S}
        self.driver.write("share_group", group=self.share_group, topic=self.source, **limits)

    def _drain(self) -> None:
        """Stop the writer, wait until nothing was delivered for longer than a lock, and stop all members."""
        self.stop_writing()
        deliveries = Progress(self.folder, "acquired")
        last, quiet_since = deliveries.update(), time.monotonic()

        def is_quiet() -> bool:
            nonlocal last, quiet_since
            if deliveries.update() > last:
                last, quiet_since = deliveries.count, time.monotonic()
            return time.monotonic() - quiet_since > QUIET_S

        self._wait(is_quiet, "records are still delivered")
        self.driver.write("drained", group=self.share_group, topic=self.source)
        self._stop_clients()

    def _topics_to_read(self) -> tuple[str, ...]:
        return (self.source,)
