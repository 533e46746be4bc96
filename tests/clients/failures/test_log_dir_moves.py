"""Replicas that move between the log directories of a broker process: under load, through kill -9, by Kafka's tools."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.wire.schema import Message
from tests.clients.failures.several_dirs import SeveralDirs
from tests.support.jvm.kafka_tools import Tools
from tests.support.processes.numbered_load import WAIT_S, Load, read_all
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import wait_for


class Mover:
    """A broker with two directories, and what asks for moves."""

    def __init__(self, folder: Path, config: dict[str, str] | None = None) -> None:
        self.dirs = [str(folder / "a"), str(folder / "b")]
        keys = {"log.dirs": ",".join(self.dirs), "log.segment.delete.delay.ms": "200", **(config or {})}
        self.server = SeveralDirs(folder / "data", config=keys)
        self.server.start()

    def create(self, topic: str, **config: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        admin.create_topics([NewTopic(topic, 1, config=config)])[topic].result(30)

    def ask(self, request: Message, version: int) -> Any:
        client = RawClient(self.server.bootstrap)
        try:
            return client(request, version)
        finally:
            client.socket.close()

    def where(self, topic: str) -> list[tuple[str, bool]]:
        """The directories of a topic's replicas, and whether each is a future one."""
        response = self.ask(DescribeLogDirsRequest(topics=None), 4)
        return [
            (log_dir.log_dir, part.is_future_key)
            for log_dir in response.results
            for name in log_dir.topics
            if name.name == topic
            for part in name.partitions
        ]

    def move(self, topic: str) -> str:
        """Begin a move to the other directory; it."""
        where = self.where(topic)
        assert where, self.server.log()[-3000:]
        current = next(path for path, is_future in where if not is_future)
        target = next(path for path in self.dirs if path != current)
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=target, topics=[AlterReplicaLogDirTopic(name=topic, partitions=[0])])]
        )
        response = self.ask(request, 2)
        assert response.results[0].partitions[0].error_code == 0
        return target

    def until_moved(self, topic: str, target: str) -> None:
        wait_for(lambda: self.where(topic) == [(target, False)], lambda: f"{target}, not {self.where(topic)}", WAIT_S)


@pytest.mark.parametrize("sync", ["none", "always"])
def test_moves_under_load_and_kills_lose_nothing(tmp_path: Path, sync: str) -> None:
    mover = Mover(tmp_path, {"barnabas.log.sync": sync} if sync == "always" else None)
    server = mover.server
    mover.create("t", **{"segment.bytes": "1048576"})
    load = Load(server.bootstrap, "t")
    try:
        chosen = random.Random(7)
        for turn in range(6):
            time.sleep(0.3)
            target = mover.move("t")
            if turn % 2:
                time.sleep(chosen.random() * 0.3)
                server.kill9()
                server.start()
            if turn % 2 == 0:
                mover.until_moved("t", target)
        load.end()
        assert load.failures == []
        assert read_all(server.bootstrap, "t") == load.acknowledged == sorted(load.acknowledged)
        assert len(load.acknowledged) > 100
        assert "Traceback" not in server.log()
    finally:
        load.end()
        server.stop()


@pytest.fixture
def mover(tmp_path: Path) -> Iterator[Mover]:
    started = Mover(tmp_path)
    yield started
    started.server.stop()


@pytest.mark.jvm
def test_kafkas_tools_move_replicas_and_show_them(mover: Mover, tmp_path: Path) -> None:
    mover.create("t")
    current = mover.where("t")[0][0]
    target = next(path for path in mover.dirs if path != current)
    plan = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": [target]}]}
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan))
    tools = Tools(mover.server.bootstrap)
    reassign = ("reassign.ReassignPartitionsCommand", "--reassignment-json-file", file)
    throttle = ("--replica-alter-log-dirs-throttle", "10000000")
    output = tools.run(*reassign, "--execute", *throttle)
    assert "Successfully started moving log directory" in output
    mover.until_moved("t", target)
    output = tools.run(*reassign, "--verify")
    assert "completed successfully" in output
    output = tools.run("LogDirsCommand", "--describe", "--topic-list", "t")
    described = json.loads(output[output.index("{") : output.rindex("}") + 1])
    dirs = {entry["logDir"]: entry["partitions"] for entry in described["brokers"][0]["logDirs"]}
    assert [entry["partition"] for entry in dirs[target]] == ["t-0"]
    assert dirs[target][0]["isFuture"] is False
    assert dirs[current] == []
