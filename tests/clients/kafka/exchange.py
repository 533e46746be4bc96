"""One data directory that Kafka and Barnabas use in turn, and its contents as a client sees them.

`observe` reads a whole cluster through a client: two observations are equal if nothing was lost, added or changed
when the directory passed from one broker to the other.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from tests.support.jvm.command import KAFKA_NODE
from tests.support.processes.kafka import KafkaServer
from tests.support.processes.security import ClientSettings
from tests.support.processes.server import BarnabasServer, Server

DYNAMIC_TOPIC_CONFIG = 1
TIMEOUT_S = 30
HAS_JAVA = bool(shutil.which("java") and shutil.which("mvn"))


class OnKafkasProperties(BarnabasServer):
    """Barnabas started with the `server.properties` that Kafka uses."""

    def __init__(self, kafka: KafkaServer) -> None:
        super().__init__(kafka.data_dir, port=kafka.port)
        self.properties = kafka.properties
        self.log_path = kafka.data_dir / "barnabas.log"

    def _command(self) -> tuple[list[str], dict[str, str]]:
        command, environment = super()._command()
        serve = command.index("serve")
        options = ["--config", str(self.properties), "--ready-file", str(self._ready_file)]
        return [*command[: serve + 1], *options], environment


class Directory:
    """A directory that two brokers use in turn, on one address."""

    def __init__(self, where: Path, *, config: dict[str, str], dynamic_quorum: bool = False) -> None:
        self.kafka = KafkaServer(where, config=config, jvm_options=KAFKA_NODE, dynamic_quorum=dynamic_quorum)
        self.kafka.write_properties()
        self.barnabas = OnKafkasProperties(self.kafka)
        self.log_dir = self.kafka.log_dir
        self.running: Server | None = None
        self._log_start = 0

    @property
    def bootstrap(self) -> str:
        """`host:port` of the running broker."""
        return self.kafka.bootstrap

    @property
    def clients(self) -> ClientSettings:
        """What clients are configured with."""
        return self.kafka.clients

    def run(self, server: Server) -> Server:
        """Stop the running broker cleanly and start this one."""
        self.stop()
        self._log_start = len(server.log())
        self.running = server.start()
        return server

    def stop(self) -> None:
        """Stop the running broker; it must exit with code 0."""
        server, self.running = self.running, None
        if server is not None:
            code = server.stop()
            assert code in (0, 143), (server.name, code, server.log()[-3000:])

    def log(self) -> str:
        """The log of the running broker since its start."""
        assert self.running is not None
        return self.running.log()[self._log_start :]

    def partition_dirs(self) -> list[Path]:
        """The directory of every partition but the metadata log's."""
        dirs = (path for path in self.log_dir.iterdir() if re.fullmatch(r".+-\d+", path.name) and path.is_dir())
        return sorted(path for path in dirs if not path.name.startswith("__cluster_metadata"))

    @property
    def metadata_dir(self) -> Path:
        """The directory of the metadata log."""
        return self.log_dir / "__cluster_metadata-0"


Record = tuple[int, int, Any, Any]
"""Partition, offset, key, value."""


def read_all(bootstrap: str, topics: dict[str, int], **options: Any) -> dict[str, list[Record]]:
    """Every record of these topics that a consumer receives; `topics` maps names to numbers of partitions."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "observer",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.queue.backoff.ms": 5,
            "fetch.wait.max.ms": 10,
            **options,
        }
    )
    partitions = [(topic, index) for topic, count in topics.items() for index in range(count)]
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for topic, index in partitions])
    records: dict[str, list[Record]] = {topic: [] for topic in topics}
    ended = set()
    while len(ended) < len(partitions):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, f"no message received; the end of {set(partitions) - ended} is not reached"
        topic, partition = message.topic(), message.partition()
        error = message.error()
        if error is None:
            records[topic].append((partition, message.offset(), message.key(), message.value()))
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended.add((topic, partition))
    consumer.close()
    return {topic: sorted(of_topic, key=lambda record: record[:2]) for topic, of_topic in records.items()}


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """(topic, partition) -> committed offset."""
    request = ConsumerGroupTopicPartitions(group)
    result = admin.list_consumer_group_offsets([request], request_timeout=TIMEOUT_S)[group].result()
    return {
        (partition.topic, partition.partition): partition.offset
        for partition in result.topic_partitions
        if partition.offset >= 0
    }


def observe(bootstrap: str, groups: list[str]) -> dict[str, Any]:
    """Everything that clients see: cluster and topic ids, configs, records, read_committed records, offsets, users."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_topics(timeout=TIMEOUT_S)
    names = sorted(name for name in listed.topics if not name.startswith("__"))
    internal = sorted(name for name in listed.topics if name.startswith("__"))
    described = admin.describe_topics(TopicCollection([*names, *internal]), request_timeout=TIMEOUT_S)
    ids = {name: str(future.result().topic_id) for name, future in described.items()}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in [*names, *internal]]
    configs = {
        resource.name: {
            entry.name: entry.value for entry in future.result().values() if entry.source == DYNAMIC_TOPIC_CONFIG
        }
        for resource, future in admin.describe_configs(resources, request_timeout=TIMEOUT_S).items()
    }
    partitions = {name: len(listed.topics[name].partitions) for name in names}
    uncommitted = read_all(bootstrap, partitions, **{"isolation.level": "read_uncommitted"})
    compacted = [name for name in names if configs[name].get("cleanup.policy") == "compact"]
    return {
        "cluster id": listed.cluster_id,
        "topic ids": ids,
        "configs": configs,
        "partitions": partitions,
        "records": last_of_each_key(read_all(bootstrap, partitions), compacted),
        "all records": last_of_each_key(uncommitted, compacted),
        "positions": {group: committed(admin, group) for group in groups},
    }


def last_of_each_key(records: dict[str, list[Record]], compacted: list[str]) -> dict[str, list[Record]]:
    """The records; of compacted topics only the last of each key, which every cleaning keeps."""
    remaining = dict(records)
    for name in compacted:
        last = {(record[0], record[2]): record for record in records[name]}
        remaining[name] = sorted(last.values(), key=lambda record: record[:2])
    return remaining


def same(before: dict[str, Any], after: dict[str, Any], *, but: tuple[str, ...] = ()) -> None:
    """Assert that two observations are equal, part by part, so that a failure is readable."""
    assert before.keys() == after.keys()
    for what in before.keys() - {"records", "all records"} - set(but):
        assert after[what] == before[what], what
    for what in {"records", "all records"} - set(but):
        assert after[what].keys() == before[what].keys()
        for topic in before[what]:
            lost = Counter(before[what][topic]) - Counter(after[what][topic])
            added = Counter(after[what][topic]) - Counter(before[what][topic])
            assert (topic, lost, added) == (topic, Counter(), Counter())
