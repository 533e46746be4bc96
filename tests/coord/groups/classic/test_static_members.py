"""G1, KIP-345: members with an instance id keep their assignments across restarts."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.context import ClientContext
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.group_driver import LATEST, Driver
from tests.support.cases import for_each

BEFORE_SKIP = ClientContext("client", "/127.0.0.1", 8)


@pytest.fixture
def pair(driver):
    """A Stable group of two static members; their ids, the leader first."""
    tickets = [driver.join(instance_id=name, settle=False) for name in ("one", "two")]
    driver.settle()
    leader, follower = (driver.answers[ticket].member_id for ticket in tickets)
    driver.sync(follower, 1, instance_id="two")
    driver.sync(leader, 1, {leader: b"l", follower: b"f"}, instance_id="one")
    return leader, follower


def test_a_follower_comes_back_without_a_rebalance(driver, pair):
    leader, follower = pair
    response = driver.answers[driver.join(instance_id="two")]
    assert response.error_code == 0
    assert response.member_id != follower
    assert (response.generation_id, response.leader, response.skip_assignment) == (1, leader, False)
    assert driver.state() is GroupState.STABLE
    ticket = driver.sync(response.member_id, 1, instance_id="two")
    assert driver.answers[ticket].assignment == b"f"


def test_the_leader_comes_back_and_is_told_not_to_assign(driver, pair):
    """KIP-814: v9 has `skip_assignment` and the members."""
    response = driver.answers[driver.join(instance_id="one")]
    assert response.leader == response.member_id
    assert response.skip_assignment is True
    assert [member.group_instance_id for member in response.members] == ["one", "two"]
    assert driver.answers[driver.sync(response.member_id, 1, instance_id="one")].assignment == b"l"
    assert driver.state() is GroupState.STABLE


def test_before_v9_the_leader_is_shown_its_former_id_as_leader(driver, pair):
    """So that it makes no assignment."""
    response = driver.answers[driver.join(instance_id="one", context=BEFORE_SKIP)]
    assert (response.leader, response.members, response.skip_assignment) == (pair[0], [], False)


def test_the_new_id_is_in_the_log(driver, pair):
    new = driver.answers[driver.join(instance_id="two")].member_id
    driver.restart()
    assert driver.group().static_members["two"] == new
    assert driver.heartbeat(new, 1, instance_id="two") == 0


def test_when_the_new_id_cannot_be_written_the_old_one_stays(driver, pair):
    driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    assert driver.code(driver.join(instance_id="two", session_ms=20_000)) is ErrorCode.NOT_COORDINATOR
    assert driver.heartbeat(pair[1], 1, instance_id="two") == 0
    assert driver.group().members[pair[1]].session_timeout_ms == 10_000
    assert driver.group().members[pair[1]].join_ticket is None


@for_each("request_name", ["heartbeat", "sync", "join", "commit", "leave"])
def test_the_old_id_is_fenced(driver, pair, request_name):
    """G1: 82."""
    _, old = pair
    driver.join(instance_id="two")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    requests = {
        "heartbeat": lambda: driver.heartbeat(old, 1, instance_id="two"),
        "sync": lambda: driver.code(driver.sync(old, 1, instance_id="two")),
        "join": lambda: driver.code(driver.join(old, instance_id="two")),
        "commit": lambda: driver.commit(member_id=old, generation=1, instance_id="two"),
        "leave": lambda: driver.leave((old, "two")).members[0].error_code,
    }
    assert requests[request_name]() == fenced


@pytest.mark.parametrize("request_name", ["heartbeat", "sync", "join", "commit"])
def test_an_instance_id_that_the_group_does_not_know_is_an_unknown_member(driver, pair, request_name):
    leader, _ = pair
    unknown = ErrorCode.UNKNOWN_MEMBER_ID
    requests = {
        "heartbeat": lambda: driver.heartbeat(leader, 1, instance_id="three"),
        "sync": lambda: driver.code(driver.sync(leader, 1, instance_id="three")),
        "join": lambda: driver.code(driver.join(leader, instance_id="three")),
        "commit": lambda: driver.commit(member_id=leader, generation=1, instance_id="three"),
    }
    assert requests[request_name]() == unknown


def test_a_follower_that_joins_with_its_id_gets_the_current_generation(driver, pair):
    response = driver.answers[driver.join(pair[1], instance_id="two")]
    assert (response.error_code, response.generation_id) == (0, 1)
    assert driver.state() is GroupState.STABLE


def test_a_change_that_keeps_the_protocol_needs_no_rebalance(driver, pair):
    driver.join(instance_id="two", names=("range", "sticky"), metadata=b"other")
    assert driver.state() is GroupState.STABLE


def test_a_change_of_the_protocol_rebalances():
    driver = Driver()
    tickets = [driver.join(instance_id=name, names=("a", "b"), settle=False) for name in ("one", "two", "three")]
    driver.settle()
    leader = driver.answers[tickets[0]].member_id
    driver.sync(leader, 1, {}, instance_id="one")
    assert driver.group().protocol == "a"
    driver.join(instance_id="two", names=("b",))
    assert driver.state() is GroupState.PREPARING_REBALANCE


def test_who_comes_back_before_the_assignment_starts_the_rebalance_over(driver):
    """The leader may be making an assignment for the replaced id."""
    tickets = [driver.join(instance_id=name, settle=False) for name in ("one", "two")]
    driver.settle()
    follower = driver.answers[tickets[1]].member_id
    parked = driver.sync(follower, 1, instance_id="two")
    driver.join(instance_id="two")
    assert driver.code(parked) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.state() is GroupState.PREPARING_REBALANCE


def test_a_parked_join_of_the_old_id_is_fenced(driver, pair):
    leader, _ = pair
    parked = driver.join(leader, instance_id="one", metadata=b"new")
    assert driver.code(parked) is None
    new = driver.join(instance_id="one", metadata=b"new")
    assert driver.code(parked) is ErrorCode.FENCED_INSTANCE_ID
    assert driver.answers[parked].member_id == leader
    assert driver.code(new) is None
    driver.join(pair[1], instance_id="two")
    assert driver.answers[new].generation_id == 2
    assert driver.answers[new].leader == driver.answers[new].member_id


def test_a_rebalance_keeps_static_members_that_did_not_come(driver, pair):
    leader, follower = pair
    driver.advance(5)
    driver.heartbeat(follower, 1, instance_id="two")
    newcomer, ticket = driver.new_member(rebalance_ms=6_000)
    again = driver.join(leader, instance_id="one", rebalance_ms=6_000, session_ms=120_000)
    for _ in range(9):
        driver.advance(7)
        driver.heartbeat(follower, 1, instance_id="two")
    assert driver.answers[ticket].generation_id == driver.answers[again].generation_id == 2
    assert follower in [member.member_id for member in driver.answers[again].members]
    assert newcomer in driver.group().members or driver.group().generation > 2


def test_an_instance_id_does_not_need_the_member_id_round_trip(driver):
    assert driver.code(driver.join(instance_id="one", context=LATEST)) is ErrorCode.NONE


def test_a_given_out_id_cannot_become_static(driver):
    pending = driver.answers[driver.join()].member_id
    assert driver.code(driver.join(pending, instance_id="one")) is ErrorCode.UNKNOWN_MEMBER_ID
