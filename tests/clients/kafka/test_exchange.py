"""Apache Kafka 4.4.0 and Barnabas use the same data directory in turn: clients see no difference.

Kafka formats and fills a directory, Barnabas continues with it, then Kafka again; and vice versa. Clients read from
each broker what the other has stored, and kafka-dump-log reads every file. The formats are Kafka's (L1, I5, T6, G2).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.clients.kafka.dump_tools import both_agree, files_of, kafkas_dump
from tests.clients.kafka.exchange import HAS_JAVA, TIMEOUT_S, Directory, observe, read_all, same
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.soak,
    pytest.mark.jvm,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not HAS_JAVA, reason="needs Java and Maven, to run Apache Kafka"),
]

CONFIG = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "1",
    "log.cleaner.backoff.ms": "200",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
GROUPS = ["readers", "modern", "movers"]
MIB = 1 << 20


class NumberedRecords:
    """An idempotent producer that stays open while the brokers change: each number is stored once, in order."""

    def __init__(self, bootstrap: str) -> None:
        self.count = 0
        self.errors: list[str] = []
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "log_level": 2,
            }
        )

    def write(self, count: int) -> None:
        """Send the next numbers."""
        for _ in range(count):
            self.producer.produce("live", b"%d" % self.count, on_delivery=self._delivered)
            self.count += 1
        assert self.producer.flush(TIMEOUT_S) == 0
        assert self.errors == []

    def _delivered(self, error: Any, _message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))

    def check(self, observed: dict[str, Any]) -> None:
        """Assert that the topic has every number at the offset of the same value."""
        assert [(offset, int(value)) for _, offset, _, value in observed["records"]["live"]] == [
            (number, number) for number in range(self.count)
        ]


def produce(bootstrap: str, topic: str, records: list[tuple[bytes, bytes | None]], **options: Any) -> None:
    """Send records and wait for their delivery."""
    errors: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, "log_level": 2, **options})
    for key, value in records:
        producer.produce(topic, value, key=key, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == []


def create(bootstrap: str, *topics: NewTopic) -> None:
    """Create topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics(list(topics)).values():
        created.result(TIMEOUT_S)


def advance(bootstrap: str, group: str, count: int, **options: Any) -> None:
    """Let a member of the group consume so many further records of `orders`, and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 5,
            **options,
        }
    )
    consumer.subscribe(["orders"])
    for _ in range(count):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None
    consumer.commit(asynchronous=False)
    consumer.close()


def transactions(bootstrap: str, label: str, *, move_to: int) -> None:
    """One committed and one aborted transaction; each commits offsets of the group `movers`."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover", "log_level": 2})
    producer.init_transactions(TIMEOUT_S)
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "movers", "log_level": 2})
    metadata = consumer.consumer_group_metadata()
    for outcome, position in (("committed", move_to), ("aborted", move_to + 7)):
        producer.begin_transaction()
        for partition in range(2):
            for number in range(10):
                producer.produce("ledger", f"{label} {outcome} {number}".encode(), partition=partition)
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, position)], metadata, TIMEOUT_S)
        producer.flush(TIMEOUT_S)
        if outcome == "committed":
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    consumer.close()


def begin_open_transaction(bootstrap: str) -> Producer:
    """A transaction in the topic `pending` that stays open."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "transactional.id": "hanging",
            "transaction.timeout.ms": 600_000,
            "log_level": 2,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("pending", b"never committed")
    producer.flush(TIMEOUT_S)
    return producer


def configure(bootstrap: str, topic: str, name: str, value: str) -> None:
    """Set a topic's config."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(TIMEOUT_S)


