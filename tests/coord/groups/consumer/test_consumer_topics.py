"""G3: topics that are created, deleted or changed, and subscriptions by regular expression (KIP-848, KIP-1101)."""

from __future__ import annotations

import pytest

from barnabas.coord.groups.consumer import regex_resolution
from barnabas.coord.groups.consumer.regex import matching
from barnabas.coord.groups.consumer.regex_resolution import (
    MATCHES_PER_STEP,
    REFRESH_MAX_S,
    REFRESH_MIN_S,
    STEP_PAUSE_S,
)
from barnabas.coord.groups.modern.metadata_hash import group_hash
from barnabas.wire.errors import ErrorCode
from tests.coord.groups.cluster_driver import GroupTopics, topic_id
from tests.coord.groups.consumer.consumer_driver import Client, ConsumerDriver, given, settle

T, U = topic_id("t"), topic_id("u")
E = ErrorCode


@pytest.fixture
def cluster():
    return GroupTopics(t=3)


@pytest.fixture
def driver(cluster):
    return ConsumerDriver(cluster)


class TestTopicsChange:
    @pytest.fixture
    def client(self, driver):
        client = Client(driver, "m1", topics=["t", "u"])
        settle(client)
        return client

    def test_a_topic_that_comes_is_assigned_at_the_next_heartbeat(self, driver, cluster, client):
        cluster.create("u", 2)
        driver.changed("u")
        epoch = driver.group().epoch
        assert given(client.beat()) == {T: {0, 1, 2}, U: {0, 1}}
        assert driver.group().epoch == epoch + 1

    def test_so_are_partitions_that_come(self, driver, cluster, client):
        cluster.create("t", 5)
        driver.changed("t")
        assert given(client.beat()) == {T: {0, 1, 2, 3, 4}}

    def test_a_topic_that_goes_is_given_up(self, driver, cluster, client):
        cluster.create("u", 2)
        driver.changed("u")
        settle(client)
        del cluster.topics["u"]
        driver.changed("u")
        assert given(client.beat()) == {T: {0, 1, 2}}

    def test_another_topic_of_the_same_name_is_another_topic(self, driver, cluster, client):
        cluster.create("t", 3, incarnation=2)
        driver.changed("t")
        settle(client)
        assert client.owned == {topic_id("t2"): {0, 1, 2}}

    def test_a_change_of_other_topics_is_none(self, driver, cluster, client):
        cluster.create("other", 2)
        driver.changed("other")
        written = len(driver.log)
        client.beat()
        assert len(driver.log) == written
        assert not driver.group().is_metadata_stale

    def test_a_change_that_changes_nothing_costs_no_epoch(self, driver, client):
        driver.changed("t")
        epoch = driver.group().epoch
        client.beat()
        assert driver.group().epoch == epoch
        assert not driver.group().is_metadata_stale

    def test_replicas_on_other_racks_are_a_change(self, driver, cluster, client):
        cluster.create("t", 3, racks=(frozenset("a"), frozenset("b"), frozenset("c")))
        driver.changed("t")
        epoch = driver.group().epoch
        client.beat()
        assert driver.group().epoch == epoch + 1

    def test_what_changed_while_the_coordinator_was_away_is_found(self, driver, cluster, client):
        cluster.create("u", 2)
        driver.restart()
        assert given(client.beat()) == {T: {0, 1, 2}, U: {0, 1}}

    def test_and_nothing_is_written_when_nothing_changed(self, driver, client):
        driver.restart()
        written = len(driver.log)
        client.beat()
        assert len(driver.log) == written

    def test_a_change_that_cannot_be_written_is_looked_at_again(self, driver, cluster, client):
        cluster.create("u", 2)
        driver.changed("u")
        driver.append_error = E.NOT_ENOUGH_REPLICAS
        assert client.beat().error_code == E.COORDINATOR_NOT_AVAILABLE
        driver.append_error = None
        assert given(client.beat()) == {T: {0, 1, 2}, U: {0, 1}}


