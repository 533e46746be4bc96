"""Replicas of a cluster move between the log directories of their brokers, under load and through kill -9."""

from __future__ import annotations

import time
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
from tests.support.cluster.asking import is_in_sync
from tests.support.cluster.clusters import BrokerNode, Cluster
from tests.support.processes.numbered_load import Load, read_all
from tests.support.requests.raw_client import RawClient
from tests.support.waiting import ANY_ERROR, wait_for

pytestmark = pytest.mark.soak


class TwoDirs(BrokerNode):
    """A broker with two log directories."""

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        at = command.index("--data-dir")
        del command[at : at + 2]
        return command, environment


def with_two_dirs(folder: Path) -> Cluster:
    cluster = Cluster(folder, brokers=3)
    for number, node in cluster.brokers.items():
        config = node.config | {"log.dirs": f"{node.data_dir}/a,{node.data_dir}/b"}
        cluster.brokers[number] = TwoDirs(node.data_dir, config, cluster.quorum.cluster_id, node.port)
    return cluster.start()


def ask(node: BrokerNode, request: Message, version: int) -> Any:
    client = RawClient(node.bootstrap)
    try:
        return client(request, version)
    finally:
        client.socket.close()


def where(node: BrokerNode, topic: str) -> list[tuple[str, bool]]:
    response = ask(node, DescribeLogDirsRequest(topics=None), 4)
    return [
        (log_dir.log_dir, part.is_future_key)
        for log_dir in response.results
        for name in log_dir.topics
        if name.name == topic
        for part in name.partitions
    ]


def move(node: BrokerNode, topic: str) -> str:
    current = next(path for path, is_future in where(node, topic) if not is_future)
    target = next(path for path in node.config["log.dirs"].split(",") if path != current)
    topics = [AlterReplicaLogDirTopic(name=topic, partitions=[0])]
    response = ask(node, AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=target, topics=topics)]), 2)
    assert response.results[0].partitions[0].error_code == 0
    return target


def test_leaders_and_followers_move_while_brokers_are_killed(tmp_path: Path) -> None:
    cluster = with_two_dirs(tmp_path)
    try:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        admin.create_topics([NewTopic("t", 1, 3)])["t"].result(30)
        wait_for(lambda: is_in_sync(cluster.bootstrap, "t", 3), "three replicas in sync", errors=ANY_ERROR)
        load = Load(cluster.bootstrap, "t")
        try:
            for turn in range(3):
                targets = {number: move(node, "t") for number, node in cluster.brokers.items()}
                if turn == 1:
                    cluster.brokers[1].kill9()
                    cluster.brokers[1].start()
                for number, target in targets.items():
                    node = cluster.brokers[number]
                    wait_for(
                        lambda node=node, target=target: where(node, "t") == [(target, False)],
                        f"{number} moved",
                        errors=ANY_ERROR,
                    )
                wait_for(lambda: is_in_sync(cluster.bootstrap, "t", 3), "three replicas in sync", errors=ANY_ERROR)
                time.sleep(0.3)
        finally:
            load.end()
        assert load.failures == []
        assert len(load.acknowledged) > 100
        assert read_all(cluster.bootstrap, "t") == load.acknowledged == sorted(load.acknowledged)
    finally:
        cluster.stop()
