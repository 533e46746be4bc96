"""Random worlds that Kafka's classes and Barnabas answer: one JSON object a line to a Java program, and back."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from compat.jars import classpath
from compat.java.program import compiled

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 600

World = dict[str, Any]


class Comparison(NamedTuple):
    """What is compared."""

    new_world: Callable[[random.Random], World]
    source: str
    """The Java program in this folder that answers as Kafka."""
    main_class: str
    answers: Callable[[World], World]
    """What Barnabas answers."""

    def answers_of_kafka(self, worlds: list[World]) -> list[World]:
        """What Kafka answers."""
        pom = FOLDER / "pom.xml"
        command = ["java", "-cp", f"{compiled(FOLDER / self.source, pom)}:{classpath(pom)}", self.main_class]
        lines = "".join(json.dumps(world) + "\n" for world in worlds)
        done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S)
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    def differences(self, count: int, seed: int) -> list[tuple[World, World, World]]:
        """The worlds in which the answers differ, with Kafka's and Barnabas' answers."""
        random_ = random.Random(seed)
        worlds = [self.new_world(random_) for _ in range(count)]
        theirs = self.answers_of_kafka(worlds)
        both = [(world, answer, self.answers(world)) for world, answer in zip(worlds, theirs, strict=True)]
        return [one for one in both if one[1] != one[2]]

    def main(self, count: int) -> int:
        """Compare so many worlds; 1 if any differs."""
        found = self.differences(count, seed=count)
        for world, theirs, ours in found[:3]:
            print(json.dumps({"world": world, "kafka": theirs, "barnabas": ours}))
        print(f"{count - len(found)} of {count} worlds are equal")
        return 1 if found else 0
