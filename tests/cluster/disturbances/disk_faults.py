"""Faults of a leader's disk in a cluster under load: another replica has to lead, and this one joins again (R28).

damage      a batch of its log is overwritten, and read
full        its disk has no space for some seconds
unreadable  the log of one partition cannot be read
dead        nothing can be written any more: the broker ends, and is started on a disk that works
"""

from __future__ import annotations

import errno
import os
import random
import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from tests.cluster.disturbances.faulty_broker import FaultyNode
from tests.cluster.load.replicas import HEADER, LOG_OVERHEAD
from tests.cluster.load.work import PARTITIONS, Work
from tests.support.cluster.asking import leader
from tests.support.cluster.clusters import Cluster
from tests.support.waiting import ANY_ERROR, wait_for

MOVED_S = 5.0
"""How long a partition may be without another leader, seconds."""
DISK_FAULTS = ("damage", "full", "unreadable", "dead")
_MAGIC = 16


class DiskFaults:
    """The faults of one run."""

    def __init__(
        self, cluster: Cluster, chance: random.Random, topic: str, work: Work, moves: dict[str, list[float]]
    ) -> None:
        """`moves` gets the seconds that each move of a leader has taken, by fault."""
        self._cluster = cluster
        self._chance = chance
        self._topic = topic
        self._work = work
        self._moves = moves
        self.kinds: dict[str, Callable[[], None]] = {
            "damage": self._damage,
            "full": self._fill,
            "unreadable": self._be_unreadable,
            "dead": self._die,
        }

    def _leader(self) -> tuple[int, int, FaultyNode]:
        """(partition, its leader, the leader's node), of those whose disk can fail."""
        while True:
            index = self._chance.randrange(PARTITIONS)
            leader_id = leader(self._cluster.bootstrap, self._topic, index)
            node = self._cluster.brokers.get(leader_id)
            if isinstance(node, FaultyNode):
                return index, leader_id, node

    def _moved(self, fault: str, index: int, victim: int, began: float) -> None:
        """Wait until another broker leads the partition."""
        others = ",".join(node.bootstrap for broker, node in self._cluster.brokers.items() if broker != victim)
        wait_for(
            lambda: leader(others, self._topic, index) not in {victim, -1},
            f"another leader of {self._topic}-{index} than {victim}",
            MOVED_S,
            errors=ANY_ERROR,
        )
        self._moves.setdefault(fault, []).append(time.monotonic() - began)

    def _damage(self) -> None:
        index, victim, node = self._leader()
        offset = overwrite(node, f"{self._topic}-{index}", self._chance)
        with reader(self._cluster, self._topic, index, offset) as read:
            began = time.monotonic()
            read()
            self._moved("damage", index, victim, began)

    def _fill(self) -> None:
        index, victim, node = self._leader()
        node.fail("write", self._chance.choice((errno.ENOSPC, errno.EDQUOT)), node.data_dir)
        try:
            self._moved("full", index, victim, time.monotonic())
            self._work.go_on(self._chance.randrange(50, 300))
        finally:
            node.mend()

    def _be_unreadable(self) -> None:
        index, victim, node = self._leader()
        node.fail("read", errno.EIO, node.data_dir / f"{self._topic}-{index}")
        try:
            with reader(self._cluster, self._topic, index, 0) as read:
                began = time.monotonic()
                read()
                self._moved("unreadable", index, victim, began)
        finally:
            node.mend()

    def _die(self) -> None:
        index, victim, node = self._leader()
        node.fail(self._chance.choice(("write", "sync")), errno.EIO, node.data_dir)
        try:
            self._moved("dead", index, victim, time.monotonic())
            wait_for(lambda: not node.is_running, "the end of the broker without a disk", 60.0, errors=ANY_ERROR)
        finally:
            node.mend()
        node.restart()


class reader:  # noqa: N801 - used as a function
    """A consumer of one partition from an offset on; what it is given begins to read."""

    def __init__(self, cluster: Cluster, topic: str, index: int, offset: int) -> None:
        settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "reader", "log_level": 0}
        self._consumer = Consumer(settings)
        self._from = TopicPartition(topic, index, offset)

    def __enter__(self) -> Callable[[], None]:
        return self._read

    def _read(self) -> None:
        self._consumer.assign([self._from])
        self._consumer.poll(0.2)

    def __exit__(self, *_: object) -> None:
        self._consumer.close()


def overwrite(node: FaultyNode, partition: str, chance: random.Random) -> int:
    """Overwrite the magic of one of a log's batches; its base offset."""
    path = min((node.data_dir / partition).glob("*.log"))
    data = path.read_bytes()
    batches: list[tuple[int, int]] = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        base_offset, size = HEADER.unpack_from(data, position)
        if size <= 0:
            break
        batches.append((base_offset, position))
        position += LOG_OVERHEAD + size
    base_offset, position = chance.choice(batches)
    with path.open("r+b") as log:
        os.pwrite(log.fileno(), b"\x7f", position + _MAGIC)
    return base_offset
