"""G3: static members of consumer groups, which leave temporarily and return with a new member id (KIP-345, KIP-848)."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.consumer.states import ConsumerGroupState
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import Client, ConsumerDriver, given, settle

T = topic_id("t")
E = ErrorCode


@pytest.fixture
def driver():
    return ConsumerDriver(GroupTopics(t=6, u=3))


@pytest.fixture
def pair(driver):
    first, second = Client(driver, "m1", instance_id="i1"), Client(driver, "m2", instance_id="i2")
    settle(first, second)
    return first, second


def test_a_member_that_is_away_keeps_its_partitions(driver, pair):
    first, second = pair
    epoch = driver.group().epoch
    response = driver.beat("m1", -2, instance_id="i1")
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m1", -2)
    member = driver.group().members["m1"]
    assert member.epoch == -2
    assert member.assigned == {T: dict.fromkeys(first.owned[T], 0)}, "its partitions are as old as time"
    second.beat()
    assert driver.group().epoch == epoch
    assert len(second.partitions) == 3


def test_it_comes_back_under_a_new_id_without_a_rebalance(driver, pair):
    first, second = pair
    epoch = driver.group().epoch
    driver.beat("m1", -2, instance_id="i1")
    response = driver.beat("m9", 0, instance_id="i1")
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m9", epoch)
    assert given(response) == first.owned
    group = driver.group()
    assert group.epoch == epoch
    assert set(group.members) == {"m9", "m2"} == set(group.target)
    assert group.static_members == {"i1": "m9", "i2": "m2"}
    assert group.state is ConsumerGroupState.STABLE
    assert second.beat().assignment is None


def test_with_another_subscription_it_is_a_change_like_any_other(driver, pair):
    epoch = driver.group().epoch
    driver.beat("m1", -2, instance_id="i1")
    response = driver.beat("m9", 0, instance_id="i1", subscribed_topic_names=["t", "u"])
    assert response.error_code == 0
    assert driver.group().epoch == epoch + 1


def test_an_instance_id_in_use_is_not_released(driver, pair):
    """Not even to its own member, whose response was lost: it waits until its session has expired."""
    for member_id in ("m9", "m1"):
        response = driver.beat(member_id, 0, instance_id="i1")
        assert response.error_code == E.UNRELEASED_INSTANCE_ID
        assert response.error_message.endswith("because the instance id is owned by m1 member.")
    assert set(driver.group().members) == {"m1", "m2"}


def test_the_old_member_id_is_fenced(driver, pair):
    driver.beat("m1", -2, instance_id="i1")
    driver.beat("m9", 0, instance_id="i1")
    assert driver.beat("m1", pair[0].epoch, instance_id="i1").error_code == E.FENCED_INSTANCE_ID
    assert driver.beat("m1", -1, instance_id="i1").error_code == E.FENCED_INSTANCE_ID
    assert driver.beat("m1", -2, instance_id="i1").error_code == E.FENCED_INSTANCE_ID
    assert driver.beat("m1", pair[0].epoch).error_code == E.UNKNOWN_MEMBER_ID


def test_an_unknown_instance_id_is_an_unknown_member(driver, pair):
    for epoch in (1, -1, -2):
        assert driver.beat("m1", epoch, instance_id="other").error_code == E.UNKNOWN_MEMBER_ID


def test_who_stays_away_is_out_after_its_session(driver, pair):
    _, second = pair
    driver.beat("m1", -2, instance_id="i1")
    driver.advance(44)
    second.beat()
    assert set(driver.group().members) == {"m1", "m2"}
    driver.advance(1)
    assert set(driver.group().members) == {"m2"}
    settle(second)
    assert len(second.partitions) == 6


def test_leaving_for_good_is_leaving(driver, pair):
    _, second = pair
    assert driver.beat("m1", -1, instance_id="i1").error_code == 0
    assert set(driver.group().members) == {"m2"}
    settle(second)
    assert len(second.partitions) == 6


def test_away_while_it_gives_up_partitions_frees_them(driver):
    first = Client(driver, "m1", instance_id="i1")
    settle(first)
    second = Client(driver, "m2")
    second.beat()
    first.beat()
    assert driver.group().members["m1"].revoking
    driver.beat("m1", -2, instance_id="i1")
    settle(second)
    assert len(second.partitions) == 3
    driver.advance(6)
    assert "m1" in driver.group().members, "the time to give up partitions is not counted any more"


def test_all_of_it_survives_a_restart(driver, pair):
    driver.beat("m1", -2, instance_id="i1")
    driver.restart()
    response = driver.beat("m9", 0, instance_id="i1")
    assert given(response) == pair[0].owned


def test_a_replacement_that_cannot_be_written_leaves_the_old_member(driver, pair):
    driver.beat("m1", -2, instance_id="i1")
    driver.append_error = E.NOT_ENOUGH_REPLICAS
    assert driver.beat("m9", 0, instance_id="i1").error_code == E.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert set(driver.group().members) == {"m1", "m2"}
    assert given(driver.beat("m9", 0, instance_id="i1")) == pair[0].owned
