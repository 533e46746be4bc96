"""`barnabas serve` as the controller of a cluster: its ready line, its restart, and wrong settings."""

from __future__ import annotations

import signal
from pathlib import Path

from barnabas.wire.messages.metadata import DescribeClusterRequest, MetadataRequest, MetadataRequestTopic
from tests.support.cases import for_each
from tests.support.console.serving import Serving
from tests.support.processes.commands import run_command
from tests.support.requests.raw_client import RawClient

CONTROLLER = (
    *("--set", "process.roles=controller", "--set", "node.id=3000"),
    *("--set", "controller.listener.names=CONTROLLER", "--set", "listeners=CONTROLLER://127.0.0.1:0"),
)


def test_a_controller_says_where_it_serves_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    data, ready = tmp_path / "data", tmp_path / "ready"
    clusters = []
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGINT):
        with Serving(*CONTROLLER, "--data-dir", str(data), "--ready-file", str(ready)) as serving:
            address = ready.read_text().strip()
            assert "[ControllerServer id=3000] started on CONTROLLER://127.0.0.1:" in serving.first_line
            assert address in serving.first_line
            client = RawClient(address)
            described = client(DescribeClusterRequest(endpoint_type=2), 1)
            client.close()
            clusters.append(described.cluster_id)
            host, _, port = address.rpartition(":")
            assert [(broker.broker_id, broker.host, broker.port) for broker in described.brokers] == [
                (3000, host, int(port))
            ]
            code, _, _ = serving.stop(number)
            assert code == (-9 if number == signal.SIGKILL else 0)
    assert len(set(clusters)) == 1


@for_each(
    ("sets", "sentence"),
    [
        (["process.roles=zookeeper"], "process.roles"),
        (["process.roles=controller"], "controller.listener.names must contain at least one value"),
        (
            ["process.roles=controller", "controller.listener.names=C", "listeners=PLAINTEXT://127.0.0.1:0"],
            "The listeners config must only contain KRaft controller listeners",
        ),
        (
            ["process.roles=broker", "controller.listener.names=C"],
            "either controller.quorum.bootstrap.servers must contain the set of bootstrap controllers",
        ),
        (
            ["process.roles=broker,controller", "listeners=PLAINTEXT://127.0.0.1:7,CONTROLLER://127.0.0.1:7"],
            "Each listener must have a different port",
        ),
        (
            ["process.roles=broker,controller", "controller.quorum.voters=1@a:1,2@b:1"],
            "the controller of Barnabas is a quorum of one",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(tmp_path: Path, sets: list[str], sentence: str) -> None:
    words = [word for text in sets for word in ("--set", text)]
    ran = run_command("serve", "--data-dir", str(tmp_path / "data"), *words)
    assert ran.code == 2
    (line,) = ran.stderr.strip().splitlines()
    assert sentence in line


def test_a_directory_of_other_voters_is_refused(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with Serving(*CONTROLLER, "--data-dir", data) as serving:
        assert serving.stop(signal.SIGTERM)[0] == 0
    ran = run_command("serve", *CONTROLLER, "--data-dir", data, "--set", "node.id=3001")
    assert ran.code == 2
    assert "belongs to node 3000, not to node 3001" in ran.stderr


def test_a_node_with_both_roles_serves_clients_and_brokers_after_a_kill(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    both = [
        *("--set", "process.roles=broker,controller", "--set", "controller.listener.names=CONTROLLER"),
        *("--set", "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"),
        *("--data-dir", str(tmp_path / "data"), "--ready-file", str(ready)),
    ]
    with Serving(*both) as serving:
        client = RawClient(ready.read_text().strip())
        client.create_topic("t", 3)
        client.close()
        assert serving.stop(signal.SIGKILL)[0] == -9
    ready.unlink()
    with Serving(*both) as serving:
        assert "[KafkaServer id=1] started" in serving.first_line
        client = RawClient(ready.read_text().strip())
        (topic,) = client(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12).topics
        client.close()
        assert [(partition.partition_index, partition.leader_id) for partition in topic.partitions] == [
            (0, 1),
            (1, 1),
            (2, 1),
        ]
        assert all(partition.leader_epoch > 0 for partition in topic.partitions)
        assert serving.stop(signal.SIGTERM)[0] == 0
