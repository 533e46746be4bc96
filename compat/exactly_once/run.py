"""One run: a broker, two copiers, a writer and a reader, which are killed at random moments, and the checker.

Each kill follows a random number of committed transactions and a random fraction of a second, so that it hits clients
that are working. After the last kill the copiers must catch up, and no transaction may stay open.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat.checker.__main__ import check
from compat.checker.finding import Finding
from compat.checker.history import Writer, read
from compat.exactly_once.confluent_client import settings_of
from compat.exactly_once.processes import HungError, Progress, Slot
from tests.support.processes.server import Server

PARTITIONS = 3
TIMEOUT_S = 120.0
CLIENTS = ("copy-0", "copy-1", "copy-0", "copy-1", "write-0", "read-0")
"""The clients to choose from for a kill; those with transactions are more likely."""
BROKER = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.min.session.timeout.ms": "1000",
    # for group.protocol=consumer these are broker settings
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}
SESSION_MS = 2000


def make_topic(bootstrap: str, name: str) -> None:
    """Create a topic; with a new client if librdkafka has given up the handle of the broker that it had asked."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        admin = AdminClient(settings_of(bootstrap))
        try:
            admin.create_topics([NewTopic(name, PARTITIONS)])[name].result(30)
            return
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:  # the answer to an earlier request was lost
                return
            if code not in (KafkaError._DESTROY_BROKER, KafkaError._TIMED_OUT, KafkaError._TRANSPORT):
                raise
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


@dataclass(slots=True)
class Outcome:
    """The result of a run; times in seconds."""

    seed: int
    broker_kills: int = 0
    client_kills: int = 0
    records: int = 0
    steps: int = 0
    step: str = "commit"
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def __str__(self) -> str:
        kills = f"{self.broker_kills} kills of the broker and {self.client_kills} of clients"
        did = f"{self.records} records in {self.steps} answered {self.step}s"
        return f"seed {self.seed}: {kills}, {did} in {self.seconds:.0f} s, {len(self.findings)} findings"


class KilledCluster(Protocol):
    """The operations on brokers that a run uses."""

    @property
    def bootstrap(self) -> str:
        """Their addresses."""
        ...


