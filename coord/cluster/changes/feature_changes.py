"""UpdateFeatures: validates new feature levels and returns them as records (KIP-584, KIP-778, KIP-1022).

Either all updates of a request are applied or none. Every node must support the level. A lower level must be requested
as a downgrade, and metadata.version can only be downgraded when no metadata would be lost. Source: Kafka 4.4
`FeatureControlManager`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.coord.cluster.image import KRAFT_VERSION_FEATURE, METADATA_VERSION_FEATURE, ClusterImage
from barnabas.coord.cluster.node_records import ELR_FEATURE
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.records.metadata_records import FeatureLevelRecord

ELR_SINCE: Final = 23
"""The metadata.version that eligible.leader.replicas.version needs (4.0-IV1)."""

Range = tuple[int, int]
UNSUPPORTED: Final[Range] = (0, 0)

METADATA_CHANGED_AT: Final = frozenset({7, 8, 11, 13, 14, 15, 23, 30, 32, 33})
"""Levels of metadata.version that added records or fields (Kafka's `MetadataVersion.didMetadataChange`)."""


_DEPENDENT: Final = (METADATA_VERSION_FEATURE, ELR_FEATURE)


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
        records = [record for update in last.values() for record in self._update_one(update)]
        self._check_dependencies(last)
        return records

    def _check_dependencies(self, updates: Mapping[str, FeatureUpdate]) -> None:
        """Raise unless the features that others need are there when all updates are made."""
        levels = {name: updates[name].level if name in updates else self._level(name) for name in _DEPENDENT}
        if levels[ELR_FEATURE] and levels[METADATA_VERSION_FEATURE] < ELR_SINCE:
            raise KafkaError(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"{ELR_FEATURE} could not be set to {levels[ELR_FEATURE]} because it depends on "
                f"{METADATA_VERSION_FEATURE} level {ELR_SINCE}",
            )

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
        if name == KRAFT_VERSION_FEATURE:
            return self._update_quorum(update, current)
        if name == METADATA_VERSION_FEATURE and level < current:
            _check_downgrade(current, level, is_unsafe=upgrade_type == UpgradeType.UNSAFE_DOWNGRADE)
        return [FeatureLevelRecord(name=name, feature_level=level)]

    @staticmethod
    def _update_quorum(update: FeatureUpdate, current: int) -> list[FeatureLevelRecord]:
        """kraft.version is in the control records that the log begins with, so only its present level is accepted."""
        if update.level < current:
            raise _refused(update, "Can't downgrade the version of this feature.")
        if update.level > current:
            raise _refused(update, "The voters of this quorum are configured; they are not in its log.")
        return []

    def _level(self, name: str) -> int:
        if name == METADATA_VERSION_FEATURE:
            return self._image.metadata_version
        return self._image.finalized_features.get(name, 0)

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
