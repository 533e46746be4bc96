"""Assigns random groups with Apache Kafka's assignors, for tests without Java.

    python -m compat.kafka.make_assignments tests/data/kafka-4.4.0-assignments.jsonl.gz

Each line is a group, the name of the assignor and Kafka's assignment. Half of the groups are new; the others are the
first half after members joined, left or changed their subscription, and topics grew.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from pathlib import Path
from typing import Any

from barnabas.wire.types import uuid_to_text
from compat.kafka.programs import run_program

SEED = 848
GROUPS = 40

Group = dict[str, Any]


def new_group(random_: random.Random, assignor: str) -> Group:
    """A group without an assignment; in half of the groups all members read the same topics."""
    topics = {uuid_to_text(random_.randbytes(16)): random_.randint(1, 20) for _ in range(random_.randint(1, 6))}
    common = random_.sample(sorted(topics), random_.randint(1, len(topics))) if random_.random() < 0.5 else None
    members = {name: new_member(random_, topics, common) for name in member_names(random_, random_.randint(1, 12))}
    return {"assignor": assignor, "topics": topics, "members": members}


def member_names(random_: random.Random, count: int) -> list[str]:
    return [uuid_to_text(random_.randbytes(16)) for _ in range(count)]


def new_member(random_: random.Random, topics: dict[str, int], common: list[str] | None) -> dict[str, Any]:
    subscribed = common or random_.sample(sorted(topics), random_.randint(1, len(topics)))
    instance = f"instance-{random_.randint(0, 10**9)}" if random_.random() < 0.2 else None
    return {"instance": instance, "subscribed": sorted(subscribed), "assigned": {}}


def changed(random_: random.Random, group: Group) -> Group:
    """A group with Kafka's assignment, after one or two of: a member leaves, a member joins, a topic grows."""
    members = {name: member | {"assigned": group["assignment"][name]} for name, member in group["members"].items()}
    topics = dict(group["topics"])
    subscriptions = {tuple(member["subscribed"]) for member in members.values()}
    common = list(subscriptions.pop()) if len(subscriptions) == 1 else None
    for change in random_.sample(["leave", "join", "grow"], random_.randint(1, 2)):
        if change == "leave" and len(members) > 1:
            del members[random_.choice(sorted(members))]
        elif change == "join":
            members |= {name: new_member(random_, topics, common) for name in member_names(random_, 2)}
        elif change == "grow":
            topics[random_.choice(sorted(topics))] += random_.randint(1, 5)
    return {"assignor": group["assignor"], "topics": topics, "members": members}


def assigned_by_kafka(groups: list[Group]) -> list[Group]:
    """The groups with Kafka's assignments."""
    lines = run_program("Assignments", stdin="".join(json.dumps(group) + "\n" for group in groups))
    return [json.loads(line) for line in lines if line.startswith("{")]


def main(target: Path) -> None:
    """Write the groups to `target`."""
    random_ = random.Random(SEED)
    first = assigned_by_kafka(
        [new_group(random_, assignor) for assignor in ("range", "uniform", "simple") for _ in range(GROUPS)]
    )
    second = assigned_by_kafka([changed(random_, group) for group in first])
    with gzip.open(target, "wt") as file:
        file.writelines(json.dumps(group) + "\n" for group in first + second)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
