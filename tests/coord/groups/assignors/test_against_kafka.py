"""Compares our assignments with assignments by Kafka 4.4.0 (`compat/kafka/make_assignments.py`)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from barnabas.coord.groups.assignors import range as range_assignor
from barnabas.coord.groups.assignors import simple, uniform
from barnabas.coord.groups.assignors.spec import MemberSpec, same_subscription
from barnabas.wire.types import uuid_from_text

FILE = Path(__file__).parents[3] / "data" / "kafka-4.4.0-assignments.jsonl.gz"


def partitions_of(texts):
    return {uuid_from_text(topic): frozenset(indexes) for topic, indexes in texts.items()}


def groups(assignor):
    """Members, topics and Kafka's assignment of every group of this assignor."""
    with gzip.open(FILE, "rt") as lines:
        for group in map(json.loads, lines):
            if group["assignor"] == assignor:
                members = {
                    name: MemberSpec(
                        frozenset(map(uuid_from_text, member["subscribed"])),
                        partitions_of(member["assigned"]),
                        member["instance"],
                    )
                    for name, member in group["members"].items()
                }
                topics = {uuid_from_text(topic): size for topic, size in group["topics"].items()}
                yield members, topics, {name: partitions_of(parts) for name, parts in group["assignment"].items()}


def pieces(partitions):
    return {(topic, index) for topic, indexes in partitions.items() for index in indexes}


def kept(members, assignment):
    """The number of partitions that stay with a member that had them."""
    return sum(len(pieces(member.assigned) & pieces(assignment[name])) for name, member in members.items())


def loads(assignment):
    return sorted(len(pieces(partitions)) for partitions in assignment.values())


def test_range_is_the_same_as_kafkas():
    cases = list(groups(range_assignor.NAME))
    assert len(cases) == 80
    for members, topics, of_kafka in cases:
        assert range_assignor.assign(members, topics) == of_kafka


@pytest.mark.parametrize("assignor", [uniform, simple])
def test_members_of_one_subscription_get_as_many_as_kafka_gives_and_keep_no_fewer(assignor):
    cases = [group for group in groups(assignor.NAME) if same_subscription(group[0])]
    assert len(cases) > 30
    for members, topics, of_kafka in cases:
        ours = assignor.assign(members, topics)
        assert loads(ours) == loads(of_kafka)
        assert kept(members, ours) >= kept(members, of_kafka)


def test_mixed_uniform_groups_are_as_even_and_as_sticky_as_kafka_makes_them():
    """Both balance topic by topic, so neither is optimal in each group; the sums differ by less than 1 %."""
    cases = [group for group in groups(uniform.NAME) if not same_subscription(group[0])]
    assert len(cases) > 20
    squares_ours = squares_kafkas = kept_ours = kept_kafkas = 0
    for members, topics, of_kafka in cases:
        ours = uniform.assign(members, topics)
        squares_ours += sum(load * load for load in loads(ours))
        squares_kafkas += sum(load * load for load in loads(of_kafka))
        kept_ours += kept(members, ours)
        kept_kafkas += kept(members, of_kafka)
    assert squares_ours <= squares_kafkas * 1.01
    assert kept_ours >= kept_kafkas * 0.99
