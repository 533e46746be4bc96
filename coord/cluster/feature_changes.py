"""UpdateFeatures: validates new feature levels and returns them as records (KIP-584, KIP-778, KIP-1022).

Either all updates of a request are applied or none. Every node must support the level. A lower level must be requested
as a downgrade, and metadata.version can only be downgraded when no metadata would be lost. Source: Kafka 4.4
`FeatureControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.coord.cluster.image import METADATA_VERSION_FEATURE, ClusterImage
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import FeatureLevelRecord

Range = tuple[int, int]
UNSUPPORTED: Final[Range] = (0, 0)

METADATA_CHANGED_AT: Final = frozenset({7, 8, 11, 13, 14, 15, 23, 30, 32, 33})
"""Levels of metadata.version that added records or fields (Kafka's `MetadataVersion.didMetadataChange`)."""


class UpgradeType(IntEnum):
    """The kind of an update, as stated by the client."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """The requested level of one feature."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


class FeatureChanges:
    """Validates updates against the levels that the nodes support."""

    def __init__(self, image: ClusterImage, supported: Mapping[str, Range], node_id: int) -> None:
        """`supported` are the levels that this node supports."""
        self._image = image
        self._supported = supported
        self._node_id = node_id

    def update(self, updates: Iterable[FeatureUpdate]) -> list[FeatureLevelRecord]:
        """Records for these updates; KafkaError(INVALID_UPDATE_VERSION) for the first invalid one."""
        last = {update.name: update for update in updates}
        return [record for update in last.values() for record in self._update_one(update)]

    def _update_one(self, update: FeatureUpdate) -> list[FeatureLevelRecord]:
        name, level, upgrade_type = update
        if upgrade_type not in set(UpgradeType):
            raise _refused(update, "The controller does not support the given upgrade type.")
        if level < 0:
            raise _refused(update, "A feature version cannot be less than 0.")
        self._check_support(update)
        current = self._level(name)
        if level < current and upgrade_type == UpgradeType.UPGRADE:
            raise _refused(
                update,
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
                "downgrade.",
            )
        if level > current and upgrade_type != UpgradeType.UPGRADE:
            raise _refused(update, "Can't downgrade to a newer version.")
        if name == METADATA_VERSION_FEATURE and level < current:
            _check_downgrade(current, level, is_unsafe=upgrade_type == UpgradeType.UNSAFE_DOWNGRADE)
        return [FeatureLevelRecord(name=name, feature_level=level)]

    def _level(self, name: str) -> int:
        return self._image.metadata_version if name == METADATA_VERSION_FEATURE else self._image.features.get(name, 0)

    def _check_support(self, update: FeatureUpdate) -> None:
        """Raise unless every node supports the level."""
        name, level, _ = update
        nodes = {f"Local controller {self._node_id}": self._supported.get(name, UNSUPPORTED)}
        for broker in self._image.brokers.values():
            levels = {
                feature.name: (feature.min_supported_version, feature.max_supported_version)
                for feature in broker.features
            }
            nodes[f"Broker {broker.id}"] = levels.get(name, UNSUPPORTED)
        for node, (low, high) in nodes.items():
            if not low <= level <= high:
                if not high:
                    raise _refused(update, f"{node} does not support this feature.")
                raise _refused(update, f"{node} only supports versions {low if low == high else f'{low}-{high}'}")
        if name not in self._supported and name not in self._image.features:
            raise _refused(update, f"Feature {name} not found.")


def _refused(update: FeatureUpdate, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {update.level} for feature {update.name}. {reason}"
    )


def _check_downgrade(current: int, level: int, *, is_unsafe: bool) -> None:
    """Raise when a level after `level`, up to `current`, has added records or fields."""
    if any(level < changed <= current for changed in METADATA_CHANGED_AT):
        reason = (
            "Unsafe metadata downgrade is not supported in this version."
            if is_unsafe
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"Unsupported metadata.version downgrade from {current} to {level}. {reason}",
        )
