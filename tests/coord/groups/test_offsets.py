"""G2: offsets that groups commit, fetch and delete."""

from __future__ import annotations

import pytest

from barnabas.coord.groups import records
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.group_offsets import LOOKED_AT_PER_PART
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import consumer_protocol as cp
from barnabas.wire.types import ZERO_UUID
from tests.coord.coordinator_driver import START_MS
from tests.coord.groups.group_driver import Driver
from tests.support.cases import for_each

ID_A, ID_B = b"a" * 16, b"b" * 16


def subscription(*topics):
    return b"\x00\x01" + cp.ConsumerProtocolSubscription(topics=list(topics)).encode(1)


def test_what_was_committed_is_fetched(driver):
    assert driver.commit(42, metadata="note", leader_epoch=7) == 0
    assert driver.fetch() == (42, 7, "note")
    assert driver.commit(43, metadata=None) == 0
    assert driver.fetch() == (43, -1, "")


def test_what_was_never_committed_is_minus_one_and_no_error(driver):
    assert driver.fetch() == (-1, -1, "")
    driver.commit(partition=0)
    assert driver.fetch(partition=1) == (-1, -1, "")
    assert driver.fetch(topic="other") == (-1, -1, "")
    assert driver.fetch(group_id="other") == (-1, -1, "")


def test_all_offsets_of_a_group_can_be_asked_for(driver):
    driver.commit(1, topic="a", topic_id=ID_A)
    driver.commit(2, topic="a", partition=1, topic_id=ID_A)
    driver.commit(3, topic="b")
    driver.commit(4, topic="b", group_id="other")
    response = driver.fetch_all()
    committed = [
        (topic.name, topic.topic_id, partition.partition_index, partition.committed_offset)
        for topic in response.topics
        for partition in topic.partitions
    ]
    assert committed == [("a", ID_A, 0, 1), ("a", ID_A, 1, 2), ("b", bytes(16), 0, 3)]
    nothing = driver.fetch_all("none")
    assert (nothing.topics, nothing.error_code) == ([], 0)


def test_offsets_survive_a_restart(driver):
    driver.commit(42, metadata="note", leader_epoch=7, topic_id=ID_A)
    driver.commit(5, partition=1)
    before = driver.coordinator.offsets.store
    driver.restart()
    assert driver.coordinator.offsets.store == before
    assert driver.fetch() == (42, 7, "note")


def test_the_record_has_the_version_that_kafka_writes(driver):
    driver.commit(42, metadata="note", leader_epoch=7, topic_id=ID_A)
    (key, value) = driver.log[-1]
    assert key.hex() == "0001" + "000167" + "000174" + "00000000"
    assert value[:2] == b"\0\4"
    read = records.read_offset(value)
    assert (read.offset, read.leader_epoch, read.metadata, read.commit_timestamp) == (42, 7, "note", START_MS)
    assert read.topic_id == ID_A


def test_a_retention_of_its_own_is_kept_with_the_offset(driver):
    """OffsetCommit v2-4; the record has version 1, the only one with an expiry time."""
    driver.commit(42, retention_ms=1000)
    assert driver.log[-1][1][:2] == b"\0\1"
    driver.restart()
    assert driver.coordinator.offsets.store.get("g", "t", 0).expire_timestamp_ms == START_MS + 1000


def test_an_offset_of_a_former_topic_of_that_name_is_not_shown(driver):
    driver.commit(42, topic_id=ID_A)
    assert driver.fetch(topic_id=ID_A)[0] == 42
    assert driver.fetch(topic_id=ID_B)[0] == -1
    assert driver.fetch()[0] == 42


@for_each(("metadata", "fits"), [("x" * 16, True), ("x" * 17, False), ("é" * 16, True), ("𝄞" * 9, False)])
def test_metadata_has_a_limit(metadata, fits):
    """12; the limit counts UTF-16 units, as Kafka does."""
    driver = Driver(offset_metadata_max_bytes=16)
    assert driver.commit(metadata=metadata) == (0 if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE)
    assert driver.fetch()[0] == (10 if fits else -1)


def test_an_answer_comes_only_when_the_record_is_in_the_log(driver):
    driver.append_error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert driver.commit(42) == ErrorCode.NOT_COORDINATOR
    assert driver.fetch()[0] == -1


