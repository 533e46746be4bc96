"""The difference of two images: the delta of a snapshot that replaces the records that a broker has read so far.

The subscribers of changes then do the same as if they had followed the records. Source: Kafka 4.4
`MetadataDelta.finishSnapshot`.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Mapping
from typing import Final, TypeVar

from barnabas.coord.cluster.delta import FEATURES, QUOTAS, ClusterDelta
from barnabas.coord.cluster.image import ClusterImage
from barnabas.coord.cluster.topic_image import TopicImage

K = TypeVar("K", bound=Hashable)

COMPARED_PER_STEP: Final = 1000
"""The number of partitions or other entries that are compared in one step."""


def image_diff_steps(old: ClusterImage, new: ClusterImage) -> Generator[None, None, ClusterDelta]:
    """The delta that leads from one image to the other; yields after each step. Neither may change meanwhile."""
    delta = ClusterDelta()
    for topic_id, deleted_topic in old.topics_by_id.items():
        if topic_id not in new.topics_by_id:
            delta.removed_topic_ids.add(topic_id)
            delta.deleted_topics[topic_id] = deleted_topic
    compared = 0
    for topic_id, topic in new.topics_by_id.items():
        before = old.topics_by_id.get(topic_id)
        if before is None:
            delta.created_topics[topic_id] = topic
        compared += _compare_partitions(before, topic, delta)
        if compared >= COMPARED_PER_STEP:
            compared = 0
            yield
    delta.changed_configs |= _changed(old.configs, new.configs)
    delta.changed_brokers |= _changed(old.brokers, new.brokers)
    yield
    delta.changed_acls |= _changed(old.acls, new.acls)
    yield
    _compare_others(old, new, delta)
    return delta


def _compare_partitions(before: TopicImage | None, topic: TopicImage, delta: ClusterDelta) -> int:
    """Add the partitions that differ; the number of those compared."""
    known = {} if before is None else before.partitions
    for index, partition in topic.partitions.items():
        earlier = known.get(index)
        if earlier is None:
            delta.new_partitions[topic.topic_id, index] = topic
        elif earlier != partition:
            delta.changed_partitions[topic.topic_id, index] = topic
    return len(topic.partitions) + 1


def _changed(old: Mapping[K, object], new: Mapping[K, object]) -> set[K]:
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def _compare_others(old: ClusterImage, new: ClusterImage, delta: ClusterDelta) -> None:
    """The kinds of metadata that are named in `other_changes` only, as `replay` names them."""
    for what, attributes in _OTHERS.items():
        if any(getattr(old, name) != getattr(new, name) for name in attributes):
            delta.other_changes.add(what)


_OTHERS: Final[dict[str, tuple[str, ...]]] = {
    FEATURES: ("features", "quorum"),
    "producer ids": ("next_producer_id",),
    "acls": ("acls",),
    "scram": ("scram",),
    QUOTAS: ("quotas",),
    "tokens": ("tokens",),
    "controllers": ("controllers",),
}
