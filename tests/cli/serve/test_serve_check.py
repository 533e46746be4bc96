"""`barnabas serve --check`: whether a Kafka broker's configuration and directories can be taken over, nothing written.

The directory is one that Apache Kafka 4.4.0 has written; the broker of the tests stands for its controller.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.coord.cluster.metadata_log.metadata_batches import build_metadata_batch
from barnabas.wire.messages.records.metadata_records import AccessControlEntryRecord, ConfigRecord, FeatureLevelRecord
from barnabas.wire.schema import Message
from tests.support.archives import unpack
from tests.support.processes.commands import Ran

ARCHIVE = Path(__file__).resolve().parents[2] / "data" / "kafka-4.4.0-directory.tar.gz"
CLUSTER = "BegkxYnFSEaLKWuAzg3rEA"


class CheckedNode:
    """A properties file with the directory of a Kafka broker, and the command that checks them."""

    def __init__(self, folder: Path, controller: str, call: Callable[..., Ran]) -> None:
        self.directory = unpack(ARCHIVE, folder / "logs")
        self.file = folder / "server.properties"
        self.keys = {
            "process.roles": "broker",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "log.dirs": str(self.directory),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controller,
        }
        self._call = call

    def check(self, **keys: str) -> Ran:
        settings = self.keys | {name.replace("_", "."): value for name, value in keys.items()}
        self.file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        before = state(self.directory)
        ran = self._call("serve", "--check", "--config", str(self.file))
        assert state(self.directory) == before
        return ran

    def refused(self, **keys: str) -> str:
        """What stands against it; there must be something."""
        ran = self.check(**keys)
        assert (ran.code, "cannot take over" in ran.stdout) == (2, True)
        assert "Traceback" not in ran.stderr
        return ran.stderr

    def add(self, *records: Message) -> None:
        """Append records to the copy of the metadata."""
        metadata = self.directory / "__cluster_metadata-0"
        end = int(next(metadata.glob("*.snapshot")).name[:20])
        (log,) = metadata.glob("*.log")
        with log.open("ab") as file:
            file.write(build_metadata_batch(records, base_offset=end, epoch=1, now_ms=0, metadata_version=33))


def state(directory: Path) -> dict[str, tuple[int, bytes]]:
    """Every file with its time and content."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in directory.rglob("*") if path.is_file()}


@pytest.fixture
def node(tmp_path: Path, call: Callable[..., Ran], broker) -> CheckedNode:
    return CheckedNode(tmp_path, broker.bootstrap, call)


def test_a_directory_of_kafka_can_be_taken_over(node: CheckedNode) -> None:
    ran = node.check()
    assert (ran.code, ran.stderr) == (0, "")
    assert ran.stdout == f"Barnabas can take over node 1 of {node.directory} (6 partitions)\n"


def test_keys_without_an_effect_are_notes(node: CheckedNode) -> None:
    ran = node.check(num_io_threads="16", my_own_plugin="x").ok()
    assert "note: num.io.threads is known to Kafka, not acted on by Barnabas" in ran.stderr
    assert "note: Unknown config key my.own.plugin" in ran.stderr


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"authorizer_class_name": "A"}, "authorizer.class.name=A: Barnabas runs no Java classes"),
        ({"remote_log_storage_system_enable": "true"}, "no tiered storage"),
        ({"config_providers": "file"}, "does not look values up"),
        ({"listener_security_protocol_map": "PLAINTEXT:SASL_SSL,CONTROLLER:SSL"}, "has GSSAPI"),
        (
            {"listener_security_protocol_map": "PLAINTEXT:SSL,CONTROLLER:PLAINTEXT", "ssl_keystore_location": "/x.jks"},
            "TLS of the listener PLAINTEXT: SSL key store is specified, but key store password is not specified",
        ),
        ({"node_id": "2"}, "belongs to node 1, but node.id is 2"),
        ({"controller_quorum_bootstrap_servers": ""}, "controller.quorum.voters must contain"),
        ({"controller_quorum_bootstrap_servers": "nonsense"}, "must be HOST:PORT"),
        ({"log_dirs": "/nonexistent/logs"}, "The log directory /nonexistent/logs does not exist"),
        ({"num_partitions": "x"}, "num.partitions"),
    ],
)
def test_what_the_configuration_stands_against(node: CheckedNode, keys: dict[str, str], text: str) -> None:
    assert text in node.refused(**keys)


