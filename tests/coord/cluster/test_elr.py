"""What eligible.leader.replicas.version changes in configs and features (KIP-966), and the other features.

Cases of Kafka's ConfigurationControlManagerTest and FeatureControlManagerTest.
"""

from __future__ import annotations

import pytest

from barnabas.coord.cluster.delta import FEATURES
from barnabas.coord.cluster.metadata_log.image_diff import image_diff_steps
from barnabas.coord.cluster.node_records import ELR_FEATURE, cluster_bootstrap_records
from barnabas.coord.cluster.resources import BROKER, TOPIC
from barnabas.coord.cluster.topic_image import NO_LEADER
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.cluster import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.wire.messages.records.metadata_records import ClearElrRecord, ConfigRecord, FeatureLevelRecord
from barnabas.wire.steps import result_of
from tests.support.cases import for_each
from tests.support.controller.brokers import Brokers

MIN_ISR = "min.insync.replicas"
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def update(cluster: Brokers, feature: str, level: int, kind: int = UPGRADE, *, validate_only: bool = False) -> None:
    key = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    request = UpdateFeaturesRequest(feature_updates=[key], validate_only=validate_only)
    cluster.commit(cluster.controller.update_features(request))


# Features


def test_a_new_cluster_has_elr_and_one_min_isr() -> None:
    records = cluster_bootstrap_records("2")
    assert ConfigRecord(resource_type=BROKER, resource_name="", name=MIN_ISR, value="2") in records
    assert FeatureLevelRecord(name=ELR_FEATURE, feature_level=1) in records
    assert {record.name for record in records} >= {"metadata.version", "group.version"}  # type: ignore[attr-defined]


def test_elr_is_enabled_with_one_min_isr_for_all_brokers() -> None:
    cluster = Brokers(1, 2, elr=False, settings={MIN_ISR: "2"})
    assert cluster.configure(BROKER, "1", min_insync_replicas="1") == 0
    update(cluster, ELR_FEATURE, 1, validate_only=True)
    assert cluster.records == []
    update(cluster, ELR_FEATURE, 1)
    assert cluster.image.features[ELR_FEATURE] == 1
    assert cluster.image.config(BROKER, "") == {MIN_ISR: "2"}
    assert cluster.image.config(BROKER, "1") == {}


def test_a_min_isr_of_the_cluster_stays_when_elr_is_enabled() -> None:
    cluster = Brokers(1, elr=False, settings={MIN_ISR: "2"})
    cluster.configure(BROKER, "", min_insync_replicas="3")
    update(cluster, ELR_FEATURE, 1)
    assert cluster.image.config(BROKER, "") == {MIN_ISR: "3"}


def test_elr_is_disabled_and_nobody_is_forgotten() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.create("orders", [1, 2, 3], [3, 1, 2], min_insync_replicas="2")
    cluster.fence(2)
    cluster.fence(1)
    assert cluster.state("orders", 1) == (3, [3], [1])
    cluster.fence(3)
    assert cluster.state("orders") == (NO_LEADER, [], [1, 3])
    update(cluster, ELR_FEATURE, 0, SAFE_DOWNGRADE)
    assert cluster.state("orders") == (NO_LEADER, [1, 3], [])
    cluster.start(1)
    assert cluster.state("orders")[0] == 1


