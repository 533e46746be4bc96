"""kcat, the command line client: each test runs the real program.

It uses the system's librdkafka (2.0.2 on Debian), which is years older than the one in confluent-kafka, so these tests
cover older versions of the protocol. A deadline ends programs that hang.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.batches.batch_header import BatchView
from barnabas.wire.messages.fetch import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
)
from tests.clients.libraries.new_topics import wait_for_leaders
from tests.support.processes.server import Server

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

from tests.support.processes.commands import KCAT  # noqa: E402
from tests.support.waiting import wait_for  # noqa: E402

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
DEADLINE_S = 45.0
EPOCH = int(time.time()) // 1000 * 1_000_000 - 86_400_000  # newer than Kafka's default retention

pytestmark = pytest.mark.skipif(KCAT is None, reason="needs kcat (on Debian: apt-get install kcat)")


def whole_lines(file: Path) -> list[str]:
    """The complete lines of a file that is being written."""
    text = file.read_text()
    return text[: text.rfind("\n") + 1].splitlines()


class Running:
    """A kcat process that runs until `end`; its output is written to files."""

    def __init__(self, command: list[str], environment: dict[str, str], stem: Path) -> None:
        self.out, self.errors = stem.with_suffix(".out"), stem.with_suffix(".err")
        with self.out.open("wb") as out, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=environment
            )

    def lines(self) -> list[str]:
        """The lines of its output so far."""
        return whole_lines(self.out)

    def assigned(self) -> set[int]:
        """The partitions of its latest assignment, from its output (`assigned: topic [0], topic [1]`)."""
        rebalances = [line for line in whole_lines(self.errors) if " rebalanced " in line]
        if not rebalances or "assigned: " not in rebalances[-1]:
            return set()
        return {
            int(partition.split("[")[1].rstrip("]")) for partition in rebalances[-1].split("assigned: ")[1].split(", ")
        }

    def wait(self, holds: Callable[[], bool]) -> None:
        """Wait until a condition holds while it runs."""
        wait_for(
            lambda: holds() or self.process.poll() is not None,
            lambda: f"{self.lines()[-5:]} {self.errors.read_text()[-2000:]}",
            DEADLINE_S,
        )
        assert self.process.poll() is None or holds(), self.errors.read_text()

    def end(self) -> None:
        """Stop it with SIGTERM: it leaves its group."""
        self.process.terminate()
        assert self.process.wait(DEADLINE_S) == 0, self.errors.read_text()


class Kcat:
    """Runs kcat against one broker, without the user's configuration file."""

    def __init__(self, broker: Server, folder: Path) -> None:
        self.broker, self.folder = broker, folder
        self.environment = {name: value for name, value in os.environ.items() if not name.endswith("CAT_CONFIG")}
        self.environment["HOME"] = str(folder)
        self.started: list[Running] = []

    def _command(self, *arguments: str) -> list[str]:
        return [str(KCAT), *self.broker.clients.kcat(), "-m", "20", *arguments]

    def run(self, *arguments: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        """Run kcat until it exits."""
        source: dict[str, Any] = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
        return subprocess.run(
            self._command(*arguments), capture_output=True, timeout=DEADLINE_S, check=False, env=self.environment,
            **source,
        )  # fmt: skip

    def __call__(self, *arguments: str, data: bytes | None = None) -> str:
        """Run kcat, which must exit with code 0, and return its output."""
        done = self.run(*arguments, data=data)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def produce(self, topic: str, numbers: range, *arguments: str) -> None:
        """Produce one record per number, with the number as value and `key-N` as key."""
        data = "".join(f"key-{n}:{n}\n" for n in numbers).encode()
        self("-P", "-t", topic, "-K:", *arguments, data=data)

    def consume(self, topic: str, *arguments: str) -> list[str]:
        """The lines that it prints when it consumes a topic up to its end."""
        return self("-C", "-q", "-e", "-t", topic, *arguments).splitlines()

    def start(self, *arguments: str) -> Running:
        """Start kcat in the background."""
        stem = self.folder / f"kcat-{len(self.started)}"
        self.started.append(Running(self._command("-u", *arguments), self.environment, stem))
        return self.started[-1]

    def kill(self) -> None:
        """Kill all processes that still run."""
        for client in self.started:
            if client.process.poll() is None:
                client.process.kill()
                client.process.wait()


@pytest.fixture
def kcat_at(tmp_path: Path) -> Iterator[Callable[[Server], Kcat]]:
    """A factory of Kcats for a given broker; their processes are stopped after the test."""
    instances: list[Kcat] = []

    def at(broker: Server) -> Kcat:
        instances.append(Kcat(broker, tmp_path))
        return instances[-1]

    yield at
    for instance in instances:
        instance.kill()


@pytest.fixture
def kcat(broker: Server, kcat_at: Callable[[Server], Kcat]) -> Kcat:
    """kcat against the shared broker."""
    return kcat_at(broker)


def create_topic(broker: Server, topic: str, partitions: int = 1, config: dict[str, str] | None = None) -> None:
    """Create a topic with partitions and configs, which kcat cannot do."""
    admin = AdminClient(broker.clients.librdkafka())
    admin.create_topics([NewTopic(topic, partitions, config=config or {})])[topic].result(30)
    wait_for_leaders(broker, topic, partitions)


@pytest.fixture
def create(broker: Server, topic: str) -> Callable[..., str]:
    """Create this test's topic on the shared broker: `create(partitions=1, config=None) -> name`."""

    def create_it(partitions: int = 1, config: dict[str, str] | None = None) -> str:
        create_topic(broker, topic, partitions, config)
        return topic

    return create_it


def first_batch(broker: Server, topic: str) -> BatchView:
    """The first batch of partition 0 as the broker sends it."""
    partition = FetchRequestFetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20,
        topics=[FetchRequestFetchTopic(topic=topic, partitions=[partition])],
    )  # fmt: skip
    with broker.administration.barnabas(DEADLINE_S) as client:
        leader = client.retry(lambda deadline: client.leader(topic, 0, deadline))
        response = client.call(request, FetchResponse, node_id=leader, max_version=12)
        (partition,) = response.responses[0].partitions
        return BatchView(bytes(partition.records))


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_read_unchanged_in_every_codec(codec, kcat, create) -> None:
    topic = create()
    lines = [f"key-{n}:value-{n} " + "and more " * 20 for n in range(500)]
    kcat("-P", "-t", topic, "-K:", "-z", codec, data="\n".join(lines).encode())
    assert first_batch(kcat.broker, topic).codec == CODECS[codec]
    consumed = kcat.consume(topic, "-f", "%t %p %o %k:%s\n", "-X", "check.crcs=true")
    assert consumed == [f"{topic} 0 {n} {line}" for n, line in enumerate(lines)]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_setting_stores_the_records(acks, kcat, create) -> None:
    topic = create()
    kcat.produce(topic, range(300), "-X", f"acks={acks}")
    assert kcat.consume(topic) == [str(n) for n in range(300)]