class TestWhoMayCommit:
    def test_nobody_in_particular_while_the_group_has_no_members(self, driver):
        assert driver.commit() == 0
        assert driver.state() is GroupState.EMPTY
        assert driver.commit() == 0

    def test_members_of_the_generation(self, driver):
        (member,) = driver.stable()
        assert driver.commit(member_id=member, generation=1) == 0
        assert driver.commit(member_id=member, generation=0) == ErrorCode.ILLEGAL_GENERATION
        assert driver.commit(member_id=member, generation=2) == ErrorCode.ILLEGAL_GENERATION
        assert driver.commit(member_id="nobody", generation=1) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_nobody_else_while_there_are_members(self, driver):
        (member,) = driver.stable()
        assert driver.commit() == ErrorCode.UNKNOWN_MEMBER_ID
        assert driver.commit(member_id=member) == ErrorCode.ILLEGAL_GENERATION

    def test_members_of_the_old_generation_until_the_new_one_begins(self, driver):
        (member,) = driver.stable()
        driver.new_member()
        assert driver.commit(member_id=member, generation=1) == 0

    def test_nobody_between_generation_and_assignment(self, driver):
        (member,) = driver.joined()
        assert driver.commit(member_id=member, generation=1) == ErrorCode.REBALANCE_IN_PROGRESS

    @pytest.mark.parametrize(
        ("version", "error"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
    )
    def test_no_member_of_a_group_that_is_not_there(self, driver, version, error):
        assert driver.commit(member_id="m", generation=1, version=version) == error
        assert driver.coordinator.groups == {}

    def test_no_former_member_of_an_emptied_group(self, driver):
        (member,) = driver.stable()
        driver.leave(member)
        assert driver.commit(member_id=member, generation=1) == ErrorCode.UNKNOWN_MEMBER_ID
        assert driver.commit() == 0


class TestDelete:
    def test_offsets_of_an_empty_group_go_for_good(self, driver):
        driver.commit()
        driver.commit(11, partition=1)
        assert driver.delete_offsets() == (0, 0)
        driver.restart()
        assert driver.fetch()[0] == -1
        assert driver.fetch(partition=1)[0] == 11

    def test_what_is_not_there_is_deleted_already(self, driver):
        driver.commit()
        before = len(driver.log)
        assert driver.delete_offsets(partition=9) == (0, 0)
        assert driver.delete_offsets(topic="other") == (0, 0)
        assert len(driver.log) == before

    def test_not_of_topics_that_the_members_read(self, driver):
        """86."""
        (member,) = driver.stable(metadata=subscription("t"))
        driver.commit(member_id=member, generation=1)
        driver.commit(member_id=member, generation=1, topic="other")
        assert driver.delete_offsets() == (0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        assert driver.delete_offsets(topic="other") == (0, 0)
        assert driver.fetch()[0] == 10
        assert driver.fetch(topic="other")[0] == -1

    def test_not_while_members_do_not_tell_what_they_read(self, driver):
        driver.stable(metadata=b"\x00")
        assert driver.delete_offsets() == (0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)

    def test_subscriptions_are_known_after_a_restart(self, driver):
        driver.stable(metadata=subscription("t"))
        driver.restart()
        assert driver.delete_offsets() == (0, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC)
        assert driver.delete_offsets(topic="other") == (0, 0)

    def test_not_of_live_groups_that_are_no_consumers(self, driver):
        """68."""
        driver.stable(protocol_type="connect")
        assert driver.delete_offsets()[0] == ErrorCode.NON_EMPTY_GROUP

    def test_not_of_groups_that_are_not_there(self, driver):
        """69, 24."""
        assert driver.delete_offsets()[0] == ErrorCode.GROUP_ID_NOT_FOUND
        assert driver.delete_offsets(group_id="")[0] == ErrorCode.INVALID_GROUP_ID

    def test_an_emptied_consumer_group_reads_nothing(self, driver):
        (member,) = driver.stable(metadata=subscription("t"))
        driver.commit(member_id=member, generation=1)
        driver.leave(member)
        assert driver.delete_offsets() == (0, 0)
        assert driver.fetch()[0] == -1

    def test_when_it_cannot_be_written_nothing_is_deleted(self, driver):
        driver.commit()
        driver.append_error = ErrorCode.KAFKA_STORAGE_ERROR
        assert driver.delete_offsets()[0] == ErrorCode.NOT_COORDINATOR
        assert driver.fetch()[0] == 10


def test_offsets_of_many_deleted_topics_are_removed_in_parts_with_one_look_at_each_group(driver):
    groups = [f"g{index}" for index in range(100)]
    for group in groups:
        for topic in ("gone.1", "gone.2", "stays"):
            driver.commit(1, topic=topic, group_id=group)
    offsets = driver.coordinator.offsets
    deleted = {f"gone.{index}": ZERO_UUID for index in range(2000)}
    parts = 0
    for result in offsets.topics_deleted_in_parts(deleted):
        assert len(result.records) <= LOOKED_AT_PER_PART
        parts += 1
        driver.handle(result)
    assert 2 <= parts <= 1 + (100 + 200 + 2000) // LOOKED_AT_PER_PART
    assert all(list(offsets.store.of_group(group)) == ["stays"] for group in groups)


def test_a_deleted_topic_takes_its_offsets_of_all_groups_along(driver):
    driver.commit(1, topic="gone")
    driver.commit(2, topic="gone", partition=3, group_id="other")
    driver.commit(3, topic="stays")
    driver.handle(driver.coordinator.offsets.topics_deleted({"gone": ZERO_UUID}))
    driver.restart()
    assert driver.fetch("gone") == (-1, -1, "")
    assert driver.fetch("gone", 3, group_id="other") == (-1, -1, "")
    assert driver.fetch("stays")[0] == 3
