"""One run: a broker, two copies, a writer and a reader, kills of all of them at random moments, and the checker.

The moments are counted in committed transactions and then drawn within a fraction of a second, so that every kill hits
clients at work. After the last kill all is left to heal: the copies must catch up, and no transaction may stay open.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.servers import Server
from compat.checker.__main__ import check
from compat.checker.finding import Finding
from compat.checker.history import Writer, read
from compat.exactly_once.processes import Progress, Slot

PARTITIONS = 3
PATIENCE_S = 120.0
CLIENTS = ("copy-0", "copy-1", "copy-0", "copy-1", "write-0", "read-0")
"""Whom a kill of a client meets: more often those with transactions."""
BROKER = {
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.min.session.timeout.ms": "1000",
    # group.protocol=consumer leaves these to the broker
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
}
SESSION_MS = 2000


@dataclass(slots=True)
class Outcome:
    """What a run came to; times in seconds."""

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


class Run:
    """`server` has been started with the settings in BROKER; histories go to `folder`."""

    clients: tuple[str, ...] = CLIENTS
    step, step_name = "committed", "commit"
    """The type of the events by which the kills are timed, and what it is called."""

    def __init__(self, server: Server, client: str, folder: Path, seed: int, rate: int = 300, **more: str) -> None:
        self.server, self.folder = server, folder
        self.chance = random.Random(seed)
        self.outcome = Outcome(seed, step=self.step_name)
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

    def __call__(self, broker_kills: int, client_kills: int) -> Outcome:
        """Do it; raises RuntimeError when clients end by themselves or nothing moves any more."""
        began = time.monotonic()
        self._make_topics()
        try:
            for slot in self.slots.values():
                slot.start()
            self._kill_all(broker_kills, client_kills)
            self._drain()
        finally:
            for slot in self.slots.values():
                if slot.process is not None and slot.process.poll() is None:
                    slot.kill9()
        self._read_all()
        self.driver.close()
        self.outcome.steps = self.progress.update()
        self.outcome.findings += check(read([self.folder]))
        self.outcome.seconds = time.monotonic() - began
        return self.outcome

    def _make_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.server.bootstrap})
        made = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (self.source, self.target)])
        for future in made.values():
            future.result(30)
        self.driver.write("copy", source=self.source, target=self.target)

    def _kill_all(self, broker_kills: int, client_kills: int) -> None:
        victims = ["broker"] * broker_kills + self.chance.choices(self.clients, k=client_kills)
        self.chance.shuffle(victims)
        for victim in victims:
            self._wait_for_steps(self.chance.randrange(1, 8))
            time.sleep(self.chance.uniform(0, 0.2))  # somewhere in a transaction
            if victim == "broker":
                self._kill_broker()
            else:
                self._kill_client(self.slots[victim])

    def _kill_broker(self) -> None:
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
        wanted = self.progress.update() + count
        self._wait(lambda: self.progress.update() >= wanted, f"{self.step!r} did not happen {count} times more")

    def _wait(self, holds: Callable[[], bool], otherwise: str) -> None:
        committed, deadline = self.progress.update(), time.monotonic() + PATIENCE_S
        while not holds():
            for slot in self.slots.values():
                slot.check()
            if self.progress.update() > committed:
                committed, deadline = self.progress.count, time.monotonic() + PATIENCE_S
            if time.monotonic() > deadline:
                raise RuntimeError(f"{otherwise}, nothing moves; histories are in {self.folder}")
            time.sleep(0.02)

    def _drain(self) -> None:
        """No more input; the copies catch up and end in order."""
        self.slots.pop("write-0").stop()
        consumer = self._consumer("read_uncommitted", f"copy-{self.outcome.seed}")
        places = [TopicPartition(self.source, index) for index in range(PARTITIONS)]
        ends = [consumer.get_watermark_offsets(place, 30)[1] for place in places]

        def is_caught_up() -> bool:
            return [max(0, place.offset) for place in consumer.committed(places, 30)] == ends

        self._wait(is_caught_up, f"the copies did not reach {ends}")
        consumer.close()
        for slot in self.slots.values():
            slot.stop()

    def _consumer(self, isolation: str, group: str) -> Consumer:
        settings = {"isolation.level": isolation, "enable.auto.commit": False, "enable.partition.eof": True}
        return Consumer({"bootstrap.servers": self.server.bootstrap, "group.id": group, **settings})

    def _topics_to_read(self) -> tuple[str, ...]:
        return (self.source, self.target)

    def _read_all(self) -> None:
        """Every topic from beginning to end; an open transaction would keep a reader from the end of the log."""
        for topic in self._topics_to_read():
            committed = self._consumer("read_committed", f"last-{self.outcome.seed}")
            everything = self._consumer("read_uncommitted", f"last-{self.outcome.seed}")
            for index in range(PARTITIONS):
                place = TopicPartition(topic, index, 0)
                stable, end = (one.get_watermark_offsets(place, 30)[1] for one in (committed, everything))
                if stable != end:
                    told = f"{topic}-{index} is stable up to {stable} only, and ends at {end}"
                    self.outcome.findings.append(Finding("open-transaction", told))
                self._read(committed, place)
            committed.close()
            everything.close()

    def _read(self, consumer: Consumer, place: TopicPartition) -> None:
        consumer.assign([place])
        isolation, deadline = "read_committed", time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            messages = consumer.consume(1000, 1.0)
            good = [message for message in messages if message.error() is None]
            rows = [[one.topic(), one.partition(), one.offset(), one.value().decode()] for one in good]
            self.driver.write("poll", records=rows, isolation=isolation)
            self.outcome.records += len(good) if place.topic == self._topics_to_read()[-1] else 0
            for message in messages:
                if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                    at = {"topic": place.topic, "partition": place.partition, "offset": message.offset()}
                    self.driver.write("end", isolation=isolation, **at)
                    return
        raise RuntimeError(f"{place.topic}-{place.partition} does not end")
