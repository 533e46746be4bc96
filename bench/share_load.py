"""A share group of confluent-kafka's consumers in a separate process, with the same output as `load.c`.

python -m bench.share_load HOST:PORT TOPIC COUNT CONSUMERS

Every consumer polls and acknowledges the records of its previous poll, until the group has received `COUNT` records.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid

from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.confluent_load import PATIENCE_S, result


class Sharer:
    """One consumer in a thread."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
        self.consumer.subscribe([topic])
        self.records = self.bytes = 0
        self.stopped = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Poll until stopped; each poll acknowledges the records of the previous one."""
        while not self.stopped:
            for message in self.consumer.poll(0.5):
                if message.error() is None:
                    self.records += 1
                    self.bytes += len(message)


def share(bootstrap: str, topic: str, count: int, consumers: int) -> None:
    """Read the records of a topic once with a new group."""
    group = f"bench-{uuid.uuid4()}"
    begin = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[begin])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE_S)
    sharers = [Sharer(bootstrap, group, topic) for _ in range(consumers)]
    for sharer in sharers:
        sharer.thread.start()
    _wait(sharers, 1)
    print("start", flush=True)
    started, before = time.monotonic(), sum(sharer.records for sharer in sharers)
    _wait(sharers, count)
    took = time.monotonic() - started
    print("end", flush=True)
    for sharer in sharers:
        sharer.stopped = True
    for sharer in sharers:
        sharer.thread.join(PATIENCE_S)
        sharer.consumer.close()
    given = sum(sharer.records for sharer in sharers)
    result(count - before, sum(sharer.bytes for sharer in sharers) * (count - before) // given, took, [])


def _wait(sharers: list[Sharer], count: int) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while sum(sharer.records for sharer in sharers) < count:
        if time.monotonic() > give_up:
            raise SystemExit(f"only {sum(sharer.records for sharer in sharers)} of {count} records were received")
        time.sleep(0.001)


if __name__ == "__main__":
    share(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
