"""G2, KIP-211: offsets are removed after `offsets.retention.minutes`, and empty groups with them."""

from __future__ import annotations

import pytest

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.group_offsets import LOOKED_AT_PER_PART
from barnabas.coord.machine import CoordinatorRecord
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.records.coordinator_records import OffsetCommitKey, OffsetCommitValue
from tests.coord.groups.group_driver import Driver

RETENTION_S = 60.0
LATER = 1.0
PRODUCER = 7


@pytest.fixture
def driver():
    return Driver(offsets_retention_ms=int(RETENTION_S * 1000))


def subscription(*topics):
    names = b"".join(len(topic).to_bytes(2, "big") + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


def sweep(driver, seconds=0.0):
    driver.now += seconds  # without a tick: sessions do not expire here
    for part in driver.coordinator.offsets.expire_in_parts(driver.at):
        driver.handle(part)


def hold(driver, offset=50, *, topic="t", topic_id=bytes(16), group_id="g"):
    """An offset in an open transaction."""
    key = OffsetCommitKey(group=group_id, topic=topic, partition=0)
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=driver.at.now_ms, topic_id=topic_id)
    record = records.offset_commit(key, value)
    driver.coordinator.replay_pending(PRODUCER, record.key, record.value, driver.at, 100)


def end(driver):
    driver.coordinator.replay_end(PRODUCER, driver.at, commit=True)


class TestOffsetsOfNobodyInParticular:
    def test_expire_one_by_one_after_their_commit_and_the_group_with_the_last(self, driver):
        driver.commit(1, partition=0)
        driver.now = 30.0
        driver.commit(2, partition=1)
        sweep(driver, RETENTION_S - 30 - LATER)
        assert (driver.fetch(partition=0)[0], driver.fetch(partition=1)[0]) == (1, 2)
        sweep(driver, LATER)
        assert (driver.fetch(partition=0)[0], driver.fetch(partition=1)[0]) == (-1, 2)
        assert driver.group() is not None
        sweep(driver, 30)
        assert driver.fetch(partition=1)[0] == -1
        assert driver.group() is None
        driver.restart()
        assert driver.group() is None
        assert driver.fetch(partition=1)[0] == -1

    def test_expire_when_their_commit_said_so(self, driver):
        """OffsetCommit up to version 4 has a retention time."""
        driver.commit(1, retention_ms=5_000, version=4)
        sweep(driver, 4)
        assert driver.fetch()[0] == 1
        sweep(driver, 1)
        assert driver.fetch()[0] == -1


class TestOffsetsOfAnEmptyGroup:
    def test_expire_after_the_last_member_has_gone(self, driver):
        (member,) = driver.stable(metadata=subscription("t"))
        driver.commit(member_id=member, generation=1)
        driver.now = RETENTION_S / 2
        driver.leave(member)
        sweep(driver, RETENTION_S - LATER)
        assert driver.fetch()[0] == 10
        sweep(driver, LATER)
        assert driver.fetch()[0] == -1
        assert driver.group() is None

    def test_a_group_without_offsets_goes_at_the_next_sweep(self, driver):
        (member,) = driver.stable()
        driver.leave(member)
        assert driver.state() is GroupState.EMPTY
        sweep(driver)
        assert driver.group() is None

    def test_an_empty_group_knows_after_a_restart_since_when(self, driver):
        (member,) = driver.stable(metadata=subscription("t"))
        driver.commit(member_id=member, generation=1)
        driver.now = 5.0
        driver.leave(member)
        driver.restart()
        sweep(driver, RETENTION_S - LATER)
        assert driver.fetch()[0] == 10
        sweep(driver, LATER)
        assert driver.fetch()[0] == -1


class TestOffsetsOfAGroupWithMembers:
    def test_stay_where_the_members_read(self, driver):
        (member,) = driver.stable(metadata=subscription("t"))
        driver.commit(1, member_id=member, generation=1)
        driver.commit(2, member_id=member, generation=1, topic="left")
        sweep(driver, RETENTION_S)
        assert driver.fetch()[0] == 1
        assert driver.fetch("left")[0] == -1
        assert driver.state() is GroupState.STABLE

    def test_all_stay_during_a_rebalance(self, driver):
        (member,) = driver.stable(metadata=subscription("t"))
        driver.commit(2, member_id=member, generation=1, topic="left")
        driver.join(metadata=subscription("t"))
        driver.join(member, metadata=subscription("other"), settle=False)
        assert driver.state() is not GroupState.STABLE
        sweep(driver, RETENTION_S)
        assert driver.fetch("left")[0] == 2

    def test_all_stay_where_the_protocol_does_not_tell_of_topics(self, driver):
        (member,) = driver.stable(protocol_type="connect", metadata=b"?")
        driver.commit(2, member_id=member, generation=1)
        sweep(driver, RETENTION_S)
        assert driver.fetch()[0] == 2
        assert driver.group() is not None


