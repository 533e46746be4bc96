"""Random worlds that Kafka's classes and Barnabas answer: one JSON object a line to a Java program, and back."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from compat.kafka.programs import run_program

World = dict[str, Any]


class Comparison(NamedTuple):
    """A comparison of Kafka's answers with Barnabas'."""

    new_world: Callable[[random.Random], World]
    main_class: str
    """The Java program in this folder that answers as Kafka."""
    answers: Callable[[World], World]
    """Returns Barnabas' answers to a world."""

    def answers_of_kafka(self, worlds: list[World]) -> list[World]:
        """Kafka's answers."""
        lines = run_program(self.main_class, stdin="".join(json.dumps(world) + "\n" for world in worlds))
        return [json.loads(line) for line in lines if line.startswith("{")]

    def differences(self, count: int, seed: int) -> list[tuple[World, World, World]]:
        """The worlds in which the answers differ, with Kafka's and Barnabas' answers."""
        random_ = random.Random(seed)
        worlds = [self.new_world(random_) for _ in range(count)]
        theirs = self.answers_of_kafka(worlds)
        both = [(world, kafkas, self.answers(world)) for world, kafkas in zip(worlds, theirs, strict=True)]
        return [row for row in both if row[1] != row[2]]

    def main(self, count: int) -> int:
        """Compare so many worlds; 1 if any differs."""
        differences = self.differences(count, seed=count)
        for world, theirs, ours in differences[:3]:
            print(json.dumps({"world": world, "kafka": theirs, "barnabas": ours}))
        print(f"{count - len(differences)} of {count} worlds are equal")
        return 1 if differences else 0
