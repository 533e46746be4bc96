"""KIP-584, KIP-778: validation of feature levels, with Kafka's messages."""

from __future__ import annotations

import pytest

from barnabas.coord.cluster.changes.feature_changes import FeatureChanges, FeatureUpdate, UpgradeType
from barnabas.coord.cluster.delta import ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.metadata_log.replay import replay_record
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import BrokerFeature, FeatureLevelRecord, RegisterBrokerRecord
from tests.support.cases import for_each

UPGRADE, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
SUPPORTED = {"metadata.version": (7, 33), "group.version": (0, 1), "share.version": (0, 2)}


NOT_A_DOWNGRADE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
)


@pytest.fixture
def image() -> ClusterImage:
    image = ClusterImage()
    for name, level in {"metadata.version": 29, "share.version": 1, "other.version": 3}.items():
        replay_record(image, FeatureLevelRecord(name=name, feature_level=level), ClusterDelta())
    features = [
        BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in {**SUPPORTED, "share.version": (0, 1)}.items()
    ]
    replay_record(image, RegisterBrokerRecord(broker_id=1, broker_epoch=5, features=features), ClusterDelta())
    return image


def update(image: ClusterImage, *updates: tuple[str, int, int]) -> dict[str, int]:
    records = FeatureChanges(image, SUPPORTED, 1).update(FeatureUpdate(*fields) for fields in updates)
    return {record.name: record.feature_level for record in records}


def test_one_request_may_raise_and_lower_levels(image: ClusterImage) -> None:
    updates = (("group.version", 1, UPGRADE), ("share.version", 0, SAFE), ("metadata.version", 33, UPGRADE))
    assert update(image, *updates) == {"group.version": 1, "share.version": 0, "metadata.version": 33}


def test_the_current_level_may_be_set_again(image: ClusterImage) -> None:
    assert update(image, ("share.version", 1, UPGRADE)) == {"share.version": 1}


def test_an_unsupported_feature_can_be_removed(image: ClusterImage) -> None:
    assert update(image, ("other.version", 0, SAFE)) == {"other.version": 0}


def test_metadata_version_can_be_lowered_when_the_format_did_not_change(image: ClusterImage) -> None:
    assert update(image, ("metadata.version", 23, SAFE)) == {"metadata.version": 23}


@for_each(
    ("updates", "message"),
    [
        (("group.version", 1, 0), "The controller does not support the given upgrade type."),
        (("group.version", -1, UPGRADE), "A feature version cannot be less than 0."),
        (("group.version", 2, UPGRADE), "Local controller 1 only supports versions 0-1"),
        (("share.version", 2, UPGRADE), "Broker 1 only supports versions 0-1"),
        (("no.such.version", 1, UPGRADE), "Local controller 1 does not support this feature."),
        (("no.such.version", 0, UPGRADE), "Feature no.such.version not found."),
        (
            ("share.version", 0, UPGRADE),
            NOT_A_DOWNGRADE,
        ),
        (("group.version", 1, SAFE), "Can't downgrade to a newer version."),
        (("metadata.version", 6, SAFE), "Local controller 1 only supports versions 7-33"),
    ],
)
def test_invalid_updates_are_refused_with_a_reason(
    image: ClusterImage, updates: tuple[str, int, int], message: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        update(image, updates)
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.value.message == f"Invalid update version {updates[1]} for feature {updates[0]}. {message}"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (SAFE, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
    ],
)
def test_metadata_version_is_not_lowered_when_metadata_could_be_lost(
    image: ClusterImage, kind: int, reason: str
) -> None:
    with pytest.raises(KafkaError, match=r"Unsupported metadata.version downgrade from 29 to 22. ") as refused:
        update(image, ("metadata.version", 22, kind))
    assert str(refused.value.message).endswith(reason)


def test_one_invalid_update_refuses_all(image: ClusterImage) -> None:
    with pytest.raises(KafkaError):
        update(image, ("group.version", 1, UPGRADE), ("share.version", 9, UPGRADE))