class TestOffsetsInTransactions:
    def test_keep_an_offset_and_its_group(self, driver):
        driver.commit(1)
        hold(driver)
        sweep(driver, RETENTION_S)
        assert driver.fetch()[0] == 1
        end(driver)
        assert driver.fetch()[0] == 50
        sweep(driver, RETENTION_S)
        assert driver.group() is None

    def test_do_not_come_back_after_their_group_was_deleted(self, driver):
        driver.commit(1)
        hold(driver)
        hold(driver, topic="other")
        assert driver.delete_group() == 0
        end(driver)
        assert driver.group() is None
        assert len(driver.coordinator.offsets.pending) == 0

    def test_do_not_come_back_after_they_were_deleted(self, driver):
        driver.commit(1, topic="other")
        hold(driver)
        assert driver.delete_offsets() == (0, 0)
        end(driver)
        assert driver.fetch()[0] == -1

    @pytest.mark.parametrize(("committed_to", "is_kept"), [(b"A" * 16, False), (b"B" * 16, True), (bytes(16), False)])
    def test_go_with_their_topic_and_no_other_of_its_name(self, driver, committed_to, is_kept):
        driver.commit(1, topic_id=committed_to)
        hold(driver, topic_id=committed_to, group_id="other")
        driver.handle(driver.coordinator.offsets.topics_deleted({"t": b"A" * 16}))
        end(driver)
        assert (driver.fetch()[0] == 1) is is_kept
        assert (driver.fetch(group_id="other")[0] == 50) is is_kept

    def test_of_one_group_are_told_from_those_of_a_group_whose_name_goes_on(self, driver):
        hold(driver, group_id="group")
        driver.commit(1, group_id="gr")
        sweep(driver, RETENTION_S)
        assert driver.group("gr") is None


def test_when_the_tombstones_cannot_be_written_all_stays(driver):
    driver.commit(1)
    driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
    sweep(driver, RETENTION_S)
    assert driver.fetch()[0] == 1
    driver.append_error = None
    sweep(driver)
    assert driver.group() is None


def test_a_tombstone_of_an_offset_that_is_not_there_is_harmless(driver):
    driver.coordinator.replay(*CoordinatorRecord(records.offset_key("g", "t", 0), None), driver.at)
    assert driver.group() is None


class TestManyOffsets:
    """A coordinator may have hundreds of thousands: they are looked at, and removed, in parts."""

    def commit_many(self, driver, group_id: str, count: int) -> None:
        for partition in range(count):
            driver.commit(1, partition=partition, group_id=group_id)

    def test_parts_are_small_and_the_group_goes_with_its_last_offset(self, driver):
        self.commit_many(driver, "large", 3 * LOOKED_AT_PER_PART)
        for number in range(LOOKED_AT_PER_PART):
            self.commit_many(driver, f"small{number}", 2)
        driver.now += RETENTION_S
        parts = 0
        for part in driver.coordinator.offsets.expire_in_parts(driver.at):
            assert len(part.records) <= 2 * LOOKED_AT_PER_PART
            driver.handle(part)
            parts += 1
        assert 5 <= parts <= 10
        assert driver.coordinator.groups == {}
        assert driver.coordinator.offsets.store.of_group("large") == {}

    def test_what_is_committed_between_two_parts_stays_and_so_does_its_group(self, driver):
        self.commit_many(driver, "large", 2 * LOOKED_AT_PER_PART)
        driver.now += RETENTION_S
        parts = driver.coordinator.offsets.expire_in_parts(driver.at)
        driver.handle(next(parts))
        driver.commit(7, partition=0, group_id="large")
        driver.commit(8, partition=LOOKED_AT_PER_PART, group_id="large")
        for part in parts:
            driver.handle(part)
        assert driver.coordinator.offsets.store.count("large") == 2
        assert driver.fetch(partition=LOOKED_AT_PER_PART, group_id="large")[0] == 8
        assert driver.group("large") is not None

    def test_a_group_that_is_deleted_between_two_parts_is_left_alone(self, driver):
        self.commit_many(driver, "large", 2 * LOOKED_AT_PER_PART)
        driver.now += RETENTION_S
        parts = driver.coordinator.offsets.expire_in_parts(driver.at)
        driver.handle(next(parts))
        driver.handle(driver.coordinator.delete_group("large", "ticket"))
        assert [part.records for part in parts] == [[]]
