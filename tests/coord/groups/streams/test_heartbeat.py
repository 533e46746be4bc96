"""KIP-1071: the responses of a streams group to heartbeats."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.modern.states import MemberState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.coord.groups.streams.internal_topics import Status
from barnabas.coord.groups.streams.states import StreamsGroupState
from barnabas.coord.groups.streams.tasks import Tasks
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import offsets as o
from barnabas.wire.messages.groups import streams_groups as s
from tests.coord.groups.cluster_driver import GroupTopics
from tests.coord.groups.group_driver import LATEST
from tests.coord.groups.streams.streams_driver import (
    QUICK,
    V1,
    Client,
    StreamsDriver,
    given,
    settle,
    statuses,
    subtopology,
    tasks,
    told,
    topic,
)
from tests.support.cases import for_each

EVERYTHING = tasks("0_0", "0_1", "0_2", "1_0", "1_1", "1_2")


@pytest.fixture
def driver():
    return StreamsDriver()


# ---- joining and assigning


def test_the_first_member_gets_every_task(driver):
    response = driver.beat()
    assert (response.error_code, response.member_id, response.member_epoch) == (0, "m1", 2)
    assert given(response) == Tasks(EVERYTHING)
    assert statuses(response) == set()
    assert driver.state() is StreamsGroupState.STABLE


def test_a_second_member_gets_tasks_once_the_first_has_given_them_up(driver):
    first, second = Client(driver, "m1"), Client(driver, "m2")
    first.beat()
    first.reconcile()
    assert given(second.beat()) == Tasks()
    assert driver.group().members["m2"].state is MemberState.UNRELEASED
    less = given(first.beat())
    assert less.active < EVERYTHING
    assert driver.group().members["m1"].state is MemberState.UNREVOKED
    assert given(second.beat()) is None, "not before the first has said that it gave them up"
    first.reconcile()
    assert first.beat().member_epoch == 3
    assert given(second.beat()).active == EVERYTHING - less.active
    assert driver.state() is StreamsGroupState.STABLE


def test_missing_internal_topics_are_told_and_then_there():
    driver = StreamsDriver(GroupTopics(lines=3))
    response = driver.beat()
    assert given(response) == Tasks()
    (status,) = response.status
    assert (status.status_code, status.status_detail) == (3, "Internal topics are missing: counts, words")
    assert driver.state() is StreamsGroupState.NOT_READY
    assert driver.create_missing() == ["counts", "words"]
    response = driver.beat(epoch=2)
    assert given(response) == Tasks(EVERYTHING)
    assert driver.state() is StreamsGroupState.STABLE


def test_missing_source_topics():
    driver = StreamsDriver(GroupTopics())
    assert statuses(driver.beat()) == {Status.MISSING_SOURCE_TOPICS}
    assert driver.create_missing() == []
    driver.cluster.create("lines", 1)
    driver.changed("lines")
    assert statuses(driver.beat(epoch=2)) == {Status.MISSING_INTERNAL_TOPICS}


def test_a_topic_that_goes_takes_the_tasks_with_it(driver):
    driver.beat()
    assert statuses(driver.beat(epoch=2)) == set()
    del driver.cluster.topics["lines"]
    driver.changed("lines")
    response = driver.beat(epoch=2, owned=Tasks(EVERYTHING))
    assert given(response) == Tasks()
    assert statuses(response) == {Status.MISSING_SOURCE_TOPICS}
    assert driver.state() is StreamsGroupState.NOT_READY


def test_a_group_that_forms_waits_for_more_members():
    driver = StreamsDriver(settings=QUICK._replace(streams_initial_rebalance_delay_ms=3_000))
    response = driver.beat("m1")
    assert (statuses(response), response.member_epoch, given(response)) == ({Status.ASSIGNMENT_DELAYED}, 1, Tasks())
    assert response.status[0].status_detail == "Assignment delayed due to the configured initial rebalance delay."
    assert statuses(driver.beat("m2")) == {Status.ASSIGNMENT_DELAYED}
    driver.advance(3.0)
    assignments = [given(driver.beat(member, 1)) for member in ("m1", "m2")]
    assert [len(each.active) for each in assignments] == [3, 3]
    assert driver.state() is StreamsGroupState.STABLE


def test_who_comes_while_all_are_gone_does_not_wait_for_nobody():
    """The delay expires without members; the next first member starts another."""
    driver = StreamsDriver(settings=QUICK._replace(streams_initial_rebalance_delay_ms=3_000))
    driver.beat("m1")
    driver.beat("m1", -1)
    driver.advance(5.0)
    assert statuses(driver.beat("m2")) == {Status.ASSIGNMENT_DELAYED}
    driver.advance(3.0)
    assert given(driver.beat("m2", driver.group().members["m2"].epoch)).active == EVERYTHING


def test_assignments_keep_their_distance():
    driver = StreamsDriver(settings=QUICK._replace(streams_assignment_interval_ms=1_000))
    driver.beat("m1")
    response = driver.beat("m2")
    assert statuses(response) == {Status.ASSIGNMENT_DELAYED}
    assert response.status[0].status_detail == "Assignment delayed due to the configured assignment interval."
    driver.advance(1.0)
    response = driver.beat("m2", 2)
    assert (statuses(response), response.member_epoch) == (set(), 3)


def test_members_come_back_soon_while_the_group_moves(driver):
    first = Client(driver, "m1")
    assert first.beat().heartbeat_interval_ms == 500
    first.reconcile()
    driver.advance(6.0)
    assert first.beat().heartbeat_interval_ms == QUICK.streams_heartbeat_interval_ms


def test_standbys_are_on_other_processes():
    driver = StreamsDriver(settings=QUICK._replace(streams_num_standby_replicas=1))
    clients = [Client(driver, f"m{n}", process_id=f"p{n // 2}") for n in range(4)]
    settle(driver, *clients)
    here, there = clients[:2], clients[2:]
    stateful = {task for task in EVERYTHING if task.subtopology == "1"}
    for some, others in ((here, there), (there, here)):
        running = {task for client in some for task in client.owned.active} & stateful
        assert {task for client in others for task in client.owned.standby} == running


def test_a_standby_takes_over_where_it_is():
    """It is promoted without being revoked in between."""
    driver = StreamsDriver(settings=QUICK._replace(streams_num_standby_replicas=1))
    first, second = Client(driver, "m1"), Client(driver, "m2")
    settle(driver, first, second)
    copies = second.owned.standby
    assert copies
    driver.beat("m1", -1)
    response = second.beat()
    assert copies <= given(response).active
    assert driver.group().members["m2"].state is MemberState.STABLE


def test_a_change_of_the_standbys_assigns_anew(driver):
    first, second = Client(driver, "m1"), Client(driver, "m2")
    settle(driver, first, second)
    epoch = driver.group().epoch
    driver.settings = driver.settings._replace(streams_num_standby_replicas=1)
    settle(driver, first, second)
    assert driver.group().epoch == epoch + 1
    assert first.owned.standby
    assert second.owned.standby


def test_client_tags_that_are_asked_for_and_missing():
    driver = StreamsDriver(settings=QUICK._replace(streams_rack_aware_assignment_tags=("zone",)))
    assert statuses(driver.beat()) == {Status.MISSING_CLIENT_TAGS}
    assert statuses(driver.beat(epoch=2, context=V1._replace(api_version=0))) == set()
    tags = [s.StreamsGroupHeartbeatRequestKeyValue(key="zone", value="a")]
    assert statuses(driver.beat(epoch=2, client_tags=tags)) == set()
    assert driver.group().members["m1"].client_tags == {"zone": "a"}


# ---- fencing, leaving, time


def test_an_unknown_member_and_an_unknown_group(driver):
    assert driver.beat("m1", 3).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.beat("m1")
    assert driver.beat("m2", 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_of_others_are_fenced_and_a_lost_answer_is_repeated(driver):
    driver.beat("m1")
    assert driver.beat("m1", 3).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert driver.beat("m1", 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    driver.beat("m2")
    driver.beat("m1", 2, owned=Tasks())  # it has nothing to revoke; the response is lost
    repeated = driver.beat("m1", 2, owned=Tasks())
    assert (repeated.error_code, repeated.member_epoch) == (0, 3)
    assert given(repeated) is not None
    assert driver.beat("m1", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH, "it has to tell what it has"


def test_a_member_that_leaves_makes_room(driver):
    driver.beat("m1")
    driver.beat("m2")
    response = driver.beat("m1", -1)
    assert (response.error_code, response.member_epoch) == (0, -1)
    assert given(driver.beat("m2", 3)).active == EVERYTHING


def test_the_last_member_leaves(driver):
    driver.beat("m1")
    driver.beat("m1", -1)
    assert driver.state() is StreamsGroupState.EMPTY
    assert given(driver.beat("m2")).active == EVERYTHING


def test_a_session_that_ends(driver):
    first, second = Client(driver, "m1"), Client(driver, "m2")
    settle(driver, first, second)
    for _ in range(5):
        driver.advance(10.0)
        second.beat()
    assert list(driver.group().members) == ["m2"]
    second.beat()
    assert second.target.active == EVERYTHING


def test_a_member_that_does_not_give_up_tasks_in_time(driver):
    driver.beat("m1", rebalance_timeout_ms=2_000)
    driver.beat("m2")
    driver.beat("m1", 2)
    driver.advance(1.9)
    assert "m1" in driver.group().members
    driver.advance(0.2)
    assert "m1" not in driver.group().members


def test_a_static_member_comes_back_under_a_new_id(driver):
    driver.beat("m1", instance_id="i")
    for member_id in ("m2", "m1"):
        assert driver.beat(member_id, instance_id="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert driver.beat("m2", 2, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert driver.beat("m1", -2, instance_id="i").error_code == 0
    epoch = driver.group().epoch
    response = driver.beat("m2", instance_id="i", process_id="process-of-m1")
    assert given(response).active == EVERYTHING
    assert (list(driver.group().members), driver.group().epoch) == (["m2"], epoch)
    assert driver.group().static_members == {"i": "m2"}


def test_a_full_group():
    driver = StreamsDriver(streams_max_size=1)
    driver.beat("m1")
    assert driver.beat("m2").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert driver.beat("m1").error_code == 0


def test_one_member_stops_the_whole_application(driver):
    driver.beat("m1")
    driver.beat("m2")
    response = driver.beat("m1", 2, shutdown_application=True)
    assert statuses(response) == {Status.SHUTDOWN_APPLICATION}
    assert statuses(driver.beat("m2", 3)) == {Status.SHUTDOWN_APPLICATION}
    driver.beat("m1", -1)
    driver.beat("m2", -1)
    assert statuses(driver.beat("m3")) == set(), "the next application starts"


# ---- topology


def test_another_topology_is_refused(driver):
    driver.beat("m1")
    other = told(subtopology("0", ["lines"]))
    response = driver.beat("m2", topology=other)
    assert (response.error_code, response.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Topology updates are not supported yet.",
    )


def test_an_older_topology_is_told_so():
    driver = StreamsDriver()
    new = told(subtopology("0", ["lines"]), epoch=1)
    driver.beat("m1", topology=new)
    assert statuses(driver.beat("m2", topology=told(subtopology("0", ["words"])))) == {Status.STALE_TOPOLOGY}


@for_each(
    ("fields", "message"),
    [
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": Tasks(tasks("0_0"))}, "ActiveTasks must be empty when (re-)joining."),
        ({"epoch": -3}, "MemberEpoch is -3, but must be greater than or equal to -2."),
        ({"epoch": -2}, "InstanceId can't be null."),
        ({"epoch": 1, "topology": told()}, "Topology can only be provided when (re-)joining."),
        (
            {"topology": told(s.StreamsGroupHeartbeatRequestSubtopology(source_topic_regex=["a.*"]))},
            "Regular expressions for source topics are not supported yet.",
        ),
    ],
)
def test_requests_that_make_no_sense(driver, fields, message):
    response = driver.beat(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)


@pytest.mark.parametrize("owned", ["9_0", "0_3"])
def test_tasks_that_do_not_exist(driver, owned):
    driver.beat()
    assert driver.beat(epoch=2, owned=Tasks(tasks(owned))).error_code == ErrorCode.INVALID_REQUEST


@for_each(
    ("wrong", "message"),
    [
        (
            [subtopology("0", ["lines"], changelogs=[topic("c", 3)])],
            "Changelog topic c must have an undefined partition count, but it is set to 3.",
        ),
        (
            [subtopology("0", ["lines"], sinks=["__transaction_state"])],
            "Use of Kafka internal topics __transaction_state in a Kafka Streams topology is prohibited.",
        ),
        ([subtopology("0", ["lines", "a b", ""])], "Topic names ,a b are not valid topic names."),
        ([subtopology("0", ["lines"]), subtopology("0", ["words"])], "Subtopologies must have different ids."),
        (
            [subtopology("0", ["lines"], sinks=["r"]), subtopology("1", repartition=[topic("r", -2)])],
            "Repartition topic r cannot have -2 partitions.",
        ),
    ],
)
def test_topologies_that_make_no_sense(driver, wrong, message):
    response = driver.beat(topology=told(*wrong))
    assert (response.error_code, response.error_message) == (ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    assert driver.group() is None


# ---- endpoints


def test_who_answers_queries_about_what(driver):
    here = s.StreamsGroupHeartbeatRequestEndpoint(host="here", port=1)
    response = driver.beat("m1", user_endpoint=here, endpoint_information_epoch=-1)
    assert response.endpoint_information_epoch == 1
    (endpoint,) = response.partitions_by_user_endpoint
    assert (endpoint.user_endpoint.host, endpoint.user_endpoint.port) == ("here", 1)
    assert [(each.topic, each.partitions) for each in endpoint.active_partitions] == [
        ("lines", [0, 1, 2]),
        ("words", [0, 1, 2]),
    ]
    assert driver.beat("m1", 2, endpoint_information_epoch=1).partitions_by_user_endpoint is None


def test_a_new_coordinator_tells_everybody_who_answers_queries():
    """It does not know the endpoint epochs of the previous coordinator."""
    driver = StreamsDriver(settings=QUICK._replace(streams_assignment_interval_ms=60_000))
    here = s.StreamsGroupHeartbeatRequestEndpoint(host="here", port=1)
    known = driver.beat("m1", user_endpoint=here).endpoint_information_epoch
    driver.restart()
    driver.beat("m2", user_endpoint=s.StreamsGroupHeartbeatRequestEndpoint(host="there", port=2))
    response = driver.beat("m1", 2, endpoint_information_epoch=known)
    assert [endpoint.user_endpoint.host for endpoint in response.partitions_by_user_endpoint] == ["here", "there"]


# ---- with the rest of the coordinator


def test_describe(driver):
    driver.beat("m1", user_endpoint=s.StreamsGroupHeartbeatRequestEndpoint(host="here", port=1))
    offsets = [s.StreamsGroupHeartbeatRequestTaskOffset(subtopology_id="1", partition=0, offset=7)]
    driver.beat("m1", 2, task_offsets=offsets)
    description = driver.describe(wants_description=True)
    assert (description.group_state, description.group_epoch, description.assignment_epoch) == ("Stable", 2, 2)
    assert (description.assignor_name, description.topology_description_status) == ("sticky", 1)
    assert [each.subtopology_id for each in description.topology.subtopologies] == ["0", "1"]
    (member,) = description.members
    assert (member.member_epoch, member.process_id, member.user_endpoint.port) == (2, "process-of-m1", 1)
    assert member.assignment == member.target_assignment
    assert [(each.subtopology_id, each.partitions) for each in member.assignment.active_tasks] == [
        ("0", [0, 1, 2]),
        ("1", [0, 1, 2]),
    ]
    assert [each.offset for each in member.task_offsets] == [7]


def test_listed_and_deleted(driver):
    driver.beat("m1")
    (listed,) = driver.coordinator.list_groups(types=["streams"])
    assert (listed.group_id, listed.protocol_type, listed.group_state, listed.group_type) == (
        "g",
        "streams",
        "Stable",
        "streams",
    )
    driver.handle(driver.coordinator.delete_group("g", "t1"))
    assert driver.answers.pop("t1").error_code == ErrorCode.NON_EMPTY_GROUP
    driver.beat("m1", -1)
    driver.handle(driver.coordinator.delete_group("g", "t2"))
    assert driver.answers.pop("t2").error_code == 0
    assert driver.group() is None
    driver.restart()
    assert driver.group() is None


def test_an_empty_classic_group_becomes_a_streams_group(driver):
    """Its offsets are kept, so that an application can change to the new protocol."""
    member_id = driver.answers[driver.join()].member_id
    driver.join(member_id)
    assert driver.beat("m1").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.advance(20.0)
    assert driver.beat("m1").error_code == 0
    driver.restart()
    assert driver.state() is StreamsGroupState.STABLE


def commit(driver, member_id, epoch, partition=0, context=LATEST):
    request = o.OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[
            o.OffsetCommitRequestTopic(
                name="lines",
                partitions=[o.OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)],
            )
        ],
    )
    driver.handle(driver.coordinator.offsets.commit(request, "c", context, driver.at))
    return driver.answers.pop("c").topics[0].partitions[0].error_code


def test_offsets_are_committed_in_the_member_epoch_or_an_earlier_one_of_the_task(driver):
    """KIP-1251."""
    first, second = Client(driver, "m1"), Client(driver, "m2")
    settle(driver, first, second)
    assert (first.epoch, second.epoch) == (3, 3)
    partition = min(task.partition for task in first.owned.active if task.subtopology == "0")
    theirs = min(task.partition for task in second.owned.active if task.subtopology == "0")
    assert commit(driver, "m1", 3, partition) == 0
    assert commit(driver, "m1", 2, partition) == 0, "it has had this task since epoch 2"
    assert commit(driver, "m1", 2, theirs) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(driver, "m2", 2, theirs) == ErrorCode.STALE_MEMBER_EPOCH, "it has this task since epoch 3"
    assert commit(driver, "m1", 4, partition) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(driver, "m9", 3, partition) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(driver, "m1", 3, partition, LATEST._replace(api_version=8)) == ErrorCode.UNSUPPORTED_VERSION


def test_offsets_of_topics_that_are_read_are_not_deleted(driver):
    driver.beat("m1")
    assert driver.group().is_subscribed_to("lines")
    assert driver.group().is_subscribed_to("words")
    assert not driver.group().is_subscribed_to("counts")
    driver.beat("m1", -1)
    assert not driver.group().is_subscribed_to("lines")


def test_a_restart_finds_all_as_it_was(driver):
    first, second = Client(driver, "m1"), Client(driver, "m2", instance_id="i")
    settle(driver, first, second)
    before = driver.group()
    driver.restart()
    after = driver.group()
    assert (after.members, after.target, after.epoch, after.topology) == (
        before.members,
        before.target,
        before.epoch,
        before.topology,
    )
    first.beat()
    assert driver.group().epoch == before.epoch, "nothing has changed, so nobody moves"
    driver.advance(100.0)
    assert not driver.group().members, "sessions began anew"


def test_an_append_that_fails_changes_nothing(driver):
    driver.beat("m1")
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.beat("m2").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert list(driver.group().members) == ["m1"]
    assert driver.beat("m1", 2).member_epoch == 2


def test_settings_of_one_group(driver):
    driver.settings = GroupSettings(streams_heartbeat_interval_ms=400, streams_initial_rebalance_delay_ms=0)
    assert driver.beat().heartbeat_interval_ms == 400


def test_an_empty_streams_group_becomes_a_classic_group(driver):
    driver.beat("m1")
    ticket = driver.join()
    assert driver.answers.pop(ticket).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    driver.beat("m1", -1)
    member_id = driver.answers.pop(driver.join()).member_id
    assert driver.answers[driver.join(member_id)].error_code == 0
    assert driver.group().group_type == "classic"
    assert driver.beat("m1").error_code == ErrorCode.GROUP_ID_NOT_FOUND
