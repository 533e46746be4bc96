"""G3: joining, subscribing and leaving; epochs and fencing of consumer groups (KIP-848)."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.consumer.member import ConsumerMember
from barnabas.coord.groups.consumer.records import STATES
from barnabas.coord.groups.consumer.states import ConsumerGroupState
from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import V0, V1, Client, ConsumerDriver, given, settle
from tests.support.cases import for_each

T, U = topic_id("t"), topic_id("u")
E = ErrorCode


@pytest.fixture
def driver():
    return ConsumerDriver(GroupTopics(t=6, u=3))


def everything(client):
    return {index for _, index in client.partitions}


class TestRequests:
    @for_each(
        ("fields", "message"),
        [
            ({"member_id": ""}, "MemberId can't be empty."),
            ({"group_id": ""}, "GroupId can't be empty."),
            ({"instance_id": " "}, "InstanceId can't be empty."),
            ({"rack_id": ""}, "RackId can't be empty."),
            ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
            ({"owned": {T: {0}}}, "TopicPartitions must be empty when (re-)joining."),
            (
                {"subscribed_topic_names": None},
                "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
            ),
            ({"epoch": -2}, "InstanceId can't be null."),
            ({"epoch": -3}, "MemberEpoch is invalid."),
        ],
    )
    def test_nonsense_is_an_invalid_request(self, driver, fields, message):
        response = driver.beat(**fields)
        assert (response.error_code, response.error_message) == (E.INVALID_REQUEST, message)
        assert driver.log == []
        assert driver.coordinator.groups == {}

    def test_a_join_without_partitions_is_an_invalid_request(self, driver):
        from barnabas.wire.messages.groups.consumer_groups import ConsumerGroupHeartbeatRequest

        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id="m", rebalance_timeout_ms=1, subscribed_topic_names=["t"]
        )
        driver.handle(driver.coordinator.consumer_groups.heartbeat(request, "x", V1, driver.at))
        assert driver.answers["x"].error_code == E.INVALID_REQUEST

    def test_an_assignor_that_is_not_there_is_unsupported(self, driver):
        response = driver.beat(server_assignor="mine")
        assert response.error_code == E.UNSUPPORTED_ASSIGNOR
        assert response.error_message.endswith("Supported assignors: uniform, range.")

    def test_clients_of_version_0_are_given_a_member_id(self, driver):
        response = driver.beat("", context=V0)
        assert (response.error_code, response.member_id, response.member_epoch) == (0, "id1", 2)
        assert driver.beat("id1", 2, context=V0).error_code == 0
        assert driver.beat("", 1, context=V0).error_code == E.INVALID_REQUEST
        assert driver.beat("", -1, context=V0).error_code == E.INVALID_REQUEST


class TestJoining:
    def test_the_first_member_gets_all_partitions_at_once(self, driver):
        response = driver.beat("m1")
        assert (response.error_code, response.member_id, response.member_epoch) == (0, "m1", 2)
        assert given(response) == {T: {0, 1, 2, 3, 4, 5}}
        assert driver.state() is ConsumerGroupState.STABLE
        group = driver.group()
        assert (group.epoch, group.assignment_epoch) == (2, 2)

    def test_what_a_member_says_of_itself_is_kept(self, driver):
        driver.beat("m1", instance_id="i", rack_id="r", server_assignor="range", rebalance_timeout_ms=7)
        member = driver.group().members["m1"]
        assert member == ConsumerMember(
            "m1", "i", "r", "client", "/127.0.0.1", 7, frozenset({"t"}), None, "range", None,
            2, 0, MemberState.STABLE, {T: dict.fromkeys(range(6), 2)}, {},
        )  # fmt: skip

    def test_a_group_that_does_not_exist_is_not_found_by_who_does_not_join(self, driver):
        assert driver.beat("m1", 1).error_code == E.GROUP_ID_NOT_FOUND
        assert driver.beat("m1", -1).error_code == E.GROUP_ID_NOT_FOUND

    def test_a_topic_that_does_not_exist_gives_nothing(self, driver):
        response = driver.beat("m1", subscribed_topic_names=["nothing"])
        assert (response.error_code, response.member_epoch, given(response)) == (0, 2, {})
        assert driver.state() is ConsumerGroupState.STABLE

    def test_a_member_may_read_nothing(self, driver):
        response = driver.beat("m1", subscribed_topic_names=[])
        assert (response.error_code, response.member_epoch, given(response)) == (0, 2, {})

    def test_joining_again_under_the_same_id_gives_the_same_again(self, driver):
        first = driver.beat("m1")
        written = len(driver.log)
        again = driver.beat("m1")
        assert (again.member_epoch, given(again)) == (first.member_epoch, given(first))
        assert len(driver.log) == written

    def test_a_full_group_takes_nobody_but_those_in_it(self):
        driver = ConsumerDriver(consumer_max_size=2)
        driver.beat("m1", instance_id="i1")
        driver.beat("m2")
        assert driver.beat("m3").error_code == E.GROUP_MAX_SIZE_REACHED
        assert driver.beat("m3", instance_id="i3").error_code == E.GROUP_MAX_SIZE_REACHED
        assert driver.beat("m2").error_code == 0
        driver.beat("m1", -2, instance_id="i1")
        assert driver.beat("m4", instance_id="i1").error_code == 0

    def test_a_group_of_another_type_is_not_found(self, driver):
        member_id, _ = driver.new_member(protocol_type="connect")
        assert member_id
        response = driver.beat("m1")
        assert response.error_code == E.GROUP_ID_NOT_FOUND

    def test_a_join_that_cannot_be_written_leaves_no_group(self, driver):
        driver.append_error = E.NOT_ENOUGH_REPLICAS
        assert driver.beat("m1").error_code == E.COORDINATOR_NOT_AVAILABLE
        driver.append_error = None
        assert driver.coordinator.groups == {}
        driver.advance(100)  # the session that was started expires without a member
        assert driver.log == []


class TestSharing:
    def test_a_second_member_gets_its_share_once_the_first_gave_it_up(self, driver):
        """The rule of the protocol: no partition is assigned before its owner's heartbeat has revoked it."""
        first, second = Client(driver, "m1"), Client(driver, "m2")
        first.beat(), first.reconcile()
        response = second.beat()
        assert (response.member_epoch, given(response)) == (3, {})
        assert driver.group().members["m2"].state is MemberState.UNRELEASED
        response = first.beat()
        assert response.member_epoch == 2, "it stays in its epoch until it has given up"
        assert len(given(response)[T]) == 3
        assert driver.group().members["m1"].state is MemberState.UNREVOKED
        assert second.beat().assignment is None
        assert given(driver.beat("m1", 2, owned=first.owned)) is None, "it still has them, and was told what to keep"
        first.reconcile()
        response = first.beat()
        assert (response.member_epoch, response.assignment) == (3, None)
        response = second.beat()
        assert len(given(response)[T]) == 3
        assert given(response)[T].isdisjoint(first.owned[T])
        assert driver.state() is ConsumerGroupState.STABLE

    def test_a_heartbeat_that_tells_no_partitions_gives_up_none(self, driver):
        first = Client(driver, "m1")
        first.beat(), first.reconcile()
        driver.beat("m2")
        first.beat()
        for _ in range(3):
            response = driver.beat("m1", 2)
            assert (response.member_epoch, response.assignment) == (2, None)
        assert driver.group().members["m1"].state is MemberState.UNREVOKED

    def test_partitions_are_passed_on_as_they_are_given_up(self, driver):
        first, second = Client(driver, "m1"), Client(driver, "m2")
        first.beat(), first.reconcile()
        second.beat()
        first.beat()
        target = first.target[T]
        going = sorted(first.owned[T] - target)
        first.owned = {T: target | {going[0]}}
        assert first.beat().member_epoch == 2, "one is left"
        assert second.beat().assignment is None
        first.reconcile()
        assert first.beat().member_epoch == 3
        assert given(second.beat()) == {T: set(going)}

    def test_three_members_settle_evenly(self, driver):
        clients = [Client(driver, f"m{index}") for index in range(3)]
        settle(*clients)
        assert sorted(len(client.partitions) for client in clients) == [2, 2, 2]
        assert driver.state() is ConsumerGroupState.STABLE

    def test_a_member_with_nothing_to_do_costs_no_record(self, driver):
        client = Client(driver, "m1")
        settle(client)
        written = len(driver.log)
        for _ in range(10):
            client.beat()
        assert len(driver.log) == written

    def test_when_a_member_leaves_the_others_take_over(self, driver):
        clients = [Client(driver, f"m{index}") for index in range(3)]
        settle(*clients)
        response = driver.beat("m0", -1)
        assert (response.error_code, response.member_id, response.member_epoch) == (0, "m0", -1)
        assert driver.state() is ConsumerGroupState.ASSIGNING
        settle(*clients[1:])
        assert everything(clients[1]) | everything(clients[2]) == set(range(6))

    def test_a_member_of_its_own_subscription_gets_only_that(self, driver):
        first, second = Client(driver, "m1"), Client(driver, "m2", topics=["t", "u"])
        settle(first, second)
        assert {key for key, _ in first.partitions} == {T}
        assert {index for key, index in second.partitions if key == U} == {0, 1, 2}

    def test_what_is_not_read_any_more_is_given_up_and_passed_on(self, driver):
        first, second = Client(driver, "m1", topics=["t", "u"]), Client(driver, "m2", topics=["t", "u"])
        settle(first, second)
        epoch = driver.group().epoch
        first.topics, first.tells_all = ["u"], True
        settle(first, second)
        assert driver.group().epoch == epoch + 1
        assert {key for key, _ in first.partitions} <= {U}
        assert {index for key, index in second.partitions if key == T} == set(range(6))

    def test_most_votes_choose_the_assignor(self, driver):
        clients = [Client(driver, f"m{index}", topics=["t", "u"]) for index in range(2)]
        settle(*clients)
        assert driver.describe().assignor_name == "uniform"
        for client in clients:
            client.assignor, client.tells_all = "range", True
        epoch = driver.group().epoch
        settle(*clients)
        assert driver.describe().assignor_name == "range"
        assert driver.group().epoch == epoch + 1, "the second vote changes nothing"
        assert clients[0].owned[T] == {0, 1, 2}

    def test_the_last_member_leaves_an_empty_group(self, driver):
        settle(Client(driver, "m1"))
        driver.beat("m1", -1)
        group = driver.group()
        assert (group.state, group.epoch, group.assignment_epoch) == (ConsumerGroupState.EMPTY, 3, 3)
        response = driver.beat("m2")
        assert response.member_epoch == 4, "epochs go on"
        assert len(given(response)[T]) == 6


