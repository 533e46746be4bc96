"""G3: ConsumerGroupDescribe (KIP-848, KIP-1099), and the states of a group."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.consumer.states import PREDECESSORS, ConsumerGroupState
from barnabas.coord.groups.modern.states import MEMBER_PREDECESSORS, MemberState
from barnabas.coord.groups.settings import GroupSettings
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import Client, ConsumerDriver, settle

T, U = topic_id("t"), topic_id("u")
S = ConsumerGroupState


@pytest.fixture
def driver():
    return ConsumerDriver(GroupTopics(t=4, u=1))


def shown(assignment):
    return {entry.topic_name: entry.partitions for entry in assignment.topic_partitions}


def test_a_group_is_shown_with_its_members(driver):
    driver.beat("m1", instance_id="i", rack_id="r", subscribed_topic_names=["u", "t"], server_assignor="range")
    description = driver.describe()
    assert (description.error_code, description.group_id, description.group_state) == (0, "g", "Stable")
    assert (description.group_epoch, description.assignment_epoch, description.assignor_name) == (2, 2, "range")
    (member,) = description.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m1", "i", "r", 2)
    assert (member.client_id, member.client_host, member.member_type) == ("client", "/127.0.0.1", 1)
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t", "u"], "")
    assert shown(member.assignment) == shown(member.target_assignment) == {"t": [0, 1, 2, 3], "u": [0]}


def test_what_a_member_has_to_give_up_is_still_its_own(driver):
    first = Client(driver, "m1")
    settle(first)
    driver.beat("m2")
    first.beat()
    members = {member.member_id: member for member in driver.describe().members}
    assert shown(members["m1"].assignment) == {"t": [0, 1, 2, 3]}
    assert len(shown(members["m1"].target_assignment)["t"]) == 2
    assert shown(members["m2"].assignment) == {}
    assert len(shown(members["m2"].target_assignment)["t"]) == 2


def test_topics_that_are_gone_are_left_out(driver):
    driver.beat("m1", subscribed_topic_names=["t", "u"])
    del driver.cluster.topics["u"]
    (member,) = driver.describe().members
    assert set(shown(member.assignment)) == {"t"}


@pytest.mark.parametrize("kind", ["none", "classic"])
def test_what_is_no_consumer_group_is_not_found(driver, kind):
    if kind == "classic":
        driver.commit()
    with pytest.raises(KafkaError) as refused:
        driver.describe()
    assert refused.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_goes_through_its_states():
    """Empty, Assigning, Reconciling, Stable and back, by transitions of the table."""
    driver = ConsumerDriver(GroupTopics(t=4), GroupSettings(consumer_assignment_interval_ms=1_000))
    seen = []

    def look():
        state = driver.state()
        if not seen or seen[-1] is not state:
            assert not seen or seen[-1] in PREDECESSORS[state]
            seen.append(state)

    first, second = Client(driver, "m1"), Client(driver, "m2")
    settle(first)
    look()
    second.beat()
    look()
    driver.advance(1)
    second.beat()
    look()
    settle(first, second)
    look()
    driver.beat("m1", -1)
    look()
    driver.beat("m2", -1)
    look()
    group = driver.group()
    driver.delete_group()
    assert seen == [S.STABLE, S.ASSIGNING, S.RECONCILING, S.STABLE, S.ASSIGNING, S.EMPTY]
    assert group.state is S.DEAD
    assert seen[-1] in PREDECESSORS[S.DEAD]


def test_the_tables_name_every_state():
    assert set(PREDECESSORS) == set(S)
    assert set(MEMBER_PREDECESSORS) == set(MemberState)
    assert all(state not in before for state, before in PREDECESSORS.items())
