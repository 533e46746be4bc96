"""Groups with members that are converted, and have members of both protocols (rule G4; KIP-848)."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.classic.group import ClassicGroup
from barnabas.coord.groups.classic.states import GroupState
from barnabas.coord.groups.config import MigrationPolicy
from barnabas.coord.groups.consumer.group import ConsumerGroup
from barnabas.coord.groups.consumer.states import ConsumerGroupState
from barnabas.coord.groups.context import ClientContext
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import Client, settle
from tests.coord.groups.consumer.migrating import (
    COOPERATIVE,
    EAGER,
    ClassicClient,
    assignment,
    classic_group,
    new_driver,
    read,
    subscription,
)
from tests.support.cases import for_each


def settle_all(driver, *clients, rounds=20):
    """Let members of both protocols send requests in turns until the group is Stable; no partition has two owners."""
    for _ in range(rounds):
        for client in clients:
            client.beat()
            if isinstance(client, Client):
                client.reconcile()
            held = [piece for member in clients for piece in member.partitions]
            assert len(held) == len(set(held)), "a partition has two owners"
        if driver.state() is ConsumerGroupState.STABLE and not any(
            getattr(member, "must_join", 0) for member in clients
        ):
            return
    raise AssertionError(f"the group does not settle: {driver.group()}")


@pytest.fixture
def driver():
    return new_driver()


@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_the_first_member_of_the_consumer_protocol_takes_a_live_classic_group_over(driver, protocol):
    clients = classic_group(driver, protocol=protocol)
    new = Client(driver, "new")
    settle_all(driver, new, *clients)
    assert isinstance(driver.group(), ConsumerGroup)
    assert sorted(len(member.partitions) for member in (new, *clients)) == [2, 2, 2]
    driver.restart()
    assert isinstance(driver.group(), ConsumerGroup)
    settle_all(driver, new, *clients)


def test_the_generation_goes_on_as_the_epoch(driver):
    classic_group(driver)
    generation = driver.group().generation
    response = driver.beat("new")
    assert response.error_code == 0
    assert response.member_epoch == generation + 1


@pytest.mark.parametrize("protocol", [EAGER, COOPERATIVE])
def test_when_the_last_one_of_the_consumer_protocol_leaves_the_group_is_classic_again(driver, protocol):
    clients = classic_group(driver, protocol=protocol)
    new = Client(driver, "new")
    settle_all(driver, new, *clients)
    epoch = driver.group().epoch
    assert driver.beat("new", -1).error_code == 0
    group = driver.group()
    assert isinstance(group, ClassicGroup)
    assert group.state is GroupState.PREPARING_REBALANCE
    assert group.generation == epoch
    assert group.members.keys() == {client.member_id for client in clients}
    for client in clients:
        assert driver.heartbeat(client.member_id, epoch) == ErrorCode.REBALANCE_IN_PROGRESS
    driver.restart()
    assert driver.state() is GroupState.PREPARING_REBALANCE, "the rebalance is not forgotten"
    assigned = {member_id: read(member.assignment)["t"] for member_id, member in driver.group().members.items()}
    assert all(len(partitions) == 2 for partitions in assigned.values())


@pytest.mark.parametrize("gone", ["session", "leave"])
def test_members_change_over_one_by_one_and_back_again(driver, gone):
    """The rolling upgrade, and the way back."""
    old = classic_group(driver, 3)
    live = list(old)
    for place, client in enumerate(old):
        live.append(Client(driver, f"new{place}"))
        settle_all(driver, *live)
        driver.leave(client.member_id)
        live.remove(client)
        settle_all(driver, *live)
    assert sorted(len(member.partitions) for member in live) == [2, 2, 2]
    for client in list(live):
        live.append(ClassicClient(driver))
        settle_all(driver, *live)
        live.remove(client)
        if gone == "leave":
            driver.beat(client.member_id, -1)
        else:
            for _ in range(10):
                driver.advance(5.0)
                for member in live:
                    if isinstance(driver.group(), ConsumerGroup):
                        member.beat()
                        if isinstance(member, Client):
                            member.reconcile()
                if client.member_id not in driver.group().members:
                    break
        if len([member for member in live if isinstance(member, Client)]):
            settle_all(driver, *live)
    assert isinstance(driver.group(), ClassicGroup)


def test_who_waits_for_the_classic_group_is_told_to_join_again(driver):
    clients = classic_group(driver, protocol=COOPERATIVE)
    parked = driver.join(clients[0].member_id, names=(COOPERATIVE,), metadata=subscription(["t", "u"]))
    assert parked not in driver.answers
    assert driver.beat("new").error_code == 0
    assert driver.answers[parked].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_upgrade_that_is_refused_leaves_the_classic_group_alone(driver):
    clients = classic_group(driver)
    parked = driver.join(clients[0].member_id, metadata=subscription(["t", "u"]))
    response = driver.beat("new", subscribed_topic_regex="a(")
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert isinstance(driver.group(), ClassicGroup)
    assert parked not in driver.answers
    driver.join(clients[1].member_id, metadata=subscription(["t"]))
    assert driver.answers[parked].error_code == 0


def test_an_upgrade_that_cannot_be_written_leaves_the_classic_group_alone(driver):
    clients = classic_group(driver)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.beat("new").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert driver.heartbeat(clients[0].member_id, clients[0].generation) == 0
    assert driver.state() is GroupState.STABLE


def test_a_downgrade_that_cannot_be_written_leaves_the_consumer_group_alone(driver):
    clients = classic_group(driver)
    new = Client(driver, "new")
    settle_all(driver, new, *clients)
    driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert driver.beat("new", -1).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    driver.append_error = None
    assert isinstance(driver.group(), ConsumerGroup)
    settle_all(driver, new, *clients)
    driver.advance(11.0)
    assert isinstance(driver.group(), ConsumerGroup)
    assert driver.group().members.keys() == {"new"}, "sessions of those who are silent end"


@for_each("policy", list(MigrationPolicy))
def test_the_policy_says_which_way_is_open(policy):
    driver = new_driver(consumer_migration_policy=policy)
    classic_group(driver)
    response = driver.beat("new")
    assert (response.error_code == 0) == policy.allows_upgrade
    if not policy.allows_upgrade:
        assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert "Cannot upgrade classic group g" in response.error_message
        driver = new_driver(consumer_migration_policy=policy)
        settle(Client(driver, "new"))
        joined = driver.answers[driver.join(metadata=subscription(["t"]))]
        disabled = policy is MigrationPolicy.DISABLED
        expected = ErrorCode.INCONSISTENT_GROUP_PROTOCOL if disabled else ErrorCode.MEMBER_ID_REQUIRED
        assert joined.error_code == expected
    else:
        driver.beat("new", -1)
        assert isinstance(driver.group(), ClassicGroup) == policy.allows_downgrade


def test_groups_that_are_no_consumers_or_would_lose_user_data_are_not_upgraded(driver):
    _, ticket = driver.new_member(protocol_type="connect")
    driver.advance(3.0)
    assert driver.answers[ticket].error_code == 0
    assert "does not use the consumer" in driver.beat("new").error_message
    [client] = classic_group(other := new_driver(), 1)
    other.join(client.member_id, metadata=subscription(["t"]))
    assignments = {client.member_id: assignment({"t": [0]}, user_data=b"mine")}
    other.sync(client.member_id, other.group().generation, assignments)
    assert "userData" in other.beat("new").error_message
    third = new_driver()
    third.new_member(metadata=b"meta")
    third.advance(3.0)
    assert "malformed" in third.beat("new").error_message


def test_a_group_too_large_for_the_other_protocol_stays_what_it_is():
    driver = new_driver(consumer_max_size=1)
    classic_group(driver)
    assert "exceeds the consumer group maximum size" in driver.beat("new").error_message
    driver = new_driver(max_size=1)
    new = Client(driver, "new")
    new.beat()
    settle_all(driver, new, ClassicClient(driver), ClassicClient(driver))
    driver.beat("new", -1)
    assert isinstance(driver.group(), ConsumerGroup)


def test_empty_groups_change_their_type_both_ways_and_keep_their_offsets(driver):
    [client] = classic_group(driver, 1)
    assert driver.commit(7, member_id=client.member_id, generation=client.generation) == 0
    driver.leave(client.member_id)
    driver.advance(61.0)
    assert driver.beat("new").error_code == 0
    assert isinstance(driver.group(), ConsumerGroup)
    driver.beat("new", -1)
    assert driver.state() is ConsumerGroupState.EMPTY
    classic_group(driver, 1)
    assert isinstance(driver.group(), ClassicGroup)
    driver.restart()
    assert driver.state() is GroupState.STABLE
    assert driver.fetch()[0] == 7


# ---- members of the classic protocol in a consumer group


def test_a_classic_member_follows_in_its_own_epoch(driver):
    new, old = Client(driver, "new"), ClassicClient(driver, protocol=COOPERATIVE)
    settle(new)
    response = old.join()
    assert (response.error_code, response.protocol_type, response.protocol_name) == (0, "consumer", COOPERATIVE)
    assert (response.leader, response.members) == ("", [])
    assert response.generation_id == driver.group().epoch
    synced = old.sync()
    assert read(synced.assignment) == {}, "the other has not given up anything yet"
    assert driver.heartbeat(old.member_id, old.generation) == 0, "there is nothing to come for yet"
    settle(new)
    assert driver.heartbeat(old.member_id, old.generation) == ErrorCode.REBALANCE_IN_PROGRESS
    old.join()
    assert len(read(old.sync().assignment)["t"]) == 3


@pytest.mark.parametrize("version", range(4))
def test_every_version_of_the_embedded_protocol_is_answered_in_kind(driver, version):
    settle(Client(driver, "new", topics=["u"]))
    member_id, ticket = driver.new_member(metadata=subscription(["t"], version=version))
    received = driver.answers[driver.sync(member_id, driver.answers[ticket].generation_id)].assignment
    assert received[:2] == version.to_bytes(2, "big")
    assert read(received) == {"t": set(range(6))}


def test_errors_of_classic_members_are_those_of_a_classic_group(driver):
    new, old = Client(driver, "new"), ClassicClient(driver)
    settle(new)
    old.join()
    wrong = old.generation + 1
    assert driver.answers[driver.sync(old.member_id, wrong)].error_code == ErrorCode.ILLEGAL_GENERATION
    assert driver.heartbeat(old.member_id, wrong) == ErrorCode.ILLEGAL_GENERATION
    assert driver.heartbeat("nobody", wrong) == ErrorCode.UNKNOWN_MEMBER_ID
    assert driver.heartbeat("new", new.epoch) == ErrorCode.UNKNOWN_MEMBER_ID, "it speaks the other protocol"
    assert driver.leave("nobody").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    inconsistent = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert driver.answers[driver.sync(old.member_id, old.generation, protocol_name="x")].error_code == inconsistent
    assert driver.answers[driver.sync(old.member_id, old.generation, protocol_type="x")].error_code == inconsistent
    metadata = subscription(["t"])
    assert driver.answers[driver.join(names=("other",), metadata=metadata)].error_code == inconsistent
    assert driver.answers[driver.join(protocol_type="x", metadata=metadata)].error_code == inconsistent
    assert driver.answers[driver.join(names=(), metadata=metadata)].error_code == inconsistent
    assert driver.answers[driver.join("some", metadata=b"\xff")].error_code == inconsistent
    session = driver.answers[driver.join(session_ms=1, metadata=metadata)]
    assert session.error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_old_client_joins_at_once(driver):
    settle(Client(driver, "new"))
    response = driver.answers[driver.join(metadata=subscription(["t"], version=0), context=ClientContext("c", "/h", 1))]
    assert response.error_code == 0
    assert response.member_id in driver.group().members


def test_group_max_size_holds_for_classic_members_too():
    driver = new_driver(consumer_max_size=1)
    settle(Client(driver, "new"))
    response = driver.answers[driver.join(metadata=subscription(["t"]))]
    assert response.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize("silent", ["session", "join", "sync"])
def test_a_classic_member_that_does_not_come_is_out(driver, silent):
    """It has its own session timeout, and its rebalance timeout to join again and to sync after a join."""
    new, old = Client(driver, "new"), ClassicClient(driver, protocol=COOPERATIVE)
    settle(new)
    old.join()
    if silent != "sync":
        old.sync()
        settle(new)
    for _ in range(80):
        if old.member_id not in driver.group().members:
            break
        driver.advance(1.0)
        new.beat()
        new.reconcile()
        if silent != "session" and old.member_id in driver.group().members:
            driver.heartbeat(old.member_id, old.generation)
    else:
        raise AssertionError("it is still there")
    waited = {"session": 10.0, "join": 60.0, "sync": 60.0}[silent]
    assert waited - 1 <= driver.now <= waited + 2
    settle(new)
    assert len(new.partitions) == 6


def test_a_static_classic_member_comes_back_under_a_new_id_and_gets_what_it_had(driver):
    new, old = Client(driver, "new"), ClassicClient(driver, instance_id="i1")
    settle_all(driver, new, old)
    before, epoch = old.partitions, driver.group().epoch
    again = ClassicClient(driver, instance_id="i1")
    settle_all(driver, new, again)
    assert again.partitions == before
    assert again.member_id != old.member_id
    assert driver.group().epoch == epoch
    assert driver.heartbeat(old.member_id, old.generation, instance_id="i1") == ErrorCode.FENCED_INSTANCE_ID
    assert old.join().error_code == ErrorCode.FENCED_INSTANCE_ID
    assert driver.leave((old.member_id, "i1")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert driver.leave(("", "i1")).members[0].error_code == 0
    assert driver.group().members.keys() == {"new"}


def test_a_static_member_changes_its_protocol_and_keeps_its_partitions(driver):
    """Its restart with the other protocol causes no rebalance."""
    other, old = ClassicClient(driver, instance_id="i2"), ClassicClient(driver, instance_id="i1")
    new = Client(driver, "new")
    settle_all(driver, new, other, old)
    upgraded = Client(driver, "upgraded", instance_id="i1")
    before, epoch = old.partitions, driver.group().epoch
    settle_all(driver, new, other, upgraded)
    assert upgraded.partitions == before
    assert driver.group().epoch == epoch
    back = ClassicClient(driver, instance_id="i1")
    settle_all(driver, new, other, back)
    assert back.partitions == before


def test_the_last_of_the_consumer_protocol_restarts_with_the_classic_one_and_the_group_is_classic_without_rebalance(
    driver,
):
    old = ClassicClient(driver, instance_id="i1")
    new = Client(driver, "new", instance_id="i2")
    new.beat()
    settle_all(driver, new, old)
    before, epoch = new.partitions, driver.group().epoch
    back = ClassicClient(driver, instance_id="i2")
    assert back.join().error_code == 0
    assert isinstance(driver.group(), ClassicGroup)
    assert driver.state() is GroupState.STABLE
    assert back.generation == epoch
    assert back.sync().error_code == 0
    assert back.partitions == before
    assert driver.heartbeat(old.member_id, old.generation, instance_id="i1") == 0
    assert driver.beat("new", new.epoch, instance_id="i2").error_code == ErrorCode.GROUP_ID_NOT_FOUND
    driver.restart()
    assert driver.state() is GroupState.STABLE
    assert driver.heartbeat(back.member_id, back.generation, instance_id="i2") == 0


def test_a_group_on_the_move_rebalances_when_its_last_consumer_member_becomes_classic(driver):
    """A member has not revoked a partition of another's target: with the targets as assignments both would have it."""
    old = ClassicClient(driver, protocol=COOPERATIVE, instance_id="i1")
    new = Client(driver, "new", instance_id="i2")
    settle_all(driver, new, old)
    third = ClassicClient(driver, protocol=COOPERATIVE)
    third.join()
    back = ClassicClient(driver, protocol=COOPERATIVE, instance_id="i2")
    back.join()
    assert driver.state() is GroupState.PREPARING_REBALANCE
    assert driver.answers[driver.sync(third.member_id, third.generation)].error_code != 0