def test_idempotent_producer_keeps_the_order(kcat, create) -> None:
    topic = create()
    kcat.produce(topic, range(1000), "-X", "enable.idempotence=true", "-X", "batch.num.messages=10")
    assert kcat.consume(topic) == [str(n) for n in range(1000)]


def test_headers_keep_their_order_and_duplicates(kcat, create) -> None:
    topic = create()
    kcat("-P", "-t", topic, "-H", "a=1", "-H", "b=two", "-H", "a=again", data=b"value\n")
    assert kcat.consume(topic, "-f", "%h|%s\n") == ["a=1,b=two,a=again|value"]


def test_null_keys_and_values_are_distinguished_from_empty_ones(kcat, create) -> None:
    topic = create()
    kcat("-P", "-t", topic, "-K:", "-Z", data=b"tombstone:\n:no key\nkey:value\n")
    kcat("-P", "-t", topic, "-K:", data=b"empty:\n")
    assert kcat.consume(topic, "-f", "%K %k %S %s\n") == [  # -Z prints NULL for empty values too
        "9 tombstone -1 ",
        "-1  6 no key",
        "3 key 5 value",
        "5 empty 0 ",
    ]


def test_whole_files_are_single_records(kcat, create, tmp_path) -> None:
    topic = create()
    contents = [os.urandom(200_000), b"two\nlines\n"]
    files = [tmp_path / "one", tmp_path / "two"]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
    kcat("-P", "-t", topic, "-p", "0", *map(str, files))
    for offset, content in enumerate(contents):
        done = kcat.run("-C", "-q", "-t", topic, "-p", "0", "-o", str(offset), "-c", "1", "-D", "")
        assert done.stdout == content


