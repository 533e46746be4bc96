"""G1: SyncGroup, Heartbeat and LeaveGroup, and sessions that expire."""

from __future__ import annotations

from barnabas.coord.groups.classic.states import GroupState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups.classic_groups import SyncGroupRequest
from tests.coord.groups.group_driver import OLD
from tests.support.cases import for_each


class TestSync:
    def test_followers_wait_for_the_assignment_of_the_leader(self, driver):
        leader, follower = driver.joined(2)
        ticket = driver.sync(follower, 1)
        assert driver.code(ticket) is None
        mine = driver.sync(leader, 1, {leader: b"l", follower: b"f"})
        assert (driver.answers[mine].assignment, driver.answers[ticket].assignment) == (b"l", b"f")
        assert driver.answers[ticket].protocol_name == "range"
        assert driver.answers[ticket].protocol_type == "consumer"
        assert driver.state() is GroupState.STABLE

    def test_who_comes_after_the_leader_is_answered_at_once(self, driver):
        leader, follower = driver.joined(2)
        driver.sync(leader, 1, {follower: b"f"})
        assert driver.answers[driver.sync(follower, 1)].assignment == b"f"

    def test_who_is_not_assigned_anything_gets_the_empty_assignment(self, driver):
        leader, follower = driver.joined(2)
        driver.sync(leader, 1, {leader: b"l"})
        assert driver.answers[driver.sync(follower, 1)].assignment == b""

    def test_the_assignment_is_in_the_log_before_anybody_gets_it(self, driver):
        """G2."""
        leader, _ = driver.joined(2)
        before = len(driver.log)
        driver.sync(leader, 1, {leader: b"l"})
        assert len(driver.log) == before + 1

    def test_who_comes_after_the_leader_hears_that_the_assignment_is_not_committed(self, driver):
        """G2: its answer waits for the record of the leader's request, which the next coordinator may not have."""
        leader, follower = driver.joined(2)
        driver.sync(leader, 1, {leader: b"l", follower: b"f"})
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=follower)
        result = driver.coordinator.classic.sync(request, "ticket", driver.at)
        assert not result.records
        failed = driver.coordinator.commit_failed(result, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert [reply.made().error_code for reply in failed.replies] == [ErrorCode.NOT_COORDINATOR]

    def test_when_the_assignment_cannot_be_written_all_hear_of_it_and_start_over(self, driver):
        leader, follower = driver.joined(2)
        ticket = driver.sync(follower, 1)
        driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
        mine = driver.sync(leader, 1, {leader: b"l"})
        assert driver.code(ticket) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert driver.code(mine) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert driver.state() is GroupState.PREPARING_REBALANCE

    @for_each(
        ("append", "told"),
        [
            (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
            (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
            (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
            (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
            (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
            (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_CONFIG),
        ],
    )
    def test_an_append_error_is_told_in_words_that_clients_know(self, driver, append, told):
        (leader,) = driver.joined()
        driver.append_error = append
        assert driver.code(driver.sync(leader, 1)) is told

    @for_each(
        ("member", "generation", "names", "error"),
        [
            ("nobody", 1, {}, ErrorCode.UNKNOWN_MEMBER_ID),
            (None, 2, {}, ErrorCode.ILLEGAL_GENERATION),
            (None, 0, {}, ErrorCode.ILLEGAL_GENERATION),
            (None, 1, {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (None, 1, {"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (None, 1, {"protocol_name": "range", "protocol_type": "consumer"}, None),
        ],
    )
    def test_who_is_not_of_this_generation_is_refused(self, driver, member, generation, names, error):
        _, follower = driver.joined(2)
        assert driver.code(driver.sync(member or follower, generation, **names)) is error

    def test_a_group_that_is_not_there_or_empty_has_no_members(self, driver):
        assert driver.code(driver.sync("m", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
        driver.commit()
        assert driver.code(driver.sync("m", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
        assert driver.code(driver.sync("m", 1, group_id="")) is ErrorCode.INVALID_GROUP_ID

    def test_during_a_rebalance_a_member_has_to_join_first(self, driver):
        _, follower = driver.stable(2)
        driver.new_member()
        assert driver.code(driver.sync(follower, 1)) is ErrorCode.REBALANCE_IN_PROGRESS

    def test_in_a_stable_group_the_assignment_can_be_asked_for_again(self, driver):
        _, follower = driver.stable(2)
        assert driver.answers[driver.sync(follower, 1)].assignment == f"for {follower}".encode()

    def test_a_second_sync_of_a_waiting_member_replaces_the_first(self, driver):
        leader, follower = driver.joined(2)
        first, second = driver.sync(follower, 1), driver.sync(follower, 1)
        assert driver.code(first) is ErrorCode.REBALANCE_IN_PROGRESS
        driver.sync(leader, 1, {follower: b"f"})
        assert driver.answers[second].assignment == b"f"

    def test_members_that_do_not_sync_in_time_are_out(self, driver):
        """Pending sync expiry: the rebalance timeout, for followers and for the leader alike."""
        leader, follower = driver.joined(2, session_ms=600_000)
        ticket = driver.sync(follower, 1)
        driver.advance(60)
        assert driver.code(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        assert leader not in driver.group().members
        again = driver.join(follower)
        assert driver.answers[again].leader == follower

    def test_a_follower_that_never_syncs_is_out_though_the_group_is_stable(self, driver):
        leader, follower = driver.joined(2, session_ms=600_000)
        driver.sync(leader, 1, {leader: b"l"})
        driver.advance(60)
        assert driver.state() is GroupState.PREPARING_REBALANCE
        assert list(driver.group().members) == [leader]
        assert driver.heartbeat(follower, 1) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_once_all_have_synced_nobody_is_put_out(self, driver):
        members = driver.stable(2, session_ms=600_000)
        driver.advance(61)
        assert driver.state() is GroupState.STABLE
        assert list(driver.group().members) == members


class TestHeartbeat:
    def test_states_and_what_a_heartbeat_answers_in_each(self, driver):
        """G1: 0, 27, 25, 22."""
        leader, follower = driver.joined(2)
        assert driver.heartbeat(leader, 1) == ErrorCode.NONE
        driver.sync(leader, 1, {})
        assert driver.heartbeat(leader, 1) == ErrorCode.NONE
        assert driver.heartbeat(leader, 2) == ErrorCode.ILLEGAL_GENERATION
        assert driver.heartbeat("nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
        driver.new_member()
        assert driver.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.heartbeat(follower, 1, group_id="other") == ErrorCode.UNKNOWN_MEMBER_ID
        assert driver.heartbeat(follower, 1, group_id="") == ErrorCode.INVALID_GROUP_ID

    def test_a_given_out_id_is_no_member_yet(self, driver):
        driver.stable()
        pending = driver.answers[driver.join()].member_id
        assert driver.heartbeat(pending, 1) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_silence_ends_the_membership(self, driver):
        leader, follower = driver.stable(2)
        driver.advance(9.999)
        assert driver.heartbeat(follower, 1) == ErrorCode.NONE
        driver.advance(0.001)
        assert driver.state() is GroupState.PREPARING_REBALANCE
        assert list(driver.group().members) == [follower]
        assert driver.group().leader == follower
        assert driver.heartbeat(leader, 1) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_last_silence_empties_the_group(self, driver):
        driver.stable()
        driver.advance(10)
        assert driver.state() is GroupState.EMPTY
        assert driver.group().generation == 2
        driver.restart()
        assert (driver.state(), driver.group().generation) == (GroupState.EMPTY, 2)

    def test_commits_keep_a_session_alive(self, driver):
        (member,) = driver.stable()
        for _ in range(5):
            driver.advance(9)
            assert driver.commit(member_id=member, generation=1) == ErrorCode.NONE
        assert driver.state() is GroupState.STABLE

    def test_who_waits_for_others_need_not_send_heartbeats(self, driver):
        leader, follower = driver.stable(2, session_ms=10_000, rebalance_ms=60_000)
        ticket = driver.join(leader)
        for _ in range(5):
            driver.advance(9)
            assert driver.heartbeat(follower, 1) == ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.code(ticket) is None
        assert leader in driver.group().members

    def test_who_waited_for_an_assignment_in_vain_has_a_session_again(self, driver):
        """Its session expired without effect while the request was parked; it starts again with the response."""
        leader, follower = driver.joined(2)
        ticket = driver.sync(follower, 1)
        driver.advance(9)
        driver.heartbeat(leader, 1)
        driver.advance(2)
        driver.new_member()
        assert driver.code(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        driver.advance(9.999)
        assert follower in driver.group().members
        driver.advance(0.001)
        assert follower not in driver.group().members

    def test_the_session_starts_anew_with_the_assignment(self, driver):
        leader, follower = driver.joined(2)
        driver.sync(follower, 1)
        for _ in range(3):
            driver.advance(9)
            driver.heartbeat(leader, 1)
        driver.sync(leader, 1, {})
        driver.advance(9.999)
        assert driver.state() is GroupState.STABLE
        driver.advance(0.001)
        assert driver.state() is not GroupState.STABLE


class TestLeave:
    def test_the_others_rebalance_at_once(self, driver):
        leader, follower = driver.stable(2)
        response = driver.leave(leader)
        assert response.error_code == 0
        assert [(gone.member_id, gone.error_code) for gone in response.members] == [(leader, 0)]
        assert driver.state() is GroupState.PREPARING_REBALANCE
        ticket = driver.join(follower)
        assert driver.answers[ticket].leader == follower
        assert driver.answers[ticket].generation_id == 2

    def test_the_last_one_leaves_an_empty_group_in_the_log(self, driver):
        (member,) = driver.stable()
        driver.commit(5, member_id=member, generation=1)
        driver.leave(member)
        assert driver.state() is GroupState.EMPTY
        driver.restart()
        assert driver.state() is GroupState.EMPTY
        assert driver.fetch()[0] == 5

    def test_a_batch_is_answered_one_by_one(self, driver):
        """KIP-345: v3 and up."""
        leader, follower = driver.stable(2)
        static = driver.join(instance_id="i")
        driver.join(leader)
        driver.join(follower)
        static_id = driver.answers[static].member_id
        pending = driver.answers[driver.join()].member_id
        response = driver.leave(
            follower, "nobody", ("", "i"), ("", "j"), (leader, "k"), ("", None), pending, (static_id, "i")
        )
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        expected = [0, unknown, 0, unknown, unknown, unknown, 0, unknown]
        assert [gone.error_code for gone in response.members] == expected
        assert list(driver.group().members) == [leader]

    def test_a_static_member_id_must_own_its_instance(self, driver):
        """G1: 82."""
        old = driver.answers[driver.join(instance_id="i")].member_id
        driver.sync(old, 1, {}, instance_id="i")
        new = driver.answers[driver.join(instance_id="i")].member_id
        assert driver.leave((old, "i")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
        assert driver.leave((new, "i")).members[0].error_code == ErrorCode.NONE
        assert driver.state() is GroupState.EMPTY

    def test_a_group_that_is_not_there_has_none_of_the_members(self, driver):
        response = driver.leave("a", "b")
        assert response.error_code == 0
        assert [gone.error_code for gone in response.members] == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
        assert driver.leave("a", group_id="").error_code == ErrorCode.INVALID_GROUP_ID

    def test_who_waits_and_leaves_elsewhere_is_let_go(self, driver):
        driver.stable()
        member, ticket = driver.new_member()
        driver.leave(member)
        assert driver.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_rebalance_goes_on_without_who_left(self, driver):
        leader, follower = driver.stable(2)
        ticket = driver.join(leader)
        driver.leave(follower)
        assert driver.answers[ticket].generation_id == 2

    def test_who_leaves_before_the_assignment_sends_the_others_back(self, driver):
        leader, follower = driver.joined(2)
        ticket = driver.sync(follower, 1)
        driver.leave(leader)
        assert driver.code(ticket) is ErrorCode.REBALANCE_IN_PROGRESS
        assert driver.state() is GroupState.PREPARING_REBALANCE

    def test_a_follower_that_leaves_while_it_waits_for_the_assignment_is_answered(self, driver):
        _, follower = driver.joined(2)
        ticket = driver.sync(follower, 1)
        driver.leave(follower)
        assert driver.code(ticket) is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_old_client_lives_through_the_whole_protocol(driver):
    member = driver.answers[driver.join(context=OLD)].member_id
    assert driver.answers[driver.sync(member, 1, {member: b"x"})].assignment == b"x"
    assert driver.heartbeat(member, 1) == 0
    assert driver.leave(member).members[0].error_code == 0