def test_a_classic_member_that_was_thrown_out_lets_go_of_what_it_had(driver):
    old, new = ClassicClient(driver, protocol=COOPERATIVE), Client(driver, "new")
    settle_all(driver, new, old)
    driver.leave(old.member_id)
    settle(new)
    assert old.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_what_a_cooperative_member_still_has_to_give_up_is_not_given_away_by_an_upgrade(driver):
    """KIP-429: the leader has revoked partitions of it, and it has not received that assignment."""
    [client] = classic_group(driver, 1, protocol=COOPERATIVE)
    metadata = subscription(["t"], {"t": range(6)})
    driver.answers.pop(driver.join(client.member_id, names=(COOPERATIVE,), metadata=metadata))
    generation = driver.group().generation
    driver.sync(client.member_id, generation, {client.member_id: assignment({"t": range(4)})})
    new = Client(driver, "new")
    new.beat()
    new.reconcile()
    assert new.partitions == set()
    client.generation, client.owned = generation, {"t": set(range(6))}
    settle_all(driver, new, client)
    assert len(new.partitions) == 3


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_static_member_that_upgrades_the_group_disturbs_it_only_when_the_leader_was_not_done(driver, is_whole):
    [client] = classic_group(driver, 1, instance_id="i1")
    if not is_whole:
        driver.join(client.member_id, metadata=subscription(["t"], {"t": [0]}), instance_id="i1")
        assignments = {client.member_id: assignment({"t": range(4)})}
        driver.sync(client.member_id, driver.group().generation, assignments, instance_id="i1")
    generation = driver.group().generation
    new = Client(driver, "new", instance_id="i1")
    settle(new)
    assert len(new.partitions) == 6
    assert driver.group().epoch == (generation if is_whole else generation + 1)


def test_a_subscription_by_regular_expression_ends_with_a_classic_join():
    driver = new_driver(cluster=GroupTopics(t=2, u=2))
    new, static = Client(driver, "new"), Client(driver, "static", topics=(), regex="[tu]", instance_id="i1")
    settle(new, static)
    assert driver.group().regexes
    old = ClassicClient(driver, instance_id="i1", topics=("u",))
    settle_all(driver, new, old)
    assert not driver.group().regexes
    assert old.partitions == {(topic_id("u"), 0), (topic_id("u"), 1)}
    driver.restart()
    assert not driver.group().regexes


def test_offsets_of_classic_members_are_committed_in_their_generation(driver):
    new, old = Client(driver, "new"), ClassicClient(driver)
    settle_all(driver, new, old)
    assert driver.commit(5, member_id=old.member_id, generation=old.generation, topic_id=topic_id("t")) == 0
    stale = driver.commit(6, member_id=old.member_id, generation=old.generation + 1, topic_id=topic_id("t"))
    assert stale == ErrorCode.ILLEGAL_GENERATION