def users(bootstrap: str) -> Any:
    """The SCRAM users of the cluster."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    described = admin.describe_user_scram_credentials().result(TIMEOUT_S)
    return {
        name: [(info.mechanism, info.iterations) for info in user.scram_credential_infos]
        for name, user in described.items()
    }


def check_files_with_both_tools(directory: Path, metadata: Path, partitions: list[Path]) -> None:
    """kafka-dump-log reports no problem in any file, and `barnabas dump-log` prints the same."""
    logs, others, indexes = [], [], []
    for path in partitions:
        logs += [file for file in files_of(path, ".log") if not path.name.startswith("__")]
        others += files_of(path, ".snapshot", ".txnindex")
        indexes += files_of(path, ".index", ".timeindex")
    both_agree([*logs, *others], "--deep-iteration")
    both_agree(indexes)
    both_agree(files_of(metadata, ".log", ".checkpoint"), "--cluster-metadata-decoder")
    both_agree([file for path in directory.glob("__consumer_offsets-*") for file in files_of(path, ".log")])


def check_clean_start_of_kafka(directory: Directory) -> None:
    """Assert that Kafka started without log recovery, waiting for a session timeout or epoch errors."""
    log = directory.log()
    assert re.search(r"Skipping recovery of \d+ logs .* since clean shutdown file was found", log)
    for complaint in ("DUPLICATE_BROKER_REGISTRATION", "smaller than last written epoch", "FATAL"):
        assert complaint not in log


def fill_with_kafka(bootstrap: str, live: NumberedRecords) -> Producer:
    """Create the contents of a cluster in use: data, compacted data, finished and open transactions, groups, users."""
    create(
        bootstrap,
        NewTopic("orders", 3, 1, config={"segment.bytes": str(MIB), "retention.ms": "-1"}),
        NewTopic(
            "settings",
            1,
            1,
            config={"cleanup.policy": "compact", "segment.bytes": str(MIB), "min.cleanable.dirty.ratio": "0.01"},
        ),
        NewTopic("ledger", 2, 1),
        NewTopic("pending", 1, 1),
        NewTopic("live", 1, 1),
        NewTopic("doomed", 2, 1),
    )
    rng = random.Random(4)
    produce(
        bootstrap,
        "orders",
        [(b"k%d" % number, rng.randbytes(900)) for number in range(4000)],
        **{"enable.idempotence": True, "compression.type": "lz4"},
    )
    produce(bootstrap, "settings", [(b"s%d" % (number % 20), rng.randbytes(20_000)) for number in range(200)])
    produce(bootstrap, "settings", [(b"s3", None), (b"last", b"one")])
    live.write(300)
    advance(bootstrap, "readers", 1000)
    advance(bootstrap, "modern", 500, **{"group.protocol": "consumer"})
    transactions(bootstrap, "first", move_to=11)
    transactions(bootstrap, "second", move_to=22)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    for done in admin.alter_user_scram_credentials(
        [UserScramCredentialUpsertion("alice", credential, b"secret", b"salt")]
    ).values():
        done.result(TIMEOUT_S)
    return begin_open_transaction(bootstrap)


def change_with_barnabas(bootstrap: str, live: NumberedRecords) -> None:
    """Add data and changes to the directory with Barnabas."""
    live.write(300)
    produce(bootstrap, "orders", [(b"b%d" % number, b"from Barnabas" * 50) for number in range(2000)])
    produce(bootstrap, "settings", [(b"s4", None), (b"s5", b"new"), (b"mine", b"too")])
    produce(bootstrap, "pending", [(b"behind", b"the open transaction")])
    advance(bootstrap, "readers", 1500)
    create(bootstrap, NewTopic("made-by-barnabas", 2, 1, config={"max.message.bytes": "123456"}))
    produce(bootstrap, "made-by-barnabas", [(b"a", b"1"), (b"b", b"2")])
    configure(bootstrap, "orders", "retention.ms", "987654321000")
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_partitions([NewPartitions("orders", 4)]).values():
        done.result(TIMEOUT_S)
    for done in admin.delete_topics(["doomed"]).values():
        done.result(TIMEOUT_S)


@pytest.fixture
def kafkas_directory(tmp_path: Path) -> Iterator[Directory]:
    """A directory of `kafka-storage format --standalone`: the voter is a record (KIP-853)."""
    directory = Directory(tmp_path / "node", config=CONFIG, dynamic_quorum=True)
    yield directory
    directory.stop()


def test_from_kafka_to_barnabas_and_back(kafkas_directory: Directory) -> None:
    directory, address = kafkas_directory, kafkas_directory.bootstrap
    directory.run(directory.kafka)
    live = NumberedRecords(address)
    hanging = fill_with_kafka(address, live)
    checkpoint = directory.log_dir / "cleaner-offset-checkpoint"
    wait_for(lambda: "settings 0" in checkpoint.read_text(), "Kafka's cleaner")
    before, known_users = observe(address, GROUPS), users(address)
    assert before["positions"]["movers"] == {("orders", 0): 22}
    assert {value.split()[1] for *_, value in before["records"]["ledger"]} == {b"committed"}
    assert before["records"]["pending"] == []
    assert len(before["records"]["settings"]) == 21

    directory.run(directory.barnabas)
    same(before, observe(address, GROUPS))
    change_with_barnabas(address, live)
    after = observe(address, GROUPS)
    live.check(after)
    assert after["partitions"]["orders"] == 4
    assert "doomed" not in after["topic ids"]
    assert sum(after["positions"]["readers"].values()) == 2500
    assert after["records"]["pending"] == []
    directory.stop()
    check_files_with_both_tools(directory.log_dir, directory.metadata_dir, directory.partition_dirs())

    directory.run(directory.kafka)
    same(after, observe(address, GROUPS))
    assert users(address) == known_users
    check_clean_start_of_kafka(directory)
    live.write(300)
    transactions(address, "third", move_to=33)
    del hanging
    Producer({"bootstrap.servers": address, "transactional.id": "hanging"}).init_transactions(TIMEOUT_S)
    advance(address, "readers", 500)
    advance(address, "modern", 500, **{"group.protocol": "consumer"})
    last = observe(address, GROUPS)
    live.check(last)
    assert last["positions"]["movers"] == {("orders", 0): 33}
    assert [value for *_, value in last["records"]["pending"]] == [b"the open transaction"]

    directory.run(directory.barnabas)
    same(last, observe(address, GROUPS))
    directory.stop()
    newest = files_of(directory.metadata_dir, ".checkpoint")[-1:]
    dump = kafkas_dump(newest, "--cluster-metadata-decoder")
    assert '"kRaftVersion":1' in dump.text
    assert '"voters":[{"voterId":1,' in dump.text


@pytest.fixture
def our_directory(tmp_path: Path) -> Iterator[Directory]:
    """A directory that Barnabas formats with Kafka's configuration; the voters are configured."""
    directory = Directory(tmp_path / "node", config=CONFIG)
    yield directory
    directory.stop()