class TestRegularExpressions:
    def test_are_resolved_after_the_heartbeat_that_brings_them(self, driver, cluster):
        """As in Kafka: the partitions come with a later heartbeat, which is asked for soon."""
        cluster.create("u", 1)
        client = Client(driver, "m1", topics=["u"], regex="[tu]")
        assert given(client.beat()) == {U: {0}}
        assert client.interval_ms == 500
        assert driver.group().regexes == {}
        client.reconcile()
        epoch = driver.group().epoch
        driver.resolve()
        assert driver.group().regexes["[tu]"].topics == {"t", "u"}
        assert driver.group().epoch == epoch + 1
        assert given(client.beat()) == {T: {0, 1, 2}, U: {0}}

    def test_of_a_member_that_is_there_cost_an_epoch_once_they_are_resolved(self, driver, cluster):
        client = Client(driver, "m1", topics=[], regex=None)
        settle(client)
        client.regex, client.sends_all = "t", True
        epoch = driver.group().epoch
        client.beat()
        assert driver.group().epoch == epoch
        driver.resolve()
        assert driver.group().epoch == epoch + 1

    def test_that_another_member_has_are_resolved_already(self, driver):
        settle(Client(driver, "m1", topics=[], regex="t"))
        assert given(driver.beat("m2", subscribed_topic_regex="t")) == {}
        assert set(driver.group().target) == {"m1", "m2"}
        assert sum(len(driver.group().target[name].get(T, ())) for name in ("m1", "m2")) == 3

    def test_over_many_topics_are_resolved_in_small_steps(self, driver, cluster):
        for number in range(3 * MATCHES_PER_STEP):
            cluster.create(f"n{number}", 1)
        driver.beat("m1", subscribed_topic_regex="n[0-9]*1")
        steps = 0
        while not driver.group().regexes:
            driver.advance(STEP_PAUSE_S)
            steps += 1
        assert steps == 4
        assert len(driver.group().regexes["n[0-9]*1"].topics) == 3 * MATCHES_PER_STEP / 10

    def test_of_others_are_not_looked_at_with_each_new_one(self, driver, cluster, monkeypatch):
        """Else the work for a flood of members with expressions grows with its square."""
        for number in range(20):
            driver.beat(f"m{number}", subscribed_topic_regex=f"t|{number}")
        driver.resolve()
        matched = []
        monkeypatch.setattr(
            regex_resolution, "matching", lambda regex, names: matched.append(regex) or matching(regex, names)
        )
        driver.beat("other", subscribed_topic_regex="t|other")
        driver.resolve()
        assert matched == ["t|other"]
        matched.clear()
        cluster.create("u", 1)
        driver.changed("u")
        driver.advance(REFRESH_MIN_S)
        driver.resolve()
        assert len(matched) == 21

    def test_have_to_match_the_whole_name(self, driver, cluster):
        cluster.create("tt", 1)
        client = Client(driver, "m1", topics=[], regex="t")
        settle(client)
        assert client.owned == {T: {0, 1, 2}}

    def test_that_are_none_are_refused(self, driver):
        response = driver.beat("m1", subscribed_topic_regex="(")
        assert response.error_code == E.INVALID_REGULAR_EXPRESSION
        assert driver.log == []

    def test_take_in_topics_that_come_and_let_go_of_those_that_go(self, driver, cluster):
        client = Client(driver, "m1", topics=[], regex="t|u.*")
        settle(client)
        cluster.create("u1", 2)
        cluster.create("other", 2)
        driver.changed("u1", "other")
        driver.advance(REFRESH_MIN_S)
        settle(client)
        assert set(client.owned) == {T, topic_id("u1")}
        del cluster.topics["t"]
        driver.changed("t")
        settle(client)
        assert set(client.owned) == {topic_id("u1")}, "a deleted topic is not assigned, whatever is resolved"
        driver.advance(REFRESH_MIN_S)
        driver.resolve()
        assert driver.group().regexes["t|u.*"].topics == {"u1"}

    def test_are_refreshed_every_ten_seconds_at_most(self, driver, cluster):
        client = Client(driver, "m1", topics=[], regex="t|u.*")
        settle(client)
        driver.advance(REFRESH_MIN_S)
        driver.resolve()
        cluster.create("u1", 1)
        driver.changed("u1")
        driver.resolve()
        assert "u1" in driver.group().regexes["t|u.*"].topics
        cluster.create("u2", 1)
        driver.changed("u2")
        driver.advance(REFRESH_MIN_S - 0.1)
        assert "u2" not in driver.group().regexes["t|u.*"].topics
        driver.advance(0.1)
        driver.resolve()
        assert "u2" in driver.group().regexes["t|u.*"].topics

    def test_are_refreshed_after_ten_minutes_though_nothing_is_known_to_have_changed(self, driver, cluster):
        client = Client(driver, "m1", topics=[], regex="t|u")
        settle(client)
        cluster.create("u", 1)
        for _ in range(20):
            driver.advance(REFRESH_MAX_S / 20)
            settle(client)
        assert set(client.owned) == {T, U}

    def test_that_cannot_be_written_are_resolved_again(self, driver):
        client = Client(driver, "m1", topics=[], regex="t")
        client.beat()
        driver.append_error = E.NOT_ENOUGH_REPLICAS
        driver.resolve()
        driver.append_error = None
        assert driver.group().regexes == {}
        driver.advance(REFRESH_MIN_S)
        settle(client)
        assert client.owned == {T: {0, 1, 2}}

    def test_of_members_that_leave_before_are_not_resolved(self, driver):
        driver.beat("m1", subscribed_topic_regex="t")
        driver.beat("m1", -1)
        written = len(driver.log)
        driver.advance(REFRESH_MAX_S)
        assert len(driver.log) == written

    def test_are_added_to_the_names(self, driver, cluster):
        cluster.create("u", 1)
        client = Client(driver, "m1", topics=["u"], regex="t")
        settle(client)
        assert set(client.owned) == {T, U}

    def test_are_kept_once_for_all_who_use_them(self, driver, cluster):
        driver.beat("m1", subscribed_topic_regex="t")
        driver.beat("m2", subscribed_topic_regex="t")
        driver.resolve()
        assert driver.group().regex_counts == {"t": 2}
        driver.beat("m1", -1)
        assert "t" in driver.group().regexes
        driver.beat("m2", -1)
        assert driver.group().regexes == {}

    def test_go_when_their_last_user_takes_another(self, driver, cluster):
        cluster.create("u", 1)
        client = Client(driver, "m1", topics=[], regex="t")
        settle(client)
        client.regex, client.sends_all = "u", True
        settle(client)
        assert set(driver.group().regexes) == {"u"}
        assert set(client.owned) == {U}

    def test_an_empty_one_ends_the_subscription(self, driver):
        client = Client(driver, "m1", topics=[], regex="t")
        settle(client)
        client.regex, client.sends_all = "", True
        settle(client)
        assert driver.group().regexes == {}
        assert client.owned == {}

    def test_survive_a_restart(self, driver, cluster):
        client = Client(driver, "m1", topics=[], regex="t|u")
        settle(client)
        cluster.create("u", 1)
        driver.restart()
        settle(client)
        settle(client)
        assert set(client.owned) == {T, U}

    def test_of_a_topic_keep_its_offsets_from_being_deleted(self, driver):
        driver.beat("m1", subscribed_topic_regex="t")
        driver.resolve()
        assert driver.group().is_subscribed_to("t")
        assert not driver.group().is_subscribed_to("u")


class TestMetadataHash:
    def test_tells_topics_apart_by_all_that_assignments_depend_on(self, cluster):
        hashes = {group_hash(["t"], cluster)}
        cluster.create("t", 4)
        hashes.add(group_hash(["t"], cluster))
        cluster.create("t", 4, incarnation=2)
        hashes.add(group_hash(["t"], cluster))
        cluster.create("t", 4, incarnation=2, racks=(frozenset("a"),) * 4)
        hashes.add(group_hash(["t"], cluster))
        cluster.create("u", 4)
        hashes.add(group_hash(["t", "u"], cluster))
        hashes.add(group_hash(["u"], cluster))
        assert len(hashes) == 6

    def test_does_not_know_the_order_of_names_nor_topics_that_do_not_exist(self, cluster):
        cluster.create("u", 4)
        assert group_hash(["t", "u"], cluster) == group_hash(["u", "nothing", "t", "t"], cluster)

    def test_of_nothing_is_0(self, cluster):
        assert group_hash([], cluster) == group_hash(["nothing"], cluster) == 0