class Run:
    """`server` was started with the settings in BROKER; histories are written to `folder`.

    Callers that break the brokers in another way than by kills use `start`, `finish` and `kill`.
    """

    clients: tuple[str, ...] = CLIENTS
    step, step_name = "committed", "commit"
    """The type of the events that are counted between kills, and its name in the output."""

    def __init__(
        self, server: Server | KilledCluster, client: str, folder: Path, seed: int, rate: int = 300, **more: str
    ) -> None:
        self.server, self.folder = server, folder
        self.chance = random.Random(seed)
        self.outcome = Outcome(seed, step=self.step_name)
        self._spacing = 8
        self._began = 0.0
        self.silence_s: float | None = None
        """After how long a client that writes nothing counts as hung, and is replaced as one that was killed.

        As long as others make steps it may have nothing to do: all of its partitions may be read to their ends.

        librdkafka 2.16 gives the handle of a broker up that was down for a moment; a commit that waits for this very
        handle waits for ever.
        """
        self.hung = 0
        self._steps_seen, self._step_at = 0, time.monotonic()
        self.driver = Writer(folder / "driver.jsonl", "driver")
        self.source, self.target = f"in-{seed}", f"out-{seed}"
        settings = {
            "bootstrap": server.bootstrap,
            "source": self.source,
            "target": self.target,
            "group": f"copy-{seed}",
            "partitions": str(PARTITIONS),
            "rate": str(rate),
            "session_ms": str(SESSION_MS),
            "seed": str(seed),
            **more,
        }
        self.slots = {name: Slot(name, client, folder, settings) for name in sorted(set(self.clients))}
        self.progress = Progress(folder, self.step)

    def __call__(self, broker_kills: int, client_kills: int, spacing: int = 8) -> Outcome:
        """Run, with up to `spacing` steps before each kill.

        RuntimeError when a client ends by itself or there is no progress.
        """
        self._spacing = spacing
        try:
            self.start()
            self._kill_all(broker_kills, client_kills)
            return self.finish()
        finally:
            self.kill()

    def start(self) -> None:
        """Make the topics and start the clients."""
        self._began = time.monotonic()
        self._make_topics()
        for slot in self.slots.values():
            slot.start()

    def stop_writing(self) -> None:
        """Stop the writer, if it still runs; the other clients go on with the values it has written."""
        writer = self.slots.pop("write-0", None)
        if writer is not None:
            writer.stop()

    def finish(self) -> Outcome:
        """Let the clients catch up, stop them, read everything and check it."""
        self._drain()
        self._read_all()
        self.driver.close()
        self.outcome.steps = self.progress.update()
        self.outcome.findings += check(read([self.folder]))
        self.outcome.seconds = time.monotonic() - self._began
        return self.outcome

    def kill(self) -> None:
        """End the clients that run, without waiting for their work."""
        for slot in self.slots.values():
            if slot.process is not None and slot.process.poll() is None:
                slot.kill9()

    def check_clients(self) -> None:
        """RuntimeError when a client has ended by itself. One that hangs is replaced, if `silence_s` says so."""
        for slot in self.slots.values():
            slot.check()
        if self.silence_s is None:
            return
        if self.progress.update() > self._steps_seen:
            self._steps_seen, self._step_at = self.progress.count, time.monotonic()
        if time.monotonic() - self._step_at > self.silence_s:
            for slot in self.slots.values():
                if slot.role != "write" and slot.silent_s() > self.silence_s:
                    self.hung += 1
                    self._kill_client(slot)

    def _stop_clients(self) -> None:
        for slot in self.slots.values():
            try:
                slot.stop()
            except HungError:
                if self.silence_s is None:
                    raise
                self.hung += 1

    def _make_topics(self) -> None:
        for name in (self.source, self.target):
            make_topic(self.server.bootstrap, name)
        self.driver.write("copy", source=self.source, target=self.target)

    def _kill_all(self, broker_kills: int, client_kills: int) -> None:
        victims = ["broker"] * broker_kills + self.chance.choices(self.clients, k=client_kills)
        self.chance.shuffle(victims)
        for victim in victims:
            self._wait_for_steps(self.chance.randrange(1, self._spacing))
            time.sleep(self.chance.uniform(0, 0.2))  # at a random point of a transaction
            if victim == "broker":
                self._kill_broker()
            else:
                self._kill_client(self.slots[victim])

    def _kill_broker(self) -> None:
        assert isinstance(self.server, Server)
        self.driver.write("killed", victim="broker")
        self.server.kill9()
        self.server.restart()
        self.driver.write("restarted")
        self.outcome.broker_kills += 1

    def _kill_client(self, slot: Slot) -> None:
        self.driver.write("killed", victim=slot.process_name)
        slot.kill9()
        slot.start()
        self.outcome.client_kills += 1

    def _wait_for_steps(self, count: int) -> None:
        target = self.progress.update() + count
        self._wait(lambda: self.progress.update() >= target, f"fewer than {count} further {self.step!r} events")

    def _wait(self, condition: Callable[[], bool], failure: str) -> None:
        committed, deadline = self.progress.update(), time.monotonic() + TIMEOUT_S
        while not condition():
            self.check_clients()
            if self.progress.update() > committed:
                committed, deadline = self.progress.count, time.monotonic() + TIMEOUT_S
            if time.monotonic() > deadline:
                raise RuntimeError(f"{failure}, and no progress; histories: {self.folder}")
            time.sleep(0.02)

    def _drain(self) -> None:
        """Stop the writer, wait until the copiers have caught up, and stop all clients."""
        self.stop_writing()
        consumer = self._consumer("read_uncommitted", f"copy-{self.outcome.seed}")
        partitions = [TopicPartition(self.source, index) for index in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(partition, 30)[1] for partition in partitions]

        def is_caught_up() -> bool:
            return [max(0, partition.offset) for partition in consumer.committed(partitions, 30)] == ends

        self._wait(is_caught_up, f"the copiers have not reached {ends}")
        consumer.close()
        self._stop_clients()

    def _consumer(self, isolation: str, group: str) -> Consumer:
        settings = {"isolation.level": isolation, "enable.auto.commit": False, "enable.partition.eof": True}
        return Consumer({"bootstrap.servers": self.server.bootstrap, "group.id": group, **settings})

    def _topics_to_read(self) -> tuple[str, ...]:
        return (self.source, self.target)

    def _read_all(self) -> None:
        """Read every topic completely; a finding for each partition with an open transaction."""
        for topic in self._topics_to_read():
            committed = self._consumer("read_committed", f"last-{self.outcome.seed}")
            everything = self._consumer("read_uncommitted", f"last-{self.outcome.seed}")
            for index in range(PARTITIONS):
                partition = TopicPartition(topic, index, 0)
                stable, end = (consumer.get_watermark_offsets(partition, 30)[1] for consumer in (committed, everything))
                if stable != end:
                    text = f"{topic}-{index} has last stable offset {stable} and log end offset {end}"
                    self.outcome.findings.append(Finding("open-transaction", text))
                self._read(committed, partition)
            committed.close()
            everything.close()

    def _read(self, consumer: Consumer, partition: TopicPartition) -> None:
        consumer.assign([partition])
        isolation, deadline = "read_committed", time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            messages = consumer.consume(1000, 1.0)
            good = [message for message in messages if message.error() is None]
            rows = [[record.topic(), record.partition(), record.offset(), record.value().decode()] for record in good]
            self.driver.write("poll", records=rows, isolation=isolation)
            self.outcome.records += len(good) if partition.topic == self._topics_to_read()[-1] else 0
            for message in messages:
                if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                    at = {"topic": partition.topic, "partition": partition.partition, "offset": message.offset()}
                    self.driver.write("end", isolation=isolation, **at)
                    return
        raise RuntimeError(f"the end of {partition.topic}-{partition.partition} was not reached within {TIMEOUT_S} s")