def test_json_envelope_contains_the_whole_record(kcat, create) -> None:
    topic = create(config={"message.timestamp.type": "LogAppendTime"})
    before = int(time.time() * 1000)
    kcat("-P", "-t", topic, "-k", "key", "-H", "a=1", data=b"value\n")
    (line,) = kcat.consume(topic, "-J")
    envelope = json.loads(line)
    assert before - 1000 <= envelope.pop("ts") <= int(time.time() * 1000) + 1000
    assert envelope == {
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "tstype": "logappend",
        "broker": 1,
        "headers": ["a", "1"],
        "key": "key",
        "payload": "value",
    }


def test_consuming_starts_at_the_offset_asked_for(kcat, create) -> None:
    topic = create()
    kcat.produce(topic, range(20))
    assert kcat.consume(topic, "-o", "beginning") == [str(n) for n in range(20)]
    assert kcat.consume(topic, "-o", "end") == []
    assert kcat.consume(topic, "-o", "17") == ["17", "18", "19"]
    assert kcat.consume(topic, "-o", "-2") == ["18", "19"]
    assert kcat.consume(topic, "-o", "5", "-c", "2") == ["5", "6"]


def test_reading_beyond_the_end_follows_the_reset_policy(kcat, create) -> None:
    topic = create()
    kcat.produce(topic, range(3))
    assert kcat.consume(topic, "-o", "1000", "-X", "topic.auto.offset.reset=earliest") == ["0", "1", "2"]
    assert kcat.consume(topic, "-o", "1000", "-X", "topic.auto.offset.reset=latest") == []


@pytest.fixture
def timed(broker: Server, create: Callable[..., str]) -> str:
    """A topic whose record n of 50 has the timestamp EPOCH + n seconds (kcat itself cannot set timestamps)."""
    topic = create()
    producer = Producer(broker.clients.librdkafka())
    for n in range(50):
        producer.produce(topic, b"%d" % n, timestamp=EPOCH + 1000 * n)
    assert producer.flush(DEADLINE_S) == 0
    return topic


def test_consuming_between_two_timestamps(kcat, timed) -> None:
    lines = kcat.consume(timed, "-o", f"s@{EPOCH + 20_500}", "-o", f"e@{EPOCH + 25_000}", "-f", "%s %T\n")
    assert lines == [f"{n} {EPOCH + 1000 * n}" for n in range(21, 25)]


def test_offsets_are_queried_by_timestamp(kcat, timed) -> None:
    def offset_at(timestamp: int) -> str:
        return kcat("-Q", "-t", f"{timed}:0:{timestamp}").strip()

    assert offset_at(EPOCH) == f"{timed} [0] offset 0"
    assert offset_at(EPOCH + 21_500) == f"{timed} [0] offset 22"
    assert offset_at(EPOCH + 10**9) == f"{timed} [0] offset -1"
    assert offset_at(-2) == f"{timed} [0] offset 0"
    assert offset_at(-1) == f"{timed} [0] offset 50"


def test_metadata_listing_shows_brokers_topics_and_partitions(kcat, broker, create) -> None:
    topic = create(3)
    listed = kcat("-L", "-t", topic)
    assert f'topic "{topic}" with 3 partitions:' in listed
    for node, address in enumerate(broker.addresses, 1):
        assert f"broker {node} at {address}" in listed
    nodes = "[1-9](,[1-9])*"
    assert re.search(rf"partition 2, leader [1-9], replicas: {nodes}, isrs: {nodes}\n", listed)


def test_metadata_listing_as_json(kcat, broker, create) -> None:
    topic = create(2)
    listed = json.loads(kcat("-L", "-J", "-t", topic))
    nodes = [{"id": node, "name": address} for node, address in enumerate(broker.addresses, 1)]
    assert sorted(listed["brokers"], key=itemgetter("id")) == nodes
    assert listed["controllerid"] in {node["id"] for node in nodes}
    (described,) = listed["topics"]
    assert (described["topic"], [partition["partition"] for partition in described["partitions"]]) == (topic, [0, 1])
    for partition in described["partitions"]:
        replicas = [replica["id"] for replica in partition["replicas"]]
        assert sorted(replicas) == [node["id"] for node in nodes]
        assert partition["leader"] == replicas[0]
        assert {"id": partition["leader"]} in partition["isrs"]
    assert topic in {described["topic"] for described in json.loads(kcat("-L", "-J"))["topics"]}


