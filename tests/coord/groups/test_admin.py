"""DescribeGroups, ListGroups, DeleteGroups; and loading and unloading a coordinator."""

from __future__ import annotations

import pytest

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.states import GroupState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.records.coordinator_records import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from tests.coord.groups.group_driver import LATEST, Driver
from tests.support.cases import for_each


def describe(driver, group_id="g", version=6):
    return driver.coordinator.describe(group_id, version)


class TestDescribe:
    def test_a_stable_group_shows_protocol_members_and_assignments(self, driver):
        members = driver.stable(2)
        shown = describe(driver)
        assert (shown.group_state, shown.protocol_type, shown.protocol_data) == ("Stable", "consumer", "range")
        assert [
            (m.member_id, m.client_id, m.client_host, m.member_metadata, m.member_assignment) for m in shown.members
        ] == [(member, "client", "/127.0.0.1", b"meta", f"for {member}".encode()) for member in members]

    def test_a_rebalancing_group_does_not_show_metadata(self, driver):
        driver.joined(2)
        shown = describe(driver)
        assert (shown.group_state, shown.protocol_data) == ("CompletingRebalance", "")
        assert [member.member_metadata for member in shown.members] == [b"", b""]

    def test_static_members_show_their_instance_id(self, driver):
        driver.join(instance_id="i")
        assert describe(driver).members[0].group_instance_id == "i"

    def test_a_simple_group_is_empty(self, driver):
        driver.commit()
        shown = describe(driver)
        assert (shown.error_code, shown.group_state, shown.protocol_type, shown.members) == (0, "Empty", "", [])

    @pytest.mark.parametrize(("version", "error"), [(5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
    def test_a_group_that_is_not_there_is_dead(self, driver, version, error):
        shown = describe(driver, "none", version)
        assert (shown.error_code, shown.group_state, shown.group_id) == (error, "Dead", "none")
        assert shown.error_message == ("Group none not found." if error else None)


class TestList:
    @pytest.fixture
    def driver(self):
        driver = Driver()
        driver.commit(group_id="simple")
        driver.stable(group_id="stable")
        driver.joined(group_id="completing", protocol_type="connect")
        return driver

    @for_each(
        ("states", "types", "expected"),
        [
            ((), (), {"simple", "stable", "completing"}),
            (("Stable",), (), {"stable"}),
            (("stable", "EMPTY"), (), {"stable", "simple"}),
            (("Dead",), (), set()),
            (("nonsense",), (), set()),
            ((), ("Classic",), {"simple", "stable", "completing"}),
            ((), ("consumer",), set()),
            (("empty",), ("consumer", "classic"), {"simple"}),
        ],
    )
    def test_filters_by_state_and_type(self, driver, states, types, expected):
        assert {row.group_id for row in driver.coordinator.list_groups(states, types)} == expected

    def test_rows(self, driver):
        rows = {row.group_id: row for row in driver.coordinator.list_groups()}
        shown = {key: (row.protocol_type, row.group_state, row.group_type) for key, row in rows.items()}
        assert shown == {
            "simple": ("", "Empty", "classic"),
            "stable": ("consumer", "Stable", "classic"),
            "completing": ("connect", "CompletingRebalance", "classic"),
        }


class TestDeleteGroup:
    def test_an_empty_group_goes_with_its_offsets(self, driver):
        (member,) = driver.stable()
        driver.commit(member_id=member, generation=1)
        assert driver.delete_group() == ErrorCode.NON_EMPTY_GROUP
        driver.leave(member)
        assert driver.delete_group() == 0
        assert driver.state() is None
        assert driver.delete_group() == ErrorCode.GROUP_ID_NOT_FOUND
        driver.restart()
        assert driver.coordinator.groups == {}
        assert driver.fetch()[0] == -1

    def test_a_group_that_is_not_there_cannot_go(self, driver):
        assert driver.delete_group() == ErrorCode.GROUP_ID_NOT_FOUND

    @pytest.mark.parametrize("state", ["joined", "preparing"])
    def test_a_rebalancing_group_is_not_empty(self, driver, state):
        driver.joined() if state == "joined" else driver.join(instance_id="i", settle=False)
        assert driver.delete_group() == ErrorCode.NON_EMPTY_GROUP

    def test_a_group_of_given_out_ids_only_is_empty(self, driver):
        response = driver.answers[driver.join()]
        assert driver.delete_group() == 0
        assert driver.coordinator.next_deadline() is None
        assert driver.code(driver.join(response.member_id)) is ErrorCode.UNKNOWN_MEMBER_ID

    def test_when_it_cannot_be_written_the_group_stays(self, driver):
        driver.commit()
        driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
        assert driver.delete_group() == ErrorCode.NOT_COORDINATOR
        assert driver.state() is GroupState.EMPTY
        assert driver.fetch()[0] == 10


class TestLoading:
    def test_members_and_generation_are_as_before(self, driver):
        driver.advance(1000)
        driver.stable(2, group_id="h", session_ms=1_000_000)
        driver.restart()
        members = driver.group("h").members
        assert driver.state("h") is GroupState.STABLE
        assert [member.session_timeout_ms for member in members.values()] == [1_000_000] * 2
        assert [member.rebalance_timeout_ms for member in members.values()] == [60_000] * 2
        for member in members:
            assert driver.heartbeat(member, 1, group_id="h") == 0
            ticket = driver.sync(member, 1, group_id="h")
            assert driver.answers[ticket].assignment == f"for {member}".encode()

    def test_members_get_their_whole_session_from_the_load_on(self, driver):
        driver.stable()
        driver.now += 500
        driver.restart()
        driver.advance(9.999)
        assert driver.state() is GroupState.STABLE
        driver.advance(0.001)
        assert driver.state() is GroupState.EMPTY

    def test_a_rebalance_under_way_falls_back_to_the_last_generation_written(self, driver):
        (leader,) = driver.stable()
        driver.new_member()
        driver.restart()
        assert (driver.state(), driver.group().generation) == (GroupState.STABLE, 1)
        assert driver.heartbeat(leader, 1) == 0

    def test_generations_go_on_where_they_were(self, driver):
        (leader,) = driver.stable()
        driver.restart()
        ticket = driver.join(leader)
        assert driver.answers[ticket].generation_id == 2

    def test_a_follower_that_changed_nothing_keeps_its_generation_after_a_load(self, driver):
        """Only the selected protocol is in the log, so a member with one protocol matches, as in Kafka."""
        _, follower = driver.stable(2)
        driver.restart()
        assert driver.answers[driver.join(follower)].generation_id == 1

    def test_old_records_without_rebalance_timeout_use_the_session_timeout(self, driver):
        value = GroupMetadataValue(
            protocol_type="consumer",
            generation=3,
            protocol="range",
            leader="m",
            members=[MemberMetadata(member_id="m", session_timeout=7000)],
        )
        key = b"\0\2" + GroupMetadataKey(group="g").encode(0)
        driver.log.append((key, b"\0\0" + value.encode(0)))
        driver.restart()
        assert driver.group().members["m"].rebalance_timeout_ms == 7000
        assert driver.heartbeat("m", 3) == 0

    def test_records_of_unknown_kinds_are_left_alone(self, driver):
        driver.log.append((b"\0\x63\0\1g", b"\0\0\0\0\0\1\0"))
        driver.restart()
        assert driver.coordinator.groups == {}

    def test_legacy_offset_keys_are_read(self, driver):
        driver.commit(5)
        key, value = driver.log[-1]
        driver.log = [(b"\0\0" + key[2:], value)]
        driver.restart()
        assert driver.fetch()[0] == 5


def test_an_unloaded_coordinator_sends_everybody_away(driver):
    _, follower = driver.joined(2)
    sync = driver.sync(follower, 1)
    driver.stable(group_id="h")
    _, join = driver.new_member(group_id="h")
    driver.handle(driver.coordinator.unload(driver.at))
    assert driver.code(sync) is ErrorCode.NOT_COORDINATOR
    assert driver.code(join) is ErrorCode.NOT_COORDINATOR
    assert driver.coordinator.next_deadline() is None


def test_keys_of_unknown_kind_are_nobodys():
    assert records.read_key(b"\0\x63abc") is None
    assert LATEST.api_version == 9
