"""KIP-1071: configuring a topology: the partitions of internal topics, and errors."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.streams.internal_topics import InternalTopic, Status, configure
from barnabas.coord.groups.streams.topology import Topology
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.streams.streams_driver import sent_topology, subtopology, topic, word_count
from tests.support.cases import for_each


def configured(cluster, *subtopologies):
    return configure(Topology.from_request(sent_topology(*subtopologies)), cluster)


def created(topics):
    return {each.name: each.partitions for each in topics.missing}


def test_word_count_needs_two_topics_with_as_many_partitions_as_its_source():
    topics = configure(Topology.from_request(word_count()), GroupTopics(lines=5))
    assert created(topics) == {"words": 5, "counts": 5}
    assert not topics.is_ready
    assert topics.problem == (Status.MISSING_INTERNAL_TOPICS, "Internal topics are missing: counts, words")
    assert {name: each.task_count for name, each in topics.subtopologies.items()} == {"0": 5, "1": 5}
    assert {name: each.is_stateful for name, each in topics.subtopologies.items()} == {"0": False, "1": True}


def test_all_there():
    topics = configure(Topology.from_request(word_count()), GroupTopics(lines=5, words=5, counts=5))
    assert topics.is_ready
    assert topics.missing == ()


def test_source_topics_are_never_created():
    topics = configured(GroupTopics(a=1), subtopology("0", ["a", "c", "b"]))
    assert topics.problem == (Status.MISSING_SOURCE_TOPICS, "Source topics b, c are missing.")
    assert topics.missing == ()


def test_a_long_list_of_topics_is_cut_short():
    topics = configured(GroupTopics(), subtopology("0", [f"t{n}" for n in range(8)]))
    assert topics.problem[1] == "Source topics t0, t1, t2, t3, t4 and 3 additional topics are missing."


def test_repartition_topics_follow_the_largest_topic_of_all_writers():
    topics = configured(
        GroupTopics(small=2, large=7),
        subtopology("0", ["small"], sinks=["r"]),
        subtopology("1", ["large"], sinks=["r"]),
        subtopology("2", repartition=["r"]),
    )
    assert created(topics) == {"r": 7}


def test_one_repartition_topic_after_the_other():
    """In an order in which every number depends on a later one."""
    topics = configured(
        GroupTopics(a=3),
        subtopology("0", repartition=["r2"], changelogs=["c"]),
        subtopology("1", repartition=["r1"], sinks=["r2"]),
        subtopology("2", ["a"], sinks=["r1"]),
    )
    assert created(topics) == {"r1": 3, "r2": 3, "c": 3}


def test_a_number_of_its_own():
    topics = configured(
        GroupTopics(a=3),
        subtopology("0", ["a"], sinks=["r"]),
        subtopology("1", repartition=[topic("r", 8)], changelogs=["c"]),
    )
    assert created(topics) == {"r": 8, "c": 8}


def test_topics_that_are_joined_get_the_partitions_of_the_one_that_exists():
    topics = configured(
        GroupTopics(orders=2, customers=6),
        subtopology("0", ["orders"], sinks=["r"]),
        subtopology("1", ["customers"], repartition=["r"], changelogs=["c"], alike=[([0], [0])]),
    )
    assert created(topics) == {"r": 6, "c": 6}


def test_repartition_topics_that_are_joined_get_the_largest_number():
    topics = configured(
        GroupTopics(a=2, b=5),
        subtopology("0", ["a"], sinks=["ra"]),
        subtopology("1", ["b"], sinks=["rb"]),
        subtopology("2", repartition=["ra", "rb"], alike=[([], [0, 1])]),
    )
    assert created(topics) == {"ra": 5, "rb": 5}


@pytest.mark.parametrize(
    ("repartition", "sources", "alike", "detail"),
    [
        ([], ["a", "b"], [([0, 1], [])], "Following topics do not have the same number of partitions: [{a=2, b=5}]"),
        (
            [topic("r", 4)],
            ["a"],
            [([0], [0])],
            (
                "Number of partitions [4] of repartition topic [r] doesn't match number of partitions [2] "
                "of the source topic."
            ),
        ),
    ],
)
def test_topics_that_are_joined_but_not_alike(repartition, sources, alike, detail):
    topics = configured(
        GroupTopics(a=2, b=5),
        subtopology("0", ["a"], sinks=["r"]),
        subtopology("1", sources, repartition=repartition, alike=alike),
    )
    assert topics.problem == (Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    assert not topics.is_ready


def test_an_internal_topic_that_somebody_made_with_other_partitions():
    topics = configure(Topology.from_request(word_count()), GroupTopics(lines=5, words=5, counts=4))
    detail = "Existing topic counts has different number of partitions: expected 5, found 4"
    assert topics.problem == (Status.INCORRECTLY_PARTITIONED_TOPICS, detail)


def test_configs_and_replication_of_internal_topics():
    info = topic("counts", **{"cleanup.policy": "compact"})
    info.replication_factor = 3
    topics = configured(GroupTopics(a=1), subtopology("0", ["a"], changelogs=[info, "plain"]))
    assert topics.missing == (
        InternalTopic("counts", 1, 3, (("cleanup.policy", "compact"),)),
        InternalTopic("plain", 1, -1, ()),
    )


@for_each(
    "wrong",
    [
        [subtopology("0", ["a"]), subtopology("1", repartition=["r"])],
        [subtopology("0", repartition=["r"], sinks=["r"])],
        [subtopology("0", ["a"], alike=[([1], [])])],
        [subtopology("0", changelogs=["c"])],
    ],
    ids=["nobody writes it", "a loop", "no such topic", "reads nothing"],
)
def test_topologies_that_no_topics_could_fit(wrong):
    with pytest.raises(KafkaError) as refused:
        configured(GroupTopics(a=1), *wrong)
    assert refused.value.code is ErrorCode.STREAMS_INVALID_TOPOLOGY


def test_members_that_list_the_same_in_another_order_bring_the_same():
    some, others = subtopology("0", ["a"], changelogs=["x", "y"]), subtopology("0", ["a"], changelogs=["y", "x"])
    more = subtopology("1", ["a"])
    assert Topology.from_request(sent_topology(some, more)) == Topology.from_request(sent_topology(more, others))
    assert Topology.from_request(sent_topology(some)) != Topology.from_request(sent_topology(more))
