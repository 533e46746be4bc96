"""A share group of confluent-kafka's consumers, run as a separate process; prints the same lines as `load.c`.

python -m bench.loads.share_load HOST:PORT TOPIC COUNT CONSUMERS

Every consumer polls, which acknowledges the records of the previous poll, until the group has received COUNT records.
"""

from __future__ import annotations

import sys
import threading
import time
import uuid

from confluent_kafka import ShareConsumer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bench.loads.confluent_load import TIMEOUT_S, result


class GroupConsumer:
    """One consumer in a thread."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group})
        self.consumer.subscribe([topic])
        self.records = self.bytes = 0
        self.stopped = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self) -> None:
        """Poll until `stopped`; a poll acknowledges the records of the previous one."""
        while not self.stopped:
            for message in self.consumer.poll(0.5):
                if message.error() is None:
                    self.records += 1
                    self.bytes += len(message)


def share(bootstrap: str, topic: str, count: int, consumers: int) -> None:
    """Consume `count` records of a topic with a new group."""
    group = f"bench-{uuid.uuid4()}"
    entry = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(TIMEOUT_S)
    members = [GroupConsumer(bootstrap, group, topic) for _ in range(consumers)]
    for member in members:
        member.thread.start()
    _wait(members, 1)
    print("start", flush=True)
    started, before = time.monotonic(), sum(member.records for member in members)
    _wait(members, count)
    took = time.monotonic() - started
    print("end", flush=True)
    for member in members:
        member.stopped = True
    for member in members:
        member.thread.join(TIMEOUT_S)
        member.consumer.close()
    total = sum(member.records for member in members)
    result(count - before, sum(member.bytes for member in members) * (count - before) // total, took, [])


def _wait(members: list[GroupConsumer], count: int) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while sum(member.records for member in members) < count:
        if time.monotonic() > deadline:
            raise SystemExit(f"only {sum(member.records for member in members)} of {count} records were received")
        time.sleep(0.001)


if __name__ == "__main__":
    share(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