def test_producing_creates_a_missing_topic_and_consuming_does_not(kcat, topic, topic_name) -> None:
    kcat.produce(topic, range(3))
    assert kcat.consume(topic) == ["0", "1", "2"]
    missing = topic_name("missing")
    done = kcat.run("-C", "-e", "-t", missing)
    assert done.returncode == 1
    assert b"Unknown topic or partition" in done.stderr
    assert missing not in {entry["topic"] for entry in json.loads(kcat("-L", "-J"))["topics"]}


def test_keys_spread_over_partitions_and_keep_their_order(kcat, create) -> None:
    topic = create(4)
    data = "".join(f"key-{n % 20}:{n}\n" for n in range(200)).encode()
    kcat("-P", "-t", topic, "-K:", "-X", "topic.partitioner=murmur2_random", data=data)
    consumed = [line.split() for line in kcat.consume(topic, "-f", "%p %k %s\n")]
    assert {partition for partition, _, _ in consumed} == {"0", "1", "2", "3"}
    for key in range(20):
        ours = [(partition, int(value)) for partition, name, value in consumed if name == f"key-{key}"]
        assert len({partition for partition, _ in ours}) == 1
        assert [value for _, value in ours] == list(range(key, 200, 20))


def test_too_large_record_is_refused(kcat, create) -> None:
    """L11: max.message.bytes, error 10 MESSAGE_TOO_LARGE."""
    topic = create(config={"max.message.bytes": "200000"})
    kcat("-P", "-t", topic, data=b"x" * 199_000)
    done = kcat.run("-P", "-t", topic, data=b"x" * 201_000)
    assert done.returncode == 1
    assert b"Message size too large" in done.stderr
    assert [len(line) for line in kcat.consume(topic)] == [199_000]


def test_group_commits_and_resumes(kcat, create, topic_name) -> None:
    topic, group = create(2), topic_name("group")
    kcat.produce(topic, range(20))

    def read() -> list[int]:
        output = kcat("-G", group, "-q", "-e", "-X", "topic.auto.offset.reset=earliest", topic)
        return sorted(int(line) for line in output.splitlines())

    assert read() == list(range(20))
    kcat.produce(topic, range(20, 25))
    assert read() == list(range(20, 25))


def test_members_of_a_group_share_and_reassign_the_partitions(kcat, create, topic_name) -> None:
    topic, group = create(4), topic_name("group")
    settings = ["-X", "topic.auto.offset.reset=earliest", "-X", "heartbeat.interval.ms=300"]

    first = kcat.start("-G", group, *settings, topic)
    first.wait(lambda: first.assigned() == {0, 1, 2, 3})
    second = kcat.start("-G", group, *settings, topic)
    first.wait(lambda: len(first.assigned()) == 2)
    second.wait(lambda: second.assigned() == {0, 1, 2, 3} - first.assigned())
    kcat("-P", "-t", topic, "-X", "topic.partitioner=murmur2", "-K:", data=_keyed(range(200)))
    second.wait(lambda: len(first.lines()) + len(second.lines()) == 200)
    assert sorted(int(line) for line in first.lines() + second.lines()) == list(range(200))
    assert first.lines()
    assert second.lines()
    first.end()
    second.wait(lambda: second.assigned() == {0, 1, 2, 3})
    taken = len(second.lines())
    kcat("-P", "-t", topic, "-X", "topic.partitioner=murmur2", "-K:", data=_keyed(range(200, 300)))
    second.wait(lambda: len(second.lines()) == taken + 100)
    assert sorted(int(line) for line in second.lines()[taken:]) == list(range(200, 300))


def _keyed(numbers: range) -> bytes:
    return "".join(f"key-{n}:{n}\n" for n in numbers).encode()


def test_running_consumer_continues_after_a_kill_9_of_the_broker(start_broker, kcat_at, topic) -> None:
    server = start_broker()
    kcat = kcat_at(server)
    create_topic(server, topic)
    kcat.produce(topic, range(10))
    follower = kcat.start("-C", "-E", "-t", topic)
    follower.wait(lambda: len(follower.lines()) == 10)
    server.kill9()
    server.restart()
    kcat.produce(topic, range(10, 20))
    follower.wait(lambda: len(follower.lines()) == 20)
    assert follower.lines() == [str(n) for n in range(20)]