def test_controllers_that_do_not_answer(node: CheckedNode) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    assert "No controller answers" in node.refused(controller_quorum_bootstrap_servers=f"127.0.0.1:{port}")
    both = f"127.0.0.1:{port},{node.keys['controller.quorum.bootstrap.servers']}"
    assert "note: Another controller is asked" in node.check(controller_quorum_bootstrap_servers=both).ok().stderr


def test_everything_that_is_found_is_told_at_once(node: CheckedNode) -> None:
    (node.directory / "recovery-point-offset-checkpoint").write_text("x")
    (node.directory / "orders-0" / "leader-epoch-checkpoint").write_text("7\n1\n0 0\n")
    lines = node.refused(config_providers="file").splitlines()
    assert len(lines) == 3
    assert "recovery-point-offset-checkpoint" in lines[1]
    assert "orders-0/leader-epoch-checkpoint" in lines[2]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", "has no version"),
        ("version=0\nbroker.id=1\ncluster.id=x\n", "was used with ZooKeeper"),
        (f"version=1\nnode.id=x\ncluster.id={CLUSTER}\n", "node.id is 'x'"),
        (None, "has partitions but no meta.properties"),
    ],
)
def test_an_identity_that_cannot_be_read(node: CheckedNode, content: str | None, text: str) -> None:
    file = node.directory / "meta.properties"
    if content is None:
        file.unlink()
    else:
        file.write_text(content)
    assert text in node.refused()


def test_directories_of_different_clusters_and_copies(node: CheckedNode, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(node.directory / "meta.properties", other)
    both = f"{node.directory},{other}"
    assert "have the same directory.id: one is a copy" in node.refused(log_dirs=both)
    (other / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=AnotherCluster\n")
    assert "belong to different clusters" in node.refused(log_dirs=both)


def test_features_and_topics_that_cannot_be_served(node: CheckedNode) -> None:
    node.add(
        FeatureLevelRecord(name="share.version", feature_level=9),
        FeatureLevelRecord(name="warp.version", feature_level=1),
        ConfigRecord(resource_type=2, resource_name="orders", name="remote.storage.enable", value="true"),
    )
    refusal = node.refused()
    assert "share.version at level 9; this version of Barnabas supports 0 to 2" in refusal
    assert "the feature warp.version, which this version of Barnabas does not know" in refusal
    assert "tiered storage (remote.storage.enable), which cannot be read: orders" in refusal


def test_acls_are_enforced_by_an_authorizer_only(node: CheckedNode) -> None:
    node.add(
        AccessControlEntryRecord(
            id=bytes(15) + b"\1",
            resource_type=2,
            resource_name="orders",
            pattern_type=3,
            principal="User:alice",
            host="*",
            operation=3,
            permission_type=3,
        )
    )
    note = "note: The cluster has 1 ACLs, which are kept and not enforced without authorizer.class.name"
    assert note in node.check().ok().stderr
    assert "ACL" not in node.check(authorizer_class_name="barnabas").ok().stderr


def test_record_batches_of_an_old_format(node: CheckedNode) -> None:
    segment = node.directory / "orders-0" / f"{0:020}.log"
    content = bytearray(segment.read_bytes())
    content[16] = 1
    segment.write_bytes(content)
    assert "begins with a record batch of format 1" in node.refused()
    segment.write_bytes(bytes(1000))  # preallocated
    node.check().ok()


def test_files_of_another_user(node: CheckedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = str(node.directory / "orders-1" / f"{0:020}.log")
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != locked and real(path, mode))
    assert f"{locked} may not be read and written by this user" in node.refused()


def test_a_cluster_on_one_machine_is_not_checked(call: Callable[..., Ran]) -> None:
    ran = call("serve", "--check", "--brokers", "3")
    assert (ran.code, "it cannot be used with --brokers" in ran.stderr) == (2, True)


def test_directories_of_others_are_no_partitions(node: CheckedNode) -> None:
    photos = node.directory / "photos-2024"
    photos.mkdir()
    (photos / "cat.jpg").touch()
    assert "(6 partitions)" in node.check().stdout
    (node.directory / "cluster.json").touch()
    assert "has the data of a cluster (cluster.json)" in node.refused()