class TestFencing:
    """110 for member epochs, 25 for unknown members."""

    @pytest.fixture
    def settled(self, driver):
        first, second = Client(driver, "m1"), Client(driver, "m2")
        settle(first, second)
        return first

    def test_an_unknown_member_is_told_so(self, driver, settled):
        assert driver.beat("other", 1).error_code == E.UNKNOWN_MEMBER_ID
        assert driver.beat("other", -1).error_code == E.UNKNOWN_MEMBER_ID

    def test_an_epoch_ahead_is_fenced(self, driver, settled):
        response = driver.beat("m1", settled.epoch + 1, owned=settled.owned)
        assert response.error_code == E.FENCED_MEMBER_EPOCH
        assert "greater member epoch" in response.error_message

    def test_an_older_epoch_is_fenced(self, driver, settled):
        group = driver.group()
        member = group.members["m1"]._replace(epoch=5, previous_epoch=4)
        group.put_member(member)
        response = driver.beat("m1", 3, owned={})
        assert response.error_code == E.FENCED_MEMBER_EPOCH
        assert "smaller member epoch" in response.error_message

    def test_the_previous_epoch_is_taken_from_who_missed_the_answer(self, driver, settled):
        member = driver.group().members["m1"]
        response = driver.beat("m1", member.previous_epoch, owned=settled.owned)
        assert (response.error_code, response.member_epoch) == (0, member.epoch)

    def test_the_previous_epoch_with_more_than_was_given_is_fenced(self, driver, settled):
        member = driver.group().members["m1"]
        assert driver.beat("m1", member.previous_epoch, owned={T: set(range(6))}).error_code == E.FENCED_MEMBER_EPOCH
        assert driver.beat("m1", member.previous_epoch).error_code == E.FENCED_MEMBER_EPOCH, "it must tell all it has"

    def test_a_fenced_member_may_join_again(self, driver, settled):
        assert driver.beat("m1", 99).error_code == E.FENCED_MEMBER_EPOCH
        response = driver.beat("m1", 0)
        assert (response.error_code, given(response)) == (0, settled.owned)

    def test_a_member_in_a_state_of_a_newer_release_starts_over(self, driver, settled):
        group = driver.group()
        group.put_member(group.members["m1"]._replace(state=STATES.state(9)))
        assert group.members["m1"].state is MemberState.UNKNOWN
        assert driver.beat("m1", settled.epoch, owned=settled.owned).error_code == E.FENCED_MEMBER_EPOCH
        assert driver.beat("m1", 0).error_code == 0
        assert driver.group().members["m1"].state is MemberState.STABLE


