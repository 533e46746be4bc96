"""Properties of every assignment: complete, allowed, even, sticky and a function of the input (G4)."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from barnabas.coord.groups.assignors import range as range_assignor
from barnabas.coord.groups.assignors import simple, uniform
from barnabas.coord.groups.assignors.spec import MemberSpec
from tests.support.volume import how_many

EXAMPLES = how_many("BARNABAS_EXAMPLES", 20)
TOPICS = [bytes([number]) * 16 for number in range(1, 7)]
EXCLUSIVE = [uniform.assign, range_assignor.assign]

sizes = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), min_size=1)
names = st.lists(st.sampled_from([f"m{number}" for number in range(9)]), unique=True, min_size=1)
current = st.dictionaries(
    st.sampled_from([*TOPICS, b"gone" * 4]), st.frozensets(st.integers(0, 14), min_size=1, max_size=8), max_size=4
)


@st.composite
def groups(draw, same):
    """Members with any present targets, including partitions with two owners; and the topics."""
    topics = draw(sizes)
    subscriptions = st.frozensets(st.sampled_from(TOPICS), max_size=len(TOPICS))
    common = draw(subscriptions)
    members = {
        name: MemberSpec(
            common if same else draw(subscriptions), draw(current), draw(st.sampled_from([None, "i" + name]))
        )
        for name in draw(names)
    }
    return members, topics


any_group = groups(same=True) | groups(same=False)


def pieces(partitions):
    return {(topic, index) for topic, indexes in partitions.items() for index in indexes}


def subscribers(members, topic):
    return [name for name, member in members.items() if topic in member.subscribed]


def with_targets(members, assignment):
    return {name: member._replace(assigned=assignment[name]) for name, member in members.items()}


def loads(assignment):
    return {name: len(pieces(partitions)) for name, partitions in assignment.items()}


def check_allowed(members, topics, assignment):
    """Every member is in it, with existing partitions of topics that it subscribes to; no empty sets."""
    assert assignment.keys() == members.keys()
    for name, partitions in assignment.items():
        assert partitions.keys() <= members[name].subscribed
        assert all(indexes for indexes in partitions.values())
        assert all(set(indexes) <= set(range(topics[topic])) for topic, indexes in partitions.items())


@pytest.mark.parametrize("assign", EXCLUSIVE)
@settings(max_examples=EXAMPLES)
@given(group=any_group)
def test_each_partition_goes_to_exactly_one_subscriber(assign, group):
    members, topics = group
    assignment = assign(members, topics)
    check_allowed(members, topics, assignment)
    owners = Counter(piece for partitions in assignment.values() for piece in pieces(partitions))
    assert set(owners.values()) <= {1}
    assert set(owners) == {
        (topic, index) for topic, size in topics.items() if subscribers(members, topic) for index in range(size)
    }


@pytest.mark.parametrize("assign", [*EXCLUSIVE, simple.assign])
@settings(max_examples=EXAMPLES)
@given(group=any_group, shuffle=st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_nothing(assign, group, shuffle):
    members, topics = group
    names, ids = list(members), list(topics)
    shuffle.shuffle(names)
    shuffle.shuffle(ids)
    again = assign({name: members[name] for name in names}, {topic: topics[topic] for topic in ids})
    assert again == assign(members, topics)


@pytest.mark.parametrize("assign", [*EXCLUSIVE, simple.assign])
@settings(max_examples=EXAMPLES)
@given(group=any_group)
def test_an_assignment_stays_when_nothing_changed(assign, group):
    members, topics = group
    assignment = assign(members, topics)
    assert assign(with_targets(members, assignment), topics) == assignment


@settings(max_examples=EXAMPLES)
@given(group=groups(same=True))
def test_uniform_is_even_to_one_partition(group):
    members, topics = group
    counts = loads(uniform.assign(members, topics)).values()
    assert max(counts) - min(counts) <= 1


@settings(max_examples=EXAMPLES)
@given(group=groups(same=True))
def test_uniform_moves_as_few_partitions_as_an_even_assignment_can(group):
    members, topics = group
    claims: dict = {}
    for name in sorted(members):
        for piece in pieces(members[name].assigned):
            topic, index = piece
            if topic in members[name].subscribed and index < topics.get(topic, 0):
                claims.setdefault(piece, name)
    total = sum(size for topic, size in topics.items() if subscribers(members, topic))
    quota, extra = divmod(total, len(members))
    held = Counter(claims.values())
    most_kept = sum(min(count, quota) for count in held.values())
    most_kept += min(extra, sum(count > quota for count in held.values()))
    assignment = uniform.assign(members, topics)
    assert sum((piece in pieces(assignment[name])) for piece, name in claims.items()) == most_kept


@settings(max_examples=EXAMPLES)
@given(group=groups(same=False))
def test_uniform_leaves_no_single_move_that_would_even_a_mixed_group(group):
    members, topics = group
    assignment = uniform.assign(members, topics)
    counts = loads(assignment)
    for topic in topics:
        wanting = subscribers(members, topic)
        owning = [name for name in wanting if topic in assignment[name]]
        if owning:
            assert max(counts[name] for name in owning) - min(counts[name] for name in wanting) <= 1


@settings(max_examples=EXAMPLES)
@given(group=groups(same=True), gone=st.integers(0, 8))
def test_who_stays_loses_nothing_when_another_leaves(group, gone):
    members, topics = group
    before = uniform.assign(members, topics)
    staying = with_targets(members, before)
    staying.pop(sorted(members)[gone % len(members)])
    after = uniform.assign(staying, topics)
    for name in staying:
        assert pieces(before[name]) <= pieces(after[name])


@settings(max_examples=EXAMPLES)
@given(group=any_group)
def test_range_gives_each_subscriber_one_range_in_the_same_order(group):
    """G4: static members by instance id, then the others by member id; the first have at most one more."""
    members, topics = group
    assignment = range_assignor.assign(members, topics)
    order = sorted(members, key=lambda name: (members[name].instance_id is None, members[name].instance_id or "", name))
    for topic, size in topics.items():
        ranges = [sorted(assignment[name].get(topic, ())) for name in order if topic in members[name].subscribed]
        if ranges:
            assert [index for part in ranges for index in part] == list(range(size))
            assert all(0 <= len(earlier) - len(right) <= 1 for earlier, right in pairwise(ranges))
            assert len(ranges[0]) - len(ranges[-1]) <= 1


@settings(max_examples=EXAMPLES)
@given(group=groups(same=True), size=st.integers(1, 12))
def test_range_co_partitions_topics_of_one_size(group, size):
    members, topics = group
    for partitions in range_assignor.assign(members, dict.fromkeys(topics, size)).values():
        assert len(set(partitions.values())) <= 1


@settings(max_examples=EXAMPLES)
@given(group=any_group)
def test_simple_gives_every_partition_readers_and_every_member_work(group):
    members, topics = group
    assignment = simple.assign(members, topics)
    check_allowed(members, topics, assignment)
    readers = Counter(piece for partitions in assignment.values() for piece in pieces(partitions))
    for topic, size in topics.items():
        wanting = subscribers(members, topic)
        if wanting:
            counts = {readers[topic, index] for index in range(size)}
            assert len(counts) == 1
            assert 1 <= counts.pop() <= len(wanting)
    for name, member in members.items():
        assert bool(assignment[name]) == bool(member.subscribed & topics.keys())


@settings(max_examples=EXAMPLES)
@given(group=groups(same=True))
def test_simple_shares_evenly(group):
    members, topics = group
    assignment = simple.assign(members, topics)
    counts = loads(assignment).values()
    assert max(counts) - min(counts) <= 1
    partitions = sum(size for topic, size in topics.items() if subscribers(members, topic))
    if partitions:
        readers = Counter(piece for partitions in assignment.values() for piece in pieces(partitions))
        assert set(readers.values()) == {-(-len(members) // partitions)}


@settings(max_examples=EXAMPLES)
@given(group=groups(same=False))
def test_simple_shares_each_topic_of_a_mixed_group_evenly(group):
    members, topics = group
    assume(len({member.subscribed for member in members.values()}) > 1)
    assignment = simple.assign(members, topics)
    for topic in topics:
        counts = [len(assignment[name].get(topic, ())) for name in subscribers(members, topic)]
        assert not counts or max(counts) - min(counts) <= 1