@for_each(
    ("feature", "level", "kind", "message"),
    [
        (ELR_FEATURE, 2, UPGRADE, "Local controller 3000 only supports versions 0-1"),
        (ELR_FEATURE, 0, UPGRADE, "Can't downgrade the version of this feature without setting the upgrade type"),
        ("kraft.version", 0, SAFE_DOWNGRADE, "Can't downgrade the version of this feature."),
        ("metadata.version", 22, UNSAFE_DOWNGRADE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_updates_that_are_refused(feature: str, level: int, kind: int, message: str) -> None:
    cluster = Brokers(1)
    cluster.image.quorum = cluster.image.quorum._replace(kraft_version=1)
    with pytest.raises(KafkaError) as raised:
        update(cluster, feature, level, kind)
    assert raised.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert message in (raised.value.message or "")


def test_kraft_version_is_that_of_the_log() -> None:
    cluster = Brokers(1)
    cluster.image.quorum = cluster.image.quorum._replace(kraft_version=1)
    assert cluster.image.finalized_features["kraft.version"] == 1
    update(cluster, "kraft.version", 1)
    assert cluster.records == []


def test_elr_depends_on_metadata_version() -> None:
    cluster = Brokers(1, elr=False)
    cluster.image.features["metadata.version"] = 22
    with pytest.raises(KafkaError, match=r"depends on metadata\.version level 23"):
        update(cluster, ELR_FEATURE, 1)


# min.insync.replicas


def test_with_elr_min_isr_is_set_for_the_cluster_and_for_topics_only() -> None:
    cluster = Brokers(1)
    cluster.create("orders", [1])
    assert cluster.configure(BROKER, "1", min_insync_replicas="2") == ErrorCode.INVALID_CONFIG
    assert cluster.message == "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
    assert cluster.configure(BROKER, "", min_insync_replicas="2") == 0
    assert cluster.configure(BROKER, "", min_insync_replicas=None) == ErrorCode.INVALID_CONFIG
    assert cluster.message == "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
    assert cluster.configure(TOPIC, "orders", min_insync_replicas="1") == 0
    assert cluster.configure(TOPIC, "orders", min_insync_replicas=None) == 0


@pytest.mark.parametrize(
    ("kind", "name", "cleared", "ended"),
    [(TOPIC, "orders", "orders", {"orders"}), (BROKER, "", "", {"orders", "others"})],
)
def test_another_min_isr_ends_the_elr(kind: int, name: str, cleared: str, ended: set[str]) -> None:
    cluster = Brokers(1, 2)
    for topic in ("orders", "others"):
        cluster.create(topic, [1, 2], min_insync_replicas="2")
    cluster.fence(2)
    assert cluster.state("orders") == (1, [1], [2])
    assert cluster.configure(kind, name, min_insync_replicas="1") == 0
    assert cluster.records[-1] == ClearElrRecord(topic_name=cleared)
    for topic in ("orders", "others"):
        assert cluster.state(topic) == (1, [1], [] if topic in ended else [2])


def test_a_partition_without_an_isr_keeps_its_elr() -> None:
    """No other broker could lead it, and nothing was acknowledged since."""
    cluster = Brokers(1, 2)
    cluster.create("orders", [1, 2], [2, 1], min_insync_replicas="2")
    cluster.fence(2)
    cluster.fence(1)
    cluster.configure(TOPIC, "orders", min_insync_replicas="1")
    assert cluster.state("orders") == (NO_LEADER, [], [1, 2])
    cluster.start(2, previous_epoch=cluster.image.brokers[2].epoch)
    assert cluster.state("orders") == (2, [2], [])


def test_other_changes_leave_the_elr() -> None:
    cluster = Brokers(1, 2)
    cluster.create("orders", [1, 2], min_insync_replicas="2")
    cluster.fence(2)
    cluster.configure(TOPIC, "orders", retention_ms="1000")
    assert cluster.state("orders") == (1, [1], [2])


# Configs of brokers


def test_configs_of_every_registered_broker_are_changed_here() -> None:
    cluster = Brokers(1, 2)
    assert cluster.configure(BROKER, "2", max_connections="7") == 0
    assert cluster.image.config(BROKER, "2") == {"max.connections": "7"}
    assert cluster.configure(BROKER, "3000", max_connections="7") == 0  # the controller itself
    assert cluster.configure(BROKER, "9", max_connections="7") == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert cluster.configure(BROKER, "x", max_connections="7") == ErrorCode.INVALID_REQUEST


# Placement of new topics over brokers that are fenced


def test_replicas_on_fenced_brokers_are_not_in_sync() -> None:
    cluster = Brokers(1, 2, 3)
    cluster.fence(3)
    assert cluster.place("orders", 4, 3).error_code == 0
    for part in cluster.image.topics["orders"].partitions.values():
        assert set(part.replicas) == {1, 2, 3}
        assert set(part.isr) == {1, 2}
        assert part.leader != 3
    assert cluster.create("manual", [3, 1]).error_code == 0
    assert cluster.state("manual") == (1, [1], [])
    refused = cluster.create("nobody", [3])
    assert (refused.error_code, refused.error_message) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        (
            "All brokers specified in the manual partition assignment for partition 0 are fenced or in controlled "
            "shutdown."
        ),
    )
    assert "nobody" not in cluster.image.topics
    assert cluster.records == []


def test_no_topic_without_a_live_broker() -> None:
    cluster = Brokers(1)
    cluster.fence(1)
    refused = cluster.place("orders", 1, 1)
    assert refused.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert refused.error_message == (
        "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log "
        "directories cordoned."
    )


def test_racks_share_the_replicas() -> None:
    cluster = Brokers(1, 2, 3, 4, racks={1: "a", 2: "a", 3: "b", 4: "b"})
    cluster.place("orders", 8, 2)
    parts = cluster.image.topics["orders"].partitions.values()
    assert all({replica > 2 for replica in part.replicas} == {False, True} for part in parts)
    assert {part.leader for part in parts} == {1, 2, 3, 4}


# The difference of two images, for snapshots


def test_the_difference_of_two_images() -> None:
    old, new = Brokers(1, 2), Brokers(1, 2)
    for cluster in (old, new):
        cluster.create("same", [1, 2])
        cluster.create("other", [1, 2])
    old.create("gone", [1])
    old.configure(TOPIC, "same", retention_ms="1")
    new.create("a", [1], [2])
    new.alter("other", [1])
    new.start(3)
    update(new, "share.version", 0, UNSAFE_DOWNGRADE)
    new.image.next_producer_id = 1000
    delta = result_of(image_diff_steps(old.image, new.image))
    names = {topic.name for topic in delta.created_topics.values()}
    gone = old.image.topics["gone"].topic_id
    if gone in new.image.topics_by_id:  # both images number their topics alike
        assert names == set()
    changed = {(topic.name, index) for (_, index), topic in delta.changed_partitions.items()}
    assert ("other", 0) in changed
    assert ("same", 0) not in changed
    assert delta.changed_brokers == {3}
    assert (TOPIC, "same") in delta.changed_configs
    assert delta.other_changes == {FEATURES, "producer ids"}


def test_topics_come_and_go_between_two_images() -> None:
    old, new = Brokers(1), Brokers(1)
    old.create("gone", [1])
    new.image.topics.clear()
    for _ in range(5):
        next(new.uuids)
    new.create("here", [1], [1])
    delta = result_of(image_diff_steps(old.image, new.image))
    assert [topic.name for topic in delta.deleted_topics.values()] == ["gone"]
    assert delta.removed_topic_ids == set(delta.deleted_topics)
    assert [topic.name for topic in delta.created_topics.values()] == ["here"]
    assert [index for _, index in delta.new_partitions] == [0, 1]
    assert not result_of(image_diff_steps(new.image, new.image)).created_topics
