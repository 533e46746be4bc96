"""A broker with two log directories whose replicas move between them while it is used (KIP-113)."""

from __future__ import annotations

from pathlib import Path
from random import Random

from barnabas.storage import layout
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.schema import Message
from tests.crash.broker_promises import Promises
from tests.crash.broker_work import PARTITIONS, SETS, BrokerWork
from tests.support.disks.broken import require
from tests.support.disks.disk import RecordingDisk
from tests.support.memory.broker import Client, MemoryBroker

DIRS = ("/disk1", "/disk2")
DELETE_DELAY_S = 0.3
"""After so much of the broker's time a former directory goes, so that moves back meet it and what it leaves."""


def start_with_two_dirs(disk: RecordingDisk) -> MemoryBroker:
    """A broker with two log directories on a disk."""
    sets = SETS | {"log.segment.delete.delay.ms": str(int(DELETE_DELAY_S * 1000))}
    return MemoryBroker(Path(DIRS[0]), sets, files=disk, more_dirs=[Path(DIRS[1])])


class MoveWork(BrokerWork):
    """The work of a broker, with moves."""

    moves = 0
    """How many replicas have changed their directory."""

    def __init__(self, disk: RecordingDisk, random: Random, promises: Promises, count: int) -> None:
        super().__init__(disk, random, promises, count, start_with_two_dirs)
        self.actions.append((6, self.move))
        self._where: dict[tuple[str, int], str] = {}

    def move(self, client: Client) -> None:
        """Move a replica, mostly to the other directory; a move to its own cancels the one in progress."""
        chosen = self.topic()
        if chosen is None:
            return
        topics = [AlterReplicaLogDirTopic(name=chosen[0], partitions=[self.random.randrange(PARTITIONS)])]
        moves = [AlterReplicaLogDir(path=self.random.choice(DIRS), topics=topics)]

        def then(response: Message) -> None:
            assert isinstance(response, AlterReplicaLogDirsResponse)
            if chosen[1] in self.promises.topics.values():
                assert response.results[0].partitions[0].error_code == 0, response

        self.request(client, AlterReplicaLogDirsRequest(dirs=moves), 2, then)

    def step(self, action=None) -> None:
        """Do an action; time passes, in which the moves go on."""
        super().step(action)
        self.memory.advance(self.random.choice((0.0, 0.05, 0.2)))
        self.memory.broker.loop.end_turn()
        self._count_moves()

    def _count_moves(self) -> None:
        dirs = self.memory.broker.log_dirs
        where = {key: directory.path for key in dirs.logs if (directory := dirs.dir_of(*key)) is not None}
        self.moves += sum(self._where.get(key, path) != path for key, path in where.items())
        self._where = where


def check_one_is_current(disk: RecordingDisk, memory: MemoryBroker) -> None:
    """After a start every partition has one directory with its name, and that is the one in use."""
    names = [(path, name) for path in DIRS for name in disk.list_dirs(path)]
    for topic, index in memory.broker.log_dirs.logs:
        name = layout.partition_dir_name(topic, index)
        holders = [path for path, dir_name in names if dir_name == name]
        log_dir = memory.broker.log_dirs.dir_of(topic, index)
        require(log_dir is not None and holders == [log_dir.path], f"{name} is in {holders}")
        futures = [path for path, dir_name in names if layout.parse_future_dir(dir_name) == (topic, index)]
        require(len(futures) <= 1 and holders != futures, f"{name} is in {holders}, its copies are in {futures}")
