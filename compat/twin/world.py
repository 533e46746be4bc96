"""The model from which a sequence is made: what the brokers have, as far as one can say before they answer.

Families (`compat.twin.families`) add requests to it, and note what these change. The model only has to be right so
often that most requests mean something: what the brokers really have is in their answers.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from barnabas.wire.registry import message_for
from compat.twin.plain import APIS
from compat.twin.steps import PREFIX, Saved, Step


@dataclass
class Topic:
    """A topic that was created, and perhaps deleted."""

    name: str
    partitions: int
    exists: bool = True
    configs: dict[str, str] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    """About how many offsets each partition has."""
    generation: int = 0
    """How often it was created again."""

    @property
    def topic_id(self) -> Saved:
        """Its id, that of its last creation."""
        return Saved(f"id {self.name} {self.generation}", bytes(16))

    @property
    def stale_id(self) -> Saved:
        """The id of the creation before."""
        return Saved(f"id {self.name} {self.generation - 1}", bytes(range(16)))


@dataclass
class Producer:
    """A producer with an id: idempotent, or transactional."""

    number: int
    transactional_id: str | None
    epochs: int = 0
    """How often its epoch was set anew: each has a saved value."""
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)
    in_transaction: set[tuple[str, int]] = field(default_factory=set)

    @property
    def producer_id(self) -> Saved:
        return Saved(f"pid {self.number}", -1)

    @property
    def epoch(self) -> Saved:
        return Saved(f"epoch {self.number}", 0)


class World:
    """The model and the steps so far. `random` decides everything: the same seed makes the same sequence."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.steps: list[Step] = []
        self.topics: list[Topic] = []
        self.producers: list[Producer] = []
        self.notes: dict[str, Any] = {}
        """What families note for themselves, by the family's name."""
        self.connections = ["a"]

    # --- choices

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def pick(self, *values: Any) -> Any:
        """One of the values."""
        return self.random.choice(values)

    def mostly(self, usual: Any, *others: Any, probability: float = 0.75) -> Any:
        """Usually the first value, else one of the others."""
        return usual if self.chance(probability) else self.random.choice(others)

    def version(self, api: str, first: int = 0) -> int:
        """A version of the API, the last one more often than others."""
        versions = message_for(APIS[api])[0].versions
        valid = [version for version in versions if version >= first]
        return valid[-1] if self.chance(0.35) else self.random.choice(valid)

    def new_name(self, stem: str) -> str:
        """A name that the sequence has not used."""
        number = self.notes[stem] = self.notes.get(stem, 0) + 1
        return f"{PREFIX}{stem}{number}"

    def topic(self) -> Topic:
        """A topic, usually one that exists; one is created if there is none."""
        if not self.topics:
            return self.create_topic()
        existing = [topic for topic in self.topics if topic.exists]
        if existing and self.chance(0.93):
            return self.random.choice(existing)
        return self.random.choice(self.topics)

    def partition(self, topic: Topic) -> int:
        """A partition of the topic, rarely one that it has not."""
        return self.random.randrange(topic.partitions) if self.chance(0.95) else self.pick(topic.partitions, -1, 99)

    # --- requests

    def send(self, api: str, request: dict[str, Any], *, version: int | None = None, **options: Any) -> Step:
        """Add a step; without a version, in any."""
        if version is None:
            version = self.version(api)
        options.setdefault("connection", self.random.choice(self.connections))
        step = Step(api, version, request, **options)
        self.steps.append(step)
        return step

    def create_topic(
        self, name: str | None = None, partitions: int | None = None, configs: dict[str, str] | None = None
    ) -> Topic:
        """Create a topic and wait until both brokers serve it."""
        count = partitions or self.pick(1, 1, 2, 3)
        topic = Topic(name or self.new_name("t"), count, configs=dict(configs or {}))
        self.topics.append(topic)
        self.create_again(topic)
        topic.generation = 0
        self.steps[-1].saves = {f"id {topic.name} 0": ("topics", 0, "topic_id")}
        return topic

    def create_again(self, topic: Topic) -> None:
        """Create a topic that was deleted, under its name."""
        topic.generation += 1
        topic.exists = True
        topic.ends.clear()
        wanted = {
            "name": topic.name,
            "num_partitions": topic.partitions,
            "replication_factor": 1,
            "configs": [{"name": key, "value": value} for key, value in topic.configs.items()],
        }
        saves = {f"id {topic.name} {topic.generation}": ("topics", 0, "topic_id")}
        self.send("CreateTopics", {"topics": [wanted]}, version=7, saves=saves, settle="topics")

    def producer(self) -> Producer:
        """A producer that has an id."""
        if not self.producers or self.chance(0.1):
            return self.new_producer(None)
        return self.random.choice(self.producers)

    def new_producer(self, transactional_id: str | None) -> Producer:
        """Ask for a producer id."""
        producer = Producer(len(self.producers), transactional_id)
        self.producers.append(producer)
        self.init_producer(producer)
        return producer

    def init_producer(self, producer: Producer, **fields: Any) -> None:
        """InitProducerId; the producer has the id and the epoch of the answer from then on."""
        request = {"transactional_id": producer.transactional_id, "transaction_timeout_ms": 60000, **fields}
        number = producer.number
        saves = {f"pid {number}": ("producer_id",), f"epoch {number}": ("producer_epoch",)}
        self.send("InitProducerId", request, version=self.pick(0, 1, 2, 3, 4, 5), saves=saves)
        producer.sequences.clear()
        producer.in_transaction.clear()