def test_from_barnabas_to_kafka_and_back(our_directory: Directory) -> None:
    """The directory contains metadata snapshots of both brokers."""
    directory, address = our_directory, our_directory.bootstrap
    directory.run(directory.barnabas)
    create(
        address,
        NewTopic("orders", 3, 1, config={"segment.bytes": str(MIB)}),
        NewTopic("settings", 1, 1, config={"cleanup.policy": "compact"}),
        NewTopic("ledger", 2, 1),
        NewTopic("live", 1, 1),
        *(NewTopic(f"other-{number}", 3, 1) for number in range(10)),
    )
    live = NumberedRecords(address)
    live.write(300)
    rng = random.Random(5)
    produce(address, "orders", [(b"k%d" % number, rng.randbytes(900)) for number in range(4000)])
    produce(address, "settings", [(b"s%d" % (number % 20), b"%d" % number) for number in range(200)])
    advance(address, "readers", 1000)
    before = observe(address, ["readers"])
    directory.stop()
    assert files_of(directory.metadata_dir, ".checkpoint")
    check_files_with_both_tools(directory.log_dir, directory.metadata_dir, directory.partition_dirs())

    directory.run(directory.kafka)
    same(before, observe(address, ["readers"]))
    check_clean_start_of_kafka(directory)
    live.write(300)
    transactions(address, "first", move_to=11)
    advance(address, "readers", 500)
    create(address, NewTopic("made-by-kafka", 2, 1))
    after = observe(address, ["readers", "movers"])
    live.check(after)

    directory.run(directory.barnabas)
    same(after, observe(address, ["readers", "movers"]))
    live.write(300)
    live.check(observe(address, []))
    directory.stop()
    check_files_with_both_tools(directory.log_dir, directory.metadata_dir, directory.partition_dirs())


def test_a_quorum_that_barnabas_began_with_its_voter_as_a_record(tmp_path: Path) -> None:
    """KIP-853: Kafka finds itself as the voter in the record."""
    directory = Directory(tmp_path / "node", config=CONFIG, dynamic_quorum=True)
    try:
        directory.run(directory.barnabas)
        create(directory.bootstrap, NewTopic("orders", 2, 1))
        for server in (directory.kafka, directory.barnabas):
            directory.run(server)
            produce(directory.bootstrap, "orders", [(b"k", server.name.encode())])
        records = read_all(directory.bootstrap, {"orders": 2})["orders"]
        assert sorted(value for *_, value in records) == [b"barnabas", b"kafka"]
    finally:
        directory.stop()
