"""Random quota settings with questions and uses, answered by Kafka's classes and compared with Barnabas'.

    python -m compat.kafka.quota_worlds 2000        # prints the number of worlds that were equal

Settings are set, changed and removed in random order, for few users and client ids, so that they overlap.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from barnabas.coord.security.quota_rate import Rate
from barnabas.coord.security.quota_settings import Name, QuotaSettings, QuotaTags
from barnabas.coord.security.token_bucket import TokenBucket
from compat.jars import classpath
from compat.java.program import compiled

FOLDER = Path(__file__).resolve().parent
TIMEOUT_S = 600
NAMES: tuple[Any, ...] = ("a", "b", "c")
START_MS = 1_000_000

World = dict[str, Any]


def new_world(random_: random.Random) -> World:
    """Settings that are changed several times, all pairs of names as questions, and uses over half a minute."""
    names = (*NAMES, [], None)
    places = [(user, client) for user in names for client in names if (user, client) != (None, None)]
    places = random_.sample(places, random_.randint(1, len(places)))
    changes = [
        {"user": user, "client": client, "limit": random_.choice([None, *range(1, 6)]) and random_.randint(1, 1000)}
        for user, client in random_.choices(places, k=random_.randint(1, 12))
    ]
    questions = [{"user": user, "client": client} for user in NAMES for client in (*NAMES, "")]
    now = START_MS
    uses = []
    for _ in range(random_.randint(5, 30)):
        now += random_.choice((0, 1, 400, 1000, 2500, 12_000))
        uses.append({**random_.choice(questions), "value": random_.randint(0, 5000), "at": now})
    return {
        "type": random_.choice(("PRODUCE", "CONTROLLER_MUTATION")),
        "windows": random_.randint(2, 12),
        "window_s": random_.randint(1, 3),
        "changes": changes,
        "questions": questions,
        "uses": uses,
    }


def answers_of_kafka(worlds: list[World]) -> list[World]:
    """What Kafka answers."""
    pom = FOLDER / "pom.xml"
    command = ["java", "-cp", f"{compiled(FOLDER / 'Quotas.java', pom)}:{classpath(pom)}", "Quotas"]
    lines = "".join(json.dumps(world) + "\n" for world in worlds)
    done = subprocess.run(command, input=lines, stdout=subprocess.PIPE, text=True, check=True, timeout=TIMEOUT_S)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def answers(world: World) -> World:
    """What Barnabas answers."""
    limits: dict[tuple[Name, Name], float] = {}
    for change in world["changes"]:
        place = (_name(change["user"]), _name(change["client"]))
        if change["limit"] is None:
            limits.pop(place, None)
        else:
            limits[place] = float(change["limit"])
    settings = QuotaSettings(limits)
    tags = [settings.tags(question["user"], question["client"]) for question in world["questions"]]
    return {
        "tags": [[*tag] for tag in tags],
        "limits": [settings.limit(tag) for tag in tags],
        "throttled": _throttled(world, settings),
    }


def _name(name: Any) -> Name:
    return () if name == [] else name


def _throttled(world: World, settings: QuotaSettings) -> list[int]:
    rates: dict[QuotaTags, Rate] = {}
    buckets: dict[QuotaTags, TokenBucket] = {}
    size = (world["windows"], world["window_s"] * 1000)
    found = []
    for use in world["uses"]:
        tags = settings.tags(use["user"], use["client"])
        limit, now = settings.limit(tags), use["at"]
        if limit is None:
            found.append(0)
        elif world["type"] == "PRODUCE":
            rate = rates.setdefault(tags, Rate(*size))
            rate.record(use["value"], now)
            found.append(rate.throttle_ms(limit, now))
        else:
            bucket = buckets.setdefault(tags, TokenBucket(*size))
            found.append(bucket.throttle_ms(limit, now))
            if not found[-1]:
                bucket.record(use["value"], limit, now)
    return found


def differences(count: int, seed: int) -> list[tuple[World, World, World]]:
    """The worlds in which the answers differ, with Kafka's and Barnabas' answers."""
    random_ = random.Random(seed)
    worlds = [new_world(random_) for _ in range(count)]
    both = [(world, theirs, answers(world)) for world, theirs in zip(worlds, answers_of_kafka(worlds), strict=True)]
    return [one for one in both if one[1] != one[2]]


def main(count: int) -> int:
    """Compare so many worlds; 1 if any differs."""
    found = differences(count, seed=count)
    for world, theirs, ours in found[:3]:
        print(json.dumps({"world": world, "kafka": theirs, "barnabas": ours}))
    print(f"{count - len(found)} of {count} worlds are equal")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
