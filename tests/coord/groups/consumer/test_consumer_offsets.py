"""G2, G3: offsets of consumer groups: which members may commit, fetch and delete them (KIP-848, KIP-1251)."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.context import ClientContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import offsets as o
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import Client, ConsumerDriver, settle

T = topic_id("t")
E = ErrorCode


@pytest.fixture
def driver():
    return ConsumerDriver(GroupTopics(t=6))


@pytest.fixture
def client(driver):
    client = Client(driver, "m1")
    settle(client)
    return client


def commit(driver, member_id="m1", epoch=2, *, partition=0, version=10, producer=None, instance_id=None):
    committed = o.OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    topic = o.OffsetCommitRequestTopic(name="t", topic_id=T, partitions=[committed])
    request = o.OffsetCommitRequest(
        group_id="g",
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        group_instance_id=instance_id,
        topics=[topic],
    )
    context = ClientContext("client", "/127.0.0.1", version)
    driver.handle(driver.coordinator.offsets.commit(request, "commit", context, driver.at, producer))
    return driver.answers.pop("commit").topics[0].partitions[0].error_code


def fetch(driver, member_id=None, epoch=-1):
    return driver.fetch_all(member_id=member_id, epoch=epoch)


class TestCommits:
    def test_of_a_member_in_its_epoch(self, driver, client):
        assert commit(driver) == 0
        assert fetch(driver).topics[0].partitions[0].committed_offset == 5

    def test_of_a_member_that_is_not_there(self, driver, client):
        assert commit(driver, "other") == E.UNKNOWN_MEMBER_ID
        assert commit(driver, "", -1) == E.UNKNOWN_MEMBER_ID, "nobody in particular commits to a group with members"

    def test_of_an_epoch_ahead(self, driver, client):
        assert commit(driver, epoch=3) == E.STALE_MEMBER_EPOCH

    def test_of_an_earlier_epoch_for_what_the_member_has_had_since(self, driver, client):
        settle(client, Client(driver, "m2"))
        partition = min(client.owned[T])
        lost = min(set(range(6)) - client.owned[T])
        assert client.epoch == 3
        assert commit(driver, epoch=2, partition=partition) == 0
        assert commit(driver, epoch=2, partition=lost) == E.STALE_MEMBER_EPOCH
        assert commit(driver, epoch=3, partition=lost) == 0, "in its epoch a member may commit anything"

    def test_of_what_the_member_is_giving_up(self, driver, client):
        driver.beat("m2")
        client.beat()
        going = min(driver.group().members["m1"].revoking[T])
        group = driver.group()
        group.put_member(group.members["m1"]._replace(epoch=4))
        assert commit(driver, epoch=2, partition=going) == 0
        assert commit(driver, epoch=1, partition=going) == E.STALE_MEMBER_EPOCH

    def test_of_what_came_later_than_the_epoch(self, driver):
        first, second = Client(driver, "m1"), Client(driver, "m2")
        settle(first, second)
        driver.beat("m2", -1)
        settle(first)
        new = min(set(range(6)) - {p for p, since in driver.group().members["m1"].assigned[T].items() if since < 4})
        assert commit(driver, epoch=3, partition=new) == E.STALE_MEMBER_EPOCH

    def test_before_version_9_are_not_supported(self, driver, client):
        assert commit(driver, version=8) == E.UNSUPPORTED_VERSION

    def test_do_not_renew_the_session(self, driver, client):
        driver.advance(44)
        assert commit(driver) == 0
        driver.advance(1)
        assert driver.group().is_empty

    def test_to_an_empty_group_may_be_anybody_s(self, driver, client):
        driver.beat("m1", -1)
        assert commit(driver, "", -1) == 0
        assert commit(driver, "m1", 2) == E.UNKNOWN_MEMBER_ID

    def test_of_a_member_away(self, driver):
        driver.beat("m1", instance_id="i")
        driver.beat("m1", -2, instance_id="i")
        assert commit(driver, epoch=2, instance_id="i") == E.STALE_MEMBER_EPOCH


class TestTransactionalCommits:
    PRODUCER = (7, 0)

    def test_of_a_member(self, driver, client):
        assert commit(driver, version=6, producer=self.PRODUCER) == 0

    def test_of_a_client_that_tells_of_no_member(self, driver, client):
        assert commit(driver, "", -1, version=2, producer=self.PRODUCER) == 0

    def test_of_no_member_but_an_instance(self, driver, client):
        assert commit(driver, "", -1, version=5, producer=self.PRODUCER, instance_id="i") == E.UNKNOWN_MEMBER_ID

    @pytest.mark.parametrize(("version", "error"), [(5, E.ILLEGAL_GENERATION), (6, E.STALE_MEMBER_EPOCH)])
    def test_of_another_epoch(self, driver, client, version, error):
        assert commit(driver, epoch=3, version=version, producer=self.PRODUCER) == error

    def test_of_a_group_that_is_not_there(self, driver):
        assert commit(driver, version=5, producer=self.PRODUCER) == E.ILLEGAL_GENERATION
        assert commit(driver, version=6, producer=self.PRODUCER) == E.GROUP_ID_NOT_FOUND


class TestFetches:
    def test_of_anybody_and_of_members_in_their_epoch(self, driver, client):
        assert fetch(driver).error_code == 0
        assert fetch(driver, "m1", 2).error_code == 0

    def test_of_others(self, driver, client):
        assert fetch(driver, "m1", 3).error_code == E.STALE_MEMBER_EPOCH
        assert fetch(driver, "m1", 1).error_code == E.STALE_MEMBER_EPOCH
        assert fetch(driver, "other", 1).error_code == E.UNKNOWN_MEMBER_ID
        assert fetch(driver, None, 1).error_code == E.UNKNOWN_MEMBER_ID

    def test_of_a_group_that_is_not_there(self, driver):
        assert fetch(driver, "m1", 1).error_code == 0


class TestAdministration:
    def test_a_group_with_members_is_not_deleted(self, driver, client):
        driver.handle(driver.coordinator.delete_group("g", "x"))
        assert driver.answers["x"].error_code == E.NON_EMPTY_GROUP

    def test_an_empty_one_is_with_all_its_records(self, driver, client):
        commit(driver)
        driver.beat("m1", -1)
        driver.handle(driver.coordinator.delete_group("g", "x"))
        assert driver.answers["x"].error_code == 0
        assert driver.coordinator.groups == {}
        assert fetch(driver).topics == []
        last = dict(driver.log)
        assert set(last.values()) == {None}, "of every key the last record is a tombstone"
        driver.restart()
        assert driver.coordinator.groups == {}

    def test_offsets_of_topics_that_are_read_are_not_deleted(self, driver, client):
        commit(driver)
        assert driver.delete_offsets()[1] == E.GROUP_SUBSCRIBED_TO_TOPIC
        driver.beat("m1", 2, subscribed_topic_names=["other"])
        assert driver.delete_offsets() == (0, 0)
        assert fetch(driver).topics == []

    def test_groups_are_listed_by_type_and_state(self, driver, client):
        driver.commit(group_id="simple")
        listed = driver.coordinator.list_groups
        assert [
            (row.group_id, row.group_type, row.group_state, row.protocol_type) for row in listed(types=["Consumer"])
        ] == [("g", "consumer", "Stable", "consumer")]
        assert [row.group_id for row in listed(types=["classic"])] == ["simple"]
        assert [row.group_id for row in listed(states=["stable"])] == ["g"]
        assert {row.group_id for row in listed()} == {"g", "simple"}

    def test_it_is_no_classic_group_to_describe(self, driver, client):
        assert driver.coordinator.describe("g", 6).error_code == E.GROUP_ID_NOT_FOUND
        assert driver.coordinator.describe("g", 5).group_state == "Dead"
