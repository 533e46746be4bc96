"""G3: one step of a member towards its target assignment, on plain values (Kafka's CurrentAssignmentBuilder)."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.reconciliation import reconciled
from barnabas.coord.groups.modern.states import MemberState
from barnabas.wire.errors import ErrorCode, KafkaError

A, B = b"a" * 16, b"b" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED


def at(epoch, *partitions):
    return {A: dict.fromkeys(partitions, epoch)} if partitions else {}


def member(state=STABLE, *, epoch=10, assigned=None, revoking=None, previous=9):
    return ConsumerMember(
        "m", epoch=epoch, previous_epoch=previous, state=state, assigned=assigned or {}, revoking=revoking or {}
    )


def step(before, epoch, target, *, owned=None, taken=(), subscribed=(A, B)):
    """One step; `taken` are partitions of topic A that other members have."""
    return reconciled(
        before,
        epoch,
        {A: frozenset(target)} if target else {},
        lambda topic_id, partition: not (topic_id == A and partition in taken),
        subscribed=frozenset(subscribed),
        owned=None if owned is None else {A: frozenset(owned)} if owned else {},
    )


def test_stable_and_nothing_new_stays_as_it_is():
    before = member(assigned=at(10, 1, 2))
    assert step(before, 10, {1, 2}) is before


def test_stable_with_the_same_partitions_enters_the_new_epoch_at_once():
    before = member(assigned=at(10, 1, 2))
    assert step(before, 11, {1, 2}) == member(epoch=11, previous=10, assigned=at(10, 1, 2))


def test_new_partitions_carry_the_epoch_in_which_they_came():
    before = member(assigned=at(10, 1))
    after = step(before, 11, {1, 2})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 11, {A: {1: 10, 2: 11}})


def test_what_has_to_go_goes_first_and_nothing_new_comes_meanwhile():
    before = member(assigned=at(10, 1, 2))
    after = step(before, 11, {2, 3})
    assert after == member(UNREVOKED, epoch=10, previous=10, assigned=at(10, 2), revoking=at(10, 1))


def test_who_never_had_what_has_to_go_passes_at_once():
    """The response that assigned it was lost: the heartbeat does not list it."""
    before = member(assigned=at(10, 1, 2))
    after = step(before, 11, {2, 3}, owned={2})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 11, {A: {2: 10, 3: 11}})


@pytest.mark.parametrize("owned", [None, {1}, {1, 2}])
def test_who_still_has_it_or_does_not_tell_stays_unrevoked(owned):
    before = member(UNREVOKED, assigned=at(10, 2), revoking=at(10, 1))
    assert step(before, 11, {2, 3}, owned=owned) is before


@pytest.mark.parametrize("owned", [(), {2}])
def test_who_gave_it_up_enters_the_new_epoch(owned):
    before = member(UNREVOKED, assigned=at(10, 2), revoking=at(10, 1))
    after = step(before, 11, {2, 3}, owned=owned)
    assert after == member(epoch=11, previous=10, assigned={A: {2: 10, 3: 11}})


def test_after_giving_up_there_may_be_more_to_give_up():
    before = member(UNREVOKED, assigned=at(10, 2, 3), revoking=at(10, 1))
    after = step(before, 12, {3}, owned={2, 3})
    assert after == member(UNREVOKED, epoch=10, previous=10, assigned=at(10, 3), revoking=at(10, 2))


def test_what_others_have_is_waited_for():
    before = member(assigned=at(10, 1))
    after = step(before, 11, {1, 2, 3}, taken={3})
    assert (after.state, after.epoch, after.assigned) == (UNRELEASED, 11, {A: {1: 10, 2: 11}})
    assert step(after, 11, {1, 2, 3}, taken={3}).assigned == after.assigned
    after = step(after, 11, {1, 2, 3})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 11, {A: {1: 10, 2: 11, 3: 11}})


def test_all_of_it_may_be_elsewhere():
    after = step(member(epoch=0, previous=0), 11, {1}, taken={1})
    assert (after.state, after.epoch, after.assigned) == (UNRELEASED, 11, {})


def test_who_waits_may_have_to_give_up_for_a_newer_target():
    before = member(UNRELEASED, epoch=11, previous=10, assigned=at(11, 1, 2))
    after = step(before, 12, {1}, taken={3})
    assert after == member(UNREVOKED, epoch=11, previous=11, assigned=at(11, 1), revoking=at(11, 2))


def test_a_target_that_is_gone_is_waited_for_no_more():
    before = member(UNRELEASED, epoch=11, previous=10, assigned=at(11, 1))
    after = step(before, 12, {1}, taken={3})
    assert (after.state, after.epoch) == (STABLE, 12)


def test_a_topic_not_read_any_more_goes_before_there_is_a_new_target():
    before = member(assigned={**at(10, 1), B: {0: 8}})
    after = step(before, 10, {1}, subscribed={A})
    assert after == member(UNREVOKED, epoch=10, previous=10, assigned=at(10, 1), revoking={B: {0: 8}})


def test_and_is_not_given_by_an_older_target():
    before = member(epoch=9, assigned={})
    after = step(before, 10, {1}, subscribed={B})
    assert (after.state, after.epoch, after.assigned) == (STABLE, 10, {})


def test_while_giving_up_more_may_be_unsubscribed():
    before = member(UNREVOKED, assigned={**at(10, 2), B: {0: 8}}, revoking=at(10, 1))
    after = step(before, 11, {2}, subscribed={A})
    assert (after.state, after.assigned, after.revoking) == (UNREVOKED, at(10, 2), {**at(10, 1), B: {0: 8}})
    after = step(before, 11, {2}, owned={1, 2}, subscribed={A})
    assert (after.state, after.assigned, after.revoking) == (UNREVOKED, at(10, 2), at(10, 1)), "it never had B"


@pytest.mark.parametrize("owned", [None, {1}])
def test_an_unknown_state_is_fenced(owned):
    with pytest.raises(KafkaError) as refused:
        step(member(MemberState.UNKNOWN, assigned=at(10, 1)), 11, {1}, owned=owned)
    assert refused.value.code == ErrorCode.FENCED_MEMBER_EPOCH


def test_an_unknown_state_without_partitions_starts_over():
    after = step(member(MemberState.UNKNOWN, assigned=at(10, 1)), 11, {1, 2}, owned=())
    assert (after.state, after.epoch, after.assigned) == (STABLE, 11, {A: {1: 10, 2: 11}})