class TestAssignmentInterval:
    """group.consumer.assignment.interval.ms: the minimum time between assignments of a group (KIP-1263)."""

    @pytest.fixture
    def driver(self):
        return ConsumerDriver(GroupTopics(t=6), GroupSettings(consumer_assignment_interval_ms=1_000))

    def test_the_first_assignment_waits_for_nothing(self, driver):
        assert len(given(driver.beat("m1"))[T]) == 6

    def test_the_next_one_waits_for_the_interval(self, driver):
        driver.beat("m1")
        response = driver.beat("m2")
        assert (response.member_epoch, given(response)) == (2, {}), "it follows the last assignment, which knows it not"
        assert driver.state() is ConsumerGroupState.ASSIGNING
        assert (driver.group().epoch, driver.group().assignment_epoch) == (3, 2)
        driver.advance(0.999)
        assert driver.beat("m2", 2).member_epoch == 2
        driver.advance(0.001)
        assert driver.beat("m2", 2).member_epoch == 3

    def test_after_the_last_member_the_first_one_waits_for_nothing(self, driver):
        driver.beat("m1")
        driver.beat("m1", -1)
        assert len(given(driver.beat("m2"))[T]) == 6

    def test_a_clock_that_went_back_holds_nobody_up(self, driver):
        driver.beat("m1")
        driver.group().assignment_timestamp_ms += 3_600_000
        assert driver.beat("m2").member_epoch == 3

    def test_many_joins_are_one_assignment(self, driver):
        for index in range(50):
            driver.beat(f"m{index}")
        assert driver.group().assignment_epoch == 2
        driver.advance(1)
        driver.beat("m7", 2)
        assert driver.group().assignment_epoch == driver.group().epoch == 51


