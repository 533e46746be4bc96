"""KIP-932, G5: members of share groups; cases of Kafka's GroupMetadataManagerTest and ShareGroupTest."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.share.state_partitions import StatePartitions
from barnabas.wire.errors import ErrorCode as E
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.groups.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.group_driver import LATEST
from tests.coord.groups.share.share_group_driver import ShareDriver, facts, given
from tests.support.cases import for_each

ALL = {("t", index) for index in range(4)}


@pytest.fixture
def driver():
    return ShareDriver()


def test_a_first_member_gets_everything(driver):
    response = driver.join(rack_id="r")
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m1", 2)
    assert given(driver, response) == ALL
    group = driver.group()
    assert (str(group.state), group.epoch, group.target_epoch) == ("Stable", 2, 2)
    assert group.members["m1"].rack_id == "r"


def test_state_is_initialized_with_the_groups_epoch(driver):
    """By `share.auto.offset.reset` for new topics, from the start for partitions that are added later."""
    driver.join()
    assert driver.states == {("g", topic_id("t"), index): (2, -1) for index in range(4)}
    driver.cluster.create("t", 5)
    driver.changed("t")
    response = driver.beat("m1", 2)
    assert given(driver, response) == ALL | {("t", 4)}
    assert driver.states["g", topic_id("t"), 4] == (3, 0)


def test_what_waits_for_state_is_answered_once_it_is_there(driver):
    driver.is_holding = True
    ticket = driver.send("m1", 0, ["t"])
    assert ticket not in driver.answers
    assert driver.group().state_partitions == StatePartitions(initializing={topic_id("t"): frozenset(range(4))})
    driver.run_task()
    assert given(driver, driver.answers[ticket]) == ALL
    assert driver.group().state_partitions == StatePartitions(initialized={topic_id("t"): frozenset(range(4))})


def test_state_is_initialized_once_however_many_heartbeats_wait_for_it(driver):
    driver.is_holding = True
    tickets = [driver.send(f"m{n}", 0, ["t"]) for n in (1, 2, 3, 4, 1)]
    assert len(driver.tasks) == 1
    assert not driver.answers
    driver.run_task()
    assert not driver.tasks
    held = [given(driver, driver.answers[ticket]) for ticket in tickets]
    assert [len(partitions) for partitions in held] == [1] * 5
    assert set().union(*held) == ALL


def test_only_partitions_without_a_task_are_initialized():
    driver = ShareDriver(GroupTopics(t=1, u=1))
    driver.is_holding = True
    first, second = driver.send("m1", 0, ["t"]), driver.send("m2", 0, ["t", "u"])
    assert [set(result.task.partitions) for result in driver.tasks] == [{topic_id("t")}, {topic_id("u")}]
    driver.run_task()
    assert first not in driver.answers, "its group reads u now"
    driver.run_task()
    assert given(driver, driver.answers[first]) | given(driver, driver.answers[second]) == {("t", 0), ("u", 0)}


def test_state_is_initialized_again_after_a_failure_or_the_retry_time(driver):
    driver.is_holding = True
    driver.task_error = E.COORDINATOR_NOT_AVAILABLE
    tickets = [driver.send("m1", 0, ["t"]), driver.send("m2", 0, ["t"])]
    driver.run_task()
    assert [driver.answers[ticket].error_code for ticket in tickets] == [E.COORDINATOR_NOT_AVAILABLE] * 2
    driver.task_error = None
    driver.send("m1", 0, ["t"])
    driver.advance(29)
    driver.send("m1", 0, ["t"])
    assert len(driver.tasks) == 1
    driver.advance(1)
    driver.send("m1", 0, ["t"])
    assert len(driver.tasks) == 2


@pytest.mark.parametrize(
    ("error", "response"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_heartbeat_that_waits_and_cannot_be_written_waits_no_longer(driver, error, response):
    driver.is_holding = True
    first = driver.send("m1", 0, ["t"])
    driver.append_error = error
    assert driver.join("m2").error_code == response
    driver.append_error = None
    driver.run_task()
    assert given(driver, driver.answers[first]) == ALL
    assert set(driver.group().members) == {"m1"}


def test_who_joins_while_start_offsets_are_set_waits_and_does_not_reset_them(driver):
    driver.is_holding = True
    driver.alter(dict.fromkeys(range(4), 7))
    ticket = driver.send("m1", 0, ["t"])
    assert len(driver.tasks) == 1
    driver.run_task()
    assert given(driver, driver.answers[ticket]) == ALL
    assert {start for _, start in driver.states.values()} == {7}


def test_what_was_begun_is_begun_again_after_a_restart(driver):
    driver.is_holding = True
    driver.send("m1", 0, ["t"])
    driver.tasks.clear()
    driver.restart()
    driver.is_holding = False
    assert given(driver, driver.join()) == ALL


def test_state_that_cannot_be_initialized_fails_the_heartbeat(driver):
    driver.task_error = E.COORDINATOR_NOT_AVAILABLE
    response = driver.join()
    assert (response.error_code, given(driver, response)) == (E.COORDINATOR_NOT_AVAILABLE, None)
    assert driver.group().state_partitions == StatePartitions()
    driver.task_error = None
    assert given(driver, driver.join()) == ALL


def test_a_heartbeat_that_cannot_be_written_is_answered(driver):
    driver.append_error = E.NOT_ENOUGH_REPLICAS
    assert driver.join().error_code == E.COORDINATOR_NOT_AVAILABLE
    assert driver.group() is None
    driver.append_error = None
    driver.is_holding = True
    ticket = driver.send("m1", 0, ["t"])
    driver.append_error = E.NOT_ENOUGH_REPLICAS
    driver.run_task()
    assert driver.answers[ticket].error_code == E.COORDINATOR_NOT_AVAILABLE


def test_members_share_and_each_learns_with_its_heartbeat(driver):
    driver.join("m1")
    second = driver.join("m2")
    first = driver.beat("m1", 2)
    assert given(driver, first) | given(driver, second) == ALL
    assert (len(given(driver, first)), len(given(driver, second))) == (2, 2)
    assert driver.beat("m2", second.member_epoch).assignment is None, "nothing has changed"


def test_more_members_than_partitions_share_a_partition():
    driver = ShareDriver(GroupTopics(t=1))
    answers = [driver.join(f"m{n}") for n in range(3)]
    answers = [driver.beat(f"m{n}", answers[n].member_epoch, ["t"]) for n in range(3)]
    assert [given(driver, response) for response in answers] == [{("t", 0)}] * 3


def test_a_member_subscribes_anew():
    driver = ShareDriver(GroupTopics(t=2, u=1))
    assert given(driver, driver.join("m1", "t", "u")) == {("t", 0), ("t", 1), ("u", 0)}
    response = driver.beat("m1", 2, ["u"])
    assert (response.member_epoch, given(driver, response)) == (3, {("u", 0)})
    same = driver.beat("m1", 3, ["u"])
    assert (same.member_epoch, given(driver, same)) == (3, {("u", 0)}), "who tells all is told all"


def test_topics_that_come_and_go():
    driver = ShareDriver(GroupTopics(t=1))
    assert given(driver, driver.join("m1", "t", "u")) == {("t", 0)}
    driver.cluster.create("u", 2)
    driver.changed("u")
    response = driver.beat("m1", 2)
    assert given(driver, response) == {("t", 0), ("u", 0), ("u", 1)}
    del driver.cluster.topics["u"]
    driver.changed("u")
    assert driver.group().state_partitions.topic_ids == {topic_id("t")}
    assert given(driver, driver.beat("m1", response.member_epoch)) == {("t", 0)}


def test_a_topic_of_the_same_name_is_another_topic():
    driver = ShareDriver(GroupTopics(t=1))
    driver.join()
    del driver.cluster.topics["t"]
    driver.changed("t")
    driver.cluster.create("t", 1, incarnation=1)
    driver.changed("t")
    driver.beat("m1", 2)
    assert set(driver.states) == {("g", topic_id("t"), 0), ("g", topic_id("t1"), 0)}
    assert driver.group().state_partitions.topic_ids == {topic_id("t1")}


def test_changes_of_topics_are_found_by_a_new_coordinator(driver):
    driver.join()
    driver.cluster.create("t", 5)
    driver.restart()
    assert given(driver, driver.beat("m1", 2)) == ALL | {("t", 4)}


@for_each(
    ("epoch", "code"),
    [(4, E.FENCED_MEMBER_EPOCH), (0, 0), (1, E.FENCED_MEMBER_EPOCH), (2, 0), (3, 0), (-2, E.INVALID_REQUEST)],
)
def test_epochs_of_a_member_that_has_epoch_3(epoch, code):
    driver = ShareDriver(GroupTopics(t=1, u=1))
    driver.join()
    driver.beat("m1", 2, ["t", "u"])
    assert driver.beat("m1", epoch, ["t", "u"] if epoch == 0 else None).error_code == code


def test_an_epoch_before_the_last_is_fenced():
    driver = ShareDriver(GroupTopics(t=1, u=1, v=1))
    driver.join()
    driver.beat("m1", 2, ["t", "u"])
    driver.beat("m1", 3, ["t", "u", "v"])
    assert driver.beat("m1", 3).error_code == 0
    response = driver.beat("m1", 2)
    assert response.error_code == E.FENCED_MEMBER_EPOCH
    assert "abandon all its partitions and rejoin" in response.error_message


def test_unknown_groups_and_members(driver):
    assert driver.beat("m1", 2).error_code == E.GROUP_ID_NOT_FOUND
    assert driver.beat("m1", -1).error_code == E.GROUP_ID_NOT_FOUND
    driver.join()
    assert driver.beat("m2", 2).error_code == E.UNKNOWN_MEMBER_ID
    assert driver.beat("m2", -1).error_code == E.UNKNOWN_MEMBER_ID


def test_a_group_has_no_more_members_than_allowed():
    driver = ShareDriver(share_max_size=2)
    assert [driver.join(f"m{n}").error_code for n in range(3)] == [0, 0, E.GROUP_MAX_SIZE_REACHED]
    assert driver.join("m1").error_code == 0, "who is in it may join again"


def test_leaving_makes_room_for_the_others(driver):
    driver.join("m1")
    second = driver.join("m2")
    epoch = driver.group().epoch
    response = driver.beat("m1", -1)
    assert (response.member_id, response.member_epoch) == ("m1", -1)
    assert driver.group().epoch == epoch + 1
    assert given(driver, driver.beat("m2", second.member_epoch)) == ALL


def test_the_last_to_leave_leaves_an_empty_group(driver):
    driver.join()
    driver.beat("m1", -1)
    group = driver.group()
    assert (str(group.state), group.target_epoch, group.epoch, group.target) == ("Empty", 3, 3, {})
    assert group.state_partitions.topic_ids == {topic_id("t")}, "positions stay"
    driver.restart()
    assert facts(driver.group()) == facts(group)
    assert given(driver, driver.join("m2")) == ALL
    assert driver.states["g", topic_id("t"), 0] == (2, -1), "state is initialized once"


def test_sessions_end_and_are_renewed():
    driver = ShareDriver(settings=GroupSettings(share_session_timeout_ms=10_000, share_assignment_interval_ms=0))
    driver.join("m1")
    second = driver.join("m2")
    driver.advance(9)
    assert driver.beat("m2", second.member_epoch).error_code == 0
    driver.advance(2)
    assert set(driver.group().members) == {"m2"}
    driver.restart()
    driver.advance(9.9)
    assert set(driver.group().members) == {"m2"}
    driver.advance(0.2)
    assert driver.group().is_empty


def test_sessions_that_end_together_all_end(driver):
    for n in range(5):
        driver.join(f"m{n}")
    epoch = driver.group().epoch
    driver.advance(46)
    assert driver.group().is_empty
    assert driver.group().epoch == epoch + 5
    driver.restart()
    assert driver.group().is_empty


def test_assignments_wait_for_their_interval():
    """Many members that join cause one assignment a second; waiting members get a shorter heartbeat interval."""
    driver = ShareDriver(settings=GroupSettings(share_assignment_interval_ms=1_000))
    driver.join("m1")
    driver.advance(0.25)
    early = driver.join("m2")
    assert (given(driver, early), early.member_epoch, early.heartbeat_interval_ms) == (set(), 2, 750)
    driver.advance(0.75)
    on_time = driver.beat("m2", 2)
    assert (len(given(driver, on_time)), on_time.member_epoch, on_time.heartbeat_interval_ms) == (2, 3, 5_000)


def test_a_share_group_is_no_consumer_group(driver):
    driver.join()
    with pytest.raises(KafkaError, match="not a consumer group"):
        driver.group().validate_commit(OffsetCommitRequest(), 9, is_transactional=False)
    fetched = driver.fetch_all()
    assert fetched.error_code == E.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError, match="not a consumer group"):
        driver.group().validate_offset_delete()


def test_an_id_that_another_type_has_is_not_found(driver):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    commit = OffsetCommitRequest(group_id="c", generation_id_or_member_epoch=-1, topics=[topic])
    driver.handle(driver.coordinator.offsets.commit(commit, "commit", LATEST, driver.at))
    response = driver.join(group_id="c")
    assert (response.error_code, response.error_message) == (E.GROUP_ID_NOT_FOUND, "Group c is not a share group.")
    assert driver.alter({0: 1}, group_id="c").error_code == E.GROUP_ID_NOT_FOUND


# ---- offsets


def test_positions_are_altered_while_nobody_reads(driver):
    driver.join()
    assert driver.alter({0: 7}).error_code == E.NON_EMPTY_GROUP
    driver.beat("m1", -1)
    (topic,) = driver.alter({0: 7, 9: 1}).responses
    assert [(p.partition_index, p.error_code) for p in topic.partitions] == [(0, 0), (9, E.UNKNOWN_TOPIC_OR_PARTITION)]
    assert driver.states["g", topic_id("t"), 0] == (3, 7), "with the group's epoch, which fences the old state"
    assert driver.group().state_partitions.initialized == {topic_id("t"): frozenset(range(4))}
    (unknown,) = driver.alter({0: 1}, topic="nowhere").responses
    assert unknown.partitions[0].error_code == E.UNKNOWN_TOPIC_OR_PARTITION


def test_positions_may_be_given_before_the_group_comes(driver):
    driver.alter({1: 3})
    assert str(driver.group().state) == "Empty"
    driver.restart()
    assert driver.group().state_partitions.initialized == {topic_id("t"): frozenset({1})}
    assert given(driver, driver.join()) == ALL
    assert {about[2]: state for about, state in driver.states.items()} == {0: (2, 0), 1: (1, 3), 2: (2, 0), 3: (2, 0)}


def test_positions_that_cannot_be_altered_are_told(driver):
    driver.task_error = E.NOT_COORDINATOR
    (topic,) = driver.alter({0: 1}).responses
    assert topic.partitions[0].error_code == E.NOT_COORDINATOR
    assert driver.group().state_partitions == StatePartitions()


def test_positions_are_deleted_by_topic():
    driver = ShareDriver(GroupTopics(t=2, u=1))
    driver.join("m1", "t", "u")
    assert driver.delete_offsets("t").error_code == E.NON_EMPTY_GROUP
    driver.beat("m1", -1)
    deleted = driver.delete_offsets("t", "nowhere")
    assert [(topic.topic_name, topic.error_code) for topic in deleted.responses] == [
        ("t", 0),
        ("nowhere", E.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert set(driver.states) == {("g", topic_id("u"), 0)}
    assert driver.group().state_partitions == StatePartitions(initialized={topic_id("u"): frozenset({0})})
    again = driver.delete_offsets("t").responses[0]
    assert (again.error_code, again.error_message) == (
        E.UNKNOWN_TOPIC_OR_PARTITION,
        "There is no offset information to delete.",
    )
    assert driver.delete_offsets("t", group_id="other").error_code == E.GROUP_ID_NOT_FOUND


def test_a_deletion_that_fails_can_be_repeated():
    driver = ShareDriver(GroupTopics(t=2))
    driver.join()
    driver.beat("m1", -1)
    driver.task_error = E.COORDINATOR_NOT_AVAILABLE
    assert driver.delete_offsets("t").responses[0].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert driver.group().state_partitions == StatePartitions(deleting=frozenset({topic_id("t")}))
    driver.restart()
    driver.task_error = None
    assert driver.delete_offsets("t").responses[0].error_code == 0
    assert (driver.states, driver.group().state_partitions) == ({}, StatePartitions())


def test_a_topic_that_is_read_again_is_not_deleted_any_more():
    driver = ShareDriver(GroupTopics(t=2))
    driver.join()
    driver.beat("m1", -1)
    driver.task_error = E.COORDINATOR_NOT_AVAILABLE
    driver.delete_offsets("t")
    driver.task_error = None
    driver.join()
    assert driver.group().state_partitions == StatePartitions(initialized={topic_id("t"): frozenset({0, 1})})


def test_a_group_goes_with_its_positions(driver):
    driver.join()
    assert driver.delete_group().error_code == E.NON_EMPTY_GROUP
    driver.beat("m1", -1)
    driver.task_error = E.COORDINATOR_NOT_AVAILABLE
    assert driver.delete_group().error_code == E.COORDINATOR_NOT_AVAILABLE
    assert driver.group() is not None
    driver.task_error = None
    assert driver.delete_group().error_code == 0
    assert (driver.group(), driver.states) == (None, {})
    assert driver.delete_group().error_code == E.GROUP_ID_NOT_FOUND
    driver.restart()
    assert driver.group() is None


def test_who_joins_while_the_group_is_deleted_keeps_it(driver):
    driver.join()
    driver.beat("m1", -1)
    driver.is_holding = True
    assert driver.delete_group() is None
    driver.send("m2", 0, ["t"])
    driver.run_task()
    answers = [response for ticket, response in driver.answers.items() if ticket.startswith("delete")]
    assert [response.error_code for response in answers] == [E.NON_EMPTY_GROUP]
    driver.run_task()
    assert driver.group().state_partitions.initialized == {topic_id("t"): frozenset(range(4))}
