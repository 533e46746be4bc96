"""G1: JoinGroup, from the first member to the generation that follows."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.context import ClientContext
from barnabas.coord.machine import Moment
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.records.coordinator_records import GroupMetadataValue
from tests.coord.groups.group_driver import LATEST, OLD, Driver
from tests.support.cases import for_each


@for_each(
    ("options", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_ms": 5_999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_cannot_be_is_refused_and_leaves_no_group(driver, options, error):
    """G1: 24, 26, 25, 23."""
    assert driver.code(driver.join(**options)) is error
    assert driver.coordinator.groups == {}
    assert driver.log == []


def test_a_join_with_a_wrong_protocol_leaves_an_empty_group(driver):
    """G1: 23. As in Kafka the group is there until a restart, since it has no record."""
    for options in ({"names": ()}, {"protocol_type": ""}):
        assert driver.code(driver.join(**options)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert driver.state() is GroupState.EMPTY
        assert driver.log == []
    driver.restart()
    assert driver.coordinator.groups == {}


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_of_the_session_timeout_are_allowed(driver, session_ms):
    """G1: group.min.session.timeout.ms and group.max.session.timeout.ms."""
    assert driver.code(driver.join(session_ms=session_ms)) is ErrorCode.MEMBER_ID_REQUIRED


def test_a_new_member_is_given_an_id_to_come_back_with(driver):
    """G1: 79 from v4 on; the id starts with the client id."""
    response = driver.answers[driver.join()]
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert response.member_id == "client-id1"
    assert driver.group().members == {}
    ticket = driver.join(response.member_id)
    assert driver.answers[ticket].member_id == response.member_id
    assert driver.answers[ticket].generation_id == 1


def test_an_old_client_is_let_in_at_once(driver):
    """G1: no 79 up to v3."""
    response = driver.answers[driver.join(context=OLD)]
    assert (response.error_code, response.generation_id) == (0, 1)


def test_version_0_has_its_session_timeout_as_rebalance_timeout(driver):
    driver.join(context=ClientContext("c", "/h", 0), rebalance_ms=-1, session_ms=7_000)
    assert next(iter(driver.group().members.values())).rebalance_timeout_ms == 7_000


def test_a_static_member_is_let_in_at_once_under_an_id_of_its_instance(driver):
    """G1: KIP-345."""
    response = driver.answers[driver.join(instance_id="i")]
    assert (response.error_code, response.member_id) == (0, "i-id1")


def test_only_the_leader_is_told_who_is_there(driver):
    tickets = [driver.join(context=OLD, settle=False, metadata=name) for name in (b"a", b"b", b"c")]
    driver.settle()
    first, *others = [driver.answers[ticket] for ticket in tickets]
    assert [(member.member_id, member.metadata) for member in first.members] == [
        (first.member_id, b"a"),
        (others[0].member_id, b"b"),
        (others[1].member_id, b"c"),
    ]
    assert {response.leader for response in (first, *others)} == {first.member_id}
    assert [response.members for response in others] == [[], []]
    assert {response.protocol_name for response in (first, *others)} == {"range"}
    assert {response.protocol_type for response in (first, *others)} == {"consumer"}


def test_a_group_is_in_the_log_from_its_first_join_on(driver):
    driver.join()
    assert len(driver.log) == 1
    driver.restart()
    assert driver.state() is GroupState.EMPTY
    assert driver.group().generation == 0


def test_when_the_first_record_cannot_be_written_the_member_hears_of_it(driver):
    driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    assert driver.code(driver.join()) is ErrorCode.NOT_COORDINATOR
    assert driver.code(driver.join(context=OLD)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.coordinator.groups == {}
    assert driver.coordinator.next_deadline() is None


class TestFirstRebalance:
    """G1: group.initial.rebalance.delay.ms."""

    def test_waits_the_delay_for_others_to_come(self):
        driver = Driver(initial_rebalance_delay_ms=3_000)
        _, ticket = driver.new_member()
        driver.advance(2.999)
        assert driver.code(ticket) is None
        driver.advance(0.001)
        assert driver.code(ticket) is ErrorCode.NONE

    def test_waits_again_while_new_members_come(self):
        driver = Driver(initial_rebalance_delay_ms=3_000)
        tickets = [driver.new_member()[1]]
        for _ in range(2):
            driver.advance(2.5)
            tickets.append(driver.new_member()[1])
        driver.advance(3.999)  # 8.999 s: the delay expired at 3 and 6 s, each time with a new member
        assert [driver.code(ticket) for ticket in tickets] == [None] * 3
        driver.advance(0.001)
        assert [driver.code(ticket) for ticket in tickets] == [ErrorCode.NONE] * 3
        assert driver.group().generation == 1

    def test_waits_no_longer_than_the_rebalance_timeout(self):
        driver = Driver(initial_rebalance_delay_ms=3_000)
        _, ticket = driver.new_member(rebalance_ms=7_000)
        for _ in range(6):
            driver.advance(1)
            driver.new_member(rebalance_ms=7_000)
        driver.advance(0.999)
        assert driver.code(ticket) is None
        driver.advance(0.001)
        assert driver.code(ticket) is ErrorCode.NONE

    def test_is_over_with_an_empty_group_when_all_have_left_meanwhile(self):
        driver = Driver(initial_rebalance_delay_ms=3_000)
        member, ticket = driver.new_member()
        driver.leave(member)
        assert driver.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        driver.advance(3)
        assert driver.state() is GroupState.EMPTY
        assert driver.group().generation == 1


class TestRejoining:
    def test_a_new_member_makes_the_others_join_again(self, driver):
        (leader,) = driver.stable()
        _, ticket = driver.new_member()
        assert driver.state() is GroupState.PREPARING_REBALANCE
        assert driver.code(ticket) is None
        assert driver.heartbeat(leader, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        again = driver.join(leader)
        assert driver.answers[again].generation_id == 2
        assert driver.answers[ticket].generation_id == 2
        assert driver.answers[ticket].leader == leader

    def test_a_follower_that_changed_nothing_gets_the_current_generation(self, driver):
        _, follower = driver.stable(2)
        response = driver.answers[driver.join(follower)]
        assert (response.error_code, response.generation_id, response.members) == (0, 1, [])
        assert driver.state() is GroupState.STABLE

    def test_the_leader_of_a_stable_group_makes_a_new_generation(self, driver):
        leader, follower = driver.stable(2)
        ticket = driver.join(leader)
        assert driver.state() is GroupState.PREPARING_REBALANCE
        driver.join(follower)
        assert driver.answers[ticket].generation_id == 2

    @pytest.mark.parametrize("changed", [{"metadata": b"new"}, {"names": ("range", "sticky")}])
    def test_new_metadata_makes_a_new_generation(self, driver, changed):
        leader, follower = driver.stable(2)
        driver.join(follower, **changed)
        assert driver.state() is GroupState.PREPARING_REBALANCE
        response = driver.answers[driver.join(leader)]
        assert response.generation_id == 2

    @pytest.mark.parametrize("index", [0, 1])
    def test_before_the_assignment_a_member_may_ask_again_for_its_generation(self, driver, index):
        """Its response was lost; the leader gets the members again."""
        members = driver.joined(2)
        response = driver.answers[driver.join(members[index])]
        assert (response.error_code, response.generation_id) == (0, 1)
        assert len(response.members) == (2 if index == 0 else 0)
        assert driver.state() is GroupState.COMPLETING_REBALANCE

    def test_new_metadata_before_the_assignment_sends_those_that_wait_for_it_back(self, driver):
        leader, follower = driver.joined(2)
        ticket = driver.sync(follower, 1)
        driver.join(leader, metadata=b"new")
        assert driver.code(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.state() is GroupState.PREPARING_REBALANCE

    def test_a_second_join_of_a_waiting_member_replaces_the_first(self, driver):
        driver.stable()
        member, first = driver.new_member()
        second = driver.join(member)
        assert driver.code(first) is ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.code(second) is None

    def test_a_member_of_an_empty_group_is_unknown(self, driver):
        (member,) = driver.stable()
        driver.leave(member)
        assert driver.state() is GroupState.EMPTY
        assert driver.code(driver.join(member)) is ErrorCode.UNKNOWN_MEMBER_ID


class TestRebalanceTimeout:
    def test_members_that_do_not_come_back_are_out(self, driver):
        leader, follower = driver.stable(2, session_ms=600_000)
        ticket = driver.join(leader)
        driver.advance(59.999)
        assert driver.code(ticket) is None
        driver.advance(0.001)
        assert driver.answers[ticket].generation_id == 2
        assert [member.member_id for member in driver.answers[ticket].members] == [leader]
        assert driver.heartbeat(follower, 2) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_largest_of_the_members_counts(self, driver):
        driver.new_member(settle=False, session_ms=600_000, rebalance_ms=90_000)
        leader = next(iter(driver.group().members))
        driver.settle()
        driver.sync(leader, 1, {leader: b""})
        _, ticket = driver.new_member(rebalance_ms=20_000)
        driver.advance(89.999)
        assert driver.code(ticket) is None
        driver.advance(0.001)
        assert driver.code(ticket) is ErrorCode.NONE

    def test_who_has_joined_leads_when_the_leader_did_not_come(self, driver):
        _, follower = driver.stable(2, session_ms=600_000)
        ticket = driver.join(follower, metadata=b"new")
        driver.advance(60)
        assert driver.answers[ticket].leader == follower

    def test_a_given_out_id_is_waited_for_until_its_session_is_over(self, driver):
        (leader,) = driver.stable(session_ms=600_000)
        driver.join(session_ms=6_000)  # gets an id and does not join with it
        ticket = driver.join(leader)
        driver.advance(5.999)
        assert driver.code(ticket) is None
        driver.advance(0.001)
        assert driver.code(ticket) is ErrorCode.NONE

    def test_nobody_came_back_but_static_members_stay_until_their_sessions_end(self, driver):
        ticket = driver.join(instance_id="i", session_ms=100_000, rebalance_ms=10_000)
        leader = driver.answers[ticket].member_id
        driver.sync(leader, 1, {leader: b""}, instance_id="i")
        newcomer, _ = driver.new_member(rebalance_ms=10_000)
        driver.leave(newcomer)
        driver.advance(50)
        assert driver.state() is GroupState.PREPARING_REBALANCE
        driver.advance(50)
        assert driver.state() is GroupState.EMPTY

    def test_a_new_member_waits_five_minutes_at_most(self, driver):
        driver.stable(session_ms=1_000_000, rebalance_ms=1_000_000)
        _, ticket = driver.new_member(session_ms=1_000_000)
        driver.advance(299)
        assert driver.code(ticket) is None
        driver.advance(1)
        assert driver.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID
        assert driver.answers[ticket].member_id == ""


class TestMaxSize:
    """G1: group.max.size, 81."""

    def test_a_full_group_takes_nobody_new(self):
        driver = Driver(max_size=2)
        driver.stable(2)
        assert driver.code(driver.join()) is ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_the_limit_holds_while_members_join(self):
        driver = Driver(max_size=2)
        for _ in range(2):
            driver.new_member(settle=False)
        assert driver.code(driver.join(settle=False)) is ErrorCode.GROUP_MAX_SIZE_REACHED

    def test_members_of_a_full_group_may_join_again(self):
        driver = Driver(max_size=2)
        leader, follower = driver.stable(2)
        assert driver.code(driver.join(follower)) is ErrorCode.NONE
        driver.join(leader)
        ticket = driver.join(follower)
        assert driver.answers[ticket].generation_id == 2

    def test_a_group_loaded_over_a_lowered_limit_loses_the_last_to_come(self):
        driver = Driver()
        members = driver.stable(3)
        driver.config.max_size = 2
        driver.restart()
        assert driver.state() is GroupState.PREPARING_REBALANCE
        first, second = driver.join(members[2]), driver.join(members[1])
        assert driver.code(driver.join(members[0])) is ErrorCode.GROUP_MAX_SIZE_REACHED
        driver.advance(60)
        assert {driver.code(first), driver.code(second)} == {ErrorCode.NONE}
        assert set(driver.group().members) == {members[1], members[2]}


class TestProtocols:
    def test_the_most_voted_of_those_all_support_is_chosen(self, driver):
        tickets = [
            driver.join(context=OLD, settle=False, names=names)
            for names in [("a", "b", "c"), ("c", "b"), ("b", "c"), ("d", "c", "b")]
        ]
        driver.settle()
        assert {driver.answers[ticket].protocol_name for ticket in tickets} <= {"b", "c"}
        assert driver.group().protocol == "b" or driver.group().protocol == "c"

    def test_a_vote_goes_to_the_first_that_all_support(self, driver):
        for names in [("a", "b"), ("a", "b"), ("b", "a")]:
            driver.join(context=OLD, settle=False, names=names)
        driver.settle()
        assert driver.group().protocol == "a"

    @pytest.mark.parametrize("other", [{"names": ("sticky",)}, {"protocol_type": "connect"}])
    @pytest.mark.parametrize("known", [False, True])
    def test_who_shares_no_protocol_with_all_members_is_refused(self, driver, other, known):
        """G1: 23."""
        _, follower = driver.stable(2)
        member = follower if known else ""
        assert driver.code(driver.join(member, **other)) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert driver.state() is GroupState.STABLE

    def test_cooperative_members_upgrade_through_a_shared_protocol(self, driver):
        """KIP-429: two rolling bounces, from range to cooperative-sticky."""
        first, second = driver.stable(2)
        driver.join(first, names=("cooperative-sticky", "range"))
        driver.join(second)
        assert driver.group().protocol == "range"
        driver.sync(first, 2, {})
        driver.join(second, names=("cooperative-sticky", "range"))
        driver.join(first, names=("cooperative-sticky",))
        assert driver.group().protocol == "cooperative-sticky"

    def test_an_emptied_group_may_change_its_protocol_type(self, driver):
        (member,) = driver.stable()
        driver.leave(member)
        _, ticket = driver.new_member(protocol_type="connect", names=("v0",))
        response = driver.answers[ticket]
        assert (response.protocol_type, response.protocol_name, response.generation_id) == ("connect", "v0", 3)


def test_a_dead_group_answers_that_the_coordinator_is_not_available(driver):
    (member,) = driver.stable()
    group = driver.group()
    group.become(GroupState.DEAD, Moment(0, 0))
    unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.code(driver.join(member)) is unavailable
    assert driver.code(driver.join(context=LATEST)) is unavailable
    assert driver.code(driver.sync(member, 1)) is unavailable
    assert driver.heartbeat(member, 1) == unavailable
    assert driver.leave(member).error_code == unavailable
    assert driver.commit(member_id=member, generation=1) == unavailable
    assert driver.delete_group() == ErrorCode.GROUP_ID_NOT_FOUND
    assert driver.delete_offsets()[0] == ErrorCode.GROUP_ID_NOT_FOUND


def test_the_record_of_a_group_says_what_the_first_generation_was(driver):
    driver.stable(2)
    value = GroupMetadataValue.decode(driver.log[-1][1][2:], 3)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == (
        "consumer",
        1,
        "range",
        "client-id1",
    )
    assert [(member.member_id, member.assignment, member.subscription) for member in value.members] == [
        ("client-id1", b"for client-id1", b"meta"),
        ("client-id2", b"for client-id2", b"meta"),
    ]


def test_answers_are_made_when_they_are_sent_of_what_the_group_was(driver):
    """Responses to thousands of members take long: each is made in its turn, and the group may go on meanwhile."""
    tickets = [driver.join(context=OLD, settle=False, metadata=name) for name in (b"a", b"b", b"c")]
    while not (result := driver.coordinator.tick(driver.at)).replies:
        driver.now = driver.coordinator.next_deadline()
    assert [reply.ticket for reply in result.replies] == tickets
    assert all(callable(reply.message) for reply in result.replies)
    first = next(iter(driver.group().members))
    driver.group().remove(first)
    driver.group().generation += 1
    answers = [reply.made() for reply in result.replies]
    assert {(response.generation_id, response.leader) for response in answers} == {(1, first)}
    assert [member.metadata for member in answers[0].members] == [b"a", b"b", b"c"]