class TestHeartbeatInterval:
    def test_members_come_back_soon_while_the_group_moves_and_seldom_when_it_rests(self, driver):
        client = Client(driver, "m1")
        client.beat()
        assert client.interval_ms == 500
        driver.advance(4)
        client.beat()
        assert client.interval_ms == 500
        driver.advance(1.5)
        client.beat()
        assert client.interval_ms == 5_000

    def test_who_waits_for_partitions_comes_back_soon(self, driver):
        driver.beat("m1")
        driver.beat("m2")
        driver.advance(20)
        assert driver.beat("m2", 3).heartbeat_interval_ms == 500

    def test_many_members_are_spread_out(self):
        driver = ConsumerDriver()
        answers = [driver.beat(f"m{index}") for index in range(400)]
        assert answers[-1].heartbeat_interval_ms == 5 * 399

    def test_the_configured_interval_is_never_exceeded(self):
        driver = ConsumerDriver(settings=GroupSettings(consumer_heartbeat_interval_ms=100))
        assert driver.beat("m1").heartbeat_interval_ms == 100


class TestSessions:
    def test_a_silent_member_is_out_after_its_session(self, driver):
        first, second = Client(driver, "m1"), Client(driver, "m2")
        settle(first, second)
        driver.advance(30)
        second.beat()
        driver.advance(15)
        assert list(driver.group().members) == ["m2"]
        assert driver.beat("m1", first.epoch).error_code == E.UNKNOWN_MEMBER_ID
        settle(second)
        assert everything(second) == set(range(6))

    def test_every_heartbeat_renews_the_session(self, driver):
        client = Client(driver, "m1")
        for _ in range(10):
            client.beat()
            driver.advance(44)
        assert list(driver.group().members) == ["m1"]

    def test_a_refused_heartbeat_renews_nothing(self, driver):
        driver.beat("m1")
        driver.advance(44)
        driver.beat("m1", 99)
        driver.advance(1)
        assert driver.group().is_empty

    def test_who_does_not_give_up_partitions_in_time_is_out(self, driver):
        first = Client(driver, "m1")
        first.beat(), first.reconcile()
        driver.beat("m2")
        first.beat()
        driver.advance(3)
        first.beat()
        driver.advance(2)  # 5 s is its rebalance timeout, and heartbeats do not extend it
        assert list(driver.group().members) == ["m2"]
        assert len(given(driver.beat("m2", 3, owned={}))[T]) == 6

    def test_who_gives_up_in_time_stays(self, driver):
        first = Client(driver, "m1")
        first.beat(), first.reconcile()
        driver.beat("m2")
        first.beat()
        driver.advance(4.9)
        first.reconcile()
        first.beat()
        driver.advance(1)
        assert "m1" in driver.group().members

    def test_after_a_restart_all_time_begins_anew(self, driver):
        first = Client(driver, "m1")
        first.beat(), first.reconcile()
        driver.beat("m2")
        first.beat()
        driver.advance(4.9)
        driver.restart()
        driver.advance(4.9)
        assert set(driver.group().members) == {"m1", "m2"}
        driver.advance(0.1)
        assert set(driver.group().members) == {"m2"}
        driver.advance(40)
        assert driver.group().is_empty

    def test_the_group_s_own_session_timeout_counts(self):
        driver = ConsumerDriver(settings=GroupSettings(consumer_session_timeout_ms=6_000))
        driver.beat("m1")
        driver.advance(6)
        assert driver.group().is_empty

    def test_members_that_go_silent_together_leave_a_group_that_starts_anew_at_once(self, driver):
        """Two sessions that expire at the same time are two removals, one after the other."""
        driver.beat("m1", subscribed_topic_regex="t.*")
        driver.beat("m2", subscribed_topic_regex="t.*")
        driver.advance(45)
        group = driver.group()
        assert group.is_empty
        assert group.assignment_timestamp_ms == 0
        assert group.regexes == {}
        assert group.epoch == 6, "two joined, the topics of their expression were found, two left"

    def test_a_removal_that_cannot_be_written_is_tried_again(self, driver):
        driver.beat("m1")
        driver.append_error = E.NOT_ENOUGH_REPLICAS
        driver.advance(45)
        assert "m1" in driver.group().members
        driver.append_error = None
        driver.advance(45)
        assert driver.group().is_empty

    def test_a_member_whose_leave_cannot_be_written_has_a_session_again(self, driver):
        driver.beat("m1")
        driver.append_error = E.NOT_ENOUGH_REPLICAS
        assert driver.beat("m1", -1).error_code == E.COORDINATOR_NOT_AVAILABLE
        driver.append_error = None
        assert "m1" in driver.group().members
        driver.advance(45)
        assert driver.group().is_empty
