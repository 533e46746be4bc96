"""A Kafka Streams application for tests: its topics, its instances, and the word counts it must have produced.

The application writes every intermediate count. Under exactly-once the counts of a word are therefore 1, 2, 3 ... up
to the number of its occurrences: a lost, duplicated or reverted count is visible.
"""

from __future__ import annotations

import random
import struct
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from threading import Condition, Thread

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.kafka_streams import program
from tests.support.processes.security import ClientSettings
from tests.support.waiting import wait_for

DEADLINE_S = 120.0
CREATION_S = 30.0
WORDS = ("the", "cat", "sat", "on", "mat", "and", "saw", "nine", "more", "cats")


class Instance:
    """One process of the application."""

    def __init__(self, command: list[str]) -> None:
        self.lines: list[str] = []
        self._line_written = Condition()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._line_written:
                self.lines.append(line.rstrip("\n"))
                self._line_written.notify_all()

    def wait_for_line(self, beginning: str, since: int = 0) -> str:
        """Wait for the first line of output with this prefix, and return it."""
        deadline = time.monotonic() + DEADLINE_S
        with self._line_written:
            while True:
                for line in self.lines[since:]:
                    if line.startswith(beginning):
                        return line
                remaining_s = deadline - time.monotonic()
                assert remaining_s > 0, f"no line begins with {beginning!r}: {self.lines[-40:]}"
                self._line_written.wait(remaining_s)

    def running(self) -> Instance:
        """Wait until the instance is in the state RUNNING."""
        self.wait_for_line("STATE RUNNING")
        return self

    def ask(self, command: str) -> list[str]:
        """Send a command and return the words of the answer, without the first."""
        assert self.process.stdin is not None
        since = len(self.lines)
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.wait_for_line(command.upper(), since).split()[1:]

    def tasks(self) -> tuple[set[str], set[str]]:
        """The active and the standby tasks of this instance."""
        words = self.ask("tasks")
        middle = words.index("standby")
        return set(words[1:middle]), set(words[middle + 1 :])

    def kill9(self) -> None:
        """Kill the application with SIGKILL."""
        self.process.kill()
        self._ended()

    def _ended(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.wait(DEADLINE_S)
        self._reader.join()
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self) -> None:
        """Close the application; it leaves the group."""
        assert self.process.stdin is not None
        self.process.stdin.write("close\n")
        self.process.stdin.flush()
        self._ended()
        assert "CLOSED true" in self.lines


def create_topics(clients: ClientSettings, topics: list[str], partitions: int) -> None:
    """Create topics; repeat creations without an answer, because the broker was killed."""
    admin = AdminClient(clients.librdkafka())
    deadline = time.monotonic() + CREATION_S
    while topics:
        failed = []
        for topic, future in admin.create_topics([NewTopic(topic, partitions) for topic in topics]).items():
            try:
                future.result(CREATION_S)
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError.TOPIC_ALREADY_EXISTS:
                    continue
                if code != KafkaError._TRANSPORT or time.monotonic() > deadline:
                    raise
                failed.append(topic)
        topics = failed


class Application:
    """One application id with its topics and the words written to its input."""

    def __init__(self, clients: ClientSettings, name: str, state: Path, *settings: str, partitions: int = 2) -> None:
        self.clients, self.name, self.state, self.partitions = clients, name, state, partitions
        self.settings = settings
        self.written: Counter[str] = Counter()
        self.instances: list[Instance] = []
        create_topics(clients, [f"{name}-lines", f"{name}-known", f"{name}-counts"], partitions)

    def start(self, *settings: str, state: str = "one") -> Instance:
        """Start another instance; `state` names its state directory."""
        where = self.state / state
        security = (f"{key}={value}" for key, value in self.clients.security_properties().items())
        command = program.command(
            self.clients.bootstrap, self.name, str(where), *security, *self.settings, *settings,
            jvm_options=self.clients.java_options(),
        )  # fmt: skip
        instance = Instance(command)
        self.instances.append(instance)
        return instance

    def close(self) -> None:
        """Stop all instances."""
        for instance in self.instances:
            if instance.process.poll() is None:
                instance.kill9()

    def write(self, lines: int, chance: random.Random) -> None:
        """Write lines of random words."""
        producer = Producer(self.clients.librdkafka() | {"enable.idempotence": True})
        for _ in range(lines):
            words = chance.choices(WORDS, k=3)
            self.written.update(words)
            producer.produce(f"{self.name}-lines", " ".join(words), partition=chance.randrange(self.partitions))
        assert producer.flush(DEADLINE_S) == 0

    def write_line(self, line: str) -> None:
        """Write one given line."""
        producer = Producer(self.clients.librdkafka())
        producer.produce(f"{self.name}-lines", line)
        assert producer.flush(DEADLINE_S) == 0

    def counts(self, isolation: str = "read_committed") -> dict[str, list[int]]:
        """All counts of each word in the output topic, in order."""
        consumer = Consumer(
            {
                **self.clients.librdkafka(),
                "group.id": f"reader-of-{self.name}",
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "fetch.queue.backoff.ms": 5,
            }
        )
        topic = f"{self.name}-counts"
        consumer.assign([TopicPartition(topic, index, 0) for index in range(self.partitions)])
        counts: dict[str, list[int]] = defaultdict(list)
        ended, deadline = set(), time.monotonic() + DEADLINE_S
        while len(ended) < self.partitions:
            assert time.monotonic() < deadline, "the end of the topic was not reached in time"
            for message in consumer.consume(10_000, 1.0):
                if message.error() is None:
                    counts[message.key().decode()].append(struct.unpack(">q", message.value())[0])
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF
                    ended.add(message.partition())
        consumer.close()
        return dict(counts)

    def wait_counted(self) -> dict[str, list[int]]:
        """Wait until each word's last count is (at least) the number of times it was written; returns all counts."""
        last: dict[str, list[int]] = {}

        def is_counted() -> bool:
            last.clear()
            last.update(self.counts())
            return all(last.get(word, [0])[-1] >= count for word, count in self.written.items())

        wait_for(is_counted, f"not counted in time: {last} of {self.written}", DEADLINE_S)
        return last

    def check_exactly_once(self) -> None:
        """Each word was counted once for each time it was written, in order."""
        counts = self.wait_counted()
        for word, count in self.written.items():
            assert counts[word] == list(range(1, count + 1)), word
        assert counts.keys() == self.written.keys()
