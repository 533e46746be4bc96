"""Random quota settings with questions and uses, answered by Kafka's classes and compared with Barnabas'.

    python -m compat.kafka.quota_worlds 2000        # prints the number of worlds that were equal

Settings are set, changed and removed in random order, for few users and client ids, so that they overlap.
"""

from __future__ import annotations

import random
import sys
from typing import Any

from barnabas.coord.quotas.rate import Rate
from barnabas.coord.quotas.settings import Name, QuotaSettings, QuotaTags
from barnabas.coord.quotas.token_bucket import TokenBucket
from compat.kafka.worlds import Comparison, World

NAMES: tuple[Any, ...] = ("a", "b", "c")
START_MS = 1_000_000


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


def answers(world: World) -> World:
    """Barnabas' answers."""
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
    throttled = []
    for use in world["uses"]:
        tags = settings.tags(use["user"], use["client"])
        limit, now = settings.limit(tags), use["at"]
        if limit is None:
            throttled.append(0)
        elif world["type"] == "PRODUCE":
            rate = rates.setdefault(tags, Rate(*size))
            rate.record(use["value"], now)
            throttled.append(rate.throttle_ms(limit, now))
        else:
            bucket = buckets.setdefault(tags, TokenBucket(*size))
            throttled.append(bucket.throttle_ms(limit, now))
            if not throttled[-1]:
                bucket.record(use["value"], limit, now)
    return throttled


COMPARISON = Comparison(new_world, "Quotas", answers)

if __name__ == "__main__":
    sys.exit(COMPARISON.main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
